/*
 * The life of communicators whose ranks share a GPU: streams, groups, splits, memory,
 * wrong calls, aborts. Each part is a job of its own and ends within its limit.
 */
#include <unistd.h>

#include "parts.h"

enum { COUNT = 5000, POLL_US = 200, PATIENCE_US = 20 * 1000 * 1000, COMMS = 4 };

static void fill(int *data, int value)
{
	for (int i = 0; i < COUNT; i++)
		data[i] = value + i % 17;
}

static void expect(const int *data, int value, int times)
{
	for (int i = 0; i < COUNT; i++)
		HOLDS(data[i] == value + times * (i % 17));
}

/* One all_reduce on device memory, of `n` ranks, is right. */
static void check_works(ncclComm_t comm, cu_stream stream)
{
	int *host = malloc(COUNT * sizeof(*host)), rank, n;
	int *data = gpu_alloc(COUNT * sizeof(*data));

	OK(ncclCommUserRank(comm, &rank));
	OK(ncclCommCount(comm, &n));
	fill(host, rank);
	gpu_write(data, host, COUNT * sizeof(*host), stream);
	OK(ncclAllReduce(
		data, data, COUNT, ncclInt, ncclSum, comm, (cudaStream_t)stream));
	gpu_read(host, data, COUNT * sizeof(*host), stream);
	expect(host, n * (n - 1) / 2, n);
	gpu_free(data);
	free(host);
}

/* The same on host memory. */
static void check_works_host(ncclComm_t comm)
{
	int *host = malloc(COUNT * sizeof(*host)), rank, n;

	OK(ncclCommUserRank(comm, &rank));
	OK(ncclCommCount(comm, &n));
	fill(host, rank);
	OK(ncclAllReduce(host, host, COUNT, ncclInt, ncclSum, comm, NULL));
	expect(host, n * (n - 1) / 2, n);
	free(host);
}

/* ---- streams and communicators ---- */

/* Two communicators, three streams; two streams share a communicator. Nobody waits in
 * between, and each call takes what the one before it left. */
static void life_streams(struct rank *rank)
{
	enum { CHAIN = 6, STREAMS = 3 };
	size_t bytes = COUNT * sizeof(int);
	int *host = malloc(bytes), *data[STREAMS], times = 1;
	cu_stream streams[STREAMS];
	ncclComm_t a, b;

	gpu_begin();
	a = rank_comm(rank, 0);
	b = rank_comm(rank, 1);
	for (int s = 0; s < STREAMS; s++) {
		streams[s] = gpu_stream();
		data[s] = gpu_alloc(bytes);
		fill(host, s + 1);
		gpu_write(data[s], host, bytes, streams[s]);
		gpu_wait(streams[s]);
	}
	for (int k = 0; k < CHAIN; k++, times *= rank->rank_count)
		for (int s = 0; s < STREAMS; s++)
			OK(ncclAllReduce(data[s], data[s], COUNT, ncclInt, ncclSum,
				s == 2 ? b : a, (cudaStream_t)streams[s]));
	for (int s = 0; s < STREAMS; s++) {
		gpu_read(host, data[s], bytes, streams[s]);
		expect(host, (s + 1) * times, times);
	}
	rank_meet(rank);
	OK(ncclCommDestroy(a));
	OK(ncclCommDestroy(b));
	for (int s = 0; s < STREAMS; s++) {
		gpu_stream_end(streams[s]);
		gpu_free(data[s]);
	}
	free(host);
}

/* The handle by which each thread means a stream of its own, which no other thread can
 * name: what is before and after a call on it keeps its place. */
static void life_own_stream(struct rank *rank)
{
	enum { WORDS = 4 << 20, TURNS = 5, RUBBISH = 0x55555555 };
	int n = rank->rank_count, left = (rank->rank + n - 1) % n;
	size_t bytes = WORDS * sizeof(int);
	cudaStream_t stream = (cudaStream_t)CU_STREAM_PER_THREAD;
	int *in, *sum, *got, last[2];
	ncclComm_t comm;

	gpu_begin();
	comm = rank_comm(rank, 0);
	in = gpu_alloc(bytes);
	sum = gpu_alloc(bytes);
	got = gpu_alloc(bytes);
	for (int turn = 0; turn < TURNS; turn++) {
		gpu_set(in, (unsigned)(rank->rank + turn), WORDS, CU_STREAM_PER_THREAD);
		OK(ncclAllReduce(in, sum, WORDS, ncclInt, ncclSum, comm, stream));
		OK(ncclGroupStart());
		OK(ncclSend(in, WORDS, ncclInt, (rank->rank + 1) % n, comm, stream));
		OK(ncclRecv(got, WORDS, ncclInt, left, comm, stream));
		OK(ncclGroupEnd());
		gpu_set(in, RUBBISH, WORDS, CU_STREAM_PER_THREAD);
		gpu_read(&last[0], sum + WORDS - 1, sizeof(int), CU_STREAM_PER_THREAD);
		gpu_read(&last[1], got + WORDS - 1, sizeof(int), CU_STREAM_PER_THREAD);
		EQ(last[0], n * turn + n * (n - 1) / 2);
		EQ(last[1], left + turn);
	}
	rank_meet(rank);
	OK(ncclCommDestroy(comm));
	gpu_free(in);
	gpu_free(sum);
	gpu_free(got);
}

/* More calls in one group than may be under way by themselves. */
static void life_crowded(struct rank *rank)
{
	enum { CALLS = 150 };
	int *data, got[CALLS];
	cu_stream stream;
	ncclComm_t comm;

	gpu_begin();
	stream = gpu_stream();
	comm = rank_comm(rank, 0);
	data = gpu_alloc(CALLS * sizeof(int));
	for (int i = 0; i < CALLS; i++)
		got[i] = i + rank->rank;
	gpu_write(data, got, sizeof(got), stream);
	OK(ncclGroupStart());
	for (int i = 0; i < CALLS; i++)
		OK(ncclAllReduce(data + i, data + i, 1, ncclInt, ncclMax, comm,
			(cudaStream_t)stream));
	OK(ncclGroupEnd());
	gpu_read(got, data, sizeof(got), stream);
	for (int i = 0; i < CALLS; i++)
		EQ(got[i], i + rank->rank_count - 1);
	rank_meet(rank);
	OK(ncclCommDestroy(comm));
	gpu_stream_end(stream);
	gpu_free(data);
}

static void life_split(struct rank *rank)
{
	cu_stream stream;
	ncclComm_t comm, child;
	int value;

	gpu_begin();
	stream = gpu_stream();
	comm = rank_comm(rank, 0);
	check_works(comm, stream);
	OK(ncclCommSplit(comm, rank->rank % 2, -rank->rank, &child, NULL));
	OK(ncclCommCount(child, &value));
	EQ(value, rank->rank_count / 2);
	check_works(child, stream);
	check_works(comm, stream);
	check_works_host(child);
	rank_meet(rank);
	OK(ncclCommDestroy(child));
	check_works(comm, stream);
	rank_meet(rank);
	OK(ncclCommDestroy(comm));
	gpu_stream_end(stream);
}

/* Again and again: nothing runs out. */
static void life_again(struct rank *rank)
{
	cu_stream stream;

	gpu_begin();
	stream = gpu_stream();
	for (int i = 0; i < 10; i++) {
		ncclComm_t comm = rank_comm(rank, i);

		check_works(comm, stream);
		rank_meet(rank);
		OK(ncclCommDestroy(comm));
	}
	gpu_stream_end(stream);
}

/* What is written, reduced and copied back on one stream stays in that order; the values
 * differ each time, and the host waits once. */
static void life_order(struct rank *rank)
{
	enum { TURNS = 50 };
	size_t bytes = COUNT * sizeof(int);
	const struct cuda_driver *driver = gpu_begin();
	int n = rank->rank_count, *data = gpu_alloc(bytes), *in, *out;
	cu_stream stream = gpu_stream();
	ncclComm_t comm = rank_comm(rank, 0);
	void *pinned;

	CUDA(driver->mem_host_alloc(&pinned, 2 * TURNS * bytes, 0));
	in = pinned;
	out = in + TURNS * COUNT;
	memset(out, 0, TURNS * bytes);
	for (int t = 0; t < TURNS; t++)
		fill(in + t * COUNT, rank->rank + t * t);
	for (int t = 0; t < TURNS; t++) {
		gpu_write(data, in + t * COUNT, bytes, stream);
		OK(ncclAllReduce(
			data, data, COUNT, ncclInt, ncclSum, comm, (cudaStream_t)stream));
		gpu_write(out + t * COUNT, data, bytes, stream);
	}
	gpu_wait(stream);
	for (int t = 0; t < TURNS; t++)
		expect(out + t * COUNT, n * (n - 1) / 2 + n * t * t, n);
	rank_meet(rank);
	OK(ncclCommDestroy(comm));
	gpu_stream_end(stream);
	gpu_free(data);
	CUDA(driver->mem_host_free(pinned));
}

/* Communicators of two, each rank in two of them, and all call in the order in which
 * everybody waits for somebody: who launches must not be one that waits elsewhere. */
static void life_crossed(struct rank *rank)
{
	enum { TURNS = 3, WORDS = 100 };
	int n = rank->rank_count, value = 0, *data[2];
	ncclComm_t all, pairs[2] = {NULL, NULL}; /* with the one before, the one after */
	cudaStream_t streams[2];

	gpu_begin();
	all = rank_comm(rank, 0);
	for (int k = 0; k < n; k++) {
		int place = rank->rank == k ? 1 : rank->rank == (k + 1) % n ? 0 : -1;
		ncclComm_t made = NULL;

		OK(ncclCommSplit(
			all, place < 0 ? NCCL_SPLIT_NOCOLOR : 0, 1 - place, &made, NULL));
		if (place >= 0)
			pairs[place] = made;
	}
	for (int i = 0; i < 2; i++) {
		streams[i] = (cudaStream_t)gpu_stream();
		data[i] = gpu_alloc(WORDS * sizeof(int));
		gpu_set(data[i], 1, WORDS, (cu_stream)streams[i]);
	}
	for (int turn = 0; turn < TURNS; turn++) {
		OK(ncclGroupStart());
		for (int i = 0; i < 2; i++)
			OK(ncclAllReduce(data[i], data[i], WORDS, ncclInt, ncclSum,
				pairs[i], streams[i]));
		OK(ncclGroupEnd());
	}
	for (int i = 0; i < 2; i++) {
		gpu_read(&value, data[i], sizeof(value), (cu_stream)streams[i]);
		EQ(value, 1 << TURNS);
	}
	rank_meet(rank);
	for (int i = 0; i < 2; i++) {
		OK(ncclCommDestroy(pairs[i]));
		gpu_stream_end((cu_stream)streams[i]);
		gpu_free(data[i]);
	}
	OK(ncclCommDestroy(all));
}

/* ---- groups ---- */

/* Several calls per communicator, of all communicators, in one group. */
static void one_group(ncclComm_t *comms, cu_stream *streams, int *(*data)[3])
{
	OK(ncclGroupStart());
	for (int i = 0; i < COMMS; i++) {
		cudaStream_t stream = (cudaStream_t)streams[i];

		OK(ncclAllReduce(data[i][0], data[i][0], COUNT, ncclInt, ncclSum,
			comms[i], stream));
		OK(ncclBroadcast(
			data[i][1], data[i][1], COUNT, ncclInt, 2, comms[i], stream));
		OK(ncclAllReduce(data[i][1], data[i][2], COUNT, ncclInt, ncclMax,
			comms[i], stream));
	}
	OK(ncclGroupEnd());
}

/* One thread drives all ranks. */
static void life_init_all(struct rank *rank)
{
	static const int devices[COMMS];
	size_t bytes = COUNT * sizeof(int);
	int *host = malloc(bytes), *data[COMMS][3];
	ncclComm_t comms[COMMS];
	cu_stream streams[COMMS];

	(void)rank;
	gpu_begin();
	OK(ncclCommInitAll(comms, COMMS, devices));
	for (int i = 0; i < COMMS; i++) {
		streams[i] = gpu_stream();
		fill(host, i);
		for (int k = 0; k < 3; k++) {
			data[i][k] = gpu_alloc(bytes);
			gpu_write(data[i][k], host, bytes, streams[i]);
		}
		gpu_wait(streams[i]);
	}
	for (int turn = 0; turn < 5; turn++) {
		one_group(comms, streams, data);
		for (int i = 0; i < COMMS; i++) {
			int sum = COMMS * (COMMS - 1) / 2;

			gpu_read(host, data[i][0], bytes, streams[i]);
			expect(host, sum, COMMS);
			fill(host, i);
			gpu_write(data[i][0], host, bytes, streams[i]);
			gpu_read(host, data[i][2], bytes, streams[i]);
			expect(host, 2, 1);
		}
	}
	OK(ncclGroupStart());
	for (int i = 0; i < COMMS; i++)
		OK(ncclCommDestroy(comms[i]));
	OK(ncclGroupEnd());
	for (int i = 0; i < COMMS; i++) {
		gpu_stream_end(streams[i]);
		for (int k = 0; k < 3; k++)
			gpu_free(data[i][k]);
	}
	free(host);
}

/* ---- memory ---- */

static void life_memory(struct rank *rank)
{
	size_t bytes = COUNT * sizeof(int);
	int *host = malloc(bytes), *out = NULL, n = rank->rank_count;
	ncclComm_t comm;
	cu_stream stream;

	gpu_begin();
	stream = gpu_stream();
	comm = rank_comm(rank, 0);
	for (int turn = 0; turn < 8; turn++) {
		void *in = NULL;

		OK(ncclMemAlloc(&in, bytes));
		OK(ncclMemAlloc((void **)&out, bytes));
		HOLDS(gpu_owns(in) && gpu_owns(out) && !gpu_owns(host));
		fill(host, rank->rank + turn);
		gpu_write(in, host, bytes, stream);
		OK(ncclAllReduce(
			in, out, COUNT, ncclInt, ncclSum, comm, (cudaStream_t)stream));
		gpu_read(host, out, bytes, stream);
		expect(host, n * (n - 1) / 2 + n * turn, n);
		check_works_host(comm);
		OK(ncclMemFree(in));
		OK(ncclMemFree(out));
	}
	rank_meet(rank);
	OK(ncclCommDestroy(comm));
	gpu_stream_end(stream);
	free(host);
}

/* ---- calls that do not match ---- */

/* Threads: the last rank counts differently, and all are told. */
static void life_mismatch_threads(struct rank *rank)
{
	size_t count = rank->rank == rank->rank_count - 1 ? COUNT - 1 : COUNT;
	ncclComm_t comm;
	cu_stream stream;
	int *data;

	gpu_begin();
	stream = gpu_stream();
	data = gpu_alloc(COUNT * sizeof(*data));
	comm = rank_comm(rank, 0);
	check_works(comm, stream);
	rank_meet(rank);
	GIVES(ncclAllReduce(
		      data, data, count, ncclInt, ncclSum, comm, (cudaStream_t)stream),
		ncclInvalidUsage);
	gpu_sentence("differs between ranks: rank 0 calls");
	gpu_wait(stream);
	rank_meet(rank);
	OK(ncclCommAbort(comm));
	gpu_stream_end(stream);
	gpu_free(data);
}

/* Processes: the kernel finds out; who launched it has the error. */
static void life_mismatch_processes(struct rank *rank)
{
	size_t count = rank->rank == rank->rank_count - 1 ? COUNT - 1 : COUNT;
	uint64_t end = patient_us() + PATIENCE_US;
	ncclResult_t state = ncclSuccess;
	ncclComm_t comm;
	cu_stream stream;
	int *data;

	gpu_begin();
	stream = gpu_stream();
	data = gpu_alloc(COUNT * sizeof(*data));
	comm = rank_comm(rank, 0);
	check_works(comm, stream);
	rank_meet(rank);
	OK(ncclAllReduce(
		data, data, count, ncclInt, ncclSum, comm, (cudaStream_t)stream));
	gpu_wait(stream);
	while (rank->rank == 0 && state == ncclSuccess) {
		OK(ncclCommGetAsyncError(comm, &state));
		HOLDS(patient_us() < end);
		usleep(POLL_US);
	}
	if (rank->rank == 0) {
		EQ(state, ncclInvalidUsage);
		gpu_sentence("differs between ranks");
	}
	rank_meet(rank);
	OK(ncclCommAbort(comm));
	gpu_stream_end(stream);
	gpu_free(data);
}

/* ---- aborts ---- */

/* Processes: one rank calls, the others never do; its stream is free after its abort.
 * The value is the rank that calls. */
static void life_abort_processes(struct rank *rank)
{
	const struct cuda_driver *driver = gpu_begin();
	int caller = part_value(rank);
	int *data = gpu_alloc(COUNT * sizeof(*data)), *host = malloc(COUNT * sizeof(int));
	cu_stream stream = gpu_stream();
	ncclComm_t comm = rank_comm(rank, 0);

	check_works(comm, stream);
	rank_meet(rank);
	if (rank->rank == caller) {
		OK(ncclAllReduce(
			data, data, COUNT, ncclInt, ncclSum, comm, (cudaStream_t)stream));
		usleep(100 * POLL_US);
		EQ(driver->stream_query(stream), CU_NOT_READY);
	}
	if (rank->rank == caller)
		OK(ncclCommAbort(comm));
	gpu_wait(stream);
	fill(host, 1); /* and it can be used */
	gpu_write(data, host, COUNT * sizeof(*host), stream);
	gpu_read(host, data, COUNT * sizeof(*host), stream);
	expect(host, 1, 1);
	rank_meet(rank);
	if (rank->rank != caller)
		OK(ncclCommAbort(comm));
	gpu_stream_end(stream);
	gpu_free(data);
	free(host);
}

/* Threads: rank 0 waits in a call that rank 1 never makes; rank 1 aborts rank 0's
 * communicator, and the call returns. */
static void life_abort_threads(struct rank *rank)
{
	static _Atomic(ncclComm_t) waiting;
	int *data;
	cu_stream stream;
	ncclComm_t comm;

	gpu_begin();
	stream = gpu_stream();
	data = gpu_alloc(COUNT * sizeof(*data));
	comm = rank_comm(rank, 0);
	check_works(comm, stream);
	if (rank->rank == 0)
		atomic_store(&waiting, comm);
	rank_meet(rank);
	if (rank->rank == 0) {
		ncclResult_t got = ncclAllReduce(
			data, data, COUNT, ncclInt, ncclSum, comm, (cudaStream_t)stream);

		HOLDS(got != ncclSuccess && got != ncclInProgress);
		HOLDS(ncclGetLastError(NULL)[0]);
	} else {
		usleep(200 * POLL_US); /* so that it waits, as likely as not */
		OK(ncclCommAbort(atomic_load(&waiting)));
		OK(ncclCommAbort(comm));
	}
	rank_meet(rank);
	gpu_wait(stream);
	gpu_stream_end(stream);
	gpu_free(data);
}

static const struct part parts[] = {
	{"streams", "2x1 1x3", life_streams, .value = 0},
	{"own stream", "2x1 1x3", life_own_stream, .value = 0},
	{"crossed", "1x3 1x4", life_crossed, .value = 0},
	{"crowded group", "2x1 1x2", life_crowded, .value = 0},
	{"split", "4x1 1x4", life_split, .value = 0},
	{"again", "2x1 1x2", life_again, .value = 0},
	{"order", "2x1 1x4", life_order, .value = 0},
	{"init all", "1x1", life_init_all, .value = 0},
	{"memory", "2x1 1x2", life_memory, .value = 0},
	{"mismatch", "2x1", life_mismatch_processes, .value = 0},
	{"mismatch of threads", "1x3", life_mismatch_threads, .value = 0},
	{"abort of the first", "2x1", life_abort_processes, .value = 0},
	{"abort of the second", "2x1", life_abort_processes, .value = 1},
	{"abort of a thread", "1x2", life_abort_threads, .value = 0},
};

int main(int argc, char **argv)
{
	return parts_main(argc, argv, parts, sizeof(parts) / sizeof(*parts));
}
