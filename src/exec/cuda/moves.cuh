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

#include <string.h>

#include "exec/cuda/meet.cuh"
#include "sched/insn.h"

enum {
	BATCH_MOVES = 32,   /* decoded at a time: one per lane of a warp */
	BATCH_PLACES = 512, /* at least one move of the most ranks fits */
	LANES = 32,
	NOT_SCALED = 0xff
};

/* A decoded move: places[first] and on are its inputs, then its outputs. */
struct ready_move {
	uint64_t bytes;
	uint32_t any;	/* bits that any of its addresses has */
	uint32_t apart; /* bits in which any two of them differ */
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
};

/* What a place has of a move's chunks; a move is as long as its shortest place. */
DEVICE uint64_t place_bytes(
	const struct moves_args &args, const struct dev_place &place, uint32_t count)
{
	uint64_t limit = place.space == SPACE_IN ? args.in_bytes : args.out_bytes;
	uint64_t begin = place.chunk * args.chunk_bytes, all = count * args.chunk_bytes;
	uint64_t left = limit > begin ? limit - begin : 0;

	return left < all ? left : all;
}

/* What a block knows of the list before the ranks have met. */
struct list {
	const struct dev_move *moves;
	const struct dev_place *places;
	uint32_t next, end;   /* this rank's that are still to be decoded */
	struct dev_move mine; /* the one of this lane: moves[next + lane], or nothing */
};

DEVICE void list_load(struct list *list)
{
	uint32_t at = list->next + threadIdx.x % LANES;

	list->mine = {};
	if (at < list->end)
		list->mine = list->moves[at];
}

DEVICE void list_open(const struct moves_args &args, struct list *list)
{
	const char *begin = (const char *)args.moves;
	uint32_t rank = args.is_resident ? args.rank : blockIdx.y;

	list->moves = (const struct dev_move *)(begin + args.moves->moves_at);
	list->places = (const struct dev_place *)(begin + args.moves->places_at);
	list->next = args.moves->first[rank];
	list->end = args.moves->first[rank + 1];
	list_load(list);
}

/* The move that lane `from` of this warp has. */
DEVICE struct dev_move move_of(const struct dev_move &mine, uint32_t from)
{
	struct dev_move move;
	uint32_t words[sizeof(move) / sizeof(uint32_t)];

	memcpy(words, &mine, sizeof(move));
#pragma unroll
	for (int i = 0; i < (int)(sizeof(words) / sizeof(*words)); i++)
		words[i] = __shfl_sync(~0u, words[i], (int)from);
	memcpy(&move, words, sizeof(move));
	return move;
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
DEVICE struct ready_move move_decode(const struct moves_args &args, struct shared *shared,
	const struct dev_place *places, const struct dev_move &move, uint32_t first)
{
	uint32_t all = move.input_count + move.output_count;
	uint64_t bytes = ~(uint64_t)0;
	uint32_t ones = 0, zeros = 0;

	for (uint32_t i = threadIdx.x % LANES; i < all; i += LANES) {
		bool is_input = i < move.input_count;
		uint32_t from = is_input ? move.input_first + i
					 : move.output_first + i - move.input_count;
		struct dev_place place = places[from];
		uint64_t piece = place_bytes(args, place, move.count);
		uint64_t address = place_decode(args, shared, place, first + i);

		bytes = piece < bytes ? piece : bytes;
		ones |= (uint32_t)address;
		zeros |= ~(uint32_t)address;
	}
#pragma unroll
	for (int far = LANES / 2; far; far /= 2) {
		uint64_t other = __shfl_xor_sync(~0u, bytes, far);

		bytes = other < bytes ? other : bytes;
	}
	ones = __reduce_or_sync(~0u, ones);
	zeros = __reduce_or_sync(~0u, zeros);
	return {bytes, ones, ones & zeros, (uint16_t)first, move.input_count,
		move.output_count, move.op};
}

/* Decode what fits of the moves the lanes hold; how many that were. Every warp works out
 * for itself where each move's addresses go. */
DEVICE uint32_t batch_decode(
	const struct moves_args &args, struct shared *shared, struct list *list)
{
	uint32_t lane = threadIdx.x % LANES, warp = threadIdx.x / LANES;
	uint32_t count = list->mine.input_count + list->mine.output_count, fill = count;
	uint32_t fits;

#pragma unroll
	for (int far = 1; far < LANES; far *= 2) {
		uint32_t before = __shfl_up_sync(~0u, fill, far);

		fill += (int)lane >= far ? before : 0;
	}
	fits = __popc(__ballot_sync(
		~0u, list->next + lane < list->end && fill <= BATCH_PLACES));
	for (uint32_t slot = warp; slot < fits; slot += MOVES_THREADS / LANES) {
		struct dev_move move = move_of(list->mine, slot);
		uint32_t first = __shfl_sync(~0u, fill - count, (int)slot);
		struct ready_move ready = move_decode(
			args, shared, list->places, move, first);

		if (lane == 0)
			shared->batch.moves[slot] = ready;
	}
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
		__syncthreads(); /* the next batch overwrites this one */
		list_load(list);
	}
}

template <class Kind> DEVICE void moves_run(const struct moves_args &args)
{
	__shared__ struct shared shared;
	struct list list;
	struct meeting meeting;

	if (threadIdx.x == 0)
		shared.threads = gridDim.x * MOVES_THREADS;
	list_open(args, &list);
	if (!ranks_meet(args, &shared.ranks, &meeting))
		return;
	if (meeting.is_equal)
		moves_do<Kind>(args, &shared, &list);
	ranks_part(args, meeting);
}

#endif
