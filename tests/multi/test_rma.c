/* Puts between hosts by a one-sided plugin: data before its signal in every version of
 * the interface, in the order they were made whatever way each goes, and what happens
 * when a plugin fails, hangs or lies, before it is used and after. */
#include <dlfcn.h>
#include <stdio.h>
#include <string.h>

#include "puts.h"
#include "weft.h"

enum { ROUNDS = 100, ELEMS = 3000, BYTES = 2 * ELEMS * sizeof(int), PATH_BYTES = 512 };

static char path[PATH_BYTES];

static const char *plugin_path(const char *name)
{
	snprintf(path, sizeof(path), "%s/libnccl-rma-%s.so", WEFT_PLUGIN_FOLDER, name);
	return path;
}

/* What the plugin has counted in this process; 0 where it was not loaded. */
static int counted(const char *what)
{
	void *library = dlopen(getenv("NCCL_RMA_PLUGIN"), RTLD_NOW | RTLD_NOLOAD);
	const atomic_int *count = library ? dlsym(library, what) : NULL;
	int value = count ? atomic_load(count) : 0;

	if (library)
		dlclose(library);
	return value;
}

static bool is_far(const struct rank *rank, int peer)
{
	return peer / (rank->rank_count / 2) != rank->rank / (rank->rank_count / 2);
}

/* From the second half of the own window into the first of the right neighbour's. */
static void around(struct rank *rank)
{
	ncclComm_t comm = rank_comm(rank, 0);
	int puts, *data, right = (rank->rank + 1) % rank->rank_count;
	ncclWindow_t window = window_of(comm, &data, BYTES);

	puts = counted("rma_test_puts");
	HOLDS(counted("rma_test_windows"));
	puts_around(rank,
		&(struct put_ring){comm, window, data, data + ELEMS, ELEMS, ROUNDS});
	if (is_far(rank, right))
		HOLDS(counted("rma_test_puts") - puts >= ROUNDS);
	OK(ncclCommWindowDeregister(comm, window));
	OK(ncclCommDestroy(comm));
	OK(ncclMemFree(data));
}

/* By turns from the window, from other memory, and a bare signal; nobody waits for the
 * receiver. When the k-th signal is taken the k-th put is there and nothing older than
 * it is where all write. */
static void mixed(struct rank *rank)
{
	enum { PUTS = 60, KINDS = 3 };
	int n = rank->rank_count, peer = (rank->rank + n / 2) % n, *data, other;
	ncclComm_t comm = rank_comm(rank, 0);
	ncclWindow_t window = window_of(comm, &data, BYTES);
	ncclWaitSignalDesc_t once = {1, peer, 0, 0};
	int puts = counted("rma_test_puts");

	for (int i = 1; i <= PUTS; i++) {
		const int *from = i % KINDS == 1 ? &data[ELEMS + i] : &other;

		other = data[ELEMS + i] = i;
		for (int to = 0; to <= i && i % KINDS; to += i)
			OK(ncclPutSignal(from, 1, ncclInt, peer, window,
				(size_t)to * sizeof(*from), 0, 0, 0, comm, NULL));
		OK(ncclSignal(peer, 0, 0, 0, comm, NULL));
	}
	HOLDS(counted("rma_test_puts") - puts >= 2 * PUTS / KINDS);
	for (int i = 1; i <= PUTS; i++)
		for (int part = i % KINDS ? 0 : 2; part < 3; part++) {
			OK(ncclWaitSignal(1, &once, comm, NULL));
			/* later ones are on their way there */
			if (i % KINDS && !is_sanitized())
				HOLDS(data[0] >= i);
			if (i % KINDS && part)
				EQ(data[i], i);
		}
	EQ(data[0], PUTS - 1);
	OK(ncclCommDestroy(comm));
	OK(ncclMemFree(data));
}

/* In many pieces, into a rank that is in no call until all was put, with signals behind
 * it and a group of puts to all. */
static void absent(struct rank *rank)
{
	enum { LARGE = 1000001, SIGNALS = 3000 };
	int n = rank->rank_count, peer = (rank->rank + n / 2) % n, *data;
	ncclComm_t comm = rank_comm(rank, 0);
	ncclWindow_t window = window_of(comm, &data, 2 * LARGE * sizeof(*data));
	ncclWaitSignalDesc_t once = {1, peer, 0, 0}, rest = {SIGNALS, peer, 0, 0};
	ncclWaitSignalDesc_t all[RANKS_MAX];

	for (int i = 0; i < LARGE; i++)
		data[LARGE + i] = i * 3 + rank->rank;
	OK(ncclPutSignal(
		data + LARGE, LARGE, ncclInt, peer, window, 0, 0, 0, 0, comm, NULL));
	memset(data + LARGE, 0, LARGE * sizeof(*data)); /* it is ours again */
	for (int i = 0; i < SIGNALS; i++)
		OK(ncclSignal(peer, 0, 0, 0, comm, NULL));
	rank_meet(rank);
	OK(ncclWaitSignal(1, &once, comm, NULL));
	for (int i = 0; i < LARGE; i++)
		HOLDS(data[i] == i * 3 + peer);
	OK(ncclWaitSignal(1, &rest, comm, NULL));
	rank_meet(rank);
	data[LARGE] = rank->rank;
	OK(ncclGroupStart());
	for (int i = 0; i < n; i++) {
		all[i] = (ncclWaitSignalDesc_t){1, i, 0, 0};
		/* what was read before the ranks met is left alone: of that meeting a
		 * sanitizer knows nothing */
		OK(ncclPutSignal(data + LARGE, 1, ncclInt, i, window,
			(size_t)(LARGE + 1 + rank->rank) * sizeof(*data), 0, 0, 0, comm,
			NULL));
	}
	OK(ncclWaitSignal(n, all, comm, NULL));
	OK(ncclGroupEnd());
	for (int i = 0; i < n; i++)
		EQ(data[LARGE + 1 + i], i);
	OK(ncclCommDestroy(comm));
	OK(ncclMemFree(data));
}

/* Contexts and signals count for themselves, without a window and where only one rank
 * asked for that; who signals and leaves has signalled. */
static void eager(struct rank *rank)
{
	enum { CONTEXTS = 2, SIGNALS = 3 };
	ncclConfig_t config = NCCL_CONFIG_INITIALIZER;
	int n = rank->rank_count, peer = (rank->rank + n / 2) % n, *data;
	ncclComm_t comm;

	config.numRmaCtx = CONTEXTS;
	config.numRmaSig = SIGNALS;
	config.rmaEagerInit = rank->rank == 0;
	OK(ncclCommInitRankConfig(&comm, n, rank_id(rank, 0), rank->rank, &config));
	HOLDS(counted("rma_test_signals"));
	if (!rank->rank)
		OK(ncclSignal(peer, 0, 0, 0, comm, NULL));
	(void)window_of(comm, &data, BYTES);
	if (rank->rank == n / 2)
		OK(ncclWaitSignal(1, &(ncclWaitSignalDesc_t){1, 0, 0, 0}, comm, NULL));
	for (int i = 0; i < CONTEXTS * SIGNALS; i++)
		for (int times = 0; times <= i; times++)
			OK(ncclSignal(peer, i % SIGNALS, i / SIGNALS, 0, comm, NULL));
	for (int i = CONTEXTS * SIGNALS - 1; i >= 0 && rank->rank < n / 2; i--) {
		ncclWaitSignalDesc_t desc = {i + 1, peer, i % SIGNALS, i / SIGNALS};

		OK(ncclWaitSignal(1, &desc, comm, NULL));
	}
	OK(ncclCommDestroy(comm));
	OK(ncclMemFree(data));
}

/* Windows that the plugin does not know: of parts of several lengths, and one that it
 * refuses on one rank. Puts go there in order with the others. */
static void unknown(struct rank *rank)
{
	int n = rank->rank_count, peer = (rank->rank + n / 2) % n, *known, *uneven,
	    *refused;
	ncclComm_t comm = rank_comm(rank, 0);
	ncclWindow_t windows[3];
	ncclWaitSignalDesc_t three = {3, peer, 0, 0};
	int puts;

	windows[0] = window_of(comm, &known, BYTES);
	windows[1] = window_of(comm, &uneven, BYTES + 4096 * (size_t)rank->rank);
	EQ(counted("rma_test_windows"), 1);
	windows[2] = window_of(comm, &refused, BYTES);
	puts = counted("rma_test_puts");
	known[1] = rank->rank;
	for (int i = 0; i < 3; i++)
		OK(ncclPutSignal(
			&known[1], 1, ncclInt, peer, windows[i], 0, 0, 0, 0, comm, NULL));
	EQ(counted("rma_test_puts") - puts, 1);
	OK(ncclWaitSignal(1, &three, comm, NULL));
	EQ(known[0], peer);
	EQ(uneven[0], peer);
	EQ(refused[0], peer);
	for (int i = 0; i < 3; i++)
		OK(ncclCommWindowDeregister(comm, windows[i]));
	OK(ncclCommDestroy(comm));
	OK(ncclMemFree(known));
	OK(ncclMemFree(uneven));
	OK(ncclMemFree(refused));
}

/* The plugin is not used, and nobody notices. */
static void without(struct rank *rank)
{
	int n = rank->rank_count, peer = (rank->rank + n / 2) % n, *data, puts;
	ncclWaitSignalDesc_t once = {1, peer, 0, 0};
	ncclWindow_t window;
	ncclComm_t comm;
	char number[16];

	snprintf(number, sizeof(number), "%d", rank->rank);
	setenv("RMA_TEST_RANK", number, 1);
	comm = rank_comm(rank, 0);
	window = window_of(comm, &data, BYTES);
	puts = counted("rma_test_puts");
	data[1] = rank->rank;
	OK(ncclPutSignal(&data[1], 1, ncclInt, peer, window, 0, 0, 0, 0, comm, NULL));
	OK(ncclWaitSignal(1, &once, comm, NULL));
	EQ(data[0], peer);
	EQ(counted("rma_test_puts"), puts);
	OK(ncclCommWindowDeregister(comm, window));
	OK(ncclCommDestroy(comm));
	OK(ncclMemFree(data));
}

/* It is used and goes wrong with rank 0: the sentence on one of the ranks at least names
 * it, nobody hangs, and what was not put is not there. */
static void broken(struct rank *rank)
{
	const char *wanted = rank->argument;
	int *data, peer = 1 - rank->rank;
	ncclComm_t comm = rank_comm(rank, 0);
	ncclWindow_t window = window_of(comm, &data, BYTES);
	ncclWaitSignalDesc_t once = {1, peer, 0, 0};
	ncclResult_t result;

	data[1] = 7;
	result = ncclPutSignal(
		&data[1], 1, ncclInt, peer, window, 0, 0, 0, 0, comm, NULL);
	if (!result)
		result = ncclWaitSignal(1, &once, comm, NULL);
	if (!result) /* it came before it went wrong: the next will not */
		result = ncclWaitSignal(1, &once, comm, NULL);
	HOLDS(result);
	HOLDS(!data[0] || data[0] == 7);
	if (strstr(ncclGetLastError(comm), wanted))
		rank_raise(rank, 1);
	rank_meet(rank);
	EQ(atomic_load(&rank->page->result), 1);
	OK(ncclCommAbort(comm));
	OK(ncclMemFree(data));
}

/* Signals that do not come hold up nobody who leaves. */
static void lost(struct rank *rank)
{
	ncclComm_t comm = rank_comm(rank, 0);
	int *data;

	(void)window_of(comm, &data, BYTES);
	if (!rank->rank)
		OK(ncclSignal(1, 0, 0, 0, comm, NULL));
	rank_meet(rank);
	if (!rank->rank)
		OK(ncclCommDestroy(comm));
	rank_meet(rank);
	if (rank->rank)
		OK(ncclCommDestroy(comm));
	OK(ncclMemFree(data));
}

/* A put into a window that was deregistered meanwhile. */
static void taken_away(struct rank *rank)
{
	ncclComm_t comm = rank_comm(rank, 0);
	ncclWaitSignalDesc_t once = {1, 0, 0, 0};
	int *data;
	ncclWindow_t window = window_of(comm, &data, BYTES);

	if (rank->rank)
		OK(ncclCommWindowDeregister(comm, window));
	rank_meet(rank);
	data[0] = rank->rank ? 0 : 5;
	if (!rank->rank) {
		OK(ncclPutSignal(data, 1, ncclInt, 1, window, 0, 0, 0, 0, comm, NULL));
	} else {
		/* the signal may be there before the plugin has said what is wrong */
		ncclResult_t result = ncclWaitSignal(1, &once, comm, NULL);

		if (!result)
			result = ncclWaitSignal(1, &once, comm, NULL);
		EQ(result, ncclSystemError);
		HOLDS(strstr(ncclGetLastError(comm), "one-sided plugin RmaTest"));
		EQ(data[0], 0);
	}
	rank_meet(rank);
	OK(ncclCommAbort(comm));
	OK(ncclMemFree(data));
}

/* A rank dies between two puts; the other waits for it, and then puts there. */
static void killed(struct rank *rank)
{
	ncclComm_t comm = rank_comm(rank, 0);
	ncclWaitSignalDesc_t once = {1, 1 - rank->rank, 0, 0};
	int *data;
	ncclWindow_t window = window_of(comm, &data, BYTES);

	OK(ncclPutSignal(
		data, 1, ncclInt, 1 - rank->rank, window, 4, 0, 0, 0, comm, NULL));
	OK(ncclWaitSignal(1, &once, comm, NULL));
	rank_meet(rank);
	if (rank->rank)
		raise(SIGKILL);
	GIVES(ncclWaitSignal(1, &once, comm, NULL), ncclRemoteError);
	GIVES(ncclPutSignal(data, 1, ncclInt, 1, window, 4, 0, 0, 0, comm, NULL),
		ncclRemoteError);
	OK(ncclCommAbort(comm));
	OK(ncclMemFree(data));
}

struct how {
	rank_function *part;
	const char *plugin, *fault, *rank; /* rank NULL: of all of them */
	const char *limit;		   /* seconds; NULL: long ones */
	const char *says;		   /* of broken(): what a sentence has */
	int threads;
	unsigned killed; /* processes that die, as a mask */
};

static void run(const struct how *how)
{
	const char *environment[] = {"NCCL_RMA_PLUGIN", plugin_path(how->plugin),
		"RMA_TEST_FAULT", how->fault ? how->fault : "", "WEFT_PLUGIN_SEC",
		how->limit ? how->limit : "20", "WEFT_TIMEOUT_SEC",
		how->limit ? "3" : "0", how->rank ? "RMA_TEST_FAULT_RANK" : NULL,
		how->rank, NULL};

	struct ranks job = {.processes = 2,
		.threads = how->threads ? how->threads : 1,
		.function = how->part,
		.argument = how->says,
		.environment = environment};

	printf("%s: %s%s%s\n", how->plugin, how->fault ? how->fault : "well",
		how->rank ? " on rank " : "", how->rank ? how->rank : "");
	fflush(stdout);
	ranks_start(&job);
	ranks_wait(&job, how->killed);
}

static const struct how jobs[] = {
	{.part = around, .plugin = "test13", .threads = 2},
	{.part = around, .plugin = "test14", .fault = "small:busy"},
	{.part = around, .plugin = "test15"},
	{.part = around, .plugin = "test16", .fault = "busy", .threads = 2},
	{.part = around, .plugin = "gin"},
	{.part = mixed, .plugin = "test13"},
	{.part = mixed, .plugin = "test16", .fault = "small", .threads = 2},
	{.part = absent, .plugin = "test13", .fault = "small:busy"},
	{.part = absent, .plugin = "test14", .fault = "small"},
	{.part = absent, .plugin = "test15", .threads = 2},
	{.part = absent, .plugin = "test16", .fault = "small", .threads = 2},
	{.part = eager, .plugin = "test15", .threads = 2},
	{.part = unknown, .plugin = "test16", .fault = "late_register", .rank = "1"},
	/* before it is used */
	{.part = without, .plugin = "test13", .fault = "kernel"},
	{.part = without, .plugin = "test14", .fault = "gpu"},
	{.part = without, .plugin = "test15", .fault = "init", .rank = "1"},
	{.part = without, .plugin = "test16", .fault = "empty"},
	{.part = without, .plugin = "test16", .fault = "hang", .rank = "0", .limit = "1"},
	{.part = without, .plugin = "test13", .fault = "listen", .rank = "0"},
	{.part = without,
		.plugin = "test14",
		.fault = "hang_connect",
		.rank = "1",
		.limit = "1"},
	{.part = without, .plugin = "test15", .fault = "context", .rank = "1"},
	{.part = without, .plugin = "test16", .fault = "signals", .rank = "0"},
	{.part = without, .plugin = "test13", .fault = "register", .rank = "1"},
	{.part = without,
		.plugin = "test13",
		.fault = "hang_register",
		.rank = "1",
		.limit = "1"},
	{.part = without, .plugin = "test14", .fault = "put", .rank = "1"},
	{.part = without, .plugin = "test15", .fault = "test", .rank = "0"},
	{.part = without, .plugin = "test16", .fault = "error", .rank = "0"},
	{.part = without, .plugin = "test13", .fault = "lose", .rank = "1", .limit = "1"},
	{.part = without, .plugin = "test14", .fault = "early", .rank = "0"},
	{.part = without,
		.plugin = "test15",
		.fault = "hang_put",
		.rank = "0",
		.limit = "1"},
	{.part = without,
		.plugin = "test16",
		.fault = "hang_progress",
		.rank = "1",
		.limit = "1"},
	/* when it is */
	{.part = broken,
		.plugin = "test13",
		.fault = "late_put",
		.rank = "0",
		.says = "RmaTest (v13) failed: iputSignal"},
	{.part = broken,
		.plugin = "test14",
		.fault = "late_test",
		.rank = "0",
		.says = "RmaTest (v14) failed: test"},
	{.part = broken,
		.plugin = "test15",
		.fault = "late_error",
		.rank = "0",
		.says = "RmaTest (v15) failed: queryLast"},
	{.part = broken,
		.plugin = "test16",
		.fault = "late_progress",
		.rank = "0",
		.says = "failed: rmaProgress gave"},
	{.part = broken,
		.plugin = "test16",
		.fault = "late_hang_put",
		.rank = "0",
		.limit = "1",
		.says = "is stuck: iputSignal"},
	{.part = broken,
		.plugin = "test13",
		.fault = "late_hang_progress",
		.rank = "0",
		.limit = "1",
		.says = "is stuck: rmaProgress"},
	{.part = broken,
		.plugin = "test14",
		.fault = "late_lose",
		.rank = "0",
		.limit = "1",
		.says = "by the one-sided plugin RmaTest in wait"},
	{.part = broken,
		.plugin = "test15",
		.fault = "late_back",
		.rank = "0",
		.says = "RmaTest (v15) shows"},
	{.part = lost,
		.plugin = "test15",
		.fault = "late_lose",
		.rank = "1",
		.limit = "1"},
	{.part = taken_away, .plugin = "test16"},
	{.part = killed, .plugin = "test15", .killed = 2},
};

int main(int argc, char **argv)
{
	setenv("WEFT_TEST_HOSTS", "2", 1);
	for (unsigned i = 0; i < sizeof(jobs) / sizeof(jobs[0]); i++)
		if (argc < 2 || atoi(argv[1]) == (int)i)
			run(&jobs[i]);
	return 0;
}
