/*
 * Calls a communicator must refuse, with a sentence, and survive: more elements than
 * there can be, calls after its end, calls of two threads at once.
 */
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "ranks.h"
#include "weft.h"

enum { COUNT = 100 };

/* The call was refused with this code, and the library says why. */
#define REFUSES(call, code, word)                                                        \
	do {                                                                             \
		GIVES(call, code);                                                       \
		HOLDS(strstr(ncclGetLastError(NULL), word));                             \
	} while (0)

/* All ranks still understand each other. */
static void works_still(struct rank *rank, ncclComm_t comm, cudaStream_t stream)
{
	long data[COUNT];

	for (int i = 0; i < COUNT; i++)
		data[i] = rank->rank + i;
	OK(ncclAllReduce(data, data, COUNT, ncclInt64, ncclSum, comm, stream));
	if (stream)
		OK(weftStreamSynchronize(stream));
	for (int i = 0; i < COUNT; i++)
		HOLDS(data[i] == rank->rank_count * (rank->rank_count - 1) / 2 +
					 (long)rank->rank_count * i);
}

/* Every collective and transfer of this many 8-byte elements. */
static void count_refused(
	struct rank *rank, ncclComm_t comm, cudaStream_t stream, size_t count)
{
	const char *why = "does not fit in memory";
	const ncclResult_t code = ncclInvalidArgument;
	static char in[64], out[64];
	int peer = (rank->rank + 1) % rank->rank_count;

	REFUSES(ncclAllReduce(in, out, count, ncclInt64, ncclSum, comm, stream), code,
		why);
	REFUSES(ncclReduce(in, out, count, ncclInt64, ncclSum, 0, comm, stream), code,
		why);
	REFUSES(ncclReduceScatter(in, out, count, ncclInt64, ncclSum, comm, stream), code,
		why);
	REFUSES(ncclAllGather(in, out, count, ncclInt64, comm, stream), code, why);
	REFUSES(ncclBroadcast(in, out, count, ncclInt64, 0, comm, stream), code, why);
	REFUSES(ncclAlltoAll(in, out, count, ncclInt64, comm, stream), code, why);
	REFUSES(ncclGather(in, out, count, ncclInt64, 0, comm, stream), code, why);
	REFUSES(ncclScatter(in, out, count, ncclInt64, 0, comm, stream), code, why);
	REFUSES(ncclSend(in, count, ncclInt64, peer, comm, stream), code, why);
	REFUSES(ncclRecv(out, count, ncclInt64, peer, comm, stream), code, why);
}

/* Fits in an address space, but in no plan: found out where the call would run. */
static const size_t planless = (size_t)1 << 50;

static void misuse_counts(struct rank *rank)
{
	static const size_t counts[] = {
		(size_t)1 << 61, SIZE_MAX, SIZE_MAX / 8, ((size_t)1 << 60) + 1};
	ncclComm_t comm = rank_comm(rank, 0);
	cudaStream_t stream;
	char in[64] = {0}, out[64];

	OK(weftStreamCreate(&stream));
	for (size_t i = 0; i < sizeof(counts) / sizeof(counts[0]); i++) {
		count_refused(rank, comm, NULL, counts[i]);
		count_refused(rank, comm, stream, counts[i]);
		OK(ncclGroupStart());
		count_refused(rank, comm, NULL, counts[i]);
		GIVES(ncclGroupEnd(), ncclInvalidArgument);
		works_still(rank, comm, NULL);
	}
	REFUSES(ncclAllReduce(in, out, planless, ncclInt8, ncclSum, comm, NULL),
		ncclInvalidArgument, "too many tiles");
	works_still(rank, comm, NULL);
	/* of a group none begins, also those before it */
	OK(ncclGroupStart());
	OK(ncclAllReduce(in, out, 8, ncclInt64, ncclSum, comm, NULL));
	OK(ncclAllReduce(in, out, planless, ncclInt8, ncclSum, comm, NULL));
	GIVES(ncclGroupEnd(), ncclInvalidArgument);
	works_still(rank, comm, NULL);
	OK(ncclAllReduce(in, out, planless, ncclInt8, ncclSum, comm, stream));
	GIVES(weftStreamSynchronize(stream), ncclInvalidArgument);
	works_still(rank, comm, stream);
	OK(weftStreamDestroy(stream));
	OK(ncclCommDestroy(comm));
}

/* After its end a communicator answers questions, and no more. */
static void misuse_finalized(struct rank *rank)
{
	const ncclResult_t code = ncclInvalidUsage;
	const char *why = "was finalized";
	ncclComm_t comm = rank_comm(rank, 0), made = NULL;
	int peer = (rank->rank + 1) % rank->rank_count, n;
	ncclResult_t stored;
	cudaStream_t stream;
	char in[64] = {0}, out[64];

	OK(weftStreamCreate(&stream));
	works_still(rank, comm, stream);
	OK(ncclCommFinalize(comm));
	REFUSES(ncclAllReduce(in, out, 8, ncclInt64, ncclSum, comm, NULL), code, why);
	REFUSES(ncclAllReduce(in, out, 8, ncclInt64, ncclSum, comm, stream), code, why);
	REFUSES(ncclSend(in, 8, ncclInt64, peer, comm, NULL), code, why);
	REFUSES(ncclRecv(out, 8, ncclInt64, peer, comm, NULL), code, why);
	REFUSES(ncclSignal(peer, 0, 0, 0, comm, NULL), code, why);
	REFUSES(ncclCommSplit(comm, 0, 0, &made, NULL), code, why);
	REFUSES(ncclCommShrink(comm, &peer, 1, &made, NULL, 0), code, why);
	REFUSES(ncclCommShrink(comm, &peer, 1, &made, NULL, NCCL_SHRINK_ABORT), code,
		why);
	OK(ncclGroupStart());
	REFUSES(ncclBroadcast(in, out, 8, ncclInt64, 0, comm, NULL), code, why);
	GIVES(ncclGroupEnd(), code);
	HOLDS(made == NULL);
	OK(ncclCommCount(comm, &n));
	HOLDS(n == rank->rank_count);
	OK(ncclCommGetAsyncError(comm, &stored));
	GIVES(stored, ncclSuccess);
	OK(weftStreamDestroy(stream));
	OK(ncclCommDestroy(comm));
}

/* Two threads of rank 0 make the same call, and the peers do not: one comes inside and
 * waits for them, the other is refused, and knows so that the first is inside. */
struct twins {
	struct rank *rank;
	ncclComm_t comm;
	cudaStream_t stream;
	_Atomic int refused;
};

/* Whatever the second thread tries, it is told; the first never notices. */
static void twin_tries(const struct twins *twins)
{
	const ncclResult_t code = ncclInvalidUsage;
	const char *why = "one thread at a time";
	ncclComm_t comm = twins->comm, made = NULL;
	int peer = 1, n;
	ncclResult_t stored;
	ncclWindow_t win = NULL;
	char in[64] = {0}, out[64];
	void *memory;

	HOLDS(strstr(ncclGetLastError(NULL), why));
	REFUSES(ncclAllReduce(in, out, 8, ncclInt64, ncclSum, comm, NULL), code, why);
	REFUSES(ncclAllReduce(in, out, 8, ncclInt64, ncclSum, comm, twins->stream), code,
		why);
	REFUSES(ncclSend(in, 8, ncclInt64, peer, comm, NULL), code, why);
	OK(ncclGroupStart());
	OK(ncclSend(in, 8, ncclInt64, peer, comm, NULL));
	OK(ncclRecv(out, 8, ncclInt64, peer, comm, NULL));
	REFUSES(ncclGroupEnd(), code, why);
	REFUSES(ncclCommSplit(comm, 0, 0, &made, NULL), code, why);
	OK(ncclMemAlloc(&memory, 4096));
	REFUSES(ncclCommWindowRegister(comm, memory, 4096, &win, 0), code, why);
	OK(ncclMemFree(memory));
	OK(ncclCommCount(comm, &n));
	OK(ncclCommGetAsyncError(comm, &stored));
	GIVES(stored, ncclSuccess);
}

static void *twin_main(void *argument)
{
	struct twins *twins = argument;
	long one = 1, sum = 0;
	ncclResult_t got = ncclAllReduce(
		&one, &sum, 1, ncclInt64, ncclSum, twins->comm, NULL);

	if (got == ncclInvalidUsage) {
		twin_tries(twins);
		HOLDS(!atomic_exchange(&twins->refused, 1));
		atomic_store(&twins->rank->page->words[0], 1);
		return NULL;
	}
	GIVES(got, ncclSuccess);
	HOLDS(sum == twins->rank->rank_count);
	return NULL;
}

static void misuse_threads(struct rank *rank)
{
	struct twins twins = {.rank = rank, .comm = rank_comm(rank, 0)};
	pthread_t other;
	long one = 1, sum = 0;

	OK(weftStreamCreate(&twins.stream));
	if (rank->rank == 0) {
		HOLDS(!pthread_create(&other, NULL, twin_main, &twins));
		twin_main(&twins);
		HOLDS(!pthread_join(other, NULL));
		HOLDS(twins.refused == 1);
	} else {
		while (!atomic_load(&rank->page->words[0]))
			usleep(1000);
		OK(ncclAllReduce(&one, &sum, 1, ncclInt64, ncclSum, twins.comm, NULL));
		HOLDS(sum == rank->rank_count);
	}
	works_still(rank, twins.comm, NULL);
	works_still(rank, twins.comm, twins.stream);
	OK(weftStreamDestroy(twins.stream));
	OK(ncclCommDestroy(twins.comm));
}

/* Both threads enqueue, on a stream each and as fast as they can: some calls are refused,
 * none hangs, and no rank but this one takes part. */
static void *crowd_main(void *argument)
{
	const struct twins *twins = argument;
	cudaStream_t stream;
	long one = 1, sum[2];

	OK(weftStreamCreate(&stream));
	for (int i = 0; i < 2000; i++) {
		ncclResult_t got;

		OK(ncclGroupStart());
		for (int k = 0; k < 2; k++)
			OK(ncclAllReduce(&one, &sum[k], 1, ncclInt64, ncclSum,
				twins->comm, stream));
		got = ncclGroupEnd();
		HOLDS(got == ncclSuccess || got == ncclInvalidUsage);
	}
	OK(weftStreamSynchronize(stream));
	OK(weftStreamDestroy(stream));
	return NULL;
}

static void misuse_crowd(struct rank *rank)
{
	struct twins twins = {.rank = rank, .comm = rank_comm(rank, 0)};
	pthread_t other;

	HOLDS(!pthread_create(&other, NULL, crowd_main, &twins));
	crowd_main(&twins);
	HOLDS(!pthread_join(other, NULL));
	works_still(rank, twins.comm, NULL);
	OK(ncclCommDestroy(twins.comm));
}

struct test {
	const char *name;
	rank_function *function;
	int processes, threads;
};

static const struct test tests[] = {
	{"counts", misuse_counts, 2, 1},
	{"counts, threads", misuse_counts, 1, 3},
	{"finalized", misuse_finalized, 2, 1},
	{"two threads", misuse_threads, 2, 1},
	{"two threads, threads", misuse_threads, 1, 3},
	{"crowd", misuse_crowd, 1, 1},
};

int main(int argc, char **argv)
{
	for (size_t i = 0; i < sizeof(tests) / sizeof(tests[0]); i++) {
		struct ranks ranks = {.processes = tests[i].processes,
			.threads = tests[i].threads,
			.function = tests[i].function};

		if (argc > 1 && strcmp(argv[1], tests[i].name))
			continue;
		printf("%s\n", tests[i].name);
		ranks_run(&ranks);
	}
	return 0;
}
