/*
 * Calls a communicator must refuse, with a sentence, and survive: more elements than
 * there can be, calls after its end.
 */
#include <stdlib.h>
#include <string.h>

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

struct test {
	const char *name;
	rank_function *function;
	int processes, threads;
};

static const struct test tests[] = {
	{"counts", misuse_counts, 2, 1},
	{"counts, threads", misuse_counts, 1, 3},
	{"finalized", misuse_finalized, 2, 1},
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
