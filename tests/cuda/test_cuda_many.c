/*
 * Much at once: many ranks, many communicators, more streams than the GPU has channels,
 * other work in between, and the limit.
 */
#include "parts.h"

enum { WORDS = 2000, STREAMS_MAX = 40, COMMS_MAX = 8 };

static const size_t word = sizeof(uint32_t);

/* ---- many ranks ---- */

static void messages_checked(const struct seat *seat, uint32_t *in, uint32_t *out)
{
	cudaStream_t stream = (cudaStream_t)seat->stream;

	words_give(seat, in, WORDS, 5);
	OK(ncclGroupStart());
	for (int r = 0; r < seat->rank_count; r++) {
		OK(ncclSend(in, WORDS, ncclUint32, r, seat->comm, stream));
		OK(ncclRecv(out + r * WORDS, WORDS, ncclUint32, r, seat->comm, stream));
	}
	OK(ncclGroupEnd());
	for (int r = 0; r < seat->rank_count; r++)
		words_check(seat, out + r * WORDS, WORDS, r, 5);
}

static void collectives_checked(const struct seat *seat, uint32_t *in, uint32_t *out)
{
	cudaStream_t stream = (cudaStream_t)seat->stream;
	int n = seat->rank_count;

	for (int turn = 0; turn < 5; turn++) {
		words_give(seat, in, WORDS, turn);
		OK(ncclAllReduce(
			in, out, WORDS, ncclUint32, ncclSum, seat->comm, stream));
		words_check(seat, out, WORDS, -1, turn);
		OK(ncclAllGather(in, out, WORDS, ncclUint32, seat->comm, stream));
		for (int r = 0; r < n; r++)
			words_check(seat, out + r * WORDS, WORDS, r, turn);
		OK(ncclBroadcast(
			in, out, WORDS, ncclUint32, turn % n, seat->comm, stream));
		words_check(seat, out, WORDS, turn % n, turn);
	}
}

/* Value 1: messages, else collectives. */
static void many_ranks(struct rank *rank)
{
	uint32_t *in, *out;
	struct crew crew;

	crew_open(&crew, rank);
	in = gpu_alloc(WORDS * word);
	out = gpu_alloc((size_t)rank->rank_count * WORDS * word);
	if (part_value(rank))
		messages_checked(&crew.seats[0], in, out);
	else
		collectives_checked(&crew.seats[0], in, out);
	rank_meet(rank);
	gpu_free(in);
	gpu_free(out);
	crew_close(&crew);
}

/* ---- many streams and communicators ---- */

/* Of one rank. Stream s uses communicator s % comm_count. */
struct load {
	struct rank *rank;
	int stream_count, comm_count;
	bool has_work;
	ncclComm_t comms[COMMS_MAX];
	cu_stream streams[STREAMS_MAX];
	uint32_t *data[STREAMS_MAX], *work;
};

static void load_open(struct load *load, struct rank *rank)
{
	gpu_begin();
	for (int i = 0; i < load->comm_count; i++)
		load->comms[i] = rank_comm(rank, i);
	load->rank = rank;
	load->work = gpu_alloc(WORDS * word);
	for (int s = 0; s < load->stream_count; s++) {
		load->streams[s] = gpu_stream();
		load->data[s] = gpu_alloc(WORDS * word);
		gpu_set(load->data[s], (unsigned)s + 1, WORDS, load->streams[s]);
	}
}

/* Every call takes what the one before it on its stream left; nobody waits. */
static void load_run(struct load *load, int turns)
{
	for (int turn = 0; turn < turns; turn++)
		for (int s = 0; s < load->stream_count; s++) {
			uint32_t *data = load->data[s];

			if (load->has_work)
				gpu_set(load->work, (unsigned)turn, WORDS,
					load->streams[(s + turn) % load->stream_count]);
			OK(ncclAllReduce(data, data, WORDS, ncclUint32, ncclSum,
				load->comms[s % load->comm_count],
				(cudaStream_t)load->streams[s]));
		}
}

static void load_close(struct load *load, int turns)
{
	uint32_t times = 1, host[WORDS];

	for (int turn = 0; turn < turns; turn++)
		times *= (uint32_t)load->rank->rank_count;
	for (int s = 0; s < load->stream_count; s++) {
		gpu_read(host, load->data[s], sizeof(host), load->streams[s]);
		rank_context("rank %d, stream %d", load->rank->rank, s);
		for (size_t i = 0; i < WORDS; i++)
			HOLDS(host[i] == times * (uint32_t)(s + 1));
	}
	rank_meet(load->rank);
	for (int i = 0; i < load->comm_count; i++)
		OK(ncclCommDestroy(load->comms[i]));
	for (int s = 0; s < load->stream_count; s++) {
		gpu_stream_end(load->streams[s]);
		gpu_free(load->data[s]);
	}
	gpu_free(load->work);
}

/* Value: streams, and work between the calls when it is odd. */
static void many_streams(struct rank *rank)
{
	enum { TURNS = 8 };
	int value = part_value(rank);
	struct load load = {.stream_count = value & ~1,
		.comm_count = value < 8 ? value & ~1 : 4,
		.has_work = value & 1};

	load_open(&load, rank);
	load_run(&load, TURNS);
	load_close(&load, TURNS);
}

/* Halves, quarters and the whole, used side by side. */
static void many_splits(struct rank *rank)
{
	enum { DEPTH = 3 };
	ncclComm_t comms[DEPTH];
	cu_stream streams[DEPTH];
	uint32_t *data[DEPTH], got;

	gpu_begin();
	comms[0] = rank_comm(rank, 0);
	for (int d = 1; d < DEPTH; d++)
		OK(ncclCommSplit(comms[d - 1], rank->rank >> (DEPTH - 1 - d) & 1, 0,
			&comms[d], NULL));
	for (int d = 0; d < DEPTH; d++) {
		streams[d] = gpu_stream();
		data[d] = gpu_alloc(WORDS * word);
		gpu_set(data[d], 1, WORDS, streams[d]);
	}
	for (int turn = 0; turn < 5; turn++)
		for (int d = 0; d < DEPTH; d++)
			OK(ncclAllReduce(data[d], data[d], WORDS, ncclUint32, ncclSum,
				comms[d], (cudaStream_t)streams[d]));
	for (int d = 0; d < DEPTH; d++) {
		int count, want = 1;

		OK(ncclCommCount(comms[d], &count));
		for (int turn = 0; turn < 5; turn++)
			want *= count;
		gpu_read(&got, data[d] + WORDS - 1, sizeof(got), streams[d]);
		EQ(got, want);
	}
	rank_meet(rank);
	for (int d = DEPTH - 1; d >= 0; d--) {
		OK(ncclCommDestroy(comms[d]));
		gpu_stream_end(streams[d]);
		gpu_free(data[d]);
	}
}

/* ---- the limit ---- */

/* More ranks than can share a GPU: the start fails, or the first call, with a sentence.
 */
static void many_too_many(struct rank *rank)
{
	ncclComm_t comm = NULL;
	ncclResult_t got;
	cu_stream stream;
	void *data;

	gpu_begin();
	stream = gpu_stream();
	data = gpu_alloc(WORDS * word);
	got = ncclCommInitRank(&comm, rank->rank_count, rank_id(rank, 0), rank->rank);
	rank_meet(rank);
	if (!got)
		got = ncclAllReduce(data, data, WORDS, ncclUint32, ncclSum, comm,
			(cudaStream_t)stream);
	rank_context("rank %d got %d (%s)", rank->rank, got, ncclGetLastError(NULL));
	HOLDS(got == ncclInvalidUsage || got == ncclInvalidArgument);
	gpu_sentence("64");
	rank_meet(rank);
	if (comm)
		OK(ncclCommAbort(comm));
	gpu_stream_end(stream);
	gpu_free(data);
}

static const struct part parts[] = {
	{"collectives", "16x1 32x1 1x16 1x32", many_ranks, .limit_s = 100},
	{"messages", "16x1 1x16", many_ranks, .value = 1, .limit_s = 100},
	{"four streams", "2x1 4x1 1x4", many_streams, .value = 4},
	{"four streams and work", "2x1 4x1 1x4", many_streams, .value = 5},
	{"forty streams", "2x1 4x1 1x4", many_streams, .value = 40},
	{"forty streams and work", "2x1 4x1 1x4", many_streams, .value = 41},
	{"splits", "4x1 8x1 1x8", many_splits, .value = 0},
	{"65 ranks", "13x5", many_too_many, .limit_s = 100},
};

int main(int argc, char **argv)
{
	return parts_main(argc, argv, parts, sizeof(parts) / sizeof(*parts));
}
