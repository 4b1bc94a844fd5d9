/*
 * test_cuda_devices.c - one thread that drives ranks on several devices (ways "gN"), as
 * far as that differs from ranks which have a thread and a device each: the other tests
 * are run with WEFT_TEST_DEVICES for those.
 */
#include "parts.h"

enum { COUNT = 3000 };
static const size_t bytes = COUNT * sizeof(uint32_t);

static cudaStream_t stream_of(const struct seat *seat)
{
	return (cudaStream_t)seat->stream;
}

static void memory_open(struct crew *crew)
{
	for (int i = 0; i < crew->count; i++) {
		gpu_use(i);
		OK(ncclMemAlloc(&crew->seats[i].own, 2 * bytes));
	}
}

static void memory_close(struct crew *crew)
{
	for (int i = 0; i < crew->count; i++)
		OK(ncclMemFree(crew->seats[i].own));
	crew_close(crew);
}

static void device_check(ncclComm_t comm, int want)
{
	int device = -1;

	OK(ncclCommCuDevice(comm, &device));
	EQ(device, want);
}

/* Whatever device is current: that of the last rank, or of another. */
static void sums_check(struct crew *crew, int turn, int current)
{
	for (int i = 0; i < crew->count; i++)
		words_give(&crew->seats[i], crew->seats[i].own, COUNT, turn);
	gpu_use(current);
	OK(ncclGroupStart());
	for (int i = 0; i < crew->count; i++)
		OK(ncclAllReduce(crew->seats[i].own, crew->seats[i].own, COUNT,
			ncclUint32, ncclSum, crew->seats[i].comm,
			stream_of(&crew->seats[i])));
	OK(ncclGroupEnd());
	for (int i = 0; i < crew->count; i++)
		words_check(&crew->seats[i], crew->seats[i].own, COUNT, -1, turn);
}

static void devices_listed(struct rank *rank)
{
	struct crew crew;

	crew_open(&crew, rank);
	memory_open(&crew);
	for (int i = 0; i < crew.count; i++)
		device_check(crew.seats[i].comm, i % gpu_count());
	for (int turn = 0; turn < 4; turn++)
		sums_check(&crew, turn, turn);
	memory_close(&crew);
}

/* Ranks that go one after the other leave nothing of theirs, though those after them used
   it until they went. A first time is for what stays with the process. */
static void devices_given_back(struct rank *rank)
{
	size_t before[CREW_MAX] = {0};

	for (int turn = 0; turn < 2; turn++) {
		struct crew crew;

		crew_open(&crew, rank);
		memory_open(&crew);
		sums_check(&crew, turn, turn);
		for (int i = 0; i < crew.count; i++)
			OK(ncclMemFree(crew.seats[i].own));
		crew_close(&crew);
		for (int i = 0; i < gpu_count(); i++) {
			gpu_use(i);
			if (turn)
				EQ(gpu_free_bytes(), before[i]);
			before[i] = gpu_free_bytes();
		}
	}
}

/* Without a list, and a rank by itself on another device than the current one. */
static void devices_not_listed(struct rank *rank)
{
	const int last = gpu_count() - 1;
	ncclComm_t comms[CREW_MAX], alone;
	ncclResult_t none;
	cu_device now;

	(void)rank;
	gpu_begin();
	OK(ncclCommInitAll(comms, gpu_count(), NULL));
	for (int i = 0; i < gpu_count(); i++)
		device_check(comms[i], i);
	OK(ncclCommInitAll(&alone, 1, &last));
	device_check(alone, last);
	CUDA(gpu_begin()->context_device(&now));
	EQ(now, 0);
	none = ncclCommInitAll(&comms[CREW_MAX - 1], 1, (const int[]){last + 1});
	EQ(none, ncclUnhandledCudaError);
	gpu_sentence("there is no CUDA device");
	OK(ncclCommDestroy(alone));
	OK(ncclGroupStart());
	for (int i = 0; i < gpu_count(); i++)
		OK(ncclCommDestroy(comms[i]));
	OK(ncclGroupEnd());
}

/* A child is where its parent is. */
static void devices_split(struct rank *rank)
{
	ncclComm_t children[CREW_MAX];
	struct crew crew;

	crew_open(&crew, rank);
	gpu_use(1);
	OK(ncclGroupStart());
	for (int i = 0; i < crew.count; i++)
		OK(ncclCommSplit(crew.seats[i].comm, 0, i, &children[i], NULL));
	OK(ncclGroupEnd());
	for (int i = 0; i < crew.count; i++) {
		device_check(children[i], i % gpu_count());
		OK(ncclCommDestroy(crew.seats[i].comm));
		crew.seats[i].comm = children[i];
	}
	memory_open(&crew);
	sums_check(&crew, 1, 0);
	memory_close(&crew);
}

/* Of one group, on two streams of each device. */
static void devices_two_streams(struct rank *rank)
{
	cu_stream second[CREW_MAX];
	struct crew crew;
	int n;

	crew_open(&crew, rank);
	memory_open(&crew);
	n = crew.count;
	for (int i = 0; i < n; i++) {
		gpu_use(i);
		second[i] = gpu_stream();
		words_give(&crew.seats[i], crew.seats[i].own, COUNT, 1);
	}
	OK(ncclGroupStart());
	for (int i = 0; i < n; i++) {
		struct seat *seat = &crew.seats[i];

		OK(ncclSend(seat->own, COUNT, ncclUint32, (i + 1) % n, seat->comm,
			stream_of(seat)));
		OK(ncclRecv((uint32_t *)seat->own + COUNT, COUNT, ncclUint32,
			(i + n - 1) % n, seat->comm, (cudaStream_t)second[i]));
	}
	OK(ncclGroupEnd());
	for (int i = 0; i < n; i++) {
		struct seat seat = crew.seats[i];

		seat.stream = second[i];
		words_check(
			&seat, (uint32_t *)seat.own + COUNT, COUNT, (i + n - 1) % n, 1);
		gpu_stream_end(second[i]);
	}
	memory_close(&crew);
}

/* The NULL stream is that of the communicator's device. */
static void devices_signal(struct rank *rank)
{
	ncclWaitSignalDesc_t wait = {.opCnt = 1, .peer = 1};
	ncclWindow_t windows[CREW_MAX];
	struct crew crew;

	crew_open(&crew, rank);
	memory_open(&crew);
	OK(ncclGroupStart());
	for (int i = 0; i < crew.count; i++)
		OK(ncclCommWindowRegister(crew.seats[i].comm, crew.seats[i].own,
			2 * bytes, &windows[i], 0));
	OK(ncclGroupEnd());
	gpu_use(1);
	OK(ncclWaitSignal(1, &wait, crew.seats[0].comm, NULL));
	HOLDS(gpu_is_done(NULL));
	gpu_use(0);
	HOLDS(!gpu_is_done(NULL));
	OK(ncclSignal(0, 0, 0, 0, crew.seats[1].comm, stream_of(&crew.seats[1])));
	gpu_wait(NULL);
	memory_close(&crew);
}

/* Buffers that lie on the next rank's device. */
static void devices_elsewhere(struct rank *rank)
{
	struct crew crew;

	crew_open(&crew, rank);
	for (int i = 0; i < crew.count; i++) {
		gpu_use(i + 1);
		crew.seats[i].own = gpu_alloc(2 * bytes);
	}
	for (int turn = 0; turn < 3; turn++)
		sums_check(&crew, turn, 0);
	memory_close(&crew);
}

static const struct part parts[] = {
	{"listed", "g2 g4", devices_listed, .value = 0},
	{"given back", "g2 g4", devices_given_back, .value = 0},
	{"not listed", "1x1", devices_not_listed, .value = 0},
	{"split", "g4", devices_split, .value = 0},
	{"two streams", "g2 g4", devices_two_streams, .value = 0},
	{"signal", "g2", devices_signal, .value = 0},
	{"elsewhere", "g2", devices_elsewhere, .value = 0},
};

int main(int argc, char **argv)
{
	if (gpu_count() < 2) {
		printf("skipped: WEFT_TEST_DEVICES names no second GPU\n");
		return TEST_SKIP;
	}
	return parts_main(argc, argv, parts, sizeof(parts) / sizeof(*parts));
}
