/*
 * steps.c - writes down as pages what all ranks do of a schedule lowered in staged mode.
 *
 * Two things the host engine finds out as it goes are asked of sched (told.h): who waits
 * for a position, so that a kernel announces no other, and how long a message is that
 * passes through ranks that have no buffer for it, since with flags a receiver may not
 * look at more than was sent.
 */
#include "exec/cuda/lists/steps.h"

#include <stdlib.h>
#include <string.h>

#include "sched/told.h"

enum {
	CHUNK_ALIGN = 64,
	LL128_BYTES = 120,
	WARP_THREADS = 32,
	SPAN_MAX = 1 << 30,
	TILE_MAX = 1 << 30
};

/* The lowered schedule of all ranks. */
struct whole {
	struct program *const *programs; /* borrowed */
	uint32_t rank_count;
	struct told *told; /* owned */
};

_Static_assert((int)STEPS_SPACE_STAGE == (int)PLACE_STAGE, "spaces are places");
_Static_assert((int)STEPS_WAIT_ACK == (int)WAIT_ACK, "waits are waits");
_Static_assert((int)STEPS_LANES >= (int)SCHED_LANES_MAX, "every lane has a word");
_Static_assert((int)TELL_DATA == (int)TOLD_DATA && (int)TELL_ACK == (int)TOLD_ACK &&
		       (int)TELL_ACK_LATER == (int)TOLD_ACK_LATER &&
		       (int)TELL_LOCAL == (int)TOLD_LOCAL,
	"what is told is what is waited for");

/* ---- pages ---- */

/* Where the next step goes; without `head` it is only counted. */
struct cursor {
	const struct whole *whole;
	struct dev_steps *head;
	const struct program *program;
	uint32_t lane;
	uint32_t page;					  /* of this lane */
	uint32_t step, place, wait;			  /* used of the page */
	uint32_t page_max, step_max, place_max, wait_max; /* seen so far */
};

static uint32_t larger(uint32_t a, uint32_t b)
{
	return a > b ? a : b;
}

static uint32_t page_number(const struct cursor *at)
{
	return (at->program->rank * at->head->lane_count + at->lane) *
		       at->head->page_count +
	       at->page;
}

static struct dev_step *step_at(const struct cursor *at)
{
	struct dev_step *steps = (void *)((char *)at->head + at->head->steps_at);

	return &steps[(size_t)page_number(at) * at->head->step_stride + at->step];
}

static struct dev_step_place *place_at(const struct cursor *at)
{
	struct dev_step_place *places = (void *)((char *)at->head + at->head->places_at);

	return &places[(size_t)page_number(at) * at->head->place_stride + at->place];
}

static struct dev_step_wait *wait_at(const struct cursor *at)
{
	struct dev_step_wait *waits = (void *)((char *)at->head + at->head->waits_at);

	return &waits[(size_t)page_number(at) * at->head->wait_stride + at->wait];
}

static uint16_t length_of(const struct cursor *at, uint32_t rank, uint32_t lane)
{
	return (uint16_t)at->program->lengths[rank * SCHED_LANES_MAX + lane];
}

/* `position` is the sender's. */
static void place_write(
	struct cursor *at, const struct place *place, uint32_t part, uint32_t position)
{
	bool is_slot = place->space == PLACE_STAGE;

	if (at->head)
		*place_at(at) = (struct dev_step_place){.rank = place->rank,
			.space = place->space,
			.part = (uint8_t)(is_slot ? part : 0),
			.chunk = (uint16_t)(place->chunk + (is_slot ? 0 : part)),
			.period = place->period,
			.slot = place->slot,
			.length = is_slot ? length_of(at, place->rank, place->lane)
					  : (uint16_t)0,
			.position = position};
	at->place++;
}

static uint8_t waits_write(
	struct cursor *at, const struct move *move, enum wait_kind kind, uint16_t *back)
{
	uint8_t count = 0;

	for (uint32_t i = 0; i < move->wait_count; i++) {
		const struct wait *wait = &at->program->waits[move->wait_first + i];

		if (wait->kind != kind)
			continue;
		if (at->head)
			*wait_at(at) = (struct dev_step_wait){.rank = wait->rank,
				.lane = wait->lane,
				.kind = wait->kind,
				.position = wait->position,
				.back = (uint16_t)wait->back,
				.length = length_of(at, wait->rank, wait->lane)};
		*back = (uint16_t)wait->back;
		at->wait++;
		count++;
	}
	return count;
}

static void places_write(
	struct cursor *at, const struct move *move, uint32_t position, uint32_t part)
{
	const struct wait *wait = &at->program->waits[move->wait_first];

	for (uint32_t i = 0; i < move->input_count; i++) {
		const struct place *place = &at->program->places[move->input_first + i];
		uint32_t sent = 0;

		if (place->space == PLACE_STAGE) {
			while (wait->kind != WAIT_DATA)
				wait++;
			sent = wait++->position;
		}
		place_write(at, place, part, sent);
	}
	for (uint32_t i = 0; i < move->output_count; i++)
		place_write(
			at, &at->program->places[move->output_first + i], part, position);
}

static void page_turn(struct cursor *at, const struct move *move)
{
	uint32_t places = move->input_count + move->output_count;

	if (at->step + 1 > STEPS_PAGE || at->place + places > STEPS_PAGE_PLACES ||
		at->wait + move->wait_count > STEPS_PAGE_WAITS) {
		at->page++;
		at->step = at->place = at->wait = 0;
	}
}

/* Chunk `part` of move number `index` of the lane. The first waits, the last tells. */
static void step_write(struct cursor *at, uint32_t index, uint32_t part)
{
	const struct move *move = &at->program->lanes[at->lane].moves[index];
	const struct told_move *told = told_at(
		at->whole->told, at->program->rank, at->lane, index);
	bool is_vector = coll_is_vector(at->program->coll);
	struct dev_step step = {.op = move->op,
		.tell = (uint8_t)(part + 1 == move->count ? told->what : 0),
		.input_count = (uint8_t)move->input_count,
		.output_count = (uint8_t)move->output_count,
		.bound = (uint16_t)(is_vector ? told->bound + part : 0),
		.length = length_of(at, at->program->rank, at->lane),
		.position = index + 1};
	uint16_t unused = 0;

	page_turn(at, move);
	step.place_first = (uint16_t)at->place;
	step.wait_first = (uint16_t)at->wait;
	if (!part) {
		step.local_count = waits_write(at, move, WAIT_LOCAL, &unused);
		step.ack_count = waits_write(at, move, WAIT_ACK, &step.back);
		step.data_count = waits_write(at, move, WAIT_DATA, &unused);
	}
	places_write(at, move, step.position, part);
	if (at->head)
		*step_at(at) = step;
	at->step++;
	at->page_max = larger(at->page_max, at->page + 1);
	at->step_max = larger(at->step_max, at->step);
	at->place_max = larger(at->place_max, at->place);
	at->wait_max = larger(at->wait_max, at->wait);
}

static void steps_write(struct cursor *at)
{
	for (uint32_t r = 0; r < at->whole->rank_count; r++)
		for (at->lane = 0; at->lane < at->whole->programs[r]->lane_count;
			at->lane++) {
			const struct lane_moves *moves =
				&at->whole->programs[r]->lanes[at->lane];

			at->program = at->whole->programs[r];
			at->page = at->step = at->place = at->wait = 0;
			for (uint32_t m = 0; m < moves->count; m++)
				for (uint32_t p = 0; p < moves->moves[m].count; p++)
					step_write(at, m, p);
		}
}

/* ---- the block ---- */

static size_t round_up(size_t value, size_t to)
{
	return (value + to - 1) / to * to;
}

static void head_fill(struct dev_steps *head, const struct cursor *counted)
{
	const struct program *first = counted->whole->programs[0];

	*head = (struct dev_steps){.rank_count = counted->whole->rank_count,
		.page_count = larger(counted->page_max, 1),
		.depth = first->depth,
		.slot_count = first->slot_count_max,
		.slot_chunks = first->slot_chunks,
		.chunk_count = first->chunk_count,
		.is_vector = coll_is_vector(first->coll),
		.step_stride = larger(counted->step_max, 1),
		.place_stride = larger(counted->place_max, 1),
		.wait_stride = larger(counted->wait_max, 1)};
	for (uint32_t r = 0; r < head->rank_count; r++) {
		const struct program *program = counted->whole->programs[r];

		head->lane_count = larger(head->lane_count, program->lane_count);
		head->tmp_count = larger(head->tmp_count, program->tmp_count);
		for (uint32_t l = 0; l < program->lane_count; l++)
			head->length_max = larger(
				head->length_max, program->lanes[l].count);
	}
}

static size_t head_place(struct dev_steps *head)
{
	size_t pages = (size_t)head->rank_count * head->lane_count * head->page_count;
	size_t at = round_up(sizeof(*head), 16);

	head->places_at = (uint32_t)at;
	at += pages * head->place_stride * sizeof(struct dev_step_place);
	head->steps_at = (uint32_t)at;
	at += pages * head->step_stride * sizeof(struct dev_step);
	head->waits_at = (uint32_t)at;
	return at + pages * head->wait_stride * sizeof(struct dev_step_wait);
}

static enum err whole_write(
	const struct whole *whole, struct dev_steps **steps, size_t *bytes)
{
	struct cursor counting = {.whole = whole}, writing = {.whole = whole};
	struct dev_steps head, *block;
	size_t size;

	steps_write(&counting);
	head_fill(&head, &counting);
	if (head.length_max > UINT16_MAX)
		return err_set(ERR_USAGE, "a schedule of %u moves is too long for a GPU",
			head.length_max);
	size = head_place(&head);
	block = calloc(1, size);
	if (!block)
		return err_set(ERR_SYSTEM, "no memory for %zu bytes of steps", size);
	*block = head;
	writing.head = block;
	steps_write(&writing);
	*steps = block;
	*bytes = size;
	return OK;
}

enum err steps_flatten(
	struct program *const *programs, struct dev_steps **steps, size_t *bytes)
{
	const struct program *first = programs[0];
	struct whole whole = {.programs = programs, .rank_count = first->rank_count};
	uint32_t depth = first->depth;
	enum err e = OK;

	if (whole.rank_count > STEPS_RANKS_MAX)
		return err_set(ERR_USAGE,
			"%s of %u ranks; the staged kernels are for 1 to %d",
			coll_name(first->coll), whole.rank_count, STEPS_RANKS_MAX);
	if (!depth || depth & (depth - 1) || depth > INT16_MAX)
		return err_set(ERR_INTERNAL, "%u slots are no power of 2", depth);
	for (uint32_t r = 0; r < whole.rank_count && !e; r++)
		if (whole.programs[r]->drain_count)
			e = err_set(ERR_INTERNAL, "a staged schedule that lends");
	if (!e)
		e = told_create(whole.programs, &whole.told);
	if (!e)
		e = whole_write(&whole, steps, bytes);
	told_destroy(whole.told);
	return e;
}

/* ---- sizes ---- */

const char *steps_codec_name(enum steps_codec codec)
{
	static const char *const names[STEPS_CODECS] = {"simple", "ll", "ll128"};

	return names[codec];
}

/* Bytes of a slot for as many of data. */
static size_t coded_bytes(enum steps_codec codec, size_t bytes)
{
	if (codec == STEPS_LL)
		return 2 * bytes;
	if (codec == STEPS_LL128)
		return (bytes + LL128_BYTES - 1) / LL128_BYTES * STEPS_LINE;
	return bytes;
}

/* .. and the other way. */
static size_t data_bytes(enum steps_codec codec, size_t bytes)
{
	if (codec == STEPS_LL)
		return bytes / 2;
	if (codec == STEPS_LL128)
		return bytes / STEPS_LINE * LL128_BYTES;
	return bytes;
}

size_t steps_stage_bytes(
	const struct dev_steps *steps, enum steps_codec codec, size_t tile_bytes)
{
	size_t stride = coded_bytes(codec, round_up(tile_bytes, STEPS_LINE));

	return stride * steps->slot_chunks * steps->slot_count;
}

size_t steps_words_bytes(uint32_t channels)
{
	return (size_t)channels * STEPS_LANES * sizeof(struct dev_word);
}

/* The largest tile that fits, and that is no larger than asked; 0: there is none. */
static size_t tile_find(const struct dev_steps *steps, const struct steps_room *room)
{
	size_t slots = (size_t)steps->slot_count * steps->slot_chunks;
	size_t asked = room->tile_bytes ? round_up(room->tile_bytes, STEPS_LINE)
					: TILE_MAX;
	size_t fits;

	if (!slots)
		return asked;
	fits = data_bytes(room->codec, room->stage_bytes / slots) / STEPS_LINE *
	       STEPS_LINE;
	return fits < asked ? fits : asked;
}

/* As plan/plan.c cuts a vector: the order of a sum depends on it. */
static size_t chunk_bytes(const struct dev_steps *steps, size_t bytes)
{
	size_t chunks = steps->is_vector ? steps->chunk_count : 1;

	if (chunks < 2)
		return bytes;
	return round_up((bytes + chunks - 1) / chunks, CHUNK_ALIGN);
}

uint32_t steps_channels(const struct dev_steps *steps, enum steps_codec codec,
	size_t bytes, uint32_t most)
{
	/* as many bytes of a chunk are as quickly done by one block as by two */
	static const size_t enough[STEPS_CODECS] = {
		[STEPS_SIMPLE] = 4096, [STEPS_LL] = 1024, [STEPS_LL128] = 1920};
	size_t wanted = chunk_bytes(steps, bytes) / enough[codec];

	return wanted < 1 ? 1 : wanted < most ? (uint32_t)wanted : most;
}

uint32_t steps_threads(const struct steps_args *args, enum steps_codec codec)
{
	/* what a thread has in flight */
	static const size_t each[STEPS_CODECS] = {
		[STEPS_SIMPLE] = 32, [STEPS_LL] = 16, [STEPS_LL128] = 30};
	size_t threads = round_up(args->tile_bytes / each[codec], WARP_THREADS);

	return threads < STEPS_THREADS_MIN ? STEPS_THREADS_MIN
	       : threads < STEPS_THREADS   ? (uint32_t)threads
					   : STEPS_THREADS;
}

bool steps_fit(const struct dev_steps *steps, const struct steps_room *room, size_t bytes,
	struct steps_args *args)
{
	size_t tile = tile_find(steps, room), count;

	if (!tile)
		return false;
	args->head = *steps;
	args->chunk_bytes = chunk_bytes(steps, bytes);
	args->total_bytes = bytes;
	args->part_bytes = round_up(
		(args->chunk_bytes + room->channels - 1) / room->channels, STEPS_LINE);
	count = (args->part_bytes + tile - 1) / tile;
	if (count > SPAN_MAX / larger(steps->length_max, 1))
		return false;
	tile = count ? round_up((args->part_bytes + count - 1) / count, STEPS_LINE)
		     : STEPS_LINE;
	args->tile_count = (uint32_t)count;
	args->tile_bytes = tile;
	args->stride_bytes = coded_bytes(room->codec, tile);
	args->slot_bytes = args->stride_bytes * steps->slot_chunks;
	args->stage_bytes = room->stage_bytes;
	args->scratch_bytes = tile * steps->tmp_count;
	args->span = count * steps->length_max;
	return true;
}

enum err steps_shape(const struct dev_steps *steps, const struct steps_room *room,
	size_t bytes, struct steps_args *args)
{
	size_t tile = tile_find(steps, room);

	if (steps_fit(steps, room, bytes, args))
		return OK;
	return tile ? err_set(ERR_USAGE, "%zu bytes need too many tiles of %zu bytes",
			      bytes, tile)
		    : err_set(ERR_USAGE,
			      "a stage of %zu bytes for a channel is too small for %u "
			      "slots: use fewer ranks or another algorithm",
			      room->stage_bytes, steps->slot_count);
}
