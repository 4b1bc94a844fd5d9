/*
 * moves.cuh - one block's share of a rank's moves.
 *
 * Moves are decoded a batch at a time, one warp per move, into addresses in shared
 * memory; then every thread takes its units of each (units.cuh). Threads of all blocks
 * interleave, so that the whole device works on one stretch of memory, and a small move
 * begins at the thread where the one before ended: moves do not depend on each other
 * (moves.h).
 */
#ifndef EXEC_CUDA_MOVES_CUH
#define EXEC_CUDA_MOVES_CUH

#include "exec/cuda/meet.cuh"
#include "sched/insn.h"

enum {
	BATCH_MOVES = 32,   /* decoded at a time: one per lane of a warp */
	BATCH_PLACES = 512, /* at least one move of the most ranks fits */
	LIST_BYTES = 16 * MOVES_THREADS, /* a list that is read at one go */
	LANES = 32,
	NOT_SCALED = 0xff
};

/* A decoded move: places[first] and on are its inputs, then its outputs. */
struct ready_move {
	uint64_t bytes;
	uint8_t any;   /* of the lowest bits, those that any of its addresses has */
	uint8_t apart; /* .. and those in which any two of them differ */
	uint16_t first, input_count, output_count, op;
};

struct batch {
	struct ready_move moves[BATCH_MOVES];
	uint64_t places[BATCH_PLACES];	 /* addresses */
	uint8_t scaled_by[BATCH_PLACES]; /* the rank whose scalar applies, or NOT_SCALED
					  */
};

struct shared {
	uint32_t threads; /* that share the work */
	struct ranks ranks;
	struct batch batch;
	uint4 list[LIST_BYTES / sizeof(uint4)]; /* all of it, if it is short enough */
};

/* What there is of a move's chunks, the first of which is `chunk`. */
DEVICE uint64_t chunks_bytes(
	const struct moves_args &args, uint32_t chunk, uint32_t count)
{
	uint64_t begin = chunk * args.chunk_bytes, all = count * args.chunk_bytes;
	uint64_t left = args.total_bytes > begin ? args.total_bytes - begin : 0;

	return left < all ? left : all;
}

/* Where a block is in its list. */
struct list {
	const struct dev_move *moves;
	const struct dev_place *places;
	uint32_t next, end; /* this rank's that are still to be decoded */
};

/* Before the ranks meet: one wait for memory instead of one for each thing that leads to
 * the next. By the last threads, since the first ones ask where the buffers are. */
DEVICE void list_fetch(const struct moves_args &args, struct shared *shared)
{
	uint32_t at = MOVES_THREADS - 1 - threadIdx.x;

	if (args.moves_bytes <= LIST_BYTES && at * sizeof(uint4) < args.moves_bytes)
		shared->list[at] = ((const uint4 *)args.moves)[at];
}

/* After it. */
DEVICE void list_open(
	const struct moves_args &args, const struct shared *shared, struct list *list)
{
	bool is_here = args.moves_bytes <= LIST_BYTES;
	const char *begin = is_here ? (const char *)shared->list
				    : (const char *)args.moves;
	const struct dev_moves *head = (const struct dev_moves *)begin;
	uint32_t rank = args.is_resident ? args.rank : blockIdx.y;

	list->moves = (const struct dev_move *)(head + 1);
	list->places = (const struct dev_place *)(begin + head->places_at);
	list->next = head->first[rank];
	list->end = head->first[rank + 1];
}

/* The address of a place, written down as number `index` of the batch. */
DEVICE uint64_t place_decode(const struct moves_args &args, struct shared *shared,
	const struct dev_place &place, uint32_t index)
{
	bool is_in = place.space == SPACE_IN;
	uint64_t base = (is_in ? shared->ranks.in : shared->ranks.out)[place.rank];
	bool is_scaled = is_in && args.is_scaled;

	shared->batch.places[index] = base + place.chunk * args.chunk_bytes;
	shared->batch.scaled_by[index] = is_scaled ? (uint8_t)place.rank
						   : (uint8_t)NOT_SCALED;
	return shared->batch.places[index];
}

/* One warp decodes one move; `first` is its first address in the batch. */
DEVICE void move_decode(const struct moves_args &args, struct shared *shared,
	const struct dev_place *places, const struct dev_move &move, uint32_t first,
	struct ready_move *ready)
{
	enum { LOW = 0xf, LOW_BITS = 4 };
	uint32_t all = move.input_count + move.output_count, bits = 0, lane;

	lane = threadIdx.x % LANES;
	for (uint32_t i = lane; i < all; i += LANES) {
		uint64_t address = place_decode(args, shared, places[i], first + i);

		bits |= (uint32_t)address & LOW;
		bits |= (~(uint32_t)address & LOW) << LOW_BITS;
	}
	bits = __reduce_or_sync(~0u, bits);
	if (lane == 0)
		*ready = {chunks_bytes(args, places->chunk, move.count),
			(uint8_t)(bits & LOW), (uint8_t)(bits & bits >> LOW_BITS & LOW),
			(uint16_t)first, move.input_count, move.output_count, move.op};
}

/* Decode the next moves, as many as fit, a warp each; how many that were. */
DEVICE uint32_t batch_decode(
	const struct moves_args &args, struct shared *shared, struct list *list)
{
	const struct dev_move *moves = list->moves + list->next;
	uint32_t lane = threadIdx.x % LANES, begin = moves->first;
	bool is_in = false;
	uint32_t fits;

	if (list->next + lane < list->end) {
		const struct dev_move &mine = moves[lane];

		is_in = mine.first + mine.input_count + mine.output_count - begin <=
			BATCH_PLACES;
	}
	fits = __popc(__ballot_sync(~0u, is_in));
	for (uint32_t slot = threadIdx.x / LANES; slot < fits;
		slot += MOVES_THREADS / LANES)
		move_decode(args, shared, list->places + moves[slot].first, moves[slot],
			moves[slot].first - begin, &shared->batch.moves[slot]);
	list->next += fits;
	return fits;
}

/* All of this block's work. Kind::run() does this thread's units of a decoded move; it is
 * told which of all threads it is, and says how many units the move has. */
template <class Kind>
DEVICE void moves_do(
	const struct moves_args &args, struct shared *shared, struct list *list)
{
	uint32_t threads = gridDim.x * MOVES_THREADS, begin = 0;
	uint32_t self = blockIdx.x * MOVES_THREADS + threadIdx.x;

	while (list->next < list->end) {
		uint32_t fits = batch_decode(args, shared, list);

		if (!fits)
			return; /* no move of so many places is ever made */
		__syncthreads();
		for (uint32_t i = 0; i < fits; i++) {
			uint32_t turn = self < begin ? self + threads - begin
						     : self - begin;
			uint64_t units = Kind::run(args, shared, i, turn);

			/* whole warps stay together */
			if (units < threads)
				begin += ((uint32_t)units + LANES - 1) / LANES * LANES;
			begin -= begin < threads ? 0 : threads;
		}
		if (list->next < list->end)
			__syncthreads(); /* the next batch overwrites this one */
	}
}

template <class Kind> DEVICE void moves_run(const struct moves_args &args)
{
	__shared__ struct shared shared;
	struct list list;
	struct meeting meeting;

	if (threadIdx.x == 0)
		shared.threads = gridDim.x * MOVES_THREADS;
	list_fetch(args, &shared);
	if (!ranks_meet(args, &shared.ranks, &meeting))
		return;
	if (meeting.is_equal) {
		list_open(args, &shared, &list);
		moves_do<Kind>(args, &shared, &list);
	}
	ranks_part(args, meeting);
}

#endif
