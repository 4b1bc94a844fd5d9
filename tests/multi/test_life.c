/*
 * Communicators are made, divided, shrunk, grown, revoked, finished and dropped in every
 * order, blocking and not, on streams and in groups; nothing leaks and nothing stale is
 * used.
 */
#include <dirent.h>
#include <unistd.h>

#include "ranks.h"
#include "weft.h"

enum { COUNT = 1000, POLL_US = 100, CYCLES = 200 };

static bool lean;

/* The communicator works: everyone's sum is right, also of 2 MB. */
static void check_works(ncclComm_t comm)
{
	static const size_t some[] = {1, COUNT, 500000};
	int n, rank;

	OK(ncclCommCount(comm, &n));
	OK(ncclCommUserRank(comm, &rank));
	for (int k = 0; k < (lean ? 2 : 3); k++) {
		int *data = malloc(some[k] * sizeof(*data));

		HOLDS(data);
		for (size_t i = 0; i < some[k]; i++)
			data[i] = rank + (int)i;
		OK(ncclAllReduce(data, data, some[k], ncclInt, ncclSum, comm, NULL));
		for (size_t i = 0; i < some[k]; i++)
			HOLDS(data[i] == n * (n - 1) / 2 + n * (int)i);
		free(data);
	}
}

static ncclResult_t settle(ncclComm_t comm)
{
	ncclResult_t state;

	do {
		usleep(POLL_US);
		OK(ncclCommGetAsyncError(comm, &state));
	} while (state == ncclInProgress);
	return state;
}

/* ---- beginnings and ends ---- */

static void life_orders(struct rank *rank)
{
	ncclComm_t comms[3];

	OK(ncclCommDestroy(NULL));
	OK(ncclCommAbort(NULL));
	for (int turn = 0; turn < 4; turn++) {
		for (int i = 0; i < 3; i++)
			comms[i] = rank_comm(rank, turn * 3 + i);
		check_works(comms[turn % 3]);
		rank_meet(rank);
		for (int i = 0; i < 3; i++) {
			int which = (i * (turn % 2 ? 2 : 1) + rank->rank) % 3;
			bool abort = turn >= 2 && (rank->rank + i) % 2;

			OK(abort ? ncclCommAbort(comms[which])
				 : ncclCommDestroy(comms[which]));
		}
	}
	GIVES(ncclCommDestroy(comms[0]), ncclInvalidArgument);
	GIVES(ncclCommAbort(comms[0]), ncclInvalidArgument);
}

static void life_init_all(struct rank *rank)
{
	static const int devices[4] = {3, 3, 0, 1};
	ncclComm_t comms[4];
	int data[4];

	(void)rank;
	for (int turn = 0; turn < 2; turn++) {
		OK(ncclCommInitAll(comms, 4, turn ? devices : NULL));
		OK(ncclGroupStart());
		for (int i = 0; i < 4; i++) {
			int value;

			OK(ncclCommCount(comms[i], &value));
			EQ(value, 4);
			OK(ncclCommUserRank(comms[i], &value));
			EQ(value, i);
			OK(ncclCommCuDevice(comms[i], &value));
			EQ(value, turn ? devices[i] : i);
			data[i] = 1 << i;
			OK(ncclAllReduce(
				&data[i], &data[i], 1, ncclInt, ncclSum, comms[i], NULL));
		}
		OK(ncclGroupEnd());
		for (int i = 0; i < 4; i++)
			EQ(data[i], 15);
		for (int i = 0; i < 4; i++)
			OK(ncclCommDestroy(comms[turn ? 3 - i : i]));
	}
}

/* Who only gives may be so many small calls ahead of the others of its host. */
static void life_ahead(struct rank *rank)
{
	enum { AHEAD = 15, TURNS = 3 };
	ncclComm_t comm;

	if (has_hosts()) /* a network may keep a message until somebody wants it */
		return;
	comm = rank_comm(rank, 0);
	check_works(comm);
	for (int turn = 0; turn < TURNS; turn++) {
		rank_meet(rank);
		for (int i = 0; i < AHEAD; i++) {
			int value = rank->rank ? 0 : turn * AHEAD + i + 1;

			if (rank->rank && !i)
				rank_meet(rank); /* the root has returned from all */
			OK(ncclBroadcast(&value, &value, 1, ncclInt, 0, comm, NULL));
			EQ(value, turn * AHEAD + i + 1);
		}
		if (!rank->rank)
			rank_meet(rank);
		check_works(comm);
	}
	OK(ncclCommDestroy(comm));
}

static void life_scalable(struct rank *rank)
{
	ncclUniqueId ids[3];
	ncclComm_t comm;

	for (int i = 0; i < 3; i++)
		ids[i] = rank_id(rank, i);
	OK(ncclCommInitRankScalable(&comm, rank->rank_count, rank->rank, 3, ids, NULL));
	check_works(comm);
	OK(ncclCommDestroy(comm));
}

static void life_finalize(struct rank *rank)
{
	ncclComm_t comm = rank_comm(rank, 0);

	check_works(comm);
	OK(ncclCommFinalize(comm));
	GIVES(ncclCommFinalize(comm), ncclInvalidArgument);
	OK(ncclCommDestroy(comm));
}

/* ---- children ---- */

/* This process's maps whose line has `name` in it. */
static int maps_named(const char *name)
{
	FILE *file = fopen("/proc/self/maps", "r");
	char line[512];
	int count = 0;

	HOLDS(file);
	while (fgets(line, sizeof(line), file))
		count += strstr(line, name) != NULL;
	fclose(file);
	return count;
}

static int sockets(void)
{
	DIR *folder = opendir("/proc/self/fd");
	struct dirent *entry;
	char target[64];
	int count = 0;

	HOLDS(folder);
	while ((entry = readdir(folder))) {
		ssize_t n = readlinkat(
			dirfd(folder), entry->d_name, target, sizeof(target) - 1);

		target[n > 0 ? n : 0] = '\0';
		count += !strncmp(target, "socket:", 7);
	}
	closedir(folder);
	return count;
}

/* A child whose ranks are on one host shares memory there and has no connections, though
 * its parent has; one that spans hosts has some of its own. */
static void life_split_near(struct rank *rank)
{
	enum { PATIENCE_MS = 5000 };
	const char *host = getenv("NCCL_HOSTID"); /* "host1", of the runner */
	int here = host ? atoi(host + strlen("host")) : 0;
	ncclComm_t parent = rank_comm(rank, 0), near, far;
	int boards, before, left = PATIENCE_MS;

	check_works(parent);
	rank_meet(rank);
	boards = maps_named("memfd:weft");
	before = sockets();
	OK(ncclCommSplit(parent, here, 0, &near, NULL));
	check_works(near);
	rank_context("rank %d: %d sockets before, now %d", rank->rank, before, sockets());
	while (sockets() > before && left--) /* those of the meeting go */
		usleep(1000);
	HOLDS(sockets() <= before);
	HOLDS(maps_named("memfd:weft") > boards);
	rank_meet(rank);
	OK(ncclCommSplit(parent, rank->rank % 2, 0, &far, NULL));
	check_works(far);
	HOLDS(!has_hosts() || sockets() > before);
	check_works(near);
	OK(ncclCommDestroy(near));
	OK(ncclCommDestroy(far));
	OK(ncclCommDestroy(parent));
}

static void life_split(struct rank *rank)
{
	ncclComm_t parent = rank_comm(rank, 0), half, none, again, pair;
	int n = rank->rank_count, value;

	OK(ncclCommSplit(parent, rank->rank % 2, -rank->rank, &half, NULL));
	OK(ncclCommUserRank(half, &value));
	EQ(value, (n - 1 - rank->rank) / 2); /* keys turn the order around */
	check_works(half);
	OK(ncclCommSplit(parent, rank->rank ? 7 : NCCL_SPLIT_NOCOLOR, 0, &none, NULL));
	HOLDS((none == NULL) == (rank->rank == 0));
	if (none) {
		OK(ncclCommUserRank(none, &value));
		EQ(value, rank->rank - 1);
		check_works(none);
	}
	/* the same split twice gives two communicators */
	OK(ncclCommSplit(parent, rank->rank % 2, -rank->rank, &again, NULL));
	OK(ncclCommSplit(half, 0, 0, &pair, NULL));
	check_works(pair);
	check_works(again);
	check_works(parent);
	OK(ncclCommDestroy(half)); /* a child outlives its parent */
	OK(ncclCommDestroy(parent));
	check_works(again);
	check_works(pair);
	OK(ncclCommDestroy(again));
	OK(ncclCommDestroy(pair));
	OK(ncclCommDestroy(none));
}

static void life_shrink(struct rank *rank)
{
	ncclComm_t comm = rank_comm(rank, 0), child;
	int out[2] = {2, 0};

	check_works(comm);
	for (int flags = 0; flags < 2; flags++) {
		int value;

		if (rank->rank == 2 || rank->rank == 0) {
			GIVES(ncclCommShrink(comm, out, 2, &child, NULL, flags),
				ncclInvalidArgument);
			continue;
		}
		OK(ncclCommShrink(comm, out, 2, &child, NULL, flags));
		OK(ncclCommCount(child, &value));
		EQ(value, rank->rank_count - 2);
		OK(ncclCommUserRank(child, &value));
		EQ(value, rank->rank == 1 ? 0 : rank->rank - 2);
		check_works(child);
		OK(ncclCommDestroy(child));
	}
	rank_meet(rank);
	check_works(comm);
	OK(ncclCommDestroy(comm));
}

/* Ranks 0 and 1 are there first; 2 and 3 join; then the four do it once more. */
static void life_grow(struct rank *rank)
{
	struct ranks_page *page = rank->page;
	ncclComm_t comm = NULL, grown;
	bool old = rank->rank < 2;
	int value;

	if (old)
		OK(ncclCommInitRank(&comm, 2, rank_id(rank, 0), rank->rank));
	if (rank->rank == 1) {
		OK(ncclCommGetUniqueId(comm, &page->ids[9]));
		atomic_store(&page->id_ready[9], 1);
	}
	while (!old && !atomic_load(&page->id_ready[9]))
		usleep(POLL_US);
	OK(ncclCommGrow(comm, 4, old ? NULL : &page->ids[9], old ? -1 : rank->rank,
		&grown, NULL));
	OK(ncclCommUserRank(grown, &value));
	EQ(value, rank->rank);
	check_works(grown);
	if (old)
		check_works(comm);
	OK(ncclCommDestroy(comm));
	OK(ncclCommDestroy(grown));
}

/* After a revocation there is no more work, but there are children. */
static void life_revoke(struct rank *rank)
{
	ncclComm_t comm = rank_comm(rank, 0), child;
	int data = 0, out = 1;

	check_works(comm);
	rank_meet(rank);
	OK(ncclCommRevoke(comm, NCCL_REVOKE_DEFAULT));
	GIVES(ncclAllReduce(&data, &data, 1, ncclInt, ncclSum, comm, NULL),
		ncclInvalidUsage);
	GIVES(ncclCommFinalize(comm), ncclInvalidUsage);
	OK(ncclCommSplit(comm, 0, rank->rank, &child, NULL));
	check_works(child);
	OK(ncclCommDestroy(child));
	if (rank->rank != out) {
		OK(ncclCommShrink(comm, &out, 1, &child, NULL, NCCL_SHRINK_DEFAULT));
		check_works(child);
		OK(ncclCommDestroy(child));
	}
	OK(ncclCommDestroy(comm));
}

/* ---- not waiting ---- */

static void life_nonblocking(struct rank *rank)
{
	ncclConfig_t config = NCCL_CONFIG_INITIALIZER;
	static _Thread_local int data[COUNT];
	ncclComm_t comm, child;
	ncclResult_t got;

	config.blocking = 0;
	got = ncclCommInitRankConfig(
		&comm, rank->rank_count, rank_id(rank, 0), rank->rank, &config);
	HOLDS(got == ncclSuccess || got == ncclInProgress);
	EQ(settle(comm), ncclSuccess);
	for (int turn = 0; turn < 20; turn++) {
		for (int i = 0; i < COUNT; i++)
			data[i] = i;
		got = ncclAllReduce(data, data, COUNT, ncclInt, ncclSum, comm, NULL);
		HOLDS(got == ncclSuccess || got == ncclInProgress);
		EQ(settle(comm), ncclSuccess);
		for (int i = 0; i < COUNT; i++)
			HOLDS(data[i] == i * rank->rank_count);
	}
	got = ncclCommSplit(comm, 0, rank->rank, &child, NULL);
	HOLDS(got == ncclSuccess || got == ncclInProgress);
	EQ(settle(child), ncclSuccess);
	EQ(settle(comm), ncclSuccess);
	OK(ncclGroupStart());
	OK(ncclSend(data, 5, ncclInt, (rank->rank + 1) % rank->rank_count, child, NULL));
	OK(ncclRecv(data + 5, 5, ncclInt,
		(rank->rank + rank->rank_count - 1) % rank->rank_count, child, NULL));
	got = ncclGroupEnd();
	HOLDS(got == ncclSuccess || got == ncclInProgress);
	EQ(settle(child), ncclSuccess);
	OK(ncclCommDestroy(child));
	got = ncclCommFinalize(comm);
	HOLDS(got == ncclSuccess || got == ncclInProgress);
	EQ(settle(comm), ncclSuccess);
	OK(ncclCommDestroy(comm));
}

/* Who has seen that a call has ended may destroy at once. */
static void life_polled(struct rank *rank)
{
	enum { TURNS = 60 };
	ncclConfig_t config = NCCL_CONFIG_INITIALIZER;
	ncclResult_t state;

	(void)rank;
	config.blocking = 0;
	for (int turn = 0; turn < TURNS; turn++) {
		ncclUniqueId id;
		ncclComm_t comm;

		OK(ncclGetUniqueId(&id));
		state = ncclCommInitRankConfig(&comm, 1, id, 0, &config);
		while (state == ncclInProgress)
			OK(ncclCommGetAsyncError(comm, &state));
		state = ncclCommFinalize(comm);
		while (state == ncclInProgress)
			OK(ncclCommGetAsyncError(comm, &state));
		EQ(state, ncclSuccess);
		OK(ncclCommDestroy(comm));
	}
}

/* Each call takes what the one before it left, and nobody waits in between. */
static void life_streams(struct rank *rank)
{
	enum { CHAIN = 6, STREAMS = 3 };
	ncclComm_t comm = rank_comm(rank, 0), other;
	cudaStream_t streams[STREAMS];
	long n = rank->rank_count, want = 1;
	long *data = calloc(STREAMS * COUNT, sizeof(*data));

	OK(ncclCommSplit(comm, 0, rank->rank, &other, NULL));
	for (int s = 0; s < STREAMS; s++)
		OK(weftStreamCreate(&streams[s]));
	for (int i = 0; i < STREAMS * COUNT; i++)
		data[i] = 1;
	for (int k = 0; k < CHAIN; k++) {
		want *= n;
		/* two streams on one communicator, the third on the other */
		for (int s = 0; s < STREAMS; s++)
			OK(ncclAllReduce(data + s * COUNT, data + s * COUNT, COUNT,
				ncclInt64, ncclSum, s == 2 ? other : comm, streams[s]));
	}
	for (int s = 0; s < STREAMS; s++) {
		OK(weftStreamSynchronize(streams[s]));
		OK(weftStreamQuery(streams[s]));
		for (int i = 0; i < COUNT; i++)
			HOLDS(data[s * COUNT + i] == want);
	}
	/* the NULL stream comes after what was enqueued */
	OK(ncclAllReduce(data, data, COUNT, ncclInt64, ncclSum, comm, streams[0]));
	OK(ncclAllReduce(data, data, COUNT, ncclInt64, ncclSum, comm, NULL));
	HOLDS(data[COUNT - 1] == want * n * n);
	for (int s = 0; s < STREAMS; s++)
		OK(weftStreamDestroy(streams[s]));
	/* a communicator waits for its streams */
	OK(weftStreamCreate(&streams[0]));
	OK(ncclBroadcast(data, data, COUNT, ncclInt64, 0, comm, streams[0]));
	OK(ncclCommDestroy(comm));
	OK(weftStreamDestroy(streams[0]));
	OK(ncclCommDestroy(other));
	free(data);
}

/* ---- groups ---- */

static void life_groups(struct rank *rank)
{
	ncclComm_t a = rank_comm(rank, 0), b = rank_comm(rank, 1);
	int one[4] = {1, 1, 1, 1}, n = rank->rank_count, root = n;

	OK(ncclGroupStart());
	OK(ncclAllReduce(one, one, 1, ncclInt, ncclSum, a, NULL));
	OK(ncclGroupStart());
	OK(ncclAllReduce(one + 1, one + 1, 1, ncclInt, ncclSum, b, NULL));
	OK(ncclGroupEnd());
	OK(ncclAllReduce(one + 2, one + 2, 1, ncclInt, ncclSum, a, NULL));
	EQ(one[0] + one[1] + one[2], 3); /* nothing has run */
	OK(ncclGroupEnd());
	EQ(one[0] + one[1] + one[2], 3 * n);
	/* an error inside is the group's, and nothing runs */
	OK(ncclGroupStart());
	OK(ncclAllReduce(one + 3, one + 3, 1, ncclInt, ncclSum, a, NULL));
	GIVES(ncclBroadcast(one, one, 1, ncclInt, root, a, NULL), ncclInvalidArgument);
	GIVES(ncclGroupEnd(), ncclInvalidArgument);
	EQ(one[3], 1);
	GIVES(ncclGroupEnd(), ncclInvalidUsage);
	/* a send to oneself needs its receive */
	GIVES(ncclSend(one, 1, ncclInt, rank->rank, a, NULL), ncclInvalidUsage);
	OK(ncclGroupStart());
	OK(ncclSend(one, 1, ncclInt, rank->rank, a, NULL));
	GIVES(ncclGroupEnd(), ncclInvalidUsage);
	check_works(a);
	check_works(b);
	OK(ncclGroupStart());
	OK(ncclCommDestroy(a));
	OK(ncclCommDestroy(b));
	OK(ncclGroupEnd());
}

/* Messages between two ranks arrive in order, whatever their sizes, also none. */
static void life_messages(struct rank *rank)
{
	static const size_t sizes[] = {0, 1, 5000, 200000, 7, 0, 1025, 3};
	enum { SIZES = sizeof(sizes) / sizeof(sizes[0]), ROOM = 200000 };
	ncclComm_t comm = rank_comm(rank, 0);
	int n = rank->rank_count, next = (rank->rank + 1) % n,
	    before = (rank->rank + n - 1) % n;
	short *in = calloc(SIZES * ROOM, sizeof(*in)), *out, word = 0;

	OK(ncclMemAlloc((void **)&out, SIZES * ROOM * sizeof(*out)));
	for (size_t i = 0; i < SIZES * ROOM; i++)
		in[i] = (short)(i % 9973 + (size_t)rank->rank);
	OK(ncclGroupStart());
	for (size_t k = 0; k < SIZES; k++) {
		OK(ncclSend(sizes[k] ? in + k * ROOM : NULL, 2 * sizes[k], ncclInt8, next,
			comm, NULL));
		OK(ncclRecv(sizes[k] ? out + k * ROOM : NULL, 2 * sizes[k], ncclInt8,
			before, comm, NULL));
	}
	OK(ncclGroupEnd());
	for (size_t k = 0; k < SIZES; k++)
		for (size_t i = k * ROOM; i < k * ROOM + sizes[k]; i++)
			HOLDS(out[i] == (short)(i % 9973 + (size_t)before));
	/* a chain without groups, there and back */
	for (int i = 0; i < 50 && n > 1 && rank->rank < 2; i++) {
		if (rank->rank == i % 2)
			OK(ncclSend(&word, 2, ncclInt8, 1 - rank->rank, comm, NULL));
		else
			OK(ncclRecv(&word, 2, ncclInt8, 1 - rank->rank, comm, NULL));
		word = (short)(word + 1);
	}
	HOLDS(rank->rank >= 2 || n == 1 || word == 50);
	OK(ncclCommDestroy(comm));
	OK(ncclMemFree(out));
	free(in);
}

/* ---- memory ---- */

/* What a call that failed had on its stack may be anything by now. */
static void late_watch(struct rank *rank)
{
	volatile unsigned char later[96 << 10];

	for (size_t i = 0; i < sizeof(later); i++)
		later[i] = 0x5a;
	rank_meet(rank); /* the message is sent */
	rank_meet(rank);
	usleep(100000);
	for (size_t i = 0; i < sizeof(later); i++)
		EQ(later[i], 0x5a);
}

/* Threads of a connection take nothing for a call that has failed. */
static void life_late(struct rank *rank)
{
	int from = 1, to = 0, own[2] = {0};
	ncclComm_t comm;

	if (!has_hosts())
		return;
	setenv("WEFT_SOCKET_HELPERS", "1", 1);
	setenv("NCCL_SOCKET_NTHREADS", "1", 1);
	comm = rank_comm(rank, 0);
	if (rank->rank) {
		OK(ncclRecv(&to, 1, ncclInt, 0, comm, NULL));
		OK(ncclGroupStart());
		OK(ncclRecv(&to, 1, ncclInt, 0, comm, NULL));
		OK(ncclSend(own, 1, ncclInt, 1, comm, NULL));
		OK(ncclRecv(own, 2, ncclInt, 1, comm, NULL));
		GIVES(ncclGroupEnd(), ncclInvalidUsage);
		late_watch(rank);
	} else {
		OK(ncclSend(&from, 1, ncclInt, 1, comm, NULL));
		rank_meet(rank);
		(void)ncclSend(&from, 1, ncclInt, 1, comm, NULL);
		rank_meet(rank);
	}
	OK(ncclCommAbort(comm));
}

static void life_windows(struct rank *rank)
{
	ncclComm_t comm = rank_comm(rank, 0);
	void *first, *second, *data, *plain = malloc(8192), *found;
	ncclWindow_t window;

	OK(ncclMemAlloc(&data, 1 << 20));
	OK(ncclCommRegister(comm, data, 1 << 20, &first));
	OK(ncclCommRegister(comm, data, 1 << 20, &second));
	check_works(comm);
	OK(ncclCommDeregister(comm, first));
	OK(ncclCommDeregister(comm, second));
	GIVES(ncclCommDeregister(comm, second), ncclInvalidArgument);
	OK(ncclCommWindowRegister(comm, data, 1 << 20, &window, NCCL_WIN_COLL_SYMMETRIC));
	OK(ncclWinGetUserPtr(comm, window, &found));
	HOLDS(found == data);
	OK(ncclAllReduce(data, data, 1 << 18, ncclInt, ncclSum, comm, NULL));
	OK(ncclCommWindowDeregister(comm, window));
	GIVES(ncclMemFree(plain), ncclInvalidArgument);
	OK(ncclMemFree(data));
	GIVES(ncclMemFree(data), ncclInvalidArgument);
	OK(ncclCommRegister(comm, plain, 8192, &first)); /* dropped with the comm */
	OK(ncclCommDestroy(comm));
	free(plain);
}

static void fill(int *data, size_t count, int value)
{
	for (size_t i = 0; i < count; i++)
		data[i] = value;
}

/* Memory that was freed and allocated again, mostly at the same address, is new memory
 * to everybody. It is freed as soon as this rank is done. */
static void life_stale(struct rank *rank)
{
	ncclComm_t comm = rank_comm(rank, 0);
	int n = rank->rank_count, sum = n * (n - 1) / 2;

	for (int turn = 0; turn < (lean ? 60 : 400); turn++) {
		size_t count = 4096u + (size_t)(turn * 7919 % 50000);
		size_t bytes = count * sizeof(int);
		int *in, *out, root = turn % n;

		OK(ncclMemAlloc((void **)&in, bytes));
		OK(ncclMemAlloc((void **)&out, bytes));
		fill(in, count, rank->rank + turn);
		rank_context("rank %d turn %d", rank->rank, turn);
		if (turn % 3 == 0) {
			OK(ncclAllReduce(in, out, count, ncclInt, ncclSum, comm, NULL));
			HOLDS(out[0] == sum + n * turn && out[count - 1] == out[0]);
		} else if (turn % 3 == 1) {
			OK(ncclBroadcast(in, out, count, ncclInt, root, comm, NULL));
			HOLDS(out[0] == root + turn && out[count - 1] == out[0]);
		} else {
			OK(ncclReduce(
				in, out, count, ncclInt, ncclSum, root, comm, NULL));
			HOLDS(rank->rank != root || out[count - 1] == sum + n * turn);
		}
		OK(ncclMemFree(out));
		if (turn % 5 == 0)
			OK(ncclMemAlloc((void **)&out, bytes / 2));
		OK(ncclMemFree(in));
		if (turn % 5 == 0)
			OK(ncclMemFree(out));
	}
	OK(ncclCommDestroy(comm));
}

/* More regions than a rank can show at a time still work, by another way. */
static void life_many_regions(struct rank *rank)
{
	enum { REGIONS = 300, WORDS = 6000 };
	ncclComm_t comm = rank_comm(rank, 0);
	static int *data[REGIONS];
	int n = rank->rank_count;

	for (int i = 0; i < REGIONS; i++) {
		OK(ncclMemAlloc((void **)&data[i], WORDS * sizeof(int)));
		fill(data[i], WORDS, i);
		rank_context("rank %d region %d", rank->rank, i);
		OK(ncclAllReduce(data[i], data[i], WORDS, ncclInt, ncclSum, comm, NULL));
		HOLDS(data[i][WORDS - 1] == i * n);
	}
	for (int i = 0; i < REGIONS; i++)
		OK(ncclMemFree(data[i]));
	OK(ncclCommDestroy(comm));
}

/* ---- leaks ---- */

static void cycle(struct rank *rank, int index)
{
	static const int sizes[] = {10, 9000};
	ncclComm_t comm = rank_comm(rank, index), child;
	int *data, count = sizes[index % 2], out = 1;

	OK(ncclMemAlloc((void **)&data, 9000 * sizeof(int)));
	OK(ncclAllReduce(data, data, (size_t)count, ncclInt, ncclSum, comm, NULL));
	if (index % 10 == 0) {
		OK(ncclCommSplit(comm, rank->rank % 2, 0, &child, NULL));
		OK(ncclCommDestroy(child));
	}
	if (index % 10 == 5 && rank->rank != out) {
		OK(ncclCommShrink(comm, &out, 1, &child, NULL, 0));
		OK(ncclCommAbort(child));
	}
	rank_meet(rank);
	OK(index % 3 ? ncclCommDestroy(comm) : ncclCommAbort(comm));
	OK(ncclMemFree(data));
	rank_meet(rank);
}

struct census {
	int fds, maps, threads;
};

/* One thread of a process counts while the others wait. */
static struct census take_census(struct rank *rank)
{
	struct census census = {0};

	rank_meet(rank);
	if (rank->thread == 0) {
		usleep(50000); /* threads of the last meeting go */
		census.fds = entries("/proc/self/fd");
		census.maps = maps_named("");
		census.threads = entries("/proc/self/task");
		HOLDS(maps_named("memfd:weft") == 0);
	}
	rank_meet(rank);
	return census;
}

static void life_cycles(struct rank *rank)
{
	int cycles = lean ? 30 : CYCLES, warm = 20;
	struct census before = {0}, after;

	for (int i = 0; i < warm + cycles; i++) {
		if (i == warm)
			before = take_census(rank);
		cycle(rank, i);
	}
	after = take_census(rank);
	rank_context("rank %d: %d maps, %d descriptors, then %d, %d", rank->rank,
		before.maps, before.fds, after.maps, after.fds);
	HOLDS(after.fds <= before.fds);
	HOLDS(after.threads <= before.threads);
	HOLDS(after.maps <= before.maps + 6 || is_sanitized()); /* the allocator's */
}

struct test {
	const char *name;
	rank_function *function;
	int processes, threads;
};

static const struct test tests[] = {
	{"orders", life_orders, 3, 1},
	{"orders, threads", life_orders, 1, 3},
	{"init all", life_init_all, 1, 1},
	{"mixed", life_finalize, 2, 2},
	{"ahead", life_ahead, 3, 1},
	{"ahead, threads", life_ahead, 1, 2},
	{"scalable", life_scalable, 5, 1},
	{"split", life_split, 4, 1},
	{"split, threads", life_split, 1, 4},
	{"split, mixed", life_split, 2, 2},
	{"split of one host", life_split_near, 4, 1},
	{"shrink", life_shrink, 4, 1},
	{"shrink, threads", life_shrink, 1, 5},
	{"grow", life_grow, 4, 1},
	{"grow, threads", life_grow, 1, 4},
	{"revoke", life_revoke, 3, 1},
	{"revoke, threads", life_revoke, 1, 3},
	{"nonblocking", life_nonblocking, 3, 1},
	{"nonblocking, threads", life_nonblocking, 1, 3},
	{"polled", life_polled, 1, 8},
	{"streams", life_streams, 3, 1},
	{"streams, threads", life_streams, 1, 3},
	{"groups", life_groups, 2, 1},
	{"groups, threads", life_groups, 1, 3},
	{"messages", life_messages, 3, 1},
	{"messages, threads", life_messages, 1, 3},
	{"messages to oneself", life_messages, 1, 1},
	{"late messages", life_late, 2, 1},
	{"windows", life_windows, 2, 1},
	{"stale memory", life_stale, 4, 1},
	{"stale memory, threads", life_stale, 1, 3},
	{"many regions", life_many_regions, 2, 1},
	{"cycles", life_cycles, 3, 1},
	{"cycles, threads", life_cycles, 1, 3},
};

int main(int argc, char **argv)
{
	const char *only = argc > 1 && argv[argc - 1][0] != '-' ? argv[argc - 1] : NULL;

	lean = has_option(argc, argv, "--lean");
	for (size_t i = 0; i < sizeof(tests) / sizeof(tests[0]); i++) {
		uint64_t start = now_us();
		struct ranks ranks = {.processes = tests[i].processes,
			.threads = tests[i].threads,
			.function = tests[i].function};

		if (only && strcmp(only, tests[i].name))
			continue;
		printf("%s ..", tests[i].name);
		ranks_run(&ranks);
		printf(" %.2f s\n", (double)(now_us() - start) * 1e-6);
	}
	return 0;
}
