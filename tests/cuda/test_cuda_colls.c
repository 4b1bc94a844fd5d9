/*
 * Every collective on device memory gives, to the bit, what it gives on host memory to a
 * communicator that knows of no GPU, and touches nothing else.
 *
 * The product is pruned: all types and operators at one count, all counts, placements,
 * shifts and roots at a few types. Ranks are threads and processes.
 */
#include "colls.h"
#include "gpu.h"
#include "ranks.h"
#include "value.h"

enum { COUNT_MAX = 65537, GUARD = 256, FILLER = 0xa5 };

struct cell {
	int kind;
	ncclDataType_t type;
	int op;
	size_t count;
	bool in_place, is_shifted;
	int root;
};

/* One rank. Both sides have the same bytes: guard, room for all blocks, guard; for what
 * is sent and what is received. */
struct seat {
	int rank, rank_count;
	ncclComm_t comm, reference; /* the second is made before there is a context */
	cu_stream stream;
	size_t room;		/* of one buffer with its guards */
	char *host[2], *gpu[2]; /* sent, received */
	char *back;		/* what came back from the GPU */
	uint64_t random, cells;
};

static bool reduces(int kind)
{
	return kind == ALL_REDUCE || kind == REDUCE || kind == REDUCE_SCATTER;
}

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
		return !received ? 1 : is_root ? n : 0;
	case SCATTER:
		return received ? 1 : is_root ? n : 0;
	case BROADCAST:
		return received || is_root;
	case REDUCE:
		return !received || is_root;
	default:
		return 1;
	}
}

/* xorshift: the same everywhere. */
static uint64_t random_next(struct seat *seat)
{
	seat->random ^= seat->random << 13;
	seat->random ^= seat->random >> 7;
	seat->random ^= seat->random << 17;
	return seat->random;
}

/* Integers of any bits; floats in -2..2 whose sums and products round and never leave
 * the type's range. */
static void fill(struct seat *seat, const struct cell *cell, char *data, size_t count)
{
	size_t size = type_size(cell->type);

	for (size_t i = 0; i < count; i++) {
		uint64_t bits = random_next(seat);

		if (type_is_float(cell->type))
			type_encode(cell->type, (double)(int64_t)bits * 0x1p-62,
				data + i * size);
		else
			memcpy(data + i * size, &bits, size);
	}
}

/* Where the call's buffers lie in one side's pair. */
struct pair {
	char *in, *out;
};

static struct pair pair_of(
	const struct seat *seat, const struct cell *cell, char *const *base)
{
	size_t size = type_size(cell->type);
	size_t shift = GUARD + (cell->is_shifted ? size : 0);
	size_t sent = blocks(seat, cell, false), received = blocks(seat, cell, true);
	size_t own = (size_t)(collective_has_root(cell->kind) ? cell->root : seat->rank);
	size_t offset = own * cell->count * size;
	struct pair pair = {base[0] + shift, base[1] + shift};

	if (!cell->in_place)
		return pair;
	pair.in = pair.out;
	if (sent < received && received > 1)
		pair.in += offset;
	if (received < sent && sent > 1)
		pair.out += offset;
	return pair;
}

/* A rank that is not the root has no say in where the larger buffer is. */
static bool can_be_in_place(const struct cell *cell)
{
	return cell->kind != ALL_TO_ALL;
}

static ncclResult_t call(const struct cell *c, struct pair p, ncclRedOp_t op,
	ncclComm_t comm, cu_stream on)
{
	const struct collective_call made = {.collective = c->kind,
		.in = p.in,
		.out = p.out,
		.count = c->count,
		.type = c->type,
		.op = op,
		.root = c->root,
		.comm = comm,
		.stream = (cudaStream_t)on};

	return collective_call(&made);
}

static ncclRedOp_t op_make(
	const struct seat *seat, const struct cell *cell, ncclComm_t comm)
{
	ncclRedOp_t op = (ncclRedOp_t)cell->op;
	char scalar[8];
	double step;

	if (cell->op < ncclNumOps)
		return op;
	step = type_is_float(cell->type) ? 0.25 : 1;
	type_encode(cell->type, 1 + step * (seat->rank % 3), scalar);
	OK(ncclRedOpCreatePreMulSum(
		&op, scalar, cell->type, ncclScalarHostImmediate, comm));
	return op;
}

/* The bytes of a buffer that a call can touch, and both guards. */
static size_t used(const struct seat *seat, const struct cell *cell)
{
	size_t bytes = (size_t)seat->rank_count * cell->count * type_size(cell->type);

	return bytes + 2 * GUARD + 8;
}

static void compare(struct seat *seat, const struct cell *cell, int which)
{
	size_t bytes = used(seat, cell), first = bytes, last = 0, wrong = 0;
	const char *wanted = seat->host[which];

	gpu_read(seat->back, seat->gpu[which], bytes, seat->stream);
	for (size_t i = 0; i < bytes; i++)
		if (seat->back[i] != wanted[i]) {
			first = first < i ? first : i;
			last = i;
			wrong++;
		}
	if (!wrong)
		return;
	rank_context("rank %d of %d %s type %d op %d count %zu %s%s root %d: "
		     "%zu bytes of %s, from %td (%02x, not %02x) to %td",
		seat->rank, seat->rank_count, collective_name(cell->kind), cell->type,
		cell->op, cell->count, cell->in_place ? "in place" : "out of place",
		cell->is_shifted ? " shifted" : "", cell->root, wrong,
		which ? "recvbuff" : "sendbuff", (ptrdiff_t)first - GUARD,
		(unsigned char)seat->back[first], (unsigned char)wanted[first],
		(ptrdiff_t)last - GUARD);
	holds(false, "the same bits as on host memory", __FILE__, __LINE__);
}

static void cell_run(struct seat *seat, const struct cell *cell)
{
	size_t bytes = used(seat, cell), sent = blocks(seat, cell, false);
	struct pair host = pair_of(seat, cell, seat->host);
	struct pair gpu = pair_of(seat, cell, seat->gpu);
	ncclRedOp_t op;

	rank_context("rank %d of %d %s type %d op %d count %zu place %d shift %d root %d",
		seat->rank, seat->rank_count, collective_name(cell->kind), cell->type,
		cell->op, cell->count, cell->in_place, cell->is_shifted, cell->root);
	HOLDS(bytes <= seat->room);
	for (int i = 0; i < 2; i++)
		memset(seat->host[i], FILLER, bytes);
	fill(seat, cell, host.in, sent * cell->count);
	for (int i = 0; i < 2; i++)
		gpu_write(seat->gpu[i], seat->host[i], bytes, seat->stream);
	gpu_wait(seat->stream); /* the host's call writes what is copied from */
	op = op_make(seat, cell, seat->comm);
	OK(call(cell, gpu, op, seat->comm, seat->stream));
	if (cell->op >= ncclNumOps)
		OK(ncclRedOpDestroy(op, seat->comm));
	op = op_make(seat, cell, seat->reference);
	OK(call(cell, host, op, seat->reference, NULL));
	if (cell->op >= ncclNumOps)
		OK(ncclRedOpDestroy(op, seat->reference));
	compare(seat, cell, 0);
	compare(seat, cell, 1);
	seat->cells++;
}

/* ---- the walks ---- */

static void all_types(struct seat *seat)
{
	for (int type = 0; type < ncclNumTypes; type++)
		for (int kind = 0; kind < COLLECTIVES; kind++)
			for (int op = 0; op <= OP_PREMUL; op++) {
				struct cell cell = {.kind = kind,
					.type = (ncclDataType_t)type,
					.op = op,
					.count = 1000,
					.in_place = (type + op) % 2,
					.is_shifted = (type + op) % 3 == 0,
					.root = (type + op) % seat->rank_count};

				cell.in_place = cell.in_place && can_be_in_place(&cell);
				if (op == 0 || reduces(cell.kind))
					cell_run(seat, &cell);
			}
}

/* Both placements, aligned and not, at one count. */
static void one_count(struct seat *seat, struct cell cell)
{
	for (int way = 0; way < 4; way++) {
		cell.in_place = way & 1;
		cell.is_shifted = way & 2;
		cell.root = (int)(cell.count + (size_t)way) % seat->rank_count;
		if (!cell.in_place || can_be_in_place(&cell))
			cell_run(seat, &cell);
	}
}

static void all_counts(struct seat *seat)
{
	static const size_t counts[] = {0, 1, 7, 1000, COUNT_MAX};
	static const ncclDataType_t types[] = {ncclFloat32, ncclBfloat16, ncclInt8};

	for (size_t c = 0; c < sizeof(counts) / sizeof(*counts); c++)
		for (size_t t = 0; t < sizeof(types) / sizeof(*types); t++)
			for (int kind = 0; kind < COLLECTIVES; kind++)
				one_count(seat, (struct cell){.kind = kind,
							.type = types[t],
							.op = ncclSum,
							.count = counts[c]});
}

static void all_roots(struct seat *seat)
{
	for (int kind = 0; kind < COLLECTIVES; kind++)
		for (int root = 0; root < seat->rank_count; root++)
			if (collective_has_root(kind))
				cell_run(seat, &(struct cell){.kind = kind,
						       .type = ncclFloat16,
						       .op = ncclSum,
						       .count = 333,
						       .root = root});
}

static void seat_open(struct seat *seat, struct rank *rank)
{
	*seat = (struct seat){.rank = rank->rank,
		.rank_count = rank->rank_count,
		.reference = rank_comm(rank, 1),
		.random = 0x9e3779b97f4a7c15u * (uint64_t)(rank->rank + 1)};
	gpu_begin();
	seat->room = (size_t)rank->rank_count * COUNT_MAX * 4 + 2 * GUARD + 8;
	for (int i = 0; i < 2; i++) {
		seat->host[i] = malloc(seat->room);
		seat->gpu[i] = gpu_alloc(seat->room);
	}
	seat->back = malloc(seat->room);
	HOLDS(seat->host[0] && seat->host[1] && seat->back);
	seat->stream = gpu_stream();
	seat->comm = rank_comm(rank, 0);
}

static void rank_main(struct rank *rank)
{
	struct seat seat;

	seat_open(&seat, rank);
	all_types(&seat);
	all_counts(&seat);
	all_roots(&seat);
	if (rank->rank == 0)
		atomic_store(&rank->page->result, seat.cells);
	rank_meet(rank);
	OK(ncclCommDestroy(seat.comm));
	OK(ncclCommDestroy(seat.reference));
	gpu_stream_end(seat.stream);
	for (int i = 0; i < 2; i++) {
		free(seat.host[i]);
		gpu_free(seat.gpu[i]);
	}
	free(seat.back);
}

/* With an argument like 1x8, only that one. */
static void job_run(int processes, int threads)
{
	/* sums are folded in the same order when the schedule is the same: the one that
	 * kernels run by themselves, or what the user asks of both */
	static const char *const direct[] = {"WEFT_SCHEDULE", "direct", NULL};
	static const char *const asked[] = {NULL};
	uint64_t start = now_us();
	struct ranks ranks = {.processes = processes,
		.threads = threads,
		.function = rank_main,
		.environment = getenv("NCCL_ALGO") ? asked : direct};

	printf("%d x %d ..", processes, threads);
	ranks_run(&ranks);
	printf(" %ju calls, %.2f s\n", (uintmax_t)ranks.result,
		(double)(now_us() - start) * 1e-6);
}

/* test_cuda_colls [PROCESSESxTHREADS] */
int main(int argc, char **argv)
{
	static const int jobs[][2] = {
		{1, 1}, {1, 2}, {1, 3}, {1, 4}, {1, 8}, {2, 1}, {4, 1}};
	int processes, threads;

	gpu_need();
	if (argc > 1) {
		TRUE(sscanf(argv[1], "%dx%d", &processes, &threads) == 2);
		job_run(processes, threads);
		return 0;
	}
	for (size_t i = 0; i < sizeof(jobs) / sizeof(*jobs); i++)
		job_run(jobs[i][0], jobs[i][1]);
	return 0;
}
