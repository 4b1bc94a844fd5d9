/*
 * Groups: nesting, failures, self sends, what may not be mixed; ranks made by one thread;
 * non-blocking communicators and their abort.
 */
#include <pthread.h>
#include <time.h>

#include "nccl.h"
#include "test.h"
#include "weft.h"

enum { RANKS = 4, COUNT = 100 };

static ncclComm_t comms[RANKS];
static float in[RANKS][COUNT], out[RANKS][COUNT];

static void fill(void)
{
	for (int rank = 0; rank < RANKS; rank++)
		for (int i = 0; i < COUNT; i++) {
			in[rank][i] = (float)(rank + i);
			out[rank][i] = -1;
		}
}

static void test_nesting(void)
{
	fill();
	EQ(ncclGroupEnd(), ncclInvalidUsage);
	TRUE(strstr(ncclGetLastError(NULL), "no group"));
	EQ(ncclGroupStart(), ncclSuccess);
	for (int rank = 0; rank < RANKS; rank++) {
		EQ(ncclGroupStart(), ncclSuccess);
		EQ(ncclAllReduce(in[rank], out[rank], COUNT, ncclFloat, ncclSum,
			   comms[rank], NULL),
			ncclSuccess);
		EQ(ncclGroupEnd(), ncclSuccess);
		EQ(out[rank][0], -1); /* nothing runs before the outermost end */
	}
	EQ(ncclGroupEnd(), ncclSuccess);
	for (int rank = 0; rank < RANKS; rank++)
		for (int i = 0; i < COUNT; i++)
			EQ(out[rank][i], RANKS * i + RANKS * (RANKS - 1) / 2);
}

/* One bad call, and the good ones around it do not run either. */
static void test_failure(void)
{
	fill();
	EQ(ncclGroupStart(), ncclSuccess);
	for (int rank = 0; rank < RANKS; rank++)
		EQ(ncclAllReduce(in[rank], out[rank], COUNT, ncclFloat, ncclSum,
			   comms[rank], NULL),
			ncclSuccess);
	EQ(ncclBroadcast(in[0], out[0], COUNT, ncclFloat, RANKS, comms[0], NULL),
		ncclInvalidArgument);
	EQ(ncclGroupEnd(), ncclInvalidArgument);
	for (int rank = 0; rank < RANKS; rank++)
		EQ(out[rank][0], -1);
	/* the failure is forgotten, and an empty group is fine */
	EQ(ncclGroupStart(), ncclSuccess);
	EQ(ncclGroupEnd(), ncclSuccess);
}

static void test_self(void)
{
	fill();
	EQ(ncclSend(in[0], COUNT, ncclFloat, 0, comms[0], NULL), ncclInvalidUsage);
	TRUE(strstr(ncclGetLastError(NULL), "send to self without a matching recv"));
	EQ(ncclRecv(out[0], COUNT, ncclFloat, 0, comms[0], NULL), ncclInvalidUsage);
	TRUE(strstr(ncclGetLastError(NULL), "recv to self without a matching send"));
	/* a send of one rank does not match a receive of another */
	EQ(ncclGroupStart(), ncclSuccess);
	EQ(ncclSend(in[0], COUNT, ncclFloat, 0, comms[0], NULL), ncclSuccess);
	EQ(ncclRecv(out[1], COUNT, ncclFloat, 1, comms[1], NULL), ncclSuccess);
	EQ(ncclGroupEnd(), ncclInvalidUsage);
	EQ(ncclGroupStart(), ncclSuccess);
	EQ(ncclRecv(out[0], COUNT, ncclFloat, 0, comms[0], NULL), ncclSuccess);
	EQ(ncclSend(in[0], COUNT, ncclFloat, 0, comms[0], NULL), ncclSuccess);
	EQ(ncclGroupEnd(), ncclSuccess);
	EQ(out[0][COUNT - 1], in[0][COUNT - 1]);
}

/* All to all by sends and receives of one thread: more calls than the group keeps in
 * place, self among them. */
static void test_large(void)
{
	enum { ROUNDS = 5, BLOCK = COUNT / RANKS };

	fill();
	EQ(ncclGroupStart(), ncclSuccess);
	for (int round = 0; round < ROUNDS; round++)
		for (int me = 0; me < RANKS; me++)
			for (int peer = 0; peer < RANKS; peer++) {
				EQ(ncclSend(&in[me][peer * BLOCK], BLOCK, ncclFloat, peer,
					   comms[me], NULL),
					ncclSuccess);
				EQ(ncclRecv(&out[me][peer * BLOCK], BLOCK, ncclFloat,
					   peer, comms[me], NULL),
					ncclSuccess);
			}
	EQ(ncclGroupEnd(), ncclSuccess);
	for (int me = 0; me < RANKS; me++)
		for (int peer = 0; peer < RANKS; peer++)
			EQ(out[me][peer * BLOCK], in[peer][me * BLOCK]);
}

static void test_mixing(void)
{
	ncclComm_t child = NULL;

	EQ(ncclGroupStart(), ncclSuccess);
	EQ(ncclAllReduce(in[0], out[0], 1, ncclFloat, ncclSum, comms[0], NULL),
		ncclSuccess);
	EQ(ncclCommSplit(comms[0], 0, 0, &child, NULL), ncclInvalidUsage);
	EQ(ncclGroupEnd(), ncclInvalidUsage);
	TRUE(child == NULL);
	EQ(ncclGroupStart(), ncclSuccess);
	EQ(ncclCommSplit(comms[0], 0, 0, &child, NULL), ncclSuccess);
	EQ(ncclAllReduce(in[0], out[0], 1, ncclFloat, ncclSum, comms[0], NULL),
		ncclInvalidUsage);
	EQ(ncclGroupEnd(), ncclInvalidUsage);
	TRUE(child == NULL);
	/* a destroy that did not run leaves its communicator alive */
	EQ(ncclGroupStart(), ncclSuccess);
	EQ(ncclCommDestroy(comms[0]), ncclSuccess);
	EQ(ncclAllReduce(in[0], out[0], 1, ncclFloat, ncclSum, comms[0], NULL),
		ncclInvalidUsage);
	EQ(ncclGroupEnd(), ncclInvalidUsage);
}

/* One thread splits all ranks; the last one wants no part. */
static void test_split(void)
{
	ncclComm_t children[RANKS];
	int n, rank;

	EQ(ncclGroupStart(), ncclSuccess);
	for (rank = 0; rank < RANKS; rank++)
		EQ(ncclCommSplit(comms[rank], rank < RANKS - 1 ? 3 : NCCL_SPLIT_NOCOLOR,
			   -rank, &children[rank], NULL),
			ncclSuccess);
	EQ(ncclGroupEnd(), ncclSuccess);
	TRUE(children[RANKS - 1] == NULL);
	for (rank = 0; rank < RANKS - 1; rank++) {
		int child_rank;

		EQ(ncclCommCount(children[rank], &n), ncclSuccess);
		EQ(n, RANKS - 1);
		EQ(ncclCommUserRank(children[rank], &child_rank), ncclSuccess);
		EQ(child_rank, RANKS - 2 - rank);
	}
	EQ(ncclGroupStart(), ncclSuccess);
	for (rank = 0; rank < RANKS; rank++)
		EQ(ncclCommDestroy(children[rank]), ncclSuccess);
	EQ(ncclGroupEnd(), ncclSuccess);
}

static void test_simulate(void)
{
	ncclSimInfo_t info = NCCL_SIM_INFO_INITIALIZER;
	float once;

	fill();
	EQ(ncclGroupSimulateEnd(&info), ncclInvalidUsage);
	EQ(ncclGroupStart(), ncclSuccess);
	EQ(ncclAllReduce(in[0], out[0], COUNT, ncclFloat, ncclSum, comms[0], NULL),
		ncclSuccess);
	EQ(ncclGroupSimulateEnd(&info), ncclSuccess);
	TRUE(info.estimatedTime > 0 && info.estimatedTime < 1e6f);
	EQ(out[0][0], -1); /* nothing was run */
	once = info.estimatedTime;
	EQ(ncclGroupStart(), ncclSuccess);
	for (int i = 0; i < 3; i++)
		EQ(ncclAllReduce(
			   in[0], out[0], COUNT, ncclFloat, ncclSum, comms[0], NULL),
			ncclSuccess);
	EQ(ncclGroupSimulateEnd(&info), ncclSuccess);
	TRUE(info.estimatedTime > 2.9f * once && info.estimatedTime < 3.1f * once);
	info.magic = 0;
	EQ(ncclGroupStart(), ncclSuccess);
	EQ(ncclGroupSimulateEnd(&info), ncclInvalidArgument);
	EQ(ncclGroupEnd(), ncclInvalidUsage); /* the group is over all the same */
}

static void settle(ncclComm_t comm, ncclResult_t expected)
{
	struct timespec pause = {.tv_nsec = 1000000};
	ncclResult_t state = ncclInProgress;

	for (int turn = 0; turn < 20000 && state == ncclInProgress; turn++) {
		EQ(ncclCommGetAsyncError(comm, &state), ncclSuccess);
		nanosleep(&pause, NULL);
	}
	EQ(state, expected);
}

static void test_nonblocking(void)
{
	ncclConfig_t config = NCCL_CONFIG_INITIALIZER;
	ncclComm_t pair[2], lonely, child;
	ncclUniqueId id;
	int n;

	config.blocking = 0;
	EQ(ncclGetUniqueId(&id), ncclSuccess);
	EQ(ncclCommInitRankConfig(&pair[0], 2, id, 0, &config), ncclInProgress);
	EQ(ncclCommCount(pair[0], &n), ncclInProgress);
	EQ(ncclAllReduce(in[0], out[0], 1, ncclFloat, ncclSum, pair[0], NULL),
		ncclInProgress);
	EQ(ncclCommDestroy(pair[0]), ncclInProgress);
	EQ(ncclCommInitRankConfig(&pair[1], 2, id, 1, &config), ncclInProgress);
	settle(pair[0], ncclSuccess);
	settle(pair[1], ncclSuccess);
	EQ(ncclCommCount(pair[0], &n), ncclSuccess);
	EQ(n, 2);

	/* both kinds in one group */
	EQ(ncclGroupStart(), ncclSuccess);
	EQ(ncclAllReduce(in[0], out[0], 1, ncclFloat, ncclSum, comms[0], NULL),
		ncclSuccess);
	EQ(ncclAllReduce(in[1], out[1], 1, ncclFloat, ncclSum, pair[0], NULL),
		ncclInvalidUsage);
	EQ(ncclGroupEnd(), ncclInvalidUsage);

	/* a split whose other rank never comes is stopped by an abort of both */
	EQ(ncclCommSplit(pair[0], 0, 0, &child, NULL), ncclInProgress);
	EQ(ncclCommCount(pair[0], &n), ncclInProgress);
	EQ(ncclCommAbort(pair[0]), ncclSuccess);
	EQ(ncclCommAbort(child), ncclSuccess);
	EQ(ncclCommAbort(pair[1]), ncclSuccess);
	EQ(ncclCommAbort(pair[1]), ncclInvalidArgument);

	/* so is an init */
	EQ(ncclGetUniqueId(&id), ncclSuccess);
	EQ(ncclCommInitRankConfig(&lonely, 2, id, 0, &config), ncclInProgress);
	EQ(ncclCommAbort(lonely), ncclSuccess);
}

static ncclComm_t stuck;

static void *init_alone(void *arg)
{
	ncclUniqueId *id = arg;

	TRUE(ncclCommInitRank(&stuck, 2, *id, 0) != ncclSuccess);
	return NULL;
}

/* A blocking init is stopped by another thread's abort. */
static void test_abort_init(void)
{
	struct timespec pause = {.tv_nsec = 50000000};
	pthread_t thread;
	ncclUniqueId id;
	ncclComm_t handle;

	EQ(ncclGetUniqueId(&id), ncclSuccess);
	EQ(pthread_create(&thread, NULL, init_alone, &id), 0);
	nanosleep(&pause, NULL);
	handle = __atomic_load_n(&stuck, __ATOMIC_ACQUIRE);
	TRUE(handle != NULL);
	EQ(ncclCommAbort(handle), ncclSuccess);
	EQ(pthread_join(thread, NULL), 0);
	TRUE(stuck == NULL);
}

int main(void)
{
	EQ(ncclCommInitAll(comms, RANKS, (int[RANKS]){0, 0, 1, 1}), ncclSuccess);
	test_nesting();
	test_failure();
	test_self();
	test_large();
	test_mixing();
	test_split();
	test_simulate();
	test_nonblocking();
	test_abort_init();
	EQ(ncclGroupStart(), ncclSuccess);
	for (int rank = 0; rank < RANKS; rank++)
		EQ(ncclCommFinalize(comms[rank]), ncclSuccess);
	EQ(ncclGroupEnd(), ncclSuccess);
	EQ(ncclCommFinalize(comms[0]), ncclInvalidArgument);
	for (int rank = 0; rank < RANKS; rank++)
		EQ(ncclCommDestroy(comms[rank]), ncclSuccess);
	EQ(ncclCommDestroy(comms[0]), ncclInvalidArgument);
	return 0;
}
