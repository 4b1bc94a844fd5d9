/*
 * moves.cuh - one block's share of a rank's moves.
 *
 * The rank's page is fetched while the ranks meet, and its places become addresses in
 * shared memory, all at once; then every thread takes its units of each move (units.cuh).
 * Threads of all blocks interleave, so that the whole device works on one stretch of
 * memory, and a small move begins at the thread where the one before ended: moves do not
 * depend on each other (moves.h).
 */
#ifndef EXEC_CUDA_KERNELS_MOVES_CUH
#define EXEC_CUDA_KERNELS_MOVES_CUH

#include "exec/cuda/kernels/meet.cuh"
#include "sched/insn.h"

enum { LANES = 32, WIDE_BYTES = 16, NOT_SCALED = 0xff };

struct shared {
	uint32_t threads;  /* that share the work */
	uint64_t received; /* bytes of a receive, see pairs.cuh */
	struct ranks ranks;
	uint4 page[PAGE_BYTES_MAX / sizeof(uint4)];
	uint64_t places[PAGE_PLACES_MAX];   /* addresses */
	uint8_t scaled_by[PAGE_PLACES_MAX]; /* the rank whose scalar applies, or not */
};

/* A move, ready to be done. */
struct ready_move {
	uint64_t bytes;
	const uint64_t *places;	  /* addresses: of the inputs, then of the outputs */
	const uint8_t *scaled_by; /* of each: which scalar, or NOT_SCALED */
	uint16_t input_count, output_count;
	uint32_t op;
	uint32_t any;	/* of the lowest bits, those that any of its addresses has */
	uint32_t apart; /* .. and those in which any two of them differ */
};

/* What there is of a move's chunks. */
DEVICE uint64_t chunks_bytes(const struct moves_args &args, const struct dev_move &move)
{
	uint64_t begin = move.chunk * args.chunk_bytes;
	uint64_t all = move.count * args.chunk_bytes;
	uint64_t left = args.total_bytes > begin ? args.total_bytes - begin : 0;

	return left < all ? left : all;
}

/* By the last threads: the first ones ask where the buffers are at the same time. */
DEVICE void page_fetch(const struct moves_args &args, struct shared *shared)
{
	uint32_t rank = args.is_resident ? args.rank : blockIdx.y;
	const uint4 *page = (const uint4 *)(args.pages + rank * args.page_bytes);

	for (uint32_t at = blockDim.x - 1 - threadIdx.x;
		at * sizeof(uint4) < args.page_bytes; at += blockDim.x)
		shared->page[at] = page[at];
}

/* The address of a place, written down as number `at`. */
DEVICE uint64_t place_decode(const struct moves_args &args, struct shared *shared,
	const struct dev_place &place, uint32_t at)
{
	bool is_in = place.space == SPACE_IN;
	uint64_t base = (is_in ? shared->ranks.in : shared->ranks.out)[place.rank];

	shared->places[at] = base + place.chunk * args.chunk_bytes;
	shared->scaled_by[at] = is_in && args.is_scaled ? (uint8_t)place.rank
							: (uint8_t)NOT_SCALED;
	return shared->places[at];
}

/* All places of the page. Is any address not a multiple of 16? */
DEVICE bool places_decode(const struct moves_args &args, struct shared *shared,
	const struct dev_place *places, uint32_t count)
{
	uint32_t low = 0;

	for (uint32_t i = threadIdx.x; i < count; i += blockDim.x)
		low |= (uint32_t)place_decode(args, shared, places[i], i) % WIDE_BYTES;
	return __syncthreads_or((int)low);
}

DEVICE struct ready_move move_ready(const struct moves_args &args,
	const struct shared *shared, const struct dev_move &move, bool is_ragged)
{
	struct ready_move ready = {chunks_bytes(args, move), shared->places + move.first,
		shared->scaled_by + move.first, move.input_count, move.output_count,
		move.op, 0, 0};

	for (uint32_t i = 0; is_ragged && i < move.input_count + move.output_count; i++) {
		ready.any |= (uint32_t)ready.places[i] % WIDE_BYTES;
		ready.apart |= (uint32_t)(ready.places[i] ^ ready.places[0]) % WIDE_BYTES;
	}
	return ready;
}

/* All of this block's work. Kind::run() does this thread's units of a move; it is told
 * which of all threads it is, and says how many units the move has. */
template <class Kind>
DEVICE void moves_do(const struct moves_args &args, struct shared *shared)
{
	const struct dev_page *page = (const struct dev_page *)shared->page;
	const struct dev_move *moves = (const struct dev_move *)(page + 1);
	const struct dev_place *places =
		(const struct dev_place *)(moves + page->move_count);
	uint32_t threads = gridDim.x * blockDim.x, begin = 0;
	uint32_t self = blockIdx.x * blockDim.x + threadIdx.x;
	bool is_ragged = places_decode(args, shared, places, page->place_count);

	for (uint32_t i = 0; i < page->move_count; i++) {
		uint32_t turn = self < begin ? self + threads - begin : self - begin;
		struct ready_move move = move_ready(args, shared, moves[i], is_ragged);
		uint64_t units = Kind::run(args, shared, move, turn);

		/* whole warps stay together */
		if (units < threads)
			begin += ((uint32_t)units + LANES - 1) / LANES * LANES;
		begin -= begin < threads ? 0 : threads;
	}
}

template <class Kind> DEVICE void moves_run(const struct moves_args &args)
{
	__shared__ struct shared shared;
	struct meeting meeting;

	if (threadIdx.x == 0)
		shared.threads = gridDim.x * blockDim.x;
	page_fetch(args, &shared);
	if (!ranks_meet(args, &shared.ranks, &meeting))
		return;
	if (meeting.is_equal)
		moves_do<Kind>(args, &shared);
	ranks_part(args, meeting);
}

#endif
