/*
 * Which memory a communicator works on, by what the program shows and not by the order in
 * which it does things: a context, a CUDA runtime with its current device, or the first
 * device memory.
 */
#include <dlfcn.h>
#include <unistd.h>

#include "parts.h"

enum { COUNT = 3000, BYTES = COUNT * sizeof(uint32_t) };

/* The driver is in the process and begun, as after cudaGetDeviceCount(); no context is
 * current. */
static void driver_begin(void)
{
	HOLDS(dlopen("libcuda.so.1", RTLD_NOW | RTLD_GLOBAL));
	HOLDS(cuda_driver());
	CUDA(cuda_driver()->init(0));
}

static void runtime_load(void)
{
	const char *path = getenv("WEFT_TEST_CUDART");

	HOLDS(dlopen(path ? path : "libcudart.so.13", RTLD_NOW | RTLD_GLOBAL));
}

/* An all_reduce of device memory, which this thread has from now on. */
static void reduce(const struct rank *rank, ncclComm_t comm)
{
	struct seat seat = {
		.rank = rank->rank, .rank_count = rank->rank_count, .comm = comm};
	void *data;

	gpu_begin();
	seat.stream = gpu_stream();
	data = gpu_alloc(BYTES);
	words_give(&seat, data, COUNT, 1);
	OK(ncclAllReduce(
		data, data, COUNT, ncclUint32, ncclSum, comm, (cudaStream_t)seat.stream));
	words_check(&seat, data, COUNT, -1, 1);
	gpu_stream_end(seat.stream);
	gpu_free(data);
}

/* From each rank to the next. `code`: what every rank gets. */
static void pass_on(const struct rank *rank, ncclComm_t comm, ncclResult_t code)
{
	struct seat seat = {.rank = rank->rank, .rank_count = rank->rank_count};
	int n = rank->rank_count, before = (rank->rank + n - 1) % n;
	void *from, *to;

	gpu_begin();
	seat.stream = gpu_stream();
	from = gpu_alloc(BYTES);
	to = gpu_alloc(BYTES);
	words_give(&seat, from, COUNT, 2);
	OK(ncclGroupStart());
	OK(ncclSend(from, COUNT, ncclUint32, (rank->rank + 1) % n, comm,
		(cudaStream_t)seat.stream));
	OK(ncclRecv(to, COUNT, ncclUint32, before, comm, (cudaStream_t)seat.stream));
	GIVES(ncclGroupEnd(), code);
	if (code)
		gpu_sentence("had not chosen a GPU: call cudaSetDevice");
	else
		words_check(&seat, to, COUNT, before, 2);
	gpu_stream_end(seat.stream);
	gpu_free(from);
	gpu_free(to);
}

static void reduce_host(const struct rank *rank, ncclComm_t comm)
{
	uint32_t data[16];

	for (size_t i = 0; i < 16; i++)
		data[i] = word_of(rank->rank, 3, i);
	OK(ncclAllReduce(data, data, 16, ncclUint32, ncclSum, comm, NULL));
	for (size_t i = 0; i < 16; i++)
		EQ(data[i], word_sum(rank->rank_count, 3, i));
}

/* As a framework that connects before it needs a context: messages come first. */
static void first_runtime(struct rank *rank)
{
	cu_context context = NULL;
	ncclComm_t comm;

	driver_begin();
	runtime_load();
	CUDA(cuda_driver()->context_get(&context));
	HOLDS(!context);
	comm = rank_comm(rank, 0);
	CUDA(cuda_driver()->context_get(&context));
	HOLDS(context); /* as after NCCL's */
	pass_on(rank, comm, ncclSuccess);
	reduce(rank, comm);
	rank_meet(rank);
	OK(ncclCommDestroy(comm));
}

/* Nothing is shown before the first collective; a message before it is refused. */
static void first_memory(struct rank *rank)
{
	ncclComm_t comm;

	driver_begin();
	comm = rank_comm(rank, 0);
	reduce_host(rank, comm);
	pass_on(rank, comm, ncclInvalidUsage);
	reduce(rank, comm);
	pass_on(rank, comm, ncclSuccess);
	rank_meet(rank);
	OK(ncclCommDestroy(comm));
}

/* CUDA comes into the process after the communicator. */
static void first_late(struct rank *rank)
{
	ncclComm_t comm = rank_comm(rank, 0);

	reduce_host(rank, comm);
	reduce(rank, comm);
	rank_meet(rank);
	OK(ncclCommDestroy(comm));
}

/* Rank 1 has shown nothing when the others have a context. */
static void first_some(struct rank *rank)
{
	ncclComm_t comm;

	if (rank->rank != 1)
		gpu_begin();
	comm = rank_comm(rank, 0);
	reduce_host(rank, comm);
	reduce(rank, comm);
	pass_on(rank, comm, ncclSuccess);
	rank_meet(rank);
	OK(ncclCommDestroy(comm));
}

/* Rank 1 stays on host memory: all ranks are told. */
static void first_mixed(struct rank *rank)
{
	ncclComm_t comm = rank_comm(rank, 0);
	uint32_t host[COUNT] = {0};
	void *data = host;

	if (rank->rank != 1) {
		gpu_begin();
		data = gpu_alloc(BYTES);
	}
	GIVES(ncclAllReduce(data, data, COUNT, ncclUint32, ncclSum, comm, NULL),
		ncclInvalidUsage);
	gpu_sentence("a collective with device memory, its first");
	rank_meet(rank);
	OK(ncclCommAbort(comm));
	if (data != host)
		gpu_free(data);
}

/* A window is registered by all ranks too. */
static void first_window(struct rank *rank)
{
	ncclComm_t comm = rank_comm(rank, 0);
	ncclWindow_t window = NULL;
	void *data = NULL;

	gpu_begin();
	OK(ncclMemAlloc(&data, BYTES));
	HOLDS(gpu_owns(data));
	OK(ncclCommWindowRegister(comm, data, BYTES, &window, 0));
	HOLDS(window);
	pass_on(rank, comm, ncclSuccess);
	rank_meet(rank);
	OK(ncclCommWindowDeregister(comm, window));
	OK(ncclMemFree(data));
	OK(ncclCommDestroy(comm));
}

/* One thread calls for all ranks, which must meet side by side. */
static void first_group(struct rank *rank)
{
	enum { N = 4 };
	static const int devices[N];
	ncclComm_t comms[N];
	cu_stream stream;
	void *data[N];

	(void)rank;
	OK(ncclCommInitAll(comms, N, devices));
	gpu_begin();
	stream = gpu_stream();
	for (int i = 0; i < N; i++) {
		const struct seat seat = {.rank = i, .rank_count = N, .stream = stream};

		data[i] = gpu_alloc(BYTES);
		words_give(&seat, data[i], COUNT, 4);
	}
	OK(ncclGroupStart());
	for (int i = 0; i < N; i++)
		OK(ncclAllReduce(data[i], data[i], COUNT, ncclUint32, ncclSum, comms[i],
			(cudaStream_t)stream));
	OK(ncclGroupEnd());
	for (int i = 0; i < N; i++) {
		const struct seat seat = {.rank = i, .rank_count = N, .stream = stream};

		words_check(&seat, data[i], COUNT, -1, 4);
		OK(ncclCommDestroy(comms[i]));
		gpu_free(data[i]);
	}
	gpu_stream_end(stream);
}

/* Children are made like their parent, and meet for themselves. */
static void first_split(struct rank *rank)
{
	ncclComm_t comm, child;

	driver_begin();
	comm = rank_comm(rank, 0);
	OK(ncclCommSplit(comm, 0, rank->rank, &child, NULL));
	reduce(rank, child);
	reduce(rank, comm);
	rank_meet(rank);
	OK(ncclCommDestroy(child));
	OK(ncclCommDestroy(comm));
}

static const struct part parts[] = {
	{"runtime", "2x1 4x1 1x3", first_runtime, .value = 0},
	{"memory", "2x1 4x1 1x3", first_memory, .value = 0},
	{"late", "2x1 1x2", first_late, .value = 0},
	{"some", "2x1 3x1 1x3", first_some, .value = 0},
	{"mixed", "2x1 3x1 1x2", first_mixed, .value = 0},
	{"window", "2x1 1x2", first_window, .value = 0},
	{"group", "1x1", first_group, .value = 0},
	{"split", "3x1 1x3", first_split, .value = 0},
};

int main(int argc, char **argv)
{
	return parts_main(argc, argv, parts, sizeof(parts) / sizeof(*parts));
}
