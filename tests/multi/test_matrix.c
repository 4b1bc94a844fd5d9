/*
 * Every collective with every type, operator, count, placement, root, number of ranks,
 * kind of memory and kind of rank gives exactly what it must and touches nothing else.
 *
 * The product is pruned: each job takes every (collective, type, operator) once, and
 * walks through counts, placements and roots beside it. `--lean` takes a part of it;
 * `--schedules` instead forces every schedule there is, direct and staged, in many tiles.
 */
#include <math.h>
#include <stdint.h>

#include "buffers.h"
#include "colls.h"
#include "ranks.h"
#include "value.h"

/* Beside the collectives. */
enum {
	BCAST = COLLECTIVES,
	SEND_RECV, /* to the next rank, in a group */
	EXCHANGE,  /* an all-to-all of sends and receives */
	KIND_COUNT
};

static const char *kind_name(int kind)
{
	static const char *const more[] = {"Bcast", "SendRecv", "Exchange"};

	return kind < COLLECTIVES ? collective_name(kind) : more[kind - COLLECTIVES];
}

static const size_t counts[] = {0, 1, 3, 17, 1023, 5000, 100003};

enum {
	COUNTS = sizeof(counts) / sizeof(counts[0]),
	BYTES_MAX = 1 << 21,
	SHIFT = 24,
	WALKS = 2
};

struct job {
	int rank_count;
	bool single; /* one thread drives all ranks */
	enum memory memory;
	unsigned kinds;	 /* mask of kinds */
	unsigned stride; /* take every so many'th case */
};

struct cell {
	int kind;
	ncclDataType_t type;
	int op;
	size_t count;
	bool in_place;
	int root;
};

struct seat {
	int rank;
	ncclComm_t comm;
	struct buffer send, recv;
	char *in, *out; /* what the call gets */
	char scalar[8];
};

struct world {
	const struct job *job;
	int rank_count;
	int seat_count; /* ranks this thread drives */
	struct seat seats[RANKS_MAX];
	size_t size; /* of the cell's type */
	char inputs[RANKS_MAX][PERIOD * 8];
	char reduced[PERIOD * 8];
	uint64_t done;
};

static bool reduces(int kind)
{
	return kind == ALL_REDUCE || kind == REDUCE || kind == REDUCE_SCATTER;
}

static bool has_root(int kind)
{
	return kind == BCAST || collective_has_root(kind);
}

static size_t send_blocks(const struct world *world, const struct cell *cell, int rank)
{
	size_t n = (size_t)world->rank_count;

	switch (cell->kind) {
	case BROADCAST:
	case BCAST:
		return rank == cell->root;
	case REDUCE_SCATTER:
	case ALL_TO_ALL:
	case EXCHANGE:
		return n;
	case SCATTER:
		return rank == cell->root ? n : 0;
	default:
		return 1;
	}
}

static size_t recv_blocks(const struct world *world, const struct cell *cell, int rank)
{
	size_t n = (size_t)world->rank_count;

	switch (cell->kind) {
	case REDUCE:
		return rank == cell->root;
	case ALL_GATHER:
	case ALL_TO_ALL:
	case EXCHANGE:
		return n;
	case GATHER:
		return rank == cell->root ? n : 0;
	default:
		return 1;
	}
}

/* Where the smaller buffer lies in the larger when in place. */
static size_t place_offset(const struct cell *cell, int rank)
{
	bool by_rank = cell->kind == ALL_GATHER || cell->kind == REDUCE_SCATTER;
	bool by_root = cell->kind == GATHER || cell->kind == SCATTER;

	return by_rank	 ? (size_t)rank * cell->count
	       : by_root ? (size_t)cell->root * cell->count
			 : 0;
}

/* Everyone's buffers for one call: in place both lie in `recv`. */
static void seat_prepare(struct world *world, struct seat *seat, const struct cell *cell)
{
	size_t block = cell->count * world->size;
	size_t sends = send_blocks(world, cell, seat->rank);
	size_t recvs = recv_blocks(world, cell, seat->rank);
	size_t larger = sends > recvs ? sends : recvs;
	size_t offset = place_offset(cell, seat->rank) * world->size;

	buffer_reset(&seat->send, cell->in_place ? 0 : sends * block);
	buffer_reset(&seat->recv, (cell->in_place ? larger : recvs) * block);
	seat->in = seat->send.data;
	seat->out = seat->recv.data;
	if (cell->in_place) {
		seat->in = seat->recv.data + (sends < recvs ? offset : 0);
		seat->out = seat->recv.data + (recvs < sends ? offset : 0);
	}
	if (cell->kind == REDUCE && cell->in_place)
		seat->out = seat->in;
	if (sends)
		pattern_fill(seat->in, world->inputs[seat->rank], world->size, 0,
			sends * cell->count);
}

static ncclRedOp_t seat_op(struct seat *seat, const struct cell *cell)
{
	ncclRedOp_t op = (ncclRedOp_t)cell->op;

	if (cell->op < ncclNumOps)
		return op;
	type_encode(cell->type, value_scalar(seat->rank), seat->scalar);
	OK(ncclRedOpCreatePreMulSum(&op, seat->scalar, cell->type,
		cell->op == OP_PREMUL ? ncclScalarHostImmediate : ncclScalarDevice,
		seat->comm));
	return op;
}

static void seat_exchange(
	const struct world *world, struct seat *seat, const struct cell *cell)
{
	size_t block = cell->count * world->size;
	int n = world->rank_count;

	OK(ncclGroupStart());
	if (cell->kind == SEND_RECV) {
		OK(ncclSend(seat->in, cell->count, cell->type, (seat->rank + 1) % n,
			seat->comm, NULL));
		OK(ncclRecv(seat->out, cell->count, cell->type, (seat->rank + n - 1) % n,
			seat->comm, NULL));
	}
	for (int i = 0; i < n && cell->kind == EXCHANGE; i++) {
		int peer = (seat->rank + i) % n;

		OK(ncclSend(seat->in + (size_t)peer * block, cell->count, cell->type,
			peer, seat->comm, NULL));
		OK(ncclRecv(seat->out + (size_t)peer * block, cell->count, cell->type,
			peer, seat->comm, NULL));
	}
	OK(ncclGroupEnd());
}

static ncclResult_t seat_call(struct seat *s, const struct cell *c, ncclRedOp_t op)
{
	const struct collective_call made = {.collective = c->kind,
		.in = s->in,
		.out = s->out,
		.count = c->count,
		.type = c->type,
		.op = op,
		.root = c->root,
		.comm = s->comm};

	return c->kind == BCAST
		       ? ncclBcast(s->out, c->count, c->type, c->root, s->comm, NULL)
		       : collective_call(&made);
}

static void world_call(struct world *world, const struct cell *cell)
{
	ncclRedOp_t ops[RANKS_MAX];

	if (world->seat_count > 1)
		OK(ncclGroupStart());
	for (int i = 0; i < world->seat_count; i++) {
		struct seat *seat = &world->seats[i];

		ops[i] = seat_op(seat, cell);
		if (cell->kind == SEND_RECV || cell->kind == EXCHANGE)
			seat_exchange(world, seat, cell);
		else
			OK(seat_call(seat, cell, ops[i]));
		if (cell->op == OP_PREMUL) /* may go once enqueued */
			OK(ncclRedOpDestroy(ops[i], seat->comm));
	}
	if (world->seat_count > 1)
		OK(ncclGroupEnd());
	for (int i = 0; i < world->seat_count && cell->op == OP_PREMUL_DEVICE; i++)
		OK(ncclRedOpDestroy(ops[i], world->seats[i].comm));
}

static bool nearly(const struct cell *cell, const char *data, const char *pattern,
	size_t first, double tolerance)
{
	size_t size = type_size(cell->type);

	for (size_t i = 0; i < cell->count; i++) {
		double got = type_decode(cell->type, data + i * size);
		double want = type_decode(
			cell->type, pattern + (first + i) % PERIOD * size);

		if (!(fabs(got - want) <= tolerance))
			return false;
	}
	return true;
}

/* Block `block` of what rank must have received. */
static bool block_is_right(const struct world *world, const struct seat *seat,
	const struct cell *cell, size_t block)
{
	const char *data = seat->out + block * cell->count * world->size;
	double tolerance = value_tolerance(cell->type, cell->op, world->rank_count);
	int n = world->rank_count, from = (int)block;
	size_t first = 0;

	if (reduces(cell->kind)) {
		if (cell->kind == REDUCE_SCATTER)
			first = (size_t)seat->rank * cell->count;
		if (tolerance > 0)
			return nearly(cell, data, world->reduced, first, tolerance);
		return pattern_matches(
			data, world->reduced, world->size, first, cell->count);
	}
	if (cell->kind == BROADCAST || cell->kind == BCAST || cell->kind == SCATTER)
		from = cell->root;
	if (cell->kind == SEND_RECV)
		from = (seat->rank + n - 1) % n;
	if (cell->kind == ALL_TO_ALL || cell->kind == EXCHANGE || cell->kind == SCATTER)
		first = (size_t)seat->rank * cell->count;
	return pattern_matches(
		data, world->inputs[from], world->size, first, cell->count);
}

static void seat_verify(struct world *world, struct seat *seat, const struct cell *cell)
{
	size_t sends = send_blocks(world, cell, seat->rank);
	size_t recvs = recv_blocks(world, cell, seat->rank);

	for (size_t block = 0; block < recvs; block++)
		HOLDS(block_is_right(world, seat, cell, block));
	HOLDS(buffer_guards_hold(&seat->recv));
	HOLDS(buffer_guards_hold(&seat->send));
	/* what was not to be written is as it was */
	if (sends && (!cell->in_place || !recvs))
		HOLDS(pattern_matches(seat->in, world->inputs[seat->rank], world->size, 0,
			sends * cell->count));
}

static void cell_run(struct world *world, const struct cell *cell)
{
	size_t blocks = 1;

	world->size = type_size(cell->type);
	for (int r = 0; r < world->rank_count; r++) {
		size_t s = send_blocks(world, cell, r), t = recv_blocks(world, cell, r);

		blocks = s > blocks ? s : t > blocks ? t : blocks;
		value_input(cell->type, cell->op, r, world->rank_count, world->inputs[r]);
	}
	if (cell->count * world->size * blocks > BYTES_MAX)
		return;
	if (reduces(cell->kind))
		value_reduced(cell->type, cell->op, world->rank_count, world->reduced);
	rank_context("rank %d of %d %s: %s type %d op %d count %zu %s root %d memory %d",
		world->seats[0].rank, world->rank_count,
		world->job->single ? "in one thread" : "", kind_name(cell->kind),
		cell->type, cell->op, cell->count,
		cell->in_place ? "in place" : "out of place", cell->root,
		world->job->memory);
	for (int i = 0; i < world->seat_count; i++)
		seat_prepare(world, &world->seats[i], cell);
	world_call(world, cell);
	for (int i = 0; i < world->seat_count; i++)
		seat_verify(world, &world->seats[i], cell);
	world->done++;
}

/* Counts, placements and roots are walked through beside everything else. */
static void cell_vary(struct world *world, struct cell *cell, unsigned turn)
{
	bool never_in_place = cell->kind == ALL_TO_ALL || cell->kind == EXCHANGE ||
			      cell->kind == SEND_RECV;

	cell->count = counts[turn % COUNTS];
	cell->in_place = cell->kind == BCAST || (!never_in_place && turn / COUNTS % 2);
	cell->root = has_root(cell->kind) ? (int)(turn * 5 / 3) % world->rank_count : 0;
	cell_run(world, cell);
}

static void world_walk(struct world *world, unsigned turn)
{
	struct cell cell;

	for (int kind = 0; kind < KIND_COUNT; kind++) {
		int ops = reduces(kind) ? OP_COUNT : 1;

		if (!(world->job->kinds >> kind & 1))
			continue;
		for (int type = 0; type < ncclNumTypes; type++)
			for (int op = 0; op < ops; op++, turn++) {
				cell = (struct cell){.kind = kind,
					.type = (ncclDataType_t)type,
					.op = op};
				if (turn % world->job->stride == 0)
					cell_vary(world, &cell, turn);
			}
	}
}

/* Calls of all sorts in one group. */
static void world_mix(struct world *world)
{
	enum { COUNT = 3000 };
	struct cell cells[] = {{.kind = ALL_REDUCE, .op = ncclSum}, {.kind = BROADCAST},
		{.kind = ALL_GATHER}, {.kind = REDUCE_SCATTER, .op = ncclMax},
		{.kind = ALL_REDUCE, .op = ncclMin}};
	size_t n = (size_t)world->rank_count, block = COUNT * sizeof(int32_t);
	enum { CELLS = sizeof(cells) / sizeof(cells[0]) };

	world->size = sizeof(int32_t);
	rank_context("rank %d of %d: a group of everything", world->seats[0].rank,
		world->rank_count);
	for (int r = 0; r < world->rank_count; r++)
		value_input(ncclInt32, ncclSum, r, world->rank_count, world->inputs[r]);
	OK(ncclGroupStart());
	for (int s = 0; s < world->seat_count; s++) {
		struct seat *seat = &world->seats[s];

		buffer_reset(&seat->send, n * block);
		buffer_reset(&seat->recv, CELLS * n * block);
		pattern_fill(seat->send.data, world->inputs[seat->rank], world->size, 0,
			n * COUNT);
		for (size_t i = 0; i < CELLS; i++) {
			cells[i].type = ncclInt32;
			cells[i].count = COUNT;
			seat->in = seat->send.data;
			seat->out = seat->recv.data + i * n * block;
			OK(ncclGroupStart());
			OK(seat_call(seat, &cells[i], (ncclRedOp_t)cells[i].op));
			OK(ncclGroupEnd());
		}
	}
	OK(ncclGroupEnd());
	for (int s = 0; s < world->seat_count; s++)
		for (size_t i = 0; i < CELLS; i++) {
			struct seat *seat = &world->seats[s];

			seat->out = seat->recv.data + i * n * block;
			if (reduces(cells[i].kind))
				value_reduced(ncclInt32, cells[i].op, world->rank_count,
					world->reduced);
			for (size_t b = 0; b < recv_blocks(world, &cells[i], seat->rank);
				b++)
				HOLDS(block_is_right(world, seat, &cells[i], b));
		}
}

static uint64_t hash_bytes(const char *data, size_t bytes)
{
	uint64_t hash = 0xcbf29ce484222325u;

	for (size_t i = 0; i < bytes; i++)
		hash = (hash ^ (unsigned char)data[i]) * 0x100000001b3u;
	return hash;
}

/* Random numbers, where the order of additions shows: the same bits on every rank, and
 * again the second time. */
static void world_repeat(struct world *world, struct rank *rank)
{
	static const size_t some[] = {3, 1023, 60001};
	struct seat *seat = &world->seats[0];
	uint64_t first = 0, seed = (uint64_t)rank->rank * 77 + 5;
	float *in = (float *)seat->send.data;

	for (int round = 0; round < 6; round++) {
		size_t count = some[round / 2];
		uint64_t hash;

		rank_context("rank %d of %d: the same bits, %zu floats", rank->rank,
			rank->rank_count, count);
		for (size_t i = 0; i < count && round % 2 == 0; i++) {
			seed = seed * 6364136223846793005u + 1442695040888963407u;
			in[i] = (float)((double)(seed >> 33) / 1e9 - 1);
		}
		OK(ncclAllReduce(in, seat->recv.data, count, ncclFloat32, ncclSum,
			seat->comm, NULL));
		hash = hash_bytes(seat->recv.data, count * sizeof(float));
		HOLDS(round % 2 == 0 || hash == first);
		first = hash;
		atomic_store(&rank->page->words[rank->rank], hash);
		rank_meet(rank);
		HOLDS(atomic_load(&rank->page->words[0]) == hash);
		rank_meet(rank);
	}
}

static void world_open(struct world *world, struct rank *rank)
{
	ncclComm_t comms[RANKS_MAX];

	world->rank_count = world->job->rank_count;
	world->seat_count = world->job->single ? world->rank_count : 1;
	if (world->job->single)
		OK(ncclCommInitAll(comms, world->rank_count, NULL));
	else
		comms[0] = rank_comm(rank, 0);
	for (int i = 0; i < world->seat_count; i++) {
		struct seat *seat = &world->seats[i];

		seat->rank = world->job->single ? i : rank->rank;
		seat->comm = comms[i];
		buffer_create(
			&seat->send, world->job->memory, seat->rank, BYTES_MAX, SHIFT);
		buffer_create(&seat->recv, world->job->memory, seat->rank, BYTES_MAX,
			SHIFT + 8);
	}
}

static void job_main(struct rank *rank)
{
	struct world *world = calloc(1, sizeof(*world));

	HOLDS(world);
	world->job = rank->argument;
	world_open(world, rank);
	for (unsigned i = 0; i < (world->job->stride == 1 ? WALKS : 1); i++)
		world_walk(world, (unsigned)world->job->memory * 3 +
					  (unsigned)world->rank_count * 11 + i * 5);
	if (world->job->kinds == (1u << KIND_COUNT) - 1)
		world_mix(world);
	if (!world->job->single)
		world_repeat(world, rank);
	for (int i = 0; i < world->seat_count; i++) {
		buffer_destroy(&world->seats[i].send);
		buffer_destroy(&world->seats[i].recv);
		OK(ncclCommDestroy(world->seats[i].comm));
	}
	if (rank->rank == 0)
		atomic_store(&rank->page->result, world->done);
	free(world);
}

static uint64_t total;

static void job_run(const struct job *job, bool threads, const char *const *environment)
{
	int n = job->single ? 1 : job->rank_count;
	struct ranks ranks = {.processes = threads ? 1 : n,
		.threads = threads ? n : 1,
		.function = job_main,
		.argument = job,
		.environment = environment};

	ranks_run(&ranks);
	total += ranks.result;
}

static void matrix(bool lean)
{
	static const int ns[] = {1, 2, 3, 4, 5, 8};
	struct job job = {.kinds = (1u << KIND_COUNT) - 1, .stride = lean ? 9 : 1};

	for (size_t i = 0; i < sizeof(ns) / sizeof(ns[0]); i++) {
		if (lean && ns[i] != 2 && ns[i] != 5)
			continue;
		job.rank_count = ns[i];
		for (int memory = 0; memory < MEMORY_COUNT; memory++) {
			job.memory = (enum memory)memory;
			job.single = false;
			job_run(&job, false, NULL);
			if (memory == MEMORY_UNALIGNED || memory == MEMORY_MIXED)
				job_run(&job, true, NULL);
			job.single = true;
			if (memory == MEMORY_MIXED)
				job_run(&job, false, NULL);
		}
	}
}

struct forced {
	const char *name;
	unsigned kinds;
};

static const struct forced forced[] = {
	{"ring", 1u << ALL_REDUCE | 1u << BROADCAST | 1u << REDUCE | 1u << ALL_GATHER |
			 1u << REDUCE_SCATTER},
	{"tree", 1u << ALL_REDUCE | 1u << BROADCAST | 1u << REDUCE},
	{"direct", (1u << SEND_RECV) - 1},
	{"oneshot", 1u << ALL_REDUCE},
	{"halving", 1u << ALL_REDUCE | 1u << REDUCE_SCATTER},
	{"scatter_gather", 1u << BROADCAST | 1u << REDUCE},
	{"bruck", 1u << ALL_GATHER},
	{"doubling", 1u << ALL_REDUCE},
};

/* Each schedule over direct and staged memory, in one tile and in many. */
static void schedules(bool lean)
{
	static const int ns[] = {2, 3, 5, 8};

	for (size_t i = 0; i < sizeof(forced) / sizeof(forced[0]); i++)
		for (size_t k = 0; k < 16; k++) {
			struct job job = {.rank_count = ns[k / 4],
				.memory = k & 1 ? MEMORY_MALLOC : MEMORY_NCCL,
				.kinds = forced[i].kinds,
				.stride = lean ? 5 : 1};
			const char *const environment[] = {"WEFT_SCHEDULE",
				forced[i].name, "WEFT_TILE", k & 2 ? "4096" : "0", NULL};

			if (!lean || (job.rank_count == 3 && k & 2))
				job_run(&job, false, environment);
		}
}

int main(int argc, char **argv)
{
	bool lean = has_option(argc, argv, "--lean");
	uint64_t start = now_us();

	if (has_option(argc, argv, "--schedules"))
		schedules(lean);
	else
		matrix(lean);
	printf("%lu calls checked in %.1f s\n", (unsigned long)total,
		(double)(now_us() - start) * 1e-6);
	return 0;
}
