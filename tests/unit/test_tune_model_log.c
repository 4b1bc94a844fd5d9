/* The lines are NCCL's, column by column. */
#include "tune/model_log.h"

#include <unistd.h>

#include "base/dtype.h"
#include "model_machine.h"
#include "test.h"

static char log_path[] = "/tmp/weft-model-XXXXXX";
static char content[1 << 16];

static void has(const char *text)
{
	FILE *file = fopen(log_path, "r");
	size_t bytes;

	TRUE(file);
	bytes = fread(content, 1, sizeof(content) - 1, file);
	fclose(file);
	content[bytes] = '\0';
	if (!strstr(content, text)) {
		fprintf(stderr, "%s\nhas not: %s\n", content, text);
		exit(1);
	}
}

static int line_count;

static void count_line(void *arg, const char *text)
{
	(*(int *)arg)++;
	TRUE(strlen(text) < 300);
}

int main(void)
{
	struct cluster cluster;
	struct model_rules rules;
	struct model model;
	struct model_call call = {.func = MODEL_ALL_GATHER,
		.bytes = 1 << 20,
		.pipe_ops = 1,
		.type = DTYPE_INT8};
	struct model_choice choice;
	int fd = mkstemp(log_path);

	TRUE(fd >= 0);
	close(fd);
	setenv("NCCL_DEBUG", "INFO", 1);
	setenv("NCCL_DEBUG_SUBSYS", "ALL", 1);
	setenv("NCCL_DEBUG_FILE", log_path, 1);
	machine_fill(&cluster, 1);
	model_rules_default(&rules);
	model_log_matrix(&rules); /* nothing set: nothing said */
	EQ(model_proto_parse("AllReduce:^LL", &rules), OK);
	model_log_matrix(&rules);
	has("NCCL INFO Enabled NCCL Func/Proto/Algo Matrix:\n");
	has("NCCL INFO      Function |       LL     LL128    Simple   |          Tree    "
	    " "
	    "      Ring  CollNetDirect   CollNetChain           NVLS       NVLSTree      "
	    " "
	    "     PAT  \n");
	has("NCCL INFO     Broadcast |        1         2         1   |             1    "
	    " ");
	has("NCCL INFO     AllReduce |        0         1         1   |             1    "
	    " ");
	TRUE(!strstr(strstr(content, "Matrix") + 1, "Matrix"));
	model_rules_default(&rules);
	EQ(model_make(&cluster, &rules, &model), OK);
	model_log_table(&model);
	has("NCCL INFO   Algorithm   |                            Tree                  "
	    "|");
	has("NCCL INFO   Protocol    |             LL |          LL128 |         Simple "
	    "|");
	has("NCCL INFO  Max NThreads |            512 |            640 |            512 "
	    "|");
	has("NCCL INFO     AllReduce |    15.2/  ");
	has(" |    15.0/  80.");
	model_table(&model, count_line, &line_count);
	EQ(line_count, 24);
	model_log_thresholds(&model);
	has("threadThresholds 8/8/64 | 64/8/64 | 512 | 512\n");
	EQ(model_choose(&model, &call, &choice), OK);
	model_log_choice(&model, &call, &choice);
	has("AllGather: 131072 Bytes -> Algo RING proto LL channel{Lo..Hi}={0..15}\n");
	unlink(log_path);
	return 0;
}
