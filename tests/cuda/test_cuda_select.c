/*
 * What a call wishes, on a GPU: the algorithm by name, an event, signals by number.
 * Selections other than the direct one go through slots, which are made at the first such
 * call, also inside a graph or a group of one thread's ranks.
 */
#include "exec/cuda/driver/driver.h"
#include "parts.h"

enum { WORDS = 20000 };

static ncclCollConfig_t selected(const char *names, int force)
{
	ncclCollConfig_t config = NCCL_COLLCONFIG_INITIALIZER;

	config.algSelection = names;
	config.forceAlgSelection = force;
	return config;
}

/* An all_reduce of all seats, with these wishes, gives the sum. */
static void sum_checked(struct crew *crew, const ncclCollConfig_t *config, int turn)
{
	for (int i = 0; i < crew->count; i++) {
		struct seat *seat = &crew->seats[i];

		if (!seat->own)
			seat->own = gpu_alloc(WORDS * sizeof(uint32_t));
		words_give(seat, seat->own, WORDS, turn);
	}
	OK(ncclGroupStart());
	for (int i = 0; i < crew->count; i++) {
		struct seat *seat = &crew->seats[i];

		OK(ncclAllReduceConfig(seat->own, seat->own, WORDS, ncclUint32, ncclSum,
			seat->comm, (cudaStream_t)seat->stream, config));
	}
	OK(ncclGroupEnd());
	for (int i = 0; i < crew->count; i++)
		words_check(&crew->seats[i], crew->seats[i].own, WORDS, -1, turn);
}

static void crew_end(struct crew *crew)
{
	void *own[CREW_MAX];
	int count = crew->count;

	for (int i = 0; i < count; i++)
		own[i] = crew->seats[i].own;
	crew_close(crew);
	for (int i = 0; i < count; i++)
		gpu_free(own[i]);
}

/* Through slots, by every algorithm and protocol there is; between them as always. */
static void select_staged(struct rank *rank)
{
	static const char *const names[] = {"ring_simple", "ring_ll+^ring_ll128",
		"ring_ll128", "tree", "tree_ll128", "ring,tree", "^symk", "nvls,ring"};
	struct crew crew;
	int turn = 0;

	crew_open(&crew, rank);
	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		ncclCollConfig_t config = selected(names[i], 1);

		rank_context("%s", names[i]);
		sum_checked(&crew, &config, turn++);
		sum_checked(&crew, NULL, turn++);
	}
	crew_end(&crew);
}

static void select_direct(struct rank *rank)
{
	ncclCollConfig_t direct = selected("SYMK_RSxLD_AGxST", 1);
	ncclCollConfig_t wide = selected("^tree", 1);
	struct crew crew;

	crew_open(&crew, rank);
	sum_checked(&crew, &direct, 0);
	sum_checked(&crew, &wide, 1);
	crew_end(&crew);
}

/* What there is nothing for is refused, and the communicator goes on. */
static void select_refused(struct rank *rank)
{
	ncclCollConfig_t config = selected("nvls", 1);
	struct crew crew;
	struct seat *seat;

	crew_open(&crew, rank);
	sum_checked(&crew, NULL, 0);
	seat = &crew.seats[0];
	GIVES(ncclAllReduceConfig(seat->own, seat->own, WORDS, ncclUint32, ncclSum,
		      seat->comm, (cudaStream_t)seat->stream, &config),
		ncclInvalidArgument);
	gpu_sentence("cannot be met");
	config.forceAlgSelection = 0;
	sum_checked(&crew, &config, 1);
	crew_end(&crew);
}

/* The first call that needs slots is part of a graph. */
static void select_captured(struct rank *rank)
{
	ncclCollConfig_t config = selected("ring", 1);
	struct crew crew;
	struct seat *seat;
	struct gpu_graph graph;
	uint32_t *data;

	crew_open(&crew, rank);
	seat = &crew.seats[0];
	data = gpu_alloc(2 * WORDS * sizeof(*data));
	rank_meet(rank);
	gpu_capture(seat->stream, GPU_CAPTURE_RELAXED);
	OK(ncclAllReduceConfig(data, data + WORDS, WORDS, ncclUint32, ncclSum, seat->comm,
		(cudaStream_t)seat->stream, &config));
	graph = gpu_captured(seat->stream);
	rank_meet(rank); /* the driver makes no graph while another's kernel waits */
	for (int turn = 0; turn < 3; turn++) {
		words_give(seat, data, WORDS, turn);
		gpu_replay(&graph, seat->stream);
		words_check(seat, data + WORDS, WORDS, -1, turn);
	}
	rank_meet(rank);
	gpu_graph_end(&graph);
	gpu_free(data);
	crew_close(&crew);
}

/* The event is recorded; a second one of the same group is refused. */
static void select_event(struct rank *rank)
{
	const struct cuda_driver *driver = gpu_begin();
	ncclCollConfig_t config = NCCL_COLLCONFIG_INITIALIZER;
	struct crew crew;
	struct seat *seat;
	cu_event event;

	crew_open(&crew, rank);
	seat = &crew.seats[0];
	CUDA(driver->event_create(&event, CU_EVENT_NO_TIMING));
	config.launchCompletionEvent = (cudaEvent_t)event;
	sum_checked(&crew, &config, 0);
	CUDA(driver->event_query(event));
	CUDA(driver->stream_wait_event(seat->stream, event, 0));
	OK(ncclGroupStart());
	OK(ncclAllReduceConfig(seat->own, seat->own, WORDS, ncclUint32, ncclSum,
		seat->comm, (cudaStream_t)seat->stream, &config));
	GIVES(ncclAllReduceConfig(seat->own, seat->own, WORDS, ncclUint32, ncclSum,
		      seat->comm, (cudaStream_t)seat->stream, &config),
		ncclInvalidUsage);
	GIVES(ncclGroupEnd(), ncclInvalidUsage);
	sum_checked(&crew, &config, 1);
	CUDA(driver->event_destroy(event));
	crew_end(&crew);
}

/* Signals of two contexts and three numbers, given in one order and awaited in another.
 */
static void select_signals(struct rank *rank)
{
	enum { CONTEXTS = 2, SIGNALS = 3 };
	int n = rank->rank_count, right = (rank->rank + 1) % n,
	    left = (rank->rank + n - 1) % n;
	ncclConfig_t config = NCCL_CONFIG_INITIALIZER;
	cu_stream stream;
	ncclComm_t comm;

	gpu_begin();
	stream = gpu_stream();
	config.numRmaCtx = CONTEXTS;
	config.numRmaSig = SIGNALS;
	config.rmaEagerInit = 1;
	OK(ncclCommInitRankConfig(&comm, n, rank_id(rank, 0), rank->rank, &config));
	for (int i = 0; i < CONTEXTS * SIGNALS; i++)
		for (int times = 0; times <= i; times++)
			OK(ncclSignal(right, i % SIGNALS, i / SIGNALS, 0, comm,
				(cudaStream_t)stream));
	gpu_wait(stream);
	for (int i = CONTEXTS * SIGNALS - 1; i >= 0; i--) {
		ncclWaitSignalDesc_t desc = {i + 1, left, i % SIGNALS, i / SIGNALS};

		OK(ncclWaitSignal(1, &desc, comm, (cudaStream_t)stream));
	}
	gpu_wait(stream);
	rank_meet(rank);
	OK(ncclCommDestroy(comm));
	gpu_stream_end(stream);
}

/* It sleeps, holds what it held, and wakes. */
static void select_suspend(struct rank *rank)
{
	uint64_t before = 0, asleep = 0;
	struct crew crew;
	struct seat *seat;

	crew_open(&crew, rank);
	sum_checked(&crew, NULL, 0);
	seat = &crew.seats[0];
	rank_meet(rank);
	OK(ncclCommMemStats(seat->comm, ncclStatGpuMemTotal, &before));
	HOLDS(before > 0);
	OK(ncclCommSuspend(seat->comm, NCCL_SUSPEND_MEM));
	OK(ncclCommMemStats(seat->comm, ncclStatGpuMemPersist, &asleep));
	HOLDS(asleep == before);
	GIVES(ncclAllReduce(seat->own, seat->own, WORDS, ncclUint32, ncclSum, seat->comm,
		      (cudaStream_t)seat->stream),
		ncclInvalidUsage);
	OK(ncclCommResume(seat->comm));
	sum_checked(&crew, NULL, 1);
	crew_end(&crew);
}

static const struct part parts[] = {
	{"staged", "2x1 4x1 1x3 g4", select_staged, .value = 0},
	{"direct", "2x1 4x1 1x3 g2", select_direct, .value = 0},
	{"refused", "2x1 1x3", select_refused, .value = 0},
	{"captured", "2x1 1x2", select_captured, .value = 0},
	{"event", "2x1 1x3", select_event, .value = 0},
	{"numbered signals", "2x1 4x1 1x3", select_signals, .value = 0},
	{"suspend", "2x1 1x2", select_suspend, .value = 0},
};

int main(int argc, char **argv)
{
	return parts_main(argc, argv, parts, sizeof(parts) / sizeof(*parts));
}
