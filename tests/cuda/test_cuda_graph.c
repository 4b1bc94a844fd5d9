/*
 * Calls captured into CUDA graphs: replayed many times with other data each time, between
 * plain calls, two graphs of one communicator in turn, in every capture mode.
 */
#include <pthread.h>
#include <unistd.h>

#include "parts.h"

enum { WORDS = 4000, TURNS = 20, FINALIZE_US = 100000 };

/* Pinned memory, read and written by the graph's copies. */
struct pinned {
	uint32_t *in, *sum, *all, *left, *set;
	void *memory;
};

struct device {
	uint32_t *in, *sum, *all, *left, *set;
};

/* What is captured. */
enum { SUM = 1, GATHER = 2, RING = 4, EVERYTHING = 7 };

struct stage {
	struct crew crew;
	struct seat *seat; /* the only one */
	struct pinned pinned;
	struct device device;
	int n, left, right;
};

static void stage_open_more(struct stage *stage, struct rank *rank, int index)
{
	const struct cuda_driver *driver = gpu_begin();
	size_t words = WORDS * ((size_t)rank->rank_count + 4);
	uint32_t *host, *data;

	crew_open_more(&stage->crew, rank, index);
	stage->seat = &stage->crew.seats[0];
	stage->n = rank->rank_count;
	stage->right = (rank->rank + 1) % stage->n;
	stage->left = (rank->rank + stage->n - 1) % stage->n;
	CUDA(driver->mem_host_alloc(&stage->pinned.memory, words * sizeof(*host), 0));
	host = stage->pinned.memory;
	data = gpu_alloc(words * sizeof(*data));
	stage->pinned = (struct pinned){host, host + WORDS, host + 4 * WORDS,
		host + 2 * WORDS, host + 3 * WORDS, host};
	stage->device = (struct device){
		data, data + WORDS, data + 4 * WORDS, data + 2 * WORDS, data + 3 * WORDS};
}

static void stage_open(struct stage *stage, struct rank *rank)
{
	stage_open_more(stage, rank, 0);
}

static void stage_free(struct stage *stage)
{
	gpu_free(stage->device.in);
	CUDA(gpu_begin()->mem_host_free(stage->pinned.memory));
}

static void stage_close(struct stage *stage)
{
	crew_close(&stage->crew);
	stage_free(stage);
}

/* ---- what is captured ---- */

static void ring(const struct stage *stage)
{
	ncclComm_t comm = stage->seat->comm;
	cudaStream_t stream = (cudaStream_t)stage->seat->stream;
	const struct device *device = &stage->device;

	OK(ncclGroupStart());
	OK(ncclSend(device->in, WORDS, ncclUint32, stage->right, comm, stream));
	OK(ncclRecv(device->left, WORDS, ncclUint32, stage->left, comm, stream));
	OK(ncclGroupEnd());
}

/* The same sequence, plain or under capture: copy in, set, communicate, copy out. */
static void sequence(const struct stage *stage, int what)
{
	ncclComm_t comm = stage->seat->comm;
	cu_stream on = stage->seat->stream;
	cudaStream_t stream = (cudaStream_t)on;
	const struct pinned *pinned = &stage->pinned;
	const struct device *device = &stage->device;
	size_t bytes = WORDS * sizeof(uint32_t);

	gpu_write(device->in, pinned->in, bytes, on);
	gpu_set(device->set, (unsigned)what, WORDS, on);
	if (what & SUM)
		OK(ncclAllReduce(device->in, device->sum, WORDS, ncclUint32, ncclSum,
			comm, stream));
	if (what & GATHER)
		OK(ncclAllGather(
			device->in, device->all, WORDS, ncclUint32, comm, stream));
	if (what & RING)
		ring(stage);
	gpu_write(pinned->sum, device->sum, bytes, on);
	gpu_write(pinned->all, device->all, (size_t)stage->n * bytes, on);
	gpu_write(pinned->left, device->left, bytes, on);
	gpu_write(pinned->set, device->set, bytes, on);
}

static struct gpu_graph capture(struct stage *stage, int what, int mode)
{
	struct gpu_graph graph;

	rank_meet(stage->crew.rank); /* no one allocates while others capture globally */
	gpu_capture(stage->seat->stream, mode);
	sequence(stage, what);
	graph = gpu_capture_end(stage->seat->stream);
	rank_meet(stage->crew.rank);
	gpu_graph_make(&graph);
	rank_meet(stage->crew.rank);
	return graph;
}

static void give(const struct stage *stage, int turn)
{
	for (size_t i = 0; i < WORDS; i++)
		stage->pinned.in[i] = word_of(stage->seat->rank, turn, i);
	memset(stage->pinned.in + WORDS, 0, WORDS * 3 * sizeof(uint32_t));
}

static void check(const struct stage *stage, int what, int turn)
{
	const struct pinned *pinned = &stage->pinned;

	gpu_wait(stage->seat->stream);
	rank_context("rank %d of %d, turn %d", stage->seat->rank, stage->n, turn);
	for (size_t i = 0; i < WORDS; i++) {
		HOLDS(pinned->set[i] == (uint32_t)what);
		HOLDS(!(what & SUM) || pinned->sum[i] == word_sum(stage->n, turn, i));
		HOLDS(!(what & RING) || pinned->left[i] == word_of(stage->left, turn, i));
	}
	for (int r = 0; what & GATHER && r < stage->n; r++)
		for (size_t i = 0; i < WORDS; i++)
			HOLDS(pinned->all[(size_t)r * WORDS + i] == word_of(r, turn, i));
}

static void replay_checked(
	const struct stage *stage, struct gpu_graph *graph, int what, int turn)
{
	give(stage, turn);
	gpu_replay(graph, stage->seat->stream);
	check(stage, what, turn);
}

/* ---- the parts ---- */

/* Value: what is captured. Twice as many turns, every other one a plain call. */
static void graph_replay(struct rank *rank)
{
	int what = part_value(rank);
	struct gpu_graph graph;
	struct stage stage;

	stage_open(&stage, rank);
	graph = capture(&stage, what, GPU_CAPTURE_RELAXED);
	for (int turn = 0; turn < TURNS; turn++)
		replay_checked(&stage, &graph, what, turn);
	for (int turn = TURNS; turn < 2 * TURNS; turn++) {
		give(&stage, turn);
		if (turn % 2)
			gpu_replay(&graph, stage.seat->stream);
		else
			sequence(&stage, what);
		check(&stage, what, turn);
	}
	rank_meet(rank);
	gpu_graph_end(&graph);
	stage_close(&stage);
}

/* The value is the mode; a plain call before has met the others already, or not. */
static void graph_mode(struct rank *rank)
{
	struct gpu_graph graph;
	struct stage stage;

	for (int is_warm = 0; is_warm < 2; is_warm++) {
		stage_open_more(&stage, rank, is_warm);
		if (is_warm)
			comm_check(stage.seat->comm, stage.seat->stream);
		graph = capture(&stage, SUM | GATHER, part_value(rank));
		for (int turn = 0; turn < TURNS; turn++)
			replay_checked(&stage, &graph, SUM | GATHER, turn);
		rank_meet(rank);
		gpu_graph_end(&graph);
		stage_close(&stage);
	}
}

/* Two graphs of one communicator in turn; the host waits only to look. */
static void graph_two(struct rank *rank)
{
	struct gpu_graph graphs[2];
	struct stage stage;

	stage_open(&stage, rank);
	graphs[0] = capture(&stage, SUM, GPU_CAPTURE_RELAXED);
	graphs[1] = capture(&stage, GATHER, GPU_CAPTURE_RELAXED);
	for (int turn = 0; turn < TURNS; turn++) {
		replay_checked(&stage, &graphs[turn % 2], turn % 2 ? GATHER : SUM, turn);
		give(&stage, turn);
		gpu_replay(&graphs[0], stage.seat->stream);
		gpu_replay(&graphs[1], stage.seat->stream);
		gpu_wait(stage.seat->stream);
		for (size_t i = 0; i < WORDS; i++)
			HOLDS(stage.pinned.sum[i] == word_sum(stage.n, turn, i));
		check(&stage, GATHER, turn);
	}
	rank_meet(rank);
	gpu_graph_end(&graphs[0]);
	gpu_graph_end(&graphs[1]);
	stage_close(&stage);
}

/* Each replay takes what the one before it left, and nobody waits in between. With a
 * value plain calls stand between the replays. */
static void graph_chain(struct rank *rank)
{
	struct gpu_graph graph;
	struct stage stage;
	uint32_t *data, times = 1;

	stage_open(&stage, rank);
	data = stage.device.sum;
	rank_meet(rank);
	gpu_capture(stage.seat->stream, GPU_CAPTURE_RELAXED);
	for (int i = 0; i < 3; i++)
		OK(ncclAllReduce(data, data, WORDS, ncclUint32, ncclSum, stage.seat->comm,
			(cudaStream_t)stage.seat->stream));
	graph = gpu_captured(stage.seat->stream);
	gpu_set(data, 1, WORDS, stage.seat->stream);
	for (int turn = 0; turn < TURNS; turn++) {
		gpu_replay(&graph, stage.seat->stream);
		for (int i = 0; i < 3; i++)
			times *= (uint32_t)stage.n;
		if (!part_value(rank))
			continue;
		OK(ncclAllReduce(data, data, WORDS, ncclUint32, ncclSum, stage.seat->comm,
			(cudaStream_t)stage.seat->stream));
		times *= (uint32_t)stage.n;
	}
	gpu_read(stage.pinned.sum, data, WORDS * sizeof(*data), stage.seat->stream);
	for (size_t i = 0; i < WORDS; i++)
		HOLDS(stage.pinned.sum[i] == times);
	rank_meet(rank);
	gpu_graph_end(&graph);
	stage_close(&stage);
}

/* Between hosts: replays that the other does not join end when it aborts, or with a value
 * when their own rank does. */
static void graph_abort(struct rank *rank)
{
	bool is_own = part_value(rank);
	struct gpu_graph graph;
	struct stage stage;

	if (!has_hosts())
		return;
	stage_open(&stage, rank);
	graph = capture(&stage, SUM, GPU_CAPTURE_RELAXED);
	replay_checked(&stage, &graph, SUM, 1);
	if (rank->rank == 0)
		for (int turn = 0; turn < TURNS; turn++)
			gpu_replay(&graph, stage.seat->stream);
	rank_meet(rank);
	if (is_own && rank->rank == 0)
		OK(ncclCommAbort(stage.seat->comm));
	if (is_own)
		rank_meet(rank);
	if (is_own && rank->rank == 1)
		OK(ncclCommAbort(stage.seat->comm));
	if (is_own)
		gpu_stream_end(stage.seat->stream);
	else
		crew_abort(&stage.crew);
	gpu_graph_end(&graph);
	stage_free(&stage);
}

static void *finalize_main(void *argument)
{
	const struct stage *stage = argument;

	gpu_begin();
	if (ncclCommFinalize(stage->seat->comm)) /* as it was aborted: it depends */
		HOLDS(strstr(ncclGetLastError(NULL), "abort"));
	return NULL;
}

/* Between hosts: a thread finalizes and waits for replays that the other rank does not
 * join; an abort ends it. With a value the other rank aborts, and that ends it as well.
 */
static void graph_finalize(struct rank *rank)
{
	bool is_own = part_value(rank);
	struct gpu_graph graph;
	struct stage stage;
	pthread_t thread;

	if (!has_hosts())
		return;
	stage_open(&stage, rank);
	graph = capture(&stage, SUM, GPU_CAPTURE_RELAXED);
	replay_checked(&stage, &graph, SUM, 1);
	rank_meet(rank);
	if (rank->rank == 0) {
		for (int turn = 0; turn < TURNS; turn++)
			gpu_replay(&graph, stage.seat->stream);
		HOLDS(!pthread_create(&thread, NULL, finalize_main, &stage));
		usleep(FINALIZE_US);
	}
	if (is_own && rank->rank == 1)
		rank_meet(rank);
	OK(ncclCommAbort(stage.seat->comm));
	if (is_own && rank->rank == 0)
		rank_meet(rank);
	if (rank->rank == 0)
		pthread_join(thread, NULL);
	gpu_stream_end(stage.seat->stream);
	gpu_graph_end(&graph);
	stage_free(&stage);
}

/* The graph ends after the communicator, or is never ended at all. */
static void graph_late_end(struct rank *rank)
{
	bool is_ended = part_value(rank);
	struct gpu_graph graph;
	struct stage stage;

	stage_open(&stage, rank);
	graph = capture(&stage, SUM, GPU_CAPTURE_RELAXED);
	replay_checked(&stage, &graph, SUM, 1);
	crew_close(&stage.crew);
	if (is_ended)
		gpu_graph_end(&graph);
	stage_free(&stage);
}

static const struct part parts[] = {
	{"sum", "1x1 2x1 4x1 8x1 1x2 1x4", graph_replay, .value = SUM},
	{"gather", "2x1 1x4", graph_replay, .value = GATHER},
	{"ring", "2x1 4x1 1x2 1x4", graph_replay, .value = RING},
	{"everything", "2x1 4x1 8x1 1x4", graph_replay, .value = EVERYTHING},
	{"relaxed", "2x1 1x2", graph_mode, .value = GPU_CAPTURE_RELAXED},
	{"thread-local", "2x1 1x2 1x4", graph_mode, .value = GPU_CAPTURE_THREAD_LOCAL},
	{"global", "2x1 1x2 1x4", graph_mode, .value = GPU_CAPTURE_GLOBAL},
	{"two graphs", "2x1 4x1 1x4", graph_two, .value = 0},
	{"chain", "2x1 4x1 1x4", graph_chain, .value = 0},
	{"chain with plain calls", "2x1 4x1 1x4", graph_chain, .value = 1},
	{"abort of another", "2x1", graph_abort, .value = 0},
	{"abort", "2x1", graph_abort, .value = 1},
	{"finalize beside an abort of another", "2x1", graph_finalize, .value = 0},
	{"finalize beside an abort", "2x1", graph_finalize, .value = 1},
	{"graph after communicator", "2x1 1x2", graph_late_end, .value = 1},
	{"graph never ended", "2x1 1x2", graph_late_end, .value = 0},
};

int main(int argc, char **argv)
{
	return parts_main(argc, argv, parts, sizeof(parts) / sizeof(*parts));
}
