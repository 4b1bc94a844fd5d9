/* Put, signal and wait: data before its signal, between threads and processes, on streams
 * and in groups, and what happens when the other side is wrong or gone. */
#include <string.h>

#include "puts.h"
#include "weft.h"

enum { ROUNDS = 200, ELEMS = 5000, BYTES = ELEMS * sizeof(int) };

static void around(struct rank *rank)
{
	ncclComm_t comm = rank_comm(rank, 0);
	int *data, *mine = malloc(BYTES);
	ncclWindow_t window = window_of(comm, &data, BYTES);

	puts_around(rank, &(struct put_ring){comm, window, data, mine, ELEMS, ROUNDS});
	OK(ncclCommWindowDeregister(comm, window));
	OK(ncclCommDestroy(comm));
	OK(ncclMemFree(data));
	free(mine);
}

/* The same with a stream, an offset, both directions in one group, and several signals
 * awaited at once. */
static void grouped(struct rank *rank)
{
	int n = rank->rank_count, *data, mine[2] = {rank->rank, -rank->rank};
	ncclComm_t comm = rank_comm(rank, 0);
	ncclWindow_t window = window_of(comm, &data, BYTES);
	ncclWaitSignalDesc_t all[RANKS_MAX];
	cudaStream_t stream;

	OK(weftStreamCreate(&stream));
	OK(ncclGroupStart());
	for (int peer = 0; peer < n; peer++) {
		all[peer] = (ncclWaitSignalDesc_t){2, peer, 0, 0};
		OK(ncclPutSignal(mine, 2, ncclInt, peer, window,
			(size_t)rank->rank * sizeof(mine), 0, 0, 0, comm, stream));
		OK(ncclSignal(peer, 0, 0, 0, comm, stream));
	}
	OK(ncclWaitSignal(n, all, comm, stream));
	OK(ncclGroupEnd());
	OK(weftStreamSynchronize(stream));
	for (int peer = 0; peer < n; peer++) {
		EQ(data[2 * peer], peer);
		EQ(data[2 * peer + 1], -peer);
	}
	OK(weftStreamDestroy(stream));
	OK(ncclCommWindowDeregister(comm, window));
	OK(ncclCommDestroy(comm));
	OK(ncclMemFree(data));
}

/* Every context and signal counts for itself: given in one order, waited for in another.
 * Signals work without a window where the configuration says so. */
static void numbered(struct rank *rank)
{
	enum { CONTEXTS = 2, SIGNALS = 3 };
	int n = rank->rank_count, right = (rank->rank + 1) % n,
	    left = (rank->rank + n - 1) % n;
	ncclConfig_t config = NCCL_CONFIG_INITIALIZER;
	ncclComm_t comm;

	config.numRmaCtx = CONTEXTS;
	config.numRmaSig = SIGNALS;
	config.rmaEagerInit = 1;
	OK(ncclCommInitRankConfig(&comm, n, rank_id(rank, 0), rank->rank, &config));
	for (int i = 0; i < CONTEXTS * SIGNALS; i++)
		for (int times = 0; times <= i; times++)
			OK(ncclSignal(right, i % SIGNALS, i / SIGNALS, 0, comm, NULL));
	for (int i = CONTEXTS * SIGNALS - 1; i >= 0; i--) {
		ncclWaitSignalDesc_t desc = {i + 1, left, i % SIGNALS, i / SIGNALS};

		OK(ncclWaitSignal(1, &desc, comm, NULL));
	}
	GIVES(ncclSignal(right, SIGNALS, 0, 0, comm, NULL), ncclInvalidArgument);
	GIVES(ncclSignal(right, 0, CONTEXTS, 0, comm, NULL), ncclInvalidArgument);
	OK(ncclCommDestroy(comm));
}

/* Ranks that differ in what they say of signals do not get a communicator. */
static void disagree(struct rank *rank)
{
	ncclConfig_t config = NCCL_CONFIG_INITIALIZER;
	ncclComm_t comm;

	config.numRmaSig = rank->rank + 1;
	GIVES(ncclCommInitRankConfig(
		      &comm, rank->rank_count, rank_id(rank, 0), rank->rank, &config),
		ncclInvalidUsage);
	HOLDS(strstr(ncclGetLastError(NULL), "numRmaSig"));
	config.numRmaSig = 1;
	config.hostCftMode = rank->rank ? ncclHostCftDisable : ncclHostCftFallback;
	GIVES(ncclCommInitRankConfig(
		      &comm, rank->rank_count, rank_id(rank, 1), rank->rank, &config),
		ncclInvalidUsage);
	HOLDS(strstr(ncclGetLastError(NULL), "hostCftMode"));
}

/* A flag that must be everybody's. */
static void flags(struct rank *rank)
{
	ncclComm_t comm = rank_comm(rank, 0);
	ncclWindow_t window = NULL;
	void *memory;

	OK(ncclMemAlloc(&memory, BYTES));
	OK(ncclCommWindowRegister(comm, memory, BYTES, &window, NCCL_WIN_GIN_ONLY));
	HOLDS(window);
	OK(ncclCommWindowDeregister(comm, window));
	GIVES(ncclCommWindowRegister(comm, memory, BYTES, &window,
		      rank->rank ? NCCL_WIN_GIN_ONLY : NCCL_WIN_DEFAULT),
		ncclInvalidArgument);
	HOLDS(strstr(ncclGetLastError(NULL), "NCCL_WIN_GIN_ONLY"));
	OK(ncclCommDestroy(comm));
	OK(ncclMemFree(memory));
}

static void refused(struct rank *rank)
{
	ncclComm_t comm = rank_comm(rank, 0);
	ncclWaitSignalDesc_t desc = {1, 1 - rank->rank, 0, 0};
	ncclWindow_t window, other = NULL;
	int *data, plain[1] = {0};
	void *memory, *unmappable = aligned_alloc(4096, 4096);

	window = window_of(comm, &data, BYTES);
	GIVES(ncclPutSignal(plain, 1, ncclInt, 1, window, BYTES, 0, 0, 0, comm, NULL),
		ncclInvalidArgument);
	GIVES(ncclPutSignal(plain, ELEMS + 1, ncclInt, 1, window, 0, 0, 0, 0, comm, NULL),
		ncclInvalidArgument);
	/* one rank offers memory that cannot be a window: nobody gets one */
	OK(ncclMemAlloc(&memory, BYTES));
	GIVES(ncclCommWindowRegister(comm, rank->rank ? unmappable : memory, 64, &other,
		      NCCL_WIN_DEFAULT),
		ncclInvalidArgument);
	HOLDS(strstr(
		ncclGetLastError(NULL), rank->rank ? "must lie in memory of ncclMemAlloc"
						   : "rank 1 cannot register its part"));
	free(unmappable);
	OK(ncclMemFree(memory));
	/* a peer that leaves will not signal any more */
	rank_meet(rank);
	if (!rank->rank)
		GIVES(ncclWaitSignal(1, &desc, comm, NULL), ncclRemoteError);
	OK(ncclCommWindowDeregister(comm, window));
	if (rank->rank)
		OK(ncclCommDestroy(comm));
	else
		OK(ncclCommAbort(comm));
	OK(ncclMemFree(data));
}

/* More than is ever under way between hosts, into a rank that is in no call until all of
 * it was put; and signals beyond count, which are taken one by one. */
static void absent(struct rank *rank)
{
	enum { LARGE = 3000001, SIGNALS = 6000 };
	int n = rank->rank_count, right = (rank->rank + 1) % n,
	    left = (rank->rank + n - 1) % n, *mine = malloc(LARGE * sizeof(*mine));
	ncclWaitSignalDesc_t once = {1, left, 0, 0};
	ncclComm_t comm = rank_comm(rank, 0);
	ncclWindow_t window;
	void *memory;

	OK(ncclMemAlloc(&memory, LARGE * sizeof(*mine)));
	OK(ncclCommWindowRegister(
		comm, memory, LARGE * sizeof(*mine), &window, NCCL_WIN_DEFAULT));
	for (int i = 0; i < LARGE; i++)
		mine[i] = i * 3 + rank->rank;
	OK(ncclPutSignal(mine, LARGE, ncclInt, right, window, 0, 0, 0, 0, comm, NULL));
	memset(mine, 0, LARGE * sizeof(*mine)); /* it is ours again */
	for (int i = 0; i < SIGNALS; i++)
		OK(ncclSignal(right, 0, 0, 0, comm, NULL));
	rank_meet(rank);
	OK(ncclWaitSignal(1, &once, comm, NULL));
	for (int i = 0; i < LARGE; i++)
		HOLDS(((int *)memory)[i] == i * 3 + left);
	for (int i = 0; i < SIGNALS; i++)
		OK(ncclWaitSignal(1, &once, comm, NULL));
	OK(ncclCommDestroy(comm));
	OK(ncclMemFree(memory));
	free(mine);
}

/* Who signals and leaves has signalled. */
static void leaving(struct rank *rank)
{
	ncclConfig_t config = NCCL_CONFIG_INITIALIZER;
	ncclWaitSignalDesc_t hundred = {100, 0, 0, 0};
	ncclComm_t comm;

	config.rmaEagerInit = 1;
	OK(ncclCommInitRankConfig(
		&comm, rank->rank_count, rank_id(rank, 0), rank->rank, &config));
	if (rank->rank)
		OK(ncclWaitSignal(1, &hundred, comm, NULL));
	for (int i = 0; i < 100 && !rank->rank; i++)
		for (int peer = 1; peer < rank->rank_count; peer++)
			OK(ncclSignal(peer, 0, 0, 0, comm, NULL));
	OK(ncclCommDestroy(comm));
}

/* Between hosts the target knows that there is no window any more. */
static void taken_away(struct rank *rank)
{
	ncclComm_t comm = rank_comm(rank, 0);
	ncclWaitSignalDesc_t once = {1, 0, 0, 0};
	int *data, one = 1;
	ncclWindow_t window = window_of(comm, &data, BYTES);

	if (rank->rank)
		OK(ncclCommWindowDeregister(comm, window));
	rank_meet(rank);
	if (!rank->rank) {
		OK(ncclPutSignal(&one, 1, ncclInt, 1, window, 0, 0, 0, 0, comm, NULL));
	} else {
		GIVES(ncclWaitSignal(1, &once, comm, NULL), ncclInvalidUsage);
		HOLDS(strstr(ncclGetLastError(comm), "deregistered"));
		HOLDS(!data[0]);
	}
	rank_meet(rank);
	OK(ncclCommAbort(comm));
	OK(ncclMemFree(data));
}

int main(void)
{
	static rank_function *const parts[] = {
		around, grouped, numbered, absent, leaving};

	for (unsigned i = 0; i < sizeof(parts) / sizeof(parts[0]); i++) {
		ranks_run(&(struct ranks){
			.processes = 1, .threads = 3, .function = parts[i]});
		ranks_run(&(struct ranks){
			.processes = 3, .threads = 1, .function = parts[i]});
		ranks_run(&(struct ranks){
			.processes = 2, .threads = 2, .function = parts[i]});
		ranks_run(&(struct ranks){
			.processes = 1, .threads = 1, .function = parts[i]});
	}
	ranks_run(&(struct ranks){.processes = 2, .threads = 1, .function = disagree});
	ranks_run(&(struct ranks){.processes = 2, .threads = 1, .function = flags});
	ranks_run(&(struct ranks){.processes = 1, .threads = 2, .function = refused});
	ranks_run(&(struct ranks){.processes = 2, .threads = 1, .function = refused});
	if (has_hosts())
		ranks_run(&(struct ranks){
			.processes = 2, .threads = 1, .function = taken_away});
	return 0;
}
