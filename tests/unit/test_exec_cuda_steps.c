/* Steps for a kernel: what is written down is whole, and doing it gives what the
 * collective must. The interpreter here is the kernel in C: lanes of all ranks take turns
 * in a random order, slots and positions stay from call to call. */
#include "device_lists.h"

#include <stdbool.h>

#include "sched/lower.h"
#include "test.h"

enum { RANKS = 9, CHANNELS_MAX = 3, WIDTH = 4, STAGE_BYTES = 128 << 10 };

/* One lane of one rank on one channel. */
struct runner {
	uint32_t tile, page, step;
	uint64_t base;
	bool is_done;
};

/* What lasts from call to call. A flag belongs to each element of a stage. */
struct store {
	uint32_t stage[RANKS][CHANNELS_MAX * STAGE_BYTES / WIDTH];
	uint64_t flags[RANKS][CHANNELS_MAX * STAGE_BYTES / WIDTH];
	uint64_t positions[RANKS][CHANNELS_MAX][STEPS_LANES];
};

/* One call. */
struct world {
	enum coll coll;
	uint32_t n, root, channels;
	bool has_flags;
	const struct dev_steps *steps;
	struct steps_args args;
	struct store *store;
	size_t count; /* elements of the vector or of a block */
	uint32_t *in[RANKS], *out[RANKS], *scratch[RANKS];
	struct runner runners[RANKS][CHANNELS_MAX][STEPS_LANES];
};

static struct store store;
static uint32_t random_state = 1;

static uint32_t random_next(void)
{
	random_state = random_state * 1664525 + 1013904223;
	return random_state >> 8;
}

/* ---- the collective ---- */

static uint32_t input(uint32_t rank, size_t i)
{
	return (uint32_t)((rank + 1) * 100003 + i * 7);
}

static uint32_t blocks_of(const struct world *world, uint32_t rank, bool is_out)
{
	struct sched view = {.coll = world->coll,
		.rank_count = world->n,
		.rank = rank,
		.root = world->root,
		.chunk_count = 1};

	return sched_chunks(&view, is_out ? SPACE_OUT : SPACE_IN);
}

static uint32_t wanted(const struct world *world, uint32_t rank, size_t i)
{
	size_t block = i / world->count, at = i % world->count;
	uint32_t sum = 0;

	switch (world->coll) {
	case COLL_BROADCAST:
		return input(world->root, i);
	case COLL_ALL_GATHER:
	case COLL_GATHER:
		return input((uint32_t)block, at);
	case COLL_ALL_TO_ALL:
		return input((uint32_t)block, rank * world->count + at);
	case COLL_SCATTER:
		return input(world->root, rank * world->count + at);
	case COLL_REDUCE_SCATTER:
		i += rank * world->count;
		break;
	default:
		break;
	}
	for (uint32_t r = 0; r < world->n; r++)
		sum += input(r, i);
	return sum;
}

/* ---- the kernel ---- */

static const struct dev_step *step_of(
	const struct world *world, uint32_t page, uint32_t index)
{
	const char *steps = (const char *)world->steps + world->steps->steps_at;

	return (const struct dev_step *)steps + page * world->steps->step_stride + index;
}

static const struct dev_step_place *place_of(
	const struct world *world, uint32_t page, uint32_t index)
{
	const char *places = (const char *)world->steps + world->steps->places_at;

	return (const struct dev_step_place *)places + page * world->steps->place_stride +
	       index;
}

static const struct dev_step_wait *wait_of(
	const struct world *world, uint32_t page, uint32_t index)
{
	const char *waits = (const char *)world->steps + world->steps->waits_at;

	return (const struct dev_step_wait *)waits + page * world->steps->wait_stride +
	       index;
}

/* Where a runner is. */
struct spot {
	uint32_t rank, channel, lane;
	uint32_t page; /* number in the block */
	struct runner *runner;
	const struct dev_step *step;
};

static size_t slot_at(const struct world *world, const struct spot *spot,
	const struct dev_step_place *place)
{
	const struct steps_args *args = &world->args;
	uint32_t message = (spot->runner->tile * place->period + place->chunk) %
			   world->steps->depth;
	size_t in_stage = (place->slot + message) * args->slot_bytes +
			  place->part * args->stride_bytes;

	TRUE(place->rank < world->n);
	TRUE(in_stage + args->tile_bytes <= args->stage_bytes);
	TRUE(place->part < world->steps->slot_chunks);
	return (spot->channel * args->stage_bytes + in_stage) / WIDTH;
}

static uint64_t flag_of(const struct spot *spot, const struct dev_step_place *place)
{
	return spot->runner->base + (uint64_t)spot->runner->tile * place->length +
	       place->position;
}

/* The first of a place's elements. */
static uint32_t *pointer_of(const struct world *world, const struct spot *spot,
	const struct dev_step_place *place)
{
	const struct steps_args *args = &world->args;
	size_t at = place->chunk * args->chunk_bytes + spot->channel * args->part_bytes +
		    spot->runner->tile * args->tile_bytes;

	if (place->space == STEPS_SPACE_STAGE)
		return &world->store->stage[place->rank][slot_at(world, spot, place)];
	EQ(place->rank, spot->rank);
	if (place->space == SPACE_TMP) {
		TRUE(place->chunk < world->steps->tmp_count);
		return world->scratch[spot->rank] +
		       (spot->channel * args->scratch_bytes +
			       place->chunk * args->tile_bytes) /
			       WIDTH;
	}
	return (place->space == SPACE_IN ? world->in : world->out)[spot->rank] +
	       at / WIDTH;
}

static size_t elems_of(const struct world *world, const struct spot *spot)
{
	const struct steps_args *args = &world->args;
	size_t begin = spot->step->bound * args->chunk_bytes;
	size_t bytes = args->total_bytes > begin ? args->total_bytes - begin : 0;
	size_t from = spot->channel * args->part_bytes, to = from + args->part_bytes;

	bytes = bytes < args->chunk_bytes ? bytes : args->chunk_bytes;
	to = to < bytes ? to : bytes;
	from += spot->runner->tile * args->tile_bytes;
	to = to < from + args->tile_bytes ? to : from + args->tile_bytes;
	return to > from ? (to - from) / WIDTH : 0;
}

static bool is_reached(const struct world *world, const struct spot *spot, uint32_t index)
{
	const struct dev_step_wait *wait = wait_of(world, spot->page, index);
	uint32_t tile = spot->runner->tile;
	uint64_t want = spot->runner->base;

	if (tile >= wait->back)
		want += (uint64_t)(tile - wait->back) * wait->length + wait->position;
	return world->store->positions[wait->rank][spot->channel][wait->lane] >= want;
}

static bool are_waits_over(const struct world *world, const struct spot *spot)
{
	const struct dev_step *step = spot->step;
	uint32_t count = step->local_count + step->ack_count +
			 (world->has_flags ? 0u : step->data_count);

	for (uint32_t i = 0; i < count; i++)
		if (!is_reached(world, spot, step->wait_first + i))
			return false;
	return true;
}

/* With flags: all that is read of every slot has its message's. */
static bool are_flags_there(const struct world *world, const struct spot *spot)
{
	size_t elems = elems_of(world, spot);

	for (uint32_t i = 0; world->has_flags && i < spot->step->input_count; i++) {
		const struct dev_step_place *place = place_of(
			world, spot->page, spot->step->place_first + i);
		size_t at;

		if (place->space != STEPS_SPACE_STAGE)
			continue;
		at = slot_at(world, spot, place);
		for (size_t e = 0; e < elems; e++)
			if (world->store->flags[place->rank][at + e] !=
				flag_of(spot, place))
				return false;
	}
	return true;
}

static void fold_do(const struct world *world, const struct spot *spot)
{
	uint32_t inputs = spot->step->input_count;
	uint32_t places = inputs + spot->step->output_count;

	for (size_t e = 0; e < elems_of(world, spot); e++) {
		uint32_t sum = 0;

		for (uint32_t i = 0; i < places; i++) {
			const struct dev_step_place *place = place_of(
				world, spot->page, spot->step->place_first + i);
			uint32_t *at = pointer_of(world, spot, place) + e;

			if (i < inputs)
				sum += *at;
			else
				*at = sum;
			if (i >= inputs && place->space == STEPS_SPACE_STAGE) {
				EQ(place->rank, spot->rank);
				world->store->flags[spot->rank]
						   [slot_at(world, spot, place) + e] =
					flag_of(spot, place);
			}
		}
	}
}

static void tell(const struct world *world, const struct spot *spot)
{
	uint32_t heard = TELL_ACK | TELL_LOCAL | (world->has_flags ? 0 : TELL_DATA);
	const struct runner *runner = spot->runner;

	if (runner->tile + 1 < world->args.tile_count)
		heard |= TELL_ACK_LATER;
	if (spot->step->tell & heard)
		world->store->positions[spot->rank][spot->channel][spot->lane] =
			runner->base + (uint64_t)runner->tile * spot->step->length +
			spot->step->position;
}

/* To the next step there is, over the ends of pages and tiles. */
static void runner_find(const struct world *world, struct spot *spot)
{
	struct runner *runner = spot->runner;
	uint32_t first = (spot->rank * world->steps->lane_count + spot->lane) *
			 world->steps->page_count;

	while (runner->tile < world->args.tile_count) {
		spot->page = first + runner->page;
		spot->step = step_of(world, spot->page, runner->step);
		if (runner->step < world->steps->step_stride && spot->step->op)
			return;
		runner->step = 0;
		if (++runner->page == world->steps->page_count) {
			runner->page = 0;
			runner->tile++;
		}
	}
	runner->is_done = true;
	for (uint32_t l = 0; l < STEPS_LANES; l++)
		if (l == spot->lane || world->steps->lane_count == 1)
			world->store->positions[spot->rank][spot->channel][l] =
				runner->base + world->args.span;
}

/* Some steps of one lane; false when there were none. */
static bool runner_go(const struct world *world, struct spot *spot)
{
	bool is_moved = false;

	for (uint32_t turns = 1 + random_next() % 4; turns; turns--) {
		runner_find(world, spot);
		if (spot->runner->is_done)
			return true;
		if (!are_waits_over(world, spot) || !are_flags_there(world, spot))
			return is_moved;
		fold_do(world, spot);
		tell(world, spot);
		spot->runner->step++;
		is_moved = true;
	}
	return true;
}

/* Everybody has ended the call before. */
static bool is_begun(const struct world *world, const struct spot *spot)
{
	for (uint32_t r = 0; r < world->n; r++)
		for (uint32_t l = 0; l < STEPS_LANES; l++)
			if (world->store->positions[r][spot->channel][l] <
				spot->runner->base)
				return false;
	return true;
}

static void world_run(struct world *world)
{
	uint32_t lanes = world->steps->lane_count, idle = 0, left, all;

	left = all = world->n * world->channels * lanes;
	for (uint32_t i = 0; i < all; i++) {
		uint32_t r = i / lanes / world->channels, c = i / lanes % world->channels,
			 l = i % lanes;

		world->runners[r][c][l] = (struct runner){
			.base = world->store->positions[r][c][l]};
	}
	while (left) {
		uint32_t i = random_next() % all;
		struct spot spot = {.rank = i / lanes / world->channels,
			.channel = i / lanes % world->channels,
			.lane = i % lanes};

		spot.runner = &world->runners[spot.rank][spot.channel][spot.lane];
		if (!spot.runner->is_done && is_begun(world, &spot) &&
			runner_go(world, &spot)) {
			left -= spot.runner->is_done;
			idle = 0;
		}
		TRUE(idle++ < 1000 * all);
	}
}

/* ---- a call ---- */

static void buffers_make(struct world *world)
{
	for (uint32_t r = 0; r < world->n; r++) {
		size_t in = blocks_of(world, r, false) * world->count;
		size_t out = blocks_of(world, r, true) * world->count;

		world->in[r] = calloc(in + 1, WIDTH);
		world->out[r] = calloc(out + 1, WIDTH);
		world->scratch[r] = calloc(
			world->args.scratch_bytes * world->channels + 1, 1);
		TRUE(world->in[r] && world->out[r] && world->scratch[r]);
		for (size_t i = 0; i < in; i++)
			world->in[r][i] = input(r, i);
		world->out[r][out] = 0xbeef;
	}
}

static void buffers_check(struct world *world)
{
	for (uint32_t r = 0; r < world->n; r++) {
		size_t out = blocks_of(world, r, true) * world->count;

		for (size_t i = 0; i < out; i++)
			EQ(world->out[r][i], wanted(world, r, i));
		EQ(world->out[r][out], 0xbeef);
		free(world->in[r]);
		free(world->out[r]);
		free(world->scratch[r]);
	}
}

static void positions_check(const struct world *world)
{
	for (uint32_t c = 0; c < world->channels; c++)
		for (uint32_t r = 0; r < world->n; r++)
			for (uint32_t l = 0; l < STEPS_LANES; l++)
				EQ(world->store->positions[r][c][l],
					world->store->positions[0][c][0]);
}

static void test_call(const struct steps_key *key, const struct dev_steps *steps,
	size_t count, uint32_t mode)
{
	struct world world = {.coll = key->kind->coll,
		.n = key->rank_count,
		.root = coll_has_root(key->kind->coll) ? key->root : 0,
		.channels = 1 + mode % CHANNELS_MAX,
		.has_flags = mode % 2,
		.steps = steps,
		.store = &store,
		.count = count};
	struct steps_room room = {.codec = STEPS_SIMPLE,
		.channels = world.channels,
		.stage_bytes = STAGE_BYTES,
		.tile_bytes = STEPS_LINE};

	EQ(steps_shape(steps, &room, count * WIDTH, &world.args), OK);
	TRUE(world.args.span < 1 << 20);
	EQ(!count, !world.args.tile_count);
	buffers_make(&world);
	world_run(&world);
	positions_check(&world);
	buffers_check(&world);
}

/* ---- structure ---- */

static void check_step(
	const struct world *world, const struct spot *spot, uint32_t *moves)
{
	const struct dev_step *step = spot->step;
	uint32_t waits = (uint32_t)step->local_count + step->ack_count + step->data_count;

	TRUE(step->input_count > 0 && step->output_count > 0);
	TRUE(step->place_first + step->input_count + step->output_count <=
		(int)world->steps->place_stride);
	TRUE(step->wait_first + waits <= world->steps->wait_stride);
	TRUE(step->position == *moves || step->position == *moves + 1);
	TRUE(step->position <= step->length);
	TRUE(step->bound < (world->steps->is_vector ? world->steps->chunk_count : 1));
	*moves = step->position;
	for (uint32_t i = 0; i < waits; i++) {
		const struct dev_step_wait *wait = wait_of(
			world, spot->page, step->wait_first + i);
		uint32_t kind = i < step->local_count			  ? WAIT_LOCAL
				: i < step->local_count + step->ack_count ? WAIT_ACK
									  : WAIT_DATA;

		EQ(wait->kind, kind);
		EQ(wait->back, kind == WAIT_ACK ? step->back : 0);
		TRUE(wait->rank < world->n && wait->lane < world->steps->lane_count);
		TRUE(wait->position <= wait->length && wait->length > 0);
	}
}

/* Is the position that is waited for one that is told? */
static bool is_told(const struct world *world, const struct dev_step_wait *wait)
{
	uint32_t pages = world->steps->page_count;
	uint32_t first = (wait->rank * world->steps->lane_count + wait->lane) * pages;
	uint32_t wants = wait->kind == WAIT_DATA    ? TELL_DATA
			 : wait->kind == WAIT_LOCAL ? TELL_LOCAL
			 : wait->back		    ? TELL_ACK_LATER
						    : TELL_ACK;
	uint32_t position = wait->position ? wait->position : wait->length;

	for (uint32_t p = first; p < first + pages; p++)
		for (uint32_t i = 0; i < world->steps->step_stride; i++) {
			const struct dev_step *step = step_of(world, p, i);

			if (step->op && step->position == position && step->tell & wants)
				return true;
		}
	return false;
}

static void check_layout(const struct dev_steps *steps, size_t bytes)
{
	size_t pages = (size_t)steps->rank_count * steps->lane_count * steps->page_count;

	TRUE(steps->step_stride <= STEPS_PAGE && steps->step_stride > 0);
	TRUE(steps->place_stride <= STEPS_PAGE_PLACES && steps->place_stride > 0);
	TRUE(steps->wait_stride <= STEPS_PAGE_WAITS && steps->wait_stride > 0);
	EQ(steps->places_at % 16, 0);
	TRUE(steps->places_at >= sizeof(*steps));
	EQ(steps->steps_at, steps->places_at + pages * steps->place_stride *
						       sizeof(struct dev_step_place));
	EQ(steps->waits_at,
		steps->steps_at + pages * steps->step_stride * sizeof(struct dev_step));
	EQ(bytes, steps->waits_at +
			  pages * steps->wait_stride * sizeof(struct dev_step_wait));
}

static void check_steps(const struct dev_steps *steps, size_t bytes)
{
	struct world world = {.n = steps->rank_count, .steps = steps};
	uint32_t lanes = steps->rank_count * steps->lane_count;

	check_layout(steps, bytes);
	for (uint32_t i = 0; i < lanes; i++) {
		uint32_t moves = 0;

		for (uint32_t p = 0; p < steps->page_count; p++)
			for (uint32_t s = 0; s < steps->step_stride; s++) {
				struct spot spot = {.page = i * steps->page_count + p};

				spot.step = step_of(&world, spot.page, s);
				if (spot.step->op)
					check_step(&world, &spot, &moves);
			}
		TRUE(moves <= steps->length_max);
		for (uint32_t w = 0; w < steps->page_count * steps->wait_stride; w++) {
			const struct dev_step_wait *wait = wait_of(
				&world, i * steps->page_count, w);

			if (wait->length)
				TRUE(is_told(&world, wait));
		}
	}
}

/* ---- tests ---- */

static void test_kind(const struct sched_kind *kind, uint32_t n, uint32_t depth)
{
	static const size_t counts[] = {0, 1, 7, 100, 1000};

	for (uint32_t root = 0; root < n; root++) {
		struct steps_key key = {kind, n, root, depth};
		struct dev_steps *steps;
		size_t bytes;

		if (root && (!coll_has_root(kind->coll) || root + 2 < n))
			continue;
		EQ(lists_steps(&key, &steps, &bytes), OK);
		check_steps(steps, bytes);
		for (size_t i = 0; i < sizeof(counts) / sizeof(*counts); i++)
			for (uint32_t mode = 0; mode < 6; mode++)
				test_call(&key, steps, counts[i], mode);
		free(steps);
	}
}

/* Each number of ranks is a communicator of its own, which runs all schedules. */
static void test_all(void)
{
	const struct sched_kind *kind;

	for (uint32_t n = 1; n <= RANKS; n++) {
		memset(&store, 0, sizeof(store));
		for (uint32_t i = 0; (kind = catalog_plain_at(i)); i++) {
			test_kind(kind, n, 2);
			test_kind(kind, n, 8);
		}
	}
}

/* The most ranks there can be take more than one page; one more rank is refused. */
static void test_limits(void)
{
	const struct sched_kind *kind;
	uint32_t page_max = 0;

	for (uint32_t i = 0; (kind = catalog_plain_at(i)); i++) {
		struct steps_key key = {kind, STEPS_RANKS_MAX, 0, 2};
		struct dev_steps *steps;
		size_t bytes;

		EQ(lists_steps(&key, &steps, &bytes), OK);
		check_layout(steps, bytes);
		page_max = steps->page_count > page_max ? steps->page_count : page_max;
		free(steps);
		key.rank_count++;
		EQ(lists_steps(&key, &steps, &bytes), ERR_USAGE);
		key.rank_count = 2;
		key.depth = 3;
		EQ(lists_steps(&key, &steps, &bytes), ERR_INTERNAL);
	}
	TRUE(page_max > 1);
}

/* A tile is never larger than asked, nor than what fits; slots fit into the stage. */
static void test_shape(void)
{
	struct steps_key key = {catalog_find(COLL_ALL_REDUCE, "ring"), 4, 0, 8};
	struct dev_steps *steps;
	size_t bytes;

	EQ(lists_steps(&key, &steps, &bytes), OK);
	EQ(steps_stage_bytes(steps, STEPS_SIMPLE, 4096), 8 * 4096);
	EQ(steps_stage_bytes(steps, STEPS_LL, 4096), 8 * 8192);
	EQ(steps_stage_bytes(steps, STEPS_LL128, 1200), 8 * 11 * 128);
	EQ(steps_words_bytes(3), 3 * 2 * 128);
	for (int codec = 0; codec < STEPS_CODECS; codec++)
		for (size_t stage = 8 * 128; stage < 1 << 20; stage += 12345) {
			struct steps_room room = {.codec = (enum steps_codec)codec,
				.channels = 2,
				.stage_bytes = stage};
			struct steps_args args;
			bool is_small = stage < 8 * (codec ? 256 : 128);

			EQ(steps_shape(steps, &room, 1 << 24, &args),
				is_small ? ERR_USAGE : OK);
			if (is_small)
				continue;
			TRUE(args.slot_bytes * steps->slot_count <= stage);
			TRUE(args.stride_bytes >= args.tile_bytes);
			EQ(args.slot_bytes % STEPS_LINE, 0);
			EQ(args.tile_bytes % STEPS_LINE, 0);
			TRUE(args.tile_bytes * args.tile_count >= args.part_bytes);
			TRUE(args.part_bytes * 2 >= args.chunk_bytes);
			EQ(args.chunk_bytes, 1 << 22);
		}
	EQ_STR(steps_codec_name(STEPS_LL128), "ll128");
	for (size_t all = 0; all < 1 << 28; all = 3 * all + 1) {
		struct steps_room room = {.codec = STEPS_LL, .stage_bytes = 1 << 16};
		struct steps_args args;
		uint32_t threads;

		room.channels = steps_channels(steps, room.codec, all, 32);
		TRUE(room.channels >= 1 && room.channels <= 32);
		EQ(steps_shape(steps, &room, all, &args), OK);
		threads = steps_threads(&args, room.codec);
		TRUE(threads >= STEPS_THREADS_MIN && threads <= STEPS_THREADS);
		EQ(threads % 32, 0);
	}
	free(steps);
}

int main(void)
{
	test_shape();
	test_limits();
	test_all();
	return 0;
}
