/* The algorithm a call names is the one that runs: the log says which, and the result is
 * right. */
#include <stdlib.h>
#include <unistd.h>

#include "ranks.h"

enum { COUNT = 6000, LOG_BYTES = 1 << 20 };

static char folder[] = "/tmp/weft-selection-XXXXXX"; /* of the logs */

/* What this process has logged. */
static char *log_read(void)
{
	char path[64], *text = calloc(1, LOG_BYTES);
	FILE *file;

	snprintf(path, sizeof(path), "%s/%d", folder, (int)getpid());
	file = fopen(path, "r");
	HOLDS(file && text);
	HOLDS(fread(text, 1, LOG_BYTES - 1, file) < LOG_BYTES - 1);
	fclose(file);
	return text;
}

/* The last line about a choice, of this thread or another: all ranks made the call. */
static void last_choice(char algo[32])
{
	char *text = log_read(), *at, *last = NULL;

	for (at = text; (at = strstr(at, "-> Algo ")); at++)
		last = at;
	HOLDS(last && sscanf(last, "-> Algo %31s", algo) == 1);
	free(text);
}

static ncclCollConfig_t selected(const char *names, int force)
{
	ncclCollConfig_t config = NCCL_COLLCONFIG_INITIALIZER;

	config.algSelection = names;
	config.forceAlgSelection = force;
	return config;
}

/* Between hosts it is the algorithm that goes between them, and without a wish any. */
static bool is_chosen(const struct rank *rank, const char *want)
{
	static const char between[] = "HOSTS-";
	bool has_several = rank->argument && has_hosts();
	size_t skip = has_several ? strlen(between) : 0;
	char algo[32];

	last_choice(algo);
	if (has_several && strncmp(algo, between, skip))
		return false;
	return want && *want ? !strcmp(algo + skip, want)
			     : has_several || !strcmp(algo, "DIRECT");
}

struct turn {
	/* NULL: it cannot be met; "": it leaves a choice */
	const char *names, *algo;
};

static void all_reduce(struct rank *rank, ncclComm_t comm, const ncclCollConfig_t *config)
{
	int n = rank->rank_count, *data = calloc(COUNT, sizeof(*data));

	for (int i = 0; i < COUNT; i++)
		data[i] = rank->rank + i;
	OK(ncclAllReduceConfig(data, data, COUNT, ncclInt, ncclSum, comm, NULL, config));
	for (int i = 0; i < COUNT; i++)
		HOLDS(data[i] == n * (n - 1) / 2 + n * i);
	free(data);
}

static void reductions(struct rank *rank)
{
	static const struct turn turns[] = {{"ring", "RING"}, {"TREE_LL", "TREE"},
		{"ring+^ring_ll", "RING"}, {"symk_rsxld", NULL},
		{"SYMK_RSxLD_", "DIRECT"}, {"^symk", "TREE"},
		{"nvls,ring_simple", "RING"}, {"nvls", NULL}, {"SYMK_AGxLLMC_R", NULL},
		{"pat", NULL}, {"^ring", ""}};
	ncclComm_t comm = rank_comm(rank, 0);
	int word = 0;

	for (size_t i = 0; i < sizeof(turns) / sizeof(turns[0]); i++) {
		ncclCollConfig_t config = selected(turns[i].names, 1);

		rank_context("%s", turns[i].names);
		/* LDMC begins as LD does, and one of the two is there */
		if (!strcmp(turns[i].names, "symk_rsxld")) {
			all_reduce(rank, comm, &config);
			continue;
		}
		if (!turns[i].algo) {
			GIVES(ncclAllReduceConfig(&word, &word, 1, ncclInt, ncclSum, comm,
				      NULL, &config),
				ncclInvalidArgument);
			HOLDS(strstr(ncclGetLastError(NULL), "cannot be met"));
			config.forceAlgSelection = 0;
		}
		all_reduce(rank, comm, &config);
		rank_meet(rank);
		HOLDS(is_chosen(rank, turns[i].algo));
		rank_meet(rank);
	}
	OK(ncclCommDestroy(comm));
}

/* The other collectives that have names, each through its own call. */
static void others(struct rank *rank)
{
	ncclCollConfig_t ring = selected("ring", 1), pat = selected("pat", 1);
	int n = rank->rank_count, mine = rank->rank + 1;
	int *all = calloc((size_t)n, sizeof(*all)), got = 0;
	ncclComm_t comm = rank_comm(rank, 0);

	OK(ncclAllGatherConfig(&mine, all, 1, ncclInt, comm, NULL, &pat));
	for (int i = 0; i < n; i++)
		HOLDS(all[i] == i + 1);
	OK(ncclReduceScatterConfig(all, &got, 1, ncclInt, ncclSum, comm, NULL, &pat));
	HOLDS(got == n * mine);
	OK(ncclReduceScatterConfig(all, &got, 1, ncclInt, ncclSum, comm, NULL, &ring));
	HOLDS(got == n * mine);
	got = mine;
	OK(ncclBroadcastConfig(&got, &got, 1, ncclInt, n - 1, comm, NULL, &ring));
	HOLDS(got == n);
	OK(ncclReduceConfig(&mine, &got, 1, ncclInt, ncclMax, 0, comm, NULL, &ring));
	HOLDS(rank->rank || got == n);
	OK(ncclAlltoAllConfig(all, all + 0, 0, ncclInt, comm, NULL, &ring));
	OK(ncclGatherConfig(&mine, all, 1, ncclInt, 0, comm, NULL, NULL));
	OK(ncclScatterConfig(all, &got, 1, ncclInt, 0, comm, NULL, NULL));
	HOLDS(got == mine);
	OK(ncclCommDestroy(comm));
	free(all);
}

/* Two in one group, each with its own. */
static void grouped(struct rank *rank)
{
	ncclCollConfig_t ring = selected("ring", 1), tree = selected("tree", 1);
	ncclComm_t comm = rank_comm(rank, 0);
	int a = 1, b = 2;

	OK(ncclGroupStart());
	OK(ncclAllReduceConfig(&a, &a, 1, ncclInt, ncclSum, comm, NULL, &ring));
	OK(ncclAllReduceConfig(&b, &b, 1, ncclInt, ncclSum, comm, NULL, &tree));
	OK(ncclGroupEnd());
	HOLDS(a == rank->rank_count && b == 2 * rank->rank_count);
	OK(ncclCommDestroy(comm));
}

/* Ranks that select differently are told so. */
static void differing(struct rank *rank)
{
	ncclCollConfig_t config = selected(rank->rank ? "ring" : "tree", 1);
	ncclComm_t comm = rank_comm(rank, 0);
	int data[512] = {0};

	GIVES(ncclAllReduceConfig(data, data, 512, ncclInt, ncclSum, comm, NULL, &config),
		ncclInvalidUsage);
	OK(ncclCommAbort(comm));
}

/* Who starts the program comes before it. */
static void overridden(struct rank *rank)
{
	ncclCollConfig_t config = selected("ring", 1);
	ncclComm_t comm = rank_comm(rank, 0);

	all_reduce(rank, comm, &config);
	rank_meet(rank);
	HOLDS(is_chosen(rank, "TREE"));
	OK(ncclCommDestroy(comm));
}

int main(void)
{
	char logs[64], tidy[64];
	const char *const logged[] = {"NCCL_DEBUG", "INFO", "NCCL_DEBUG_SUBSYS", "TUNING",
		"NCCL_DEBUG_FILE", logs, NULL};
	const char *const tree[] = {"NCCL_DEBUG", "INFO", "NCCL_DEBUG_SUBSYS", "TUNING",
		"NCCL_DEBUG_FILE", logs, "NCCL_ALGO", "Tree", NULL};

	HOLDS(mkdtemp(folder));
	snprintf(logs, sizeof(logs), "%s/%%p", folder);
	snprintf(tidy, sizeof(tidy), "rm -r %s", folder);
	for (int processes = 1; processes <= 3; processes += 2) {
		struct ranks ranks = {.processes = processes,
			.threads = 4 - processes,
			.argument = processes > 1 ? "several processes" : NULL,
			.environment = logged};

		ranks.threads = processes == 1 ? 3 : 1;
		ranks.function = reductions;
		ranks_run(&ranks);
		ranks.function = others;
		ranks_run(&ranks);
		ranks.function = grouped;
		ranks_run(&ranks);
		ranks.function = overridden;
		ranks.environment = tree;
		ranks_run(&ranks);
	}
	ranks_run(&(struct ranks){.processes = 2, .threads = 1, .function = differing});
	return system(tidy) != 0;
}
