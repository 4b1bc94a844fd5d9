/*
 * Every collective on device memory, by nccl.h and nothing else of the library: so that
 * it can be run on any library of that name, as for a network plugin inside NVIDIA's
 * (scripts/gpu-net-ofi).
 *
 * Ranks are processes. Each call is checked to the last word, and the words behind it.
 */
#include "colls.h"
#include "parts.h"

enum { SEND_RECV = COLLECTIVES, KINDS };
enum { GUARD = 64, UNTOUCHED = 0xa5a5a5a5u, COUNT_MAX = 1 << 20, TURNS = 3 };

/* One call: `count` words in each block. */
struct cell {
	int kind, turn, root;
	size_t count;
	bool in_place;
};

struct bench {
	const struct seat *seat;
	uint32_t *host;	    /* of `room` words */
	uint32_t *in, *out; /* of the device */
	size_t room;
};

/* Blocks that this rank gives, or has afterwards. */
static size_t blocks(const struct seat *seat, const struct cell *cell, bool received)
{
	size_t n = (size_t)seat->rank_count;
	bool is_root = seat->rank == cell->root;

	switch (cell->kind) {
	case ALL_GATHER:
		return received ? n : 1;
	case REDUCE_SCATTER:
		return received ? 1 : n;
	case ALL_TO_ALL:
		return n;
	case GATHER:
		return received ? (is_root ? n : 0) : 1;
	case SCATTER:
		return received ? 1 : n;
	case REDUCE:
		return received ? is_root : 1;
	default:
		return 1;
	}
}

/* Word i of what this rank must have. */
static uint32_t wanted(const struct seat *seat, const struct cell *cell, size_t i)
{
	size_t own = (size_t)seat->rank * cell->count;
	int n = seat->rank_count, from = (int)(i / cell->count);

	switch (cell->kind) {
	case ALL_REDUCE:
	case REDUCE:
		return word_sum(n, cell->turn, i);
	case REDUCE_SCATTER:
		return word_sum(n, cell->turn, own + i);
	case BROADCAST:
		return word_of(cell->root, cell->turn, i);
	case SCATTER:
		return word_of(cell->root, cell->turn, own + i);
	case ALL_GATHER:
	case GATHER:
		return word_of(from, cell->turn, i % cell->count);
	case ALL_TO_ALL:
		return word_of(from, cell->turn, own + i % cell->count);
	default:
		return word_of((seat->rank + n - 1) % n, cell->turn, i);
	}
}

static void data_give(const struct bench *bench, const struct cell *cell, uint32_t *in)
{
	const struct seat *seat = bench->seat;
	size_t given = blocks(seat, cell, false) * cell->count;
	size_t used = (size_t)seat->rank_count * cell->count + GUARD;

	for (size_t i = 0; i < used; i++)
		bench->host[i] = UNTOUCHED;
	gpu_write(bench->out, bench->host, used * sizeof(*in), seat->stream);
	gpu_wait(seat->stream);
	for (size_t i = 0; i < given; i++)
		bench->host[i] = word_of(seat->rank, cell->turn, i);
	gpu_write(in, bench->host, given * sizeof(*in), seat->stream);
	gpu_wait(seat->stream);
}

static void data_check(const struct bench *bench, const struct cell *cell, size_t first)
{
	const struct seat *seat = bench->seat;
	size_t got = blocks(seat, cell, true) * cell->count;
	size_t behind = cell->in_place ? 0 : GUARD;

	gpu_read(bench->host, bench->out + first, (got + behind) * sizeof(*bench->host),
		seat->stream);
	for (size_t i = 0; i < got + behind; i++) {
		uint32_t want = i < got ? wanted(seat, cell, i) : UNTOUCHED;

		if (bench->host[i] == want)
			continue;
		rank_context("rank %d of %d, kind %d, count %zu, root %d, %s: word %zu "
			     "is %u, not %u",
			seat->rank, seat->rank_count, cell->kind, cell->count, cell->root,
			cell->in_place ? "in place" : "out of place", i, bench->host[i],
			want);
		holds(false, "the right words", __FILE__, __LINE__);
	}
}

static bool can_be_in_place(int kind)
{
	return kind <= REDUCE_SCATTER;
}

static void cell_run(const struct bench *bench, const struct cell *cell)
{
	const struct seat *seat = bench->seat;
	size_t own = (size_t)seat->rank * cell->count;
	size_t first = cell->in_place && cell->kind == REDUCE_SCATTER ? own : 0;
	uint32_t *in = cell->in_place ? bench->out : bench->in;
	struct collective_call call = {.collective = cell->kind,
		.count = cell->count,
		.type = ncclUint32,
		.op = ncclSum,
		.root = cell->root,
		.comm = seat->comm,
		.stream = (cudaStream_t)seat->stream};

	if (cell->in_place && cell->kind == ALL_GATHER)
		in += own;
	call.in = in;
	call.out = bench->out + first;
	data_give(bench, cell, in);
	if (cell->kind == SEND_RECV)
		OK(ring_call(&call, seat->rank, seat->rank_count));
	else
		OK(collective_call(&call));
	gpu_wait(seat->stream);
	data_check(bench, cell, first);
}

static void kind_run(const struct bench *bench, int kind)
{
	static const size_t counts[] = {1, 333, 16384, COUNT_MAX};
	struct cell cell = {.kind = kind};

	for (size_t c = 0; c < sizeof(counts) / sizeof(*counts); c++)
		for (cell.turn = 0; cell.turn < TURNS; cell.turn++) {
			cell.count = counts[c];
			cell.root = cell.turn % bench->seat->rank_count;
			cell.in_place = cell.turn == 1 && can_be_in_place(kind);
			cell_run(bench, &cell);
		}
}

static void bench_open(struct bench *bench, const struct seat *seat)
{
	size_t room = (size_t)seat->rank_count * COUNT_MAX + GUARD;

	*bench = (struct bench){.seat = seat,
		.room = room,
		.host = malloc(room * sizeof(uint32_t)),
		.in = gpu_alloc(room * sizeof(uint32_t)),
		.out = gpu_alloc(room * sizeof(uint32_t))};
	HOLDS(bench->host);
}

static void bench_close(struct bench *bench)
{
	gpu_free(bench->in);
	gpu_free(bench->out);
	free(bench->host);
}

static void collectives(struct rank *rank)
{
	struct crew crew;
	struct bench bench;

	crew_open(&crew, rank);
	bench_open(&bench, &crew.seats[0]);
	for (int kind = 0; kind < KINDS; kind++) {
		kind_run(&bench, kind);
		rank_meet(rank);
		if (!rank->rank)
			printf(" %s",
				kind < COLLECTIVES ? collective_name(kind) : "SendRecv");
		fflush(stdout);
	}
	bench_close(&bench);
	crew_close(&crew);
}

/* Two communicators and one that is split off, which outlives its parent. */
static void several(struct rank *rank)
{
	struct crew first, second;
	struct seat split;
	struct bench bench;

	crew_open(&first, rank);
	crew_open_more(&second, rank, 1);
	split = second.seats[0];
	OK(ncclCommSplit(first.seats[0].comm, 0, rank->rank, &split.comm, NULL));
	for (int turn = 0; turn < TURNS; turn++) {
		const struct seat *seats[] = {&first.seats[0], &second.seats[0], &split};

		bench_open(&bench, seats[turn]);
		kind_run(&bench, ALL_REDUCE);
		kind_run(&bench, SEND_RECV);
		bench_close(&bench);
	}
	crew_close(&first);
	bench_open(&bench, &split);
	kind_run(&bench, ALL_TO_ALL);
	bench_close(&bench);
	rank_meet(rank);
	OK(ncclCommDestroy(split.comm));
	crew_close(&second);
}

int main(int argc, char **argv)
{
	static const struct part parts[] = {
		{"collectives", "2x1 4x1", collectives, .limit_s = 60},
		{"several", "2x1", several, .limit_s = 60},
	};

	return parts_main(argc, argv, parts, sizeof(parts) / sizeof(*parts));
}
