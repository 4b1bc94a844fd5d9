/*
 * steps.cuh - one block runs one lane of a rank's steps on one channel, tile by tile.
 *
 * Steps are decoded once into shared memory, and addresses and positions for a tile while
 * the tile before is done. A block waits with one thread per word and a barrier; every
 * step ends with a barrier, so that a step may read what the one before has written. Kind
 * says how bytes are moved: plain.cuh for the simple codec, lines.cuh for those with
 * flags.
 */
#ifndef EXEC_CUDA_STEPS_CUH
#define EXEC_CUDA_STEPS_CUH

#include "exec/cuda/steps_abi.h"
#include "exec/cuda/units.cuh"

enum { FLAG_WRAP_SHIFT = 31 };

/* Which part of the call this block does. `base` is what all positions of this channel
 * were when the call began. */
struct block {
	uint32_t index, rank, lane, channel;
	uint64_t base;
};

struct ready_step {
	uint64_t left;	/* bytes of its chunk that this channel has */
	uint32_t any;	/* bits that any of its addresses has */
	uint32_t apart; /* bits in which any two of them differ */
	struct dev_step step;
};

/* Double: for this tile and the next. */
struct page {
	struct ready_step steps[STEPS_PAGE];
	uint64_t places[2][STEPS_PAGE_PLACES]; /* addresses */
	uint64_t flags[2][STEPS_PAGE_PLACES];  /* of slots */
	uint64_t words[STEPS_PAGE_WAITS];      /* addresses */
	uint64_t wants[2][STEPS_PAGE_WAITS];
	uint8_t scaled_by[STEPS_PAGE_PLACES];
	uint8_t spaces[STEPS_PAGE_PLACES];
};

struct steps_shared {
	struct ranks ranks; /* of the launch */
	struct page page;
};

/* One step in one tile. */
struct work {
	const struct steps_args *args;
	const struct steps_shared *shared;
	const struct ready_step *ready;
	const uint64_t *places, *flags;
	const uint8_t *spaces, *scaled_by;
	uint64_t bytes;
};

/* .. as units.cuh takes it, for a block by itself. */
DEVICE struct run work_run(const struct work &work, const struct dev_step &step)
{
	struct run run;

	run.places = work.places;
	run.scaled_by = work.scaled_by;
	run.scalars = work.shared->ranks.scalar;
	run.input_count = step.input_count;
	run.output_count = step.output_count;
	run.divisor = step.op & OP_POST ? work.args->divisor : 0;
	run.at = threadIdx.x;
	run.step = blockDim.x;
	return run;
}

/* ---- positions ---- */

DEVICE void position_release(uint64_t *word, uint64_t value, bool is_one_device)
{
	if (is_one_device)
		asm volatile("st.release.gpu.global.u64 [%0], %1;" ::"l"(word), "l"(value)
			     : "memory");
	else
		asm volatile("st.release.sys.global.u64 [%0], %1;" ::"l"(word), "l"(value)
			     : "memory");
}

/* Pairs with position_release(). */
DEVICE uint64_t position_acquire(const uint64_t *word, bool is_one_device)
{
	uint64_t value;

	if (is_one_device)
		asm volatile("ld.acquire.gpu.global.u64 %0, [%1];"
			     : "=l"(value)
			     : "l"(word)
			     : "memory");
	else
		asm volatile("ld.acquire.sys.global.u64 %0, [%1];"
			     : "=l"(value)
			     : "l"(word)
			     : "memory");
	return value;
}

/* False: told to stop. */
DEVICE bool position_wait(
	const struct steps_args &args, const uint64_t *word, uint64_t want)
{
	for (uint32_t turn = 1;; turn++) {
		if ((int64_t)(position_acquire(word, args.is_one_device) - want) >= 0)
			return true;
		if (turn % ABORT_TURNS == 0 && word_read(args.abort))
			return false;
	}
}

DEVICE struct dev_word *word_of(
	const struct steps_args &args, uint32_t rank, uint32_t channel, uint32_t lane)
{
	return (struct dev_word *)args.ends[rank].words + channel * STEPS_LANES + lane;
}

/* ---- pages ---- */

DEVICE uint32_t page_number(
	const struct steps_args &args, const struct block &block, uint32_t page)
{
	return (block.rank * args.head.lane_count + block.lane) * args.head.page_count +
	       page;
}

/* What this channel has of a chunk. */
DEVICE uint64_t chunk_left(
	const struct steps_args &args, const struct block &block, uint32_t chunk)
{
	uint64_t begin = chunk * args.chunk_bytes, from = block.channel * args.part_bytes;
	uint64_t bytes = args.total_bytes > begin ? args.total_bytes - begin : 0;

	bytes = bytes < args.chunk_bytes ? bytes : args.chunk_bytes;
	bytes = bytes > from ? bytes - from : 0;
	return bytes < args.part_bytes ? bytes : args.part_bytes;
}

DEVICE void steps_decode(const struct steps_args &args, const struct block &block,
	uint32_t page, struct page *to)
{
	const struct dev_step *steps =
		(const struct dev_step *)(args.steps + args.head.steps_at) +
		(size_t)page_number(args, block, page) * args.head.step_stride;

	for (uint32_t i = threadIdx.x; i < args.head.step_stride; i += blockDim.x) {
		struct dev_step step = steps[i];

		to->steps[i].step = step;
		to->steps[i].left = chunk_left(args, block, step.bound);
	}
}

DEVICE uint64_t slot_address(const struct steps_args &args, const struct block &block,
	const struct dev_step_place &place, uint32_t tile)
{
	uint32_t message = (tile * place.period + place.chunk) & (args.head.depth - 1);

	return args.ends[place.rank].stage + block.channel * args.stage_bytes +
	       (place.slot + message) * args.slot_bytes + place.part * args.stride_bytes;
}

DEVICE uint64_t buffer_address(const struct steps_args &args, const struct block &block,
	const struct dev_step_place &place, const struct ranks &ranks)
{
	uint64_t begin = (place.space == SPACE_IN ? ranks.in : ranks.out)[block.index];

	if (place.space == SPACE_TMP)
		return args.ends[block.rank].scratch +
		       block.channel * args.scratch_bytes + place.chunk * args.tile_bytes;
	return begin + place.chunk * args.chunk_bytes + block.channel * args.part_bytes;
}

DEVICE void places_decode(const struct steps_args &args, const struct block &block,
	uint32_t page, uint32_t tile, struct steps_shared *shared)
{
	const uint4 *places = (const uint4 *)(args.steps + args.head.places_at) +
			      (size_t)page_number(args, block, page) *
				      args.head.place_stride;
	struct page *to = &shared->page;

	for (uint32_t i = threadIdx.x; i < args.head.place_stride; i += blockDim.x) {
		uint4 raw = __ldg(&places[i]);
		struct dev_step_place place;
		uint64_t address;

		memcpy(&place, &raw, sizeof(place));
		if (place.space == STEPS_SPACE_STAGE)
			address = slot_address(args, block, place, tile);
		else
			address = buffer_address(args, block, place, shared->ranks) +
				  (place.space == SPACE_TMP ? 0 : tile * args.tile_bytes);
		to->places[tile & 1][i] = address;
		to->flags[tile & 1][i] = block.base + (uint64_t)tile * place.length +
					 place.position;
		to->spaces[i] = place.space;
		to->scaled_by[i] = args.is_scaled && place.space == SPACE_IN
					   ? (uint8_t)block.index
					   : (uint8_t)NOT_SCALED;
	}
}

/* Where nothing is to be waited for the wanted position is one that all have. */
DEVICE void waits_decode(const struct steps_args &args, const struct block &block,
	uint32_t page, uint32_t tile, struct page *to)
{
	const struct dev_step_wait *waits =
		(const struct dev_step_wait *)(args.steps + args.head.waits_at) +
		(size_t)page_number(args, block, page) * args.head.wait_stride;

	for (uint32_t i = threadIdx.x; i < args.head.wait_stride; i += blockDim.x) {
		struct dev_step_wait wait = waits[i];
		uint64_t before = (uint64_t)(tile - wait.back) * wait.length;

		to->words[i] = (uint64_t)&word_of(
			args, wait.rank, block.channel, wait.lane)
				       ->position;
		to->wants[tile & 1][i] = block.base +
					 (tile < wait.back ? 0 : before + wait.position);
	}
}

/* How the addresses of each step lie to each other, which is the same in all tiles. */
DEVICE void steps_align(const struct steps_args &args, uint32_t tile, struct page *page)
{
	for (uint32_t i = threadIdx.x; i < args.head.step_stride; i += blockDim.x) {
		struct ready_step *ready = &page->steps[i];
		uint32_t all = ready->step.input_count + ready->step.output_count;
		uint32_t ones = 0, zeros = 0;

		for (uint32_t k = 0; k < all; k++) {
			uint32_t low =
				(uint32_t)page
					->places[tile & 1][ready->step.place_first + k];

			ones |= low;
			zeros |= ~low;
		}
		ready->any = ones;
		ready->apart = ones & zeros;
	}
}

/* ---- steps ---- */

/* Until slots are free and, without flags, data is there. False: told to stop. */
template <class Kind>
DEVICE bool step_wait(const struct steps_args &args, const struct page &page,
	const struct dev_step &step, uint32_t tile)
{
	uint32_t data = Kind::HAS_FLAGS ? 0 : step.data_count;
	uint32_t count = step.local_count + step.ack_count + data;
	bool is_stopped = false;

	if (!data && !step.local_count && (!step.ack_count || tile < step.back))
		return true;
	for (uint32_t i = threadIdx.x; i < count && !is_stopped; i += blockDim.x) {
		uint32_t wait = step.wait_first + i;

		is_stopped = !position_wait(args, (const uint64_t *)page.words[wait],
			page.wants[tile & 1][wait]);
	}
	return !__syncthreads_or(is_stopped);
}

/* Does anybody wait for the position after this step? */
template <class Kind>
DEVICE bool step_tells(
	const struct steps_args &args, const struct dev_step &step, uint32_t tile)
{
	uint32_t heard = TELL_ACK | TELL_LOCAL | (Kind::HAS_FLAGS ? 0 : TELL_DATA) |
			 (tile + 1 < args.tile_count ? TELL_ACK_LATER : 0);

	return step.tell & heard;
}

/* One step; false: told to stop. The last warp announces, the first ones go on to wait.
 */
template <class Kind>
DEVICE bool step_run(const struct steps_args &args, const struct block &block,
	const struct steps_shared &shared, uint32_t index, uint32_t tile)
{
	const struct page &page = shared.page;
	const struct ready_step &ready = page.steps[index];
	const struct dev_step step = ready.step;
	uint64_t done = tile * args.tile_bytes;
	struct work work;
	bool is_going = true;

	if (!step_wait<Kind>(args, page, step, tile))
		return false;
	work.args = &args;
	work.shared = &shared;
	work.ready = &ready;
	work.places = page.places[tile & 1] + step.place_first;
	work.flags = page.flags[tile & 1] + step.place_first;
	work.spaces = page.spaces + step.place_first;
	work.scaled_by = page.scaled_by + step.place_first;
	work.bytes = ready.left > done ? ready.left - done : 0;
	work.bytes = work.bytes < args.tile_bytes ? work.bytes : args.tile_bytes;
	if (work.bytes)
		is_going = Kind::run(work, step);
	if (!__syncthreads_and(is_going))
		return false;
	if (threadIdx.x == blockDim.x - LANES && step_tells<Kind>(args, step, tile))
		position_release(
			&word_of(args, block.rank, block.channel, block.lane)->position,
			block.base + (uint64_t)tile * step.length + step.position,
			args.is_one_device);
	return true;
}

/* ---- the call ---- */

/* Every rank has ended the call before this, so that all slots of this channel are free.
 * False: told to stop. */
DEVICE bool ranks_wait(const struct steps_args &args, const struct block &block)
{
	for (uint32_t i = threadIdx.x; i < args.head.rank_count * STEPS_LANES;
		i += blockDim.x)
		if (!position_wait(args,
			    &word_of(
				    args, i / STEPS_LANES, block.channel, i % STEPS_LANES)
				     ->position,
			    block.base))
			return false;
	return true;
}

/* Flags of 32 bits have come half way round since this was done last, or will in this
 * call: what older ones are left in the stage must not match again. Lane 0 gives all of
 * them the last value of the call before, the other lane waits. False: told to stop. */
DEVICE bool flags_clean(const struct steps_args &args, const struct block &block)
{
	uint64_t *cleaned = &word_of(args, block.rank, block.channel, 0)->cleaned;
	uint64_t stage = args.ends[block.rank].stage + block.channel * args.stage_bytes;
	uint32_t flag = (uint32_t)block.base;
	bool is_stopped = false;

	if ((block.base + args.span) >> FLAG_WRAP_SHIFT == block.base >> FLAG_WRAP_SHIFT)
		return true;
	if (block.lane == 0) {
		for (uint64_t at = threadIdx.x * WIDE_BYTES; at < args.stage_bytes;
			at += blockDim.x * WIDE_BYTES)
			wide_store(stage + at, true, make_uint4(flag, flag, flag, flag));
		__syncthreads();
		if (threadIdx.x == 0)
			position_release(cleaned, block.base + 1, args.is_one_device);
	} else if (threadIdx.x == 0) {
		is_stopped = !position_wait(args, cleaned, block.base + 1);
	}
	return !__syncthreads_or(is_stopped);
}

/* All steps of all tiles; false: told to stop. With one page the next tile is decoded
 * ahead; the barriers of the steps between keep it from being read too early. */
template <class Kind>
DEVICE bool tiles_run(const struct steps_args &args, const struct block &block,
	struct steps_shared *shared)
{
	uint32_t pages = args.head.page_count;

	for (uint32_t tile = 0; tile < args.tile_count; tile++)
		for (uint32_t page = 0; page < pages; page++) {
			if (pages > 1 && (page || tile)) {
				__syncthreads();
				steps_decode(args, block, page, &shared->page);
				places_decode(args, block, page, tile, shared);
				waits_decode(args, block, page, tile, &shared->page);
				__syncthreads();
				steps_align(args, tile, &shared->page);
				__syncthreads();
			} else if (pages == 1 && tile + 1 < args.tile_count) {
				places_decode(args, block, page, tile + 1, shared);
				waits_decode(args, block, page, tile + 1, &shared->page);
			}
			for (uint32_t i = 0; i < args.head.step_stride; i++) {
				if (!shared->page.steps[i].step.op)
					break;
				if (!step_run<Kind>(args, block, *shared, i, tile))
					return false;
			}
		}
	return true;
}

/* The call is over for this lane. A lane that this call has not is over too: all words of
 * a channel stay alike between calls. */
DEVICE void position_end(const struct steps_args &args, const struct block &block)
{
	uint32_t lane = block.lane + threadIdx.x;

	__syncthreads();
	if (lane < (args.head.lane_count == 1 ? STEPS_LANES : block.lane + 1))
		position_release(
			&word_of(args, block.rank, block.channel, lane)->position,
			block.base + args.span, args.is_one_device);
}

template <class Kind> DEVICE void steps_run(const struct steps_args &args)
{
	__shared__ struct steps_shared shared;
	struct block block;
	bool is_going;

	block.index = blockIdx.y;
	block.rank = args.ranks[block.index];
	block.lane = blockIdx.x % args.head.lane_count;
	block.channel = blockIdx.x / args.head.lane_count;
	block.base = word_read(
		&word_of(args, block.rank, block.channel, block.lane)->position);
	if (!mail_read(args, (const struct dev_mail *)NULL, &shared.ranks))
		return;
	steps_decode(args, block, 0, &shared.page);
	places_decode(args, block, 0, 0, &shared);
	waits_decode(args, block, 0, 0, &shared.page);
	is_going = ranks_wait(args, block);
	if (!__syncthreads_and(is_going))
		return;
	steps_align(args, 0, &shared.page);
	if (Kind::FLAG_BITS == 32 && !flags_clean(args, block))
		return;
	__syncthreads();
	if (tiles_run<Kind>(args, block, &shared))
		position_end(args, block);
}

#endif
