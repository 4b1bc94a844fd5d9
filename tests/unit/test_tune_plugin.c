/* Plugins of every version are found, asked the right way, and dropped when they fail. */
#include "tune/plugin.h"

#include <unistd.h>

#include "base/dtype.h"
#include "base/log.h"
#include "base/param.h"
#include "model_machine.h"
#include "test.h"

enum { PATH_BYTES = 512 };

static char log_path[] = "/tmp/weft-tuner-XXXXXX";
static char content[1 << 16];

struct session {
	struct cluster cluster;
	struct model_rules rules;
	struct model model;
	struct tuner *tuner;
};

static void name_set(const char *name)
{
	if (name)
		setenv("NCCL_TUNER_PLUGIN", name, 1);
	else
		unsetenv("NCCL_TUNER_PLUGIN");
	param_forget(PARAM_TUNER_PLUGIN);
}

static const char *log_text(void)
{
	FILE *file = fopen(log_path, "r");
	size_t bytes;

	TRUE(file);
	bytes = fread(content, 1, sizeof(content) - 1, file);
	fclose(file);
	content[bytes] = '\0';
	return content;
}

/* How often the log has the text. */
static int said(const char *text)
{
	int count = 0;

	for (const char *at = log_text(); (at = strstr(at, text)); at++)
		count++;
	return count;
}

static void session_open(struct session *s, const char *plugin)
{
	char path[PATH_BYTES];

	snprintf(path, sizeof(path), "%s/%s.so", WEFT_TUNER_FOLDER, plugin);
	name_set(path);
	TRUE(!truncate(log_path, 0));
	machine_fill(&s->cluster, 1);
	model_rules_default(&s->rules);
	s->tuner = tuner_open(&s->cluster, 0xabcdef, &s->rules);
	EQ(model_make(&s->cluster, &s->rules, &s->model), OK);
}

static struct model_choice ask(struct session *s, enum model_func func, uint64_t bytes)
{
	struct model_call call = {
		.func = func, .bytes = bytes, .pipe_ops = 1, .type = DTYPE_FLOAT32};
	struct model_choice choice;

	EQ(tuner_choose(s->tuner, &s->model, &call, &choice), OK);
	return choice;
}

static void is_own_choice(struct session *s, enum model_func func, uint64_t bytes)
{
	struct model_call call = {
		.func = func, .bytes = bytes, .pipe_ops = 1, .type = DTYPE_FLOAT32};
	struct model_choice own, got = ask(s, func, bytes);

	EQ(model_choose(&s->model, &call, &own), OK);
	EQ(own.algo, got.algo);
	EQ(own.proto, got.proto);
	EQ(own.channels, got.channels);
	EQ(own.threads, got.threads);
}

static void version_2(void)
{
	struct session s;
	struct model_choice choice;

	session_open(&s, "tuner_v2");
	TRUE(s.tuner);
	EQ(tuner_version(s.tuner), 2);
	EQ_STR(tuner_name(s.tuner), "two");
	EQ(said("v2: 8 ranks, 1 nodes"), 1);
	choice = ask(&s, MODEL_ALL_REDUCE, 1 << 20);
	EQ(choice.algo, ALGO_TREE);
	EQ(choice.proto, PROTO_SIMPLE);
	EQ(choice.channels, 3);
	EQ(choice.channels_used, 3);
	is_own_choice(&s, MODEL_ALL_REDUCE, 1024);
	is_own_choice(&s, MODEL_BROADCAST, 1 << 20);
	tuner_close(s.tuner);
	EQ(said("WARN"), 0);
}

static void version_3(void)
{
	struct session s;
	struct model_choice choice;

	session_open(&s, "tuner_v3");
	TRUE(s.tuner);
	EQ(tuner_version(s.tuner), 3);
	choice = ask(&s, MODEL_ALL_REDUCE, 1 << 30);
	EQ(choice.algo, ALGO_RING);
	EQ(choice.proto, PROTO_LL);
	EQ(choice.channels, 16);
	is_own_choice(&s, MODEL_REDUCE_SCATTER, 1 << 20);
	tuner_close(s.tuner);
}

static void version_4(void)
{
	struct session s;
	struct model_call call = {.func = MODEL_ALL_REDUCE,
		.bytes = 4096,
		.pipe_ops = 1,
		.type = DTYPE_FLOAT32,
		.registered = true};
	struct model_choice choice;

	session_open(&s, "tuner_v4");
	TRUE(s.tuner);
	EQ(tuner_version(s.tuner), 4);
	EQ(tuner_choose(s.tuner, &s.model, &call, &choice), OK);
	EQ(choice.algo, ALGO_RING);
	EQ(choice.proto, PROTO_SIMPLE);
	EQ(choice.channels, 2);
	is_own_choice(&s, MODEL_ALL_REDUCE, 4096);
	/* there is no tree for AllGather, and no channel 17 */
	choice = ask(&s, MODEL_ALL_GATHER, 1 << 26);
	TRUE(choice.algo != ALGO_TREE);
	EQ(choice.channels, 16);
	tuner_close(s.tuner);
}

static void version_5(void)
{
	struct session s;

	session_open(&s, "tuner_v5");
	TRUE(s.tuner);
	EQ(tuner_version(s.tuner), 5);
	EQ(said("v5: comm abcdef, 8 ranks, 1 nodes, 1 domains of 8 to 8"), 1);
	EQ(s.model.latency[MODEL_ALL_REDUCE][ALGO_NVLS][PROTO_SIMPLE], 1e6);
	TRUE(ask(&s, MODEL_ALL_REDUCE, 1 << 26).algo != ALGO_NVLS);
	tuner_close(s.tuner);
	EQ(said("Closing tuner: 'five'"), 1);
}

static void version_6(void)
{
	struct session s;
	struct model_choice choice;

	session_open(&s, "tuner_v6");
	TRUE(s.tuner);
	EQ(tuner_version(s.tuner), 6);
	choice = ask(&s, MODEL_ALL_REDUCE, 1 << 26);
	EQ(choice.algo, ALGO_TREE);
	EQ(choice.proto, PROTO_LL);
	EQ(ask(&s, MODEL_ALL_REDUCE, 1 << 30).algo, ALGO_NVLS);
	tuner_close(s.tuner);
	EQ(said("WARN"), 0);
}

/* One sentence, then silence and the model. */
static void failures(void)
{
	struct session s;

	session_open(&s, "tuner_deny");
	TRUE(s.tuner);
	EQ(said("WARN denying"), 1);
	EQ_STR(tuner_name(s.tuner), "without a name");
	for (int i = 0; i < 3; i++)
		is_own_choice(&s, MODEL_ALL_REDUCE, 4096);
	EQ(said("gave no answer (result 3)"), 1);
	tuner_close(s.tuner);
	EQ(said("could not end (result 2)"), 1);
	session_open(&s, "tuner_deny");
	for (int i = 0; i < 3; i++)
		is_own_choice(&s, MODEL_ALL_REDUCE, 1 << 24);
	EQ(said("left nothing to choose"), 1);
	tuner_close(s.tuner);
	session_open(&s, "tuner_refuse");
	TRUE(!s.tuner);
	EQ(said("could not start (result 2)"), 1);
	is_own_choice(&s, MODEL_ALL_REDUCE, 4096); /* constants as they were */
	TRUE(s.model.latency[MODEL_ALL_REDUCE][ALGO_TREE][PROTO_LL] < 1000);
	session_open(&s, "tuner_hole");
	TRUE(!s.tuner);
	EQ(said("lacks a function"), 1);
	session_open(&s, "tuner_empty");
	TRUE(!s.tuner);
	EQ(said("exports no ncclTunerPlugin_v2 to _v6"), 1);
	session_open(&s, "not_there");
	TRUE(!s.tuner);
	EQ(said("no tuner plugin"), 1);
}

/* A suffix, none, and nothing at all. */
static void names(void)
{
	struct session s;

	session_open(&s, "tuner_v4");
	tuner_close(s.tuner);
	TRUE(!truncate(log_path, 0));
	name_set("suffix");
	s.tuner = tuner_open(&s.cluster, 1, &s.rules);
	TRUE(s.tuner);
	EQ_STR(tuner_name(s.tuner), "four");
	tuner_close(s.tuner);
	EQ(said("WARN"), 0);
	name_set("NONE");
	TRUE(!tuner_open(&s.cluster, 1, &s.rules));
	name_set(NULL);
	TRUE(!tuner_open(&s.cluster, 1, &s.rules));
	name_set("no-such-plugin");
	TRUE(!tuner_open(&s.cluster, 1, &s.rules));
	EQ(said("WARN"), 1);
	name_set("/dev/zero"); /* a fifo would be waited for */
	TRUE(!tuner_open(&s.cluster, 1, &s.rules));
	EQ(said("no regular file"), 1);
	tuner_close(NULL);
}

int main(void)
{
	int fd = mkstemp(log_path);

	TRUE(fd >= 0);
	close(fd);
	setenv("NCCL_DEBUG", "INFO", 1);
	setenv("NCCL_DEBUG_SUBSYS", "ALL", 1);
	setenv("NCCL_DEBUG_FILE", log_path, 1);
	version_2();
	version_3();
	version_4();
	version_5();
	version_6();
	failures();
	names();
	unlink(log_path);
	return 0;
}
