/*
 * Environments and answers of launchers: variables, lists of nodes, PMI's messages. What
 * comes out is a launch that fits together, or a sentence.
 *
 * The text is cut at newlines; line i is the value of variable i.
 */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "launch/hex.h"
#include "launch/launch.h"
#include "launch/nodes.h"
#include "launch/pmi_text.h"

static const char *const names[] = {"RANK", "WORLD_SIZE", "LOCAL_RANK",
	"LOCAL_WORLD_SIZE", "MASTER_ADDR", "MASTER_PORT", "TORCHELASTIC_RUN_ID",
	"OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE", "OMPI_COMM_WORLD_LOCAL_SIZE",
	"PMI_RANK", "PMI_SIZE", "PMI_FD", "PMI_PORT", "PMI_ID", "PMIX_RANK",
	"PMIX_NAMESPACE", "SLURM_PROCID", "SLURM_STEP_NUM_TASKS", "SLURM_STEP_NODELIST",
	"SLURM_NODEID", "SLURM_STEP_TASKS_PER_NODE", "WEFT_RANK", "WEFT_RANKS",
	"WEFT_MASTER", "WEFT_ID_FILE", "WEFT_LAUNCHER", "JOB_COMPLETION_INDEX",
	"PET_NODE_RANK", "PET_NNODES"};

enum { NAMES = sizeof(names) / sizeof(names[0]) };

static const char *values[NAMES];

static const char *get(const void *arg, const char *name)
{
	(void)arg;
	for (int i = 0; i < NAMES; i++)
		if (!strcmp(names[i], name))
			return values[i];
	return NULL;
}

static void environment_try(char *text)
{
	const struct launch_env env = {.get = get};
	struct launch launch;

	for (int i = 0; i < NAMES; i++)
		values[i] = strsep(&text, "\n");
	if (launch_read(&env, &launch))
		return;
	if (launch.rank < 0 || launch.rank_count > LAUNCH_RANKS_MAX ||
		(launch.rank_count && launch.rank >= launch.rank_count) ||
		strnlen(launch.master, sizeof(launch.master)) == sizeof(launch.master))
		abort();
}

static void texts_try(const char *text)
{
	char value[16];
	unsigned char bytes[8];
	size_t length;
	int tasks;

	nodes_first(text, value, sizeof(value));
	nodes_tasks(text, 3, &tasks);
	pmi_value(text, ' ', "value", value, sizeof(value));
	pmi_value(text, ';', "value", value, sizeof(value));
	pmi_is_good(text, ';', "kvs-get-response");
	hex_read(text, bytes, sizeof(bytes));
	if (strlen(text) >= PMI_LENGTH_DIGITS)
		pmi_length(text, &length);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	char *text = malloc(size + 1);

	if (!text)
		return 0;
	memcpy(text, data, size);
	text[size] = '\0';
	texts_try(text);
	environment_try(text);
	free(text);
	return 0;
}
