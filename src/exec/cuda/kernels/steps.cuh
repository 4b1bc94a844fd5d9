/*
 * steps.cuh - one block runs one lane of a rank's steps on one channel, tile by tile.
 *
 * Steps are decoded once into shared memory, and addresses and positions for a tile while
 * the tile before is done. A block waits with one thread per word and a barrier; every
 * step ends with a barrier, so that a step may read what the one before has written. Kind
 * says how bytes are moved: plain.cuh for the simple codec, lines.cuh for those with
 * flags.
 */
#ifndef EXEC_CUDA_KERNELS_STEPS_CUH
#define EXEC_CUDA_KERNELS_STEPS_CUH

#include "exec/cuda/kernels/units.cuh"
#include "exec/cuda/lists/steps_abi.h"

enum { FLAG_WRAP_SHIFT = 31 };

/* Which part of the call this block does. `base` is what all positions of this channel
 * were when the call began. */
struct block {
	uint32_t index, rank, lane, channel;
	uint64_t base;
};

/* A decoded step: three loads of 16 bytes. */
struct alignas(16) ready_step {
	uint64_t left;	   /* bytes of its chunk that this channel has */
	uint32_t position; /* moves of the tile retired after it */
	uint32_t length;   /* moves of a tile */
	uint32_t any;	   /* bits that any of its addresses has */
	uint32_t apart;	   /* bits in which any two of them differ */
	uint32_t places;   /* first << 16 | inputs << 8 | outputs */
	uint32_t waits;	   /* first; 0 of them are the usual case */
	uint32_t counts;   /* of waits: local << 16 | ack << 8 | data */
	uint32_t back;	   /* of those for acknowledgements */
	uint32_t op_tell;  /* op << 8 | tell; 0: there is no such step */
	uint32_t unused;
};

/* What is needed of all steps of a page. Addresses, flags and wanted positions are there
 * twice, for this tile and the next. */
struct page {
	struct ready_step steps[STEPS_PAGE];
	uint64_t places[2][STEPS_PAGE_PLACES]; /* addresses */
	uint64_t flags[2][STEPS_PAGE_PLACES];  /* of slots; 0: it is none */
	uint64_t groups[STEPS_PAGE_PLACES];    /* of slots: address of the first */
	uint32_t turns[STEPS_PAGE_PLACES]; /* period << 16 | message; else tiles to go */
	uint32_t lengths[STEPS_PAGE_PLACES]; /* what a tile adds to the flag */
	uint8_t scaled_by[STEPS_PAGE_PLACES];
	uint64_t words[STEPS_PAGE_WAITS]; /* addresses */
	uint64_t wants[2][STEPS_PAGE_WAITS];
	struct dev_step_wait waits[STEPS_PAGE_WAITS];
};

struct steps_shared {
	struct ranks ranks;		      /* of the launch */
	struct dev_end ends[STEPS_RANKS_MAX]; /* of all */
	struct page page;
};

/* One step in one tile. */
struct work {
	const struct steps_args *args;
	const struct steps_shared *shared;
	const uint64_t *places, *flags;
	const uint8_t *scaled_by;
	uint64_t bytes;
};

/* .. as units.cuh takes it, for a block by itself. */
DEVICE struct run work_run(const struct work &work, const struct ready_step &step)
{
	struct run run;

	run.places = work.places;
	run.scaled_by = work.scaled_by;
	run.scalars = work.shared->ranks.scalar;
	run.is_scaled = work.args->is_scaled;
	run.input_count = step.places >> 8 & 0xff;
	run.output_count = step.places & 0xff;
	run.divisor = step.op_tell >> 8 & OP_POST ? work.args->divisor : 0;
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

/* Where a wait looks. */
DEVICE uint64_t wait_word(const struct steps_shared &shared, const struct block &block,
	const struct dev_step_wait &wait)
{
	const struct dev_end &end = shared.ends[wait.rank];
	uint64_t words = wait.kind == STEPS_WAIT_ACK ? end.acks : end.words;

	return (uint64_t) &
	       ((struct dev_word *)words + block.channel * STEPS_LANES + wait.lane)
		       ->position;
}

DEVICE struct dev_word *word_of(
	const struct steps_shared &shared, uint32_t rank, uint32_t channel, uint32_t lane)
{
	return (struct dev_word *)shared.ends[rank].words + channel * STEPS_LANES + lane;
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

DEVICE const struct dev_step *page_steps(
	const struct steps_args &args, const struct block &block, uint32_t page)
{
	return (const struct dev_step *)(args.steps + args.head.steps_at) +
	       (size_t)page_number(args, block, page) * args.head.step_stride;
}

DEVICE const uint4 *page_places(
	const struct steps_args &args, const struct block &block, uint32_t page)
{
	static_assert(sizeof(uint4) == sizeof(struct dev_step_place), "one load");
	return (const uint4 *)(args.steps + args.head.places_at) +
	       (size_t)page_number(args, block, page) * args.head.place_stride;
}

DEVICE const struct dev_step_wait *page_waits(
	const struct steps_args &args, const struct block &block, uint32_t page)
{
	return (const struct dev_step_wait *)(args.steps + args.head.waits_at) +
	       (size_t)page_number(args, block, page) * args.head.wait_stride;
}

DEVICE void step_decode(const struct steps_args &args, const struct block &block,
	const struct dev_step &step, struct ready_step *to)
{
	struct ready_step ready = {
		chunk_left(args, block, step.bound), step.position, step.length};

	ready.places = (uint32_t)step.place_first << 16 | step.input_count << 8 |
		       step.output_count;
	ready.waits = step.wait_first;
	ready.counts = step.local_count << 16 | step.ack_count << 8 | step.data_count;
	ready.back = step.back;
	ready.op_tell = step.op << 8 | step.tell;
	*to = ready;
}

/* Where a buffer's chunk begins for this channel, or the slots of a group. */
DEVICE uint64_t place_begin(const struct steps_args &args, const struct block &block,
	const struct dev_step_place &place, const struct steps_shared &shared)
{
	const struct ranks &ranks = shared.ranks;
	uint64_t begin = (place.space == SPACE_IN ? ranks.in : ranks.out)[block.index];

	if (place.space == STEPS_SPACE_STAGE)
		return shared.ends[place.rank].stage + block.channel * args.stage_bytes +
		       place.slot * args.slot_bytes + place.part * args.stride_bytes;
	if (place.space == SPACE_TMP)
		return shared.ends[block.rank].scratch +
		       block.channel * args.scratch_bytes + place.chunk * args.tile_bytes;
	return begin + place.chunk * args.chunk_bytes + block.channel * args.part_bytes;
}

/* Address and flag of place `i` in a tile, from what is the same in all. */
DEVICE void place_turn(const struct steps_args &args, const struct block &block,
	struct page *page, uint32_t i, uint32_t tile)
{
	uint32_t turns = page->turns[i], length = page->lengths[i];
	uint32_t message = (tile * (turns >> 16) + turns) & (args.head.depth - 1);
	uint64_t at = page->groups[i];

	/* a slot's length is not 0: its sender has sent something */
	at += length ? message * args.slot_bytes : turns * tile * args.tile_bytes;
	page->places[tile & 1][i] = at;
	page->flags[tile & 1][i] = length ? block.base + (uint64_t)tile * (length >> 16) +
						    (length & 0xffff)
					  : 0;
}

/* Where nothing is to be waited for the wanted position is one that all have. */
DEVICE void wait_turn(
	const struct block &block, struct page *page, uint32_t i, uint32_t tile)
{
	struct dev_step_wait wait = page->waits[i];
	uint64_t before = (uint64_t)(tile - wait.back) * wait.length;

	page->wants[tile & 1][i] = block.base +
				   (tile < wait.back ? 0 : before + wait.position);
}

DEVICE void place_decode(const struct steps_args &args, const struct block &block,
	const uint4 &raw, struct steps_shared *shared, uint32_t i)
{
	struct page *page = &shared->page;
	struct dev_step_place place;
	bool is_slot;

	memcpy(&place, &raw, sizeof(place));
	is_slot = place.space == STEPS_SPACE_STAGE;
	page->groups[i] = place_begin(args, block, place, *shared);
	page->turns[i] = is_slot ? (uint32_t)place.period << 16 | place.chunk
				 : place.space != SPACE_TMP;
	page->lengths[i] = is_slot ? (uint32_t)place.length << 16 | place.position : 0;
	page->scaled_by[i] = args.is_scaled && place.space == SPACE_IN
				     ? (uint8_t)block.index
				     : (uint8_t)NOT_SCALED;
}

DEVICE void wait_decode(const struct block &block, const struct dev_step_wait &wait,
	struct steps_shared *shared, uint32_t i)
{
	shared->page.waits[i] = wait;
	shared->page.words[i] = wait_word(*shared, block, wait);
}

/* A thread's first step, place and wait: loaded before anything is waited for. */
struct fetched {
	struct dev_step step;
	uint4 place;
	struct dev_step_wait wait;
};

DEVICE void page_fetch(const struct steps_args &args, const struct block &block,
	uint32_t number, uint32_t i, struct fetched *to)
{
	*to = {};
	if (i < args.head.step_stride)
		to->step = page_steps(args, block, number)[i];
	if (i < args.head.place_stride)
		to->place = page_places(args, block, number)[i];
	if (i < args.head.wait_stride)
		to->wait = page_waits(args, block, number)[i];
}

DEVICE void page_next(const struct steps_args &args, const struct block &block,
	struct page *page, uint32_t tile)
{
	for (uint32_t i = threadIdx.x; i < args.head.place_stride; i += blockDim.x)
		place_turn(args, block, page, i, tile);
	for (uint32_t i = threadIdx.x; i < args.head.wait_stride; i += blockDim.x)
		wait_turn(block, page, i, tile);
}

DEVICE uint32_t page_largest(const struct steps_args &args)
{
	uint32_t all = args.head.step_stride;

	all = all > args.head.place_stride ? all : args.head.place_stride;
	return all > args.head.wait_stride ? all : args.head.wait_stride;
}

DEVICE void page_decode(const struct steps_args &args, const struct block &block,
	const struct fetched &fetched, struct steps_shared *shared, uint32_t i)
{
	if (i < args.head.step_stride)
		step_decode(args, block, fetched.step, &shared->page.steps[i]);
	if (i < args.head.place_stride)
		place_decode(args, block, fetched.place, shared, i);
	if (i < args.head.wait_stride)
		wait_decode(block, fetched.wait, shared, i);
}

/* How the addresses of each step lie to each other, which is the same in all tiles. */
DEVICE void steps_align(const struct steps_args &args, uint32_t tile, struct page *page)
{
	for (uint32_t i = threadIdx.x; i < args.head.step_stride; i += blockDim.x) {
		struct ready_step *ready = &page->steps[i];
		uint32_t all = (ready->places & 0xff) + (ready->places >> 8 & 0xff);
		uint32_t ones = 0, zeros = 0;

		for (uint32_t k = 0; k < all; k++) {
			uint32_t place = (ready->places >> 16) + k;
			uint32_t low = (uint32_t)page->places[tile & 1][place];

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
	const struct ready_step &step, uint32_t tile)
{
	uint32_t local = step.counts >> 16, ack = step.counts >> 8 & 0xff;
	uint32_t data = Kind::HAS_FLAGS ? 0 : step.counts & 0xff;
	bool is_stopped = false;

	if (!data && !local && (!ack || tile < step.back))
		return true;
	for (uint32_t i = threadIdx.x; i < local + ack + data && !is_stopped;
		i += blockDim.x) {
		uint32_t wait = step.waits + i;

		is_stopped = !position_wait(args, (const uint64_t *)page.words[wait],
			page.wants[tile & 1][wait]);
	}
	return !__syncthreads_or(is_stopped);
}

/* Tell who waits for the position after this step. Where data has flags of its own the
 * position says no more than that slots were read, and they have been when their data has
 * been used: it need not wait for what this block has stored. */
template <class Kind>
DEVICE void step_tell(const struct steps_args &args, const struct block &block,
	const struct ready_step &step, uint32_t tile, uint64_t *word)
{
	uint32_t heard = TELL_ACK | TELL_LOCAL | (Kind::HAS_FLAGS ? 0 : TELL_DATA) |
			 (tile + 1 < args.tile_count ? TELL_ACK_LATER : 0);
	uint64_t position = block.base + (uint64_t)tile * step.length + step.position;

	heard &= step.op_tell;
	if (!heard)
		return;
	if (Kind::HAS_FLAGS && !(heard & TELL_LOCAL))
		word_write(word, position);
	else
		position_release(word, position, args.is_one_device);
}

/* One step; false: told to stop. The last warp announces, the first ones go on to wait.
 */
template <class Kind>
DEVICE bool step_run(const struct steps_args &args, const struct block &block,
	const struct steps_shared &shared, const struct ready_step &step, uint32_t tile)
{
	const struct page &page = shared.page;
	uint64_t done = tile * args.tile_bytes;
	uint32_t first = step.places >> 16;
	struct work work;
	bool is_going = true;

	if (!step_wait<Kind>(args, page, step, tile))
		return false;
	work.args = &args;
	work.shared = &shared;
	work.places = page.places[tile & 1] + first;
	work.flags = page.flags[tile & 1] + first;
	work.scaled_by = page.scaled_by + first;
	work.bytes = step.left > done ? step.left - done : 0;
	work.bytes = work.bytes < args.tile_bytes ? work.bytes : args.tile_bytes;
	if (work.bytes)
		is_going = Kind::run(work, step);
	if (!Kind::HAS_FLAGS)
		__syncthreads();
	else if (!__syncthreads_and(is_going))
		return false;
	if (threadIdx.x == blockDim.x - LANES)
		step_tell<Kind>(args, block, step, tile,
			&word_of(shared, block.rank, block.channel, block.lane)
				 ->position);
	return true;
}

/* ---- the call ---- */

/* Does this launch all ranks' work? */
DEVICE bool is_for_all(const struct steps_args &args)
{
	return args.rank_count == args.head.rank_count;
}

/* Every rank has ended the call before this, or, on another host, all that was sent to it
 * has left, so that all slots of this channel are free; where launches are for all ranks
 * it was ended with the launch. The last threads look, the first ones are busy decoding.
 * False: told to stop. */
DEVICE bool ranks_wait(const struct steps_args &args, const struct block &block,
	const struct steps_shared &shared)
{
	if (is_for_all(args))
		return true;
	for (uint32_t i = blockDim.x - 1 - threadIdx.x;
		i < args.head.rank_count * STEPS_LANES; i += blockDim.x) {
		const struct dev_step_wait end = {.rank = (uint16_t)(i / STEPS_LANES),
			.lane = (uint8_t)(i % STEPS_LANES),
			.kind = STEPS_WAIT_ACK};

		if (!position_wait(args, (const uint64_t *)wait_word(shared, block, end),
			    block.base))
			return false;
	}
	return true;
}

/* Will flags of 32 bits come half way round in this call? */
DEVICE bool flags_are_old(const struct steps_args &args, const struct block &block)
{
	return (block.base + args.span) >> FLAG_WRAP_SHIFT !=
	       block.base >> FLAG_WRAP_SHIFT;
}

/* Then what older ones are left in the stage must not match again. Lane 0 gives all of
 * them the last value of the call before, the other lane waits. False: told to stop. */
static __device__ __noinline__ bool flags_clean(const struct steps_args &args,
	struct block block, const struct steps_shared &shared)
{
	uint64_t *cleaned = &word_of(shared, block.rank, block.channel, 0)->cleaned;
	uint64_t stage = shared.ends[block.rank].stage + block.channel * args.stage_bytes;
	uint32_t flag = (uint32_t)block.base;
	bool is_stopped = false;

	if (block.lane == 0) {
		for (uint64_t at = threadIdx.x * WIDE_BYTES; at < args.stage_bytes;
			at += blockDim.x * WIDE_BYTES)
			wide_store<false>(
				stage + at, true, make_uint4(flag, flag, flag, flag));
		__syncthreads();
		if (threadIdx.x == 0)
			position_release(cleaned, block.base + 1, args.is_one_device);
	} else if (threadIdx.x == 0) {
		is_stopped = !position_wait(args, cleaned, block.base + 1);
	}
	return !__syncthreads_or(is_stopped);
}

/* The other pages of a long program, and its first again: a function of its own, since it
 * is rare and takes registers. */
static __device__ __noinline__ void page_turn(const struct steps_args &args,
	struct block block, struct steps_shared *shared, uint32_t number, uint32_t tile)
{
	__syncthreads();
	for (uint32_t i = threadIdx.x; i < page_largest(args); i += blockDim.x) {
		struct fetched fetched;

		page_fetch(args, block, number, i, &fetched);
		page_decode(args, block, fetched, shared, i);
	}
	__syncthreads();
	page_next(args, block, &shared->page, tile);
	__syncthreads();
	steps_align(args, tile, &shared->page);
	__syncthreads();
}

/* All steps of all tiles; false: told to stop. With one page the next tile is decoded
 * ahead; the barriers of the steps between keep it from being read too early. */
template <class Kind>
DEVICE bool tiles_run(const struct steps_args &args, const struct block &block,
	struct steps_shared *shared)
{
	uint32_t pages = args.head.page_count;

	for (uint32_t tile = 0; tile < args.tile_count; tile++)
		for (uint32_t number = 0; number < pages; number++) {
			if (pages > 1 && (number || tile))
				page_turn(args, block, shared, number, tile);
			else if (pages == 1 && tile + 1 < args.tile_count)
				page_next(args, block, &shared->page, tile + 1);
			for (uint32_t i = 0; i < args.head.step_stride; i++) {
				const struct ready_step &step = shared->page.steps[i];

				if (!step.op_tell)
					break;
				if (!step_run<Kind>(args, block, *shared, step, tile))
					return false;
			}
		}
	return true;
}

/* The call is over for this lane. A lane that this call has not is over too: all words of
 * a channel stay alike between calls. Where a launch is for all ranks the next one sees
 * it anyway; where data has flags see step_tell(). */
template <class Kind>
DEVICE void position_end(const struct steps_args &args, const struct block &block,
	const struct steps_shared &shared)
{
	uint32_t lane = block.lane + threadIdx.x;
	uint64_t *word = &word_of(shared, block.rank, block.channel, lane)->position;

	__syncthreads();
	if (lane >= (args.head.lane_count == 1 ? STEPS_LANES : block.lane + 1))
		return;
	if (Kind::HAS_FLAGS || is_for_all(args))
		word_write(word, block.base + args.span);
	else
		position_release(word, block.base + args.span, args.is_one_device);
}

/* What a block must know before it can find anything. */
DEVICE void block_begin(
	const struct steps_args &args, struct block *block, struct steps_shared *shared)
{
	block->index = blockIdx.y;
	block->rank = args.ranks[block->index];
	block->lane = blockIdx.x % args.head.lane_count;
	block->channel = blockIdx.x / args.head.lane_count;
	for (uint32_t i = threadIdx.x; i < args.head.rank_count; i += blockDim.x)
		shared->ends[i] = args.ends[i];
}

template <class Kind> DEVICE void steps_run(const struct steps_args &args)
{
	__shared__ struct steps_shared shared;
	struct fetched fetched;
	struct block block;
	bool is_going;

	block_begin(args, &block, &shared);
	page_fetch(args, block, 0, threadIdx.x, &fetched);
	if (!mail_read(args, &shared.ranks))
		return;
	block.base = word_read(
		&word_of(shared, block.rank, block.channel, block.lane)->position);
	if (args.is_followed && blockIdx.x == 0 && threadIdx.x == 0)
		word_write(&word_of(shared, block.rank, 0, 0)->cleaned, block.base + 1);
	page_decode(args, block, fetched, &shared, threadIdx.x);
	for (uint32_t i = threadIdx.x + blockDim.x; i < page_largest(args);
		i += blockDim.x) {
		page_fetch(args, block, 0, i, &fetched);
		page_decode(args, block, fetched, &shared, i);
	}
	page_next(args, block, &shared.page, 0); /* of what this thread has decoded */
	is_going = ranks_wait(args, block, shared);
	if (!__syncthreads_and(is_going))
		return;
	if (Kind::FLAG_BITS == 32 && flags_are_old(args, block) &&
		!flags_clean(args, block, shared))
		return;
	if (!Kind::HAS_FLAGS) {
		steps_align(args, 0, &shared.page);
		__syncthreads();
	}
	if (tiles_run<Kind>(args, block, &shared))
		position_end<Kind>(args, block, shared);
}

#endif
