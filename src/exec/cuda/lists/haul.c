#include "exec/cuda/lists/haul.h"

#include <stdlib.h>

#include "sched/told.h"

/* The programs, and the list that is filled; first it is only counted. */
struct haul_maker {
	struct program *const *programs; /* borrowed */
	const uint16_t *hosts;
	const struct told *told;
	struct haul_list *list;
	bool is_counting;
	bool is_unmatched;
};

/* One message: between two moves. */
struct passage {
	const struct program *from, *to;
	uint32_t lane, sent, taken; /* the moves' numbers, counted from 1 */
};

static const struct move *move_at(
	const struct program *program, uint32_t lane, uint32_t number)
{
	return &program->lanes[lane].moves[number - 1];
}

/* The slot that a move fills; NULL: none. */
static const struct place *slot_of(const struct program *program, const struct move *move)
{
	for (uint32_t i = 0; i < move->output_count; i++) {
		const struct place *place = &program->places[move->output_first + i];

		if (place->space == PLACE_STAGE)
			return place;
	}
	return NULL;
}

/* What the sender waits for before it fills the slot, of that receiver. */
static const struct wait *ack_of(
	const struct program *program, const struct move *move, uint32_t receiver)
{
	for (uint32_t i = 0; i < move->wait_count; i++) {
		const struct wait *wait = &program->waits[move->wait_first + i];

		if (wait->kind == WAIT_ACK && wait->rank == receiver)
			return wait;
	}
	return NULL;
}

static void passage_add(struct haul_maker *maker, const struct passage *passage)
{
	const struct program *from = passage->from;
	const struct move *move = move_at(from, passage->lane, passage->sent);
	const struct place *slot = slot_of(from, move);
	const struct wait *ack = ack_of(from, move, passage->to->rank);
	uint32_t bound = coll_is_vector(from->coll)
				 ? told_at(maker->told, from->rank, passage->lane,
					   passage->sent - 1)
					   ->bound
				 : 0;
	struct haul_list *list = maker->list;

	maker->is_unmatched |= !slot || !ack;
	if (!maker->is_counting && slot && ack)
		list->messages[list->message_count] = (struct haul_message){
			.sent = passage->sent,
			.taken = passage->taken,
			.free = ack->position,
			.back = ack->back,
			.slot = slot->slot,
			.period = slot->period,
			.chunk = slot->chunk,
			.bound = (uint16_t)bound,
			.count = move->count};
	list->message_count++;
}

/* All messages from one rank to the other over a lane, in the order in which they are
 * taken, which is that in which they are sent. */
static void line_add(struct haul_maker *maker, const struct program *from,
	const struct program *to, uint32_t lane, bool is_out)
{
	struct haul_list *list = maker->list;
	const struct program *near = is_out ? from : to, *far = is_out ? to : from;
	uint32_t first = list->message_count, last = 0;

	for (uint32_t m = 0; lane < to->lane_count && m < to->lanes[lane].count; m++) {
		const struct move *move = &to->lanes[lane].moves[m];

		for (uint32_t i = 0; i < move->wait_count; i++) {
			const struct wait *wait = &to->waits[move->wait_first + i];

			if (wait->kind != WAIT_DATA || wait->rank != from->rank ||
				wait->lane != lane)
				continue;
			maker->is_unmatched |= wait->position <= last;
			last = wait->position;
			passage_add(
				maker, &(struct passage){from, to, lane, last, m + 1});
		}
	}
	if (list->message_count == first)
		return;
	if (!maker->is_counting)
		list->lines[list->line_count] = (struct haul_line){
			.rank = (uint16_t)far->rank,
			.lane = (uint8_t)lane,
			.is_out = is_out,
			.first = first,
			.count = list->message_count - first,
			.near_length = near->lanes[lane].count,
			.far_length = far->lanes[lane].count};
	list->line_count++;
}

static void lines_add(struct haul_maker *maker, uint32_t rank)
{
	const struct program *own = maker->programs[rank];

	maker->list->line_count = maker->list->message_count = 0;
	for (uint32_t r = 0; r < own->rank_count; r++)
		for (uint32_t lane = 0; lane < SCHED_LANES_MAX; lane++) {
			if (maker->hosts[r] == maker->hosts[rank])
				continue;
			line_add(maker, maker->programs[r], own, lane, false);
			line_add(maker, own, maker->programs[r], lane, true);
		}
}

static enum err list_fill(struct haul_maker *maker, uint32_t rank)
{
	struct haul_list *list = maker->list;

	maker->is_counting = true;
	lines_add(maker, rank);
	list->lines = calloc(list->line_count + 1u, sizeof(*list->lines));
	list->messages = calloc(list->message_count + 1u, sizeof(*list->messages));
	if (!list->lines || !list->messages)
		return err_set(ERR_SYSTEM, "no memory for %u messages between hosts",
			list->message_count);
	maker->is_counting = false;
	lines_add(maker, rank);
	return maker->is_unmatched
		       ? err_set(ERR_INTERNAL, "a schedule whose messages have no slots")
		       : OK;
}

enum err haul_list_make(struct program *const *programs, uint32_t rank,
	const uint16_t *hosts, struct haul_list **list)
{
	struct haul_maker maker = {.programs = programs, .hosts = hosts};
	struct told *told = NULL;
	enum err e = told_create(programs, &told);

	maker.told = told;
	maker.list = calloc(1, sizeof(*maker.list));
	if (!e && !maker.list)
		e = err_set(ERR_SYSTEM, "no memory for messages between hosts");
	if (!e)
		e = list_fill(&maker, rank);
	told_destroy(told);
	if (e)
		haul_list_free(maker.list);
	*list = e ? NULL : maker.list;
	return e;
}

void haul_list_free(struct haul_list *list)
{
	if (!list)
		return;
	free(list->lines);
	free(list->messages);
	free(list);
}

/* ---- sizes ---- */

void haul_shape(
	const struct steps_args *args, uint32_t channels, struct haul_shape *shape)
{
	*shape = (struct haul_shape){.chunk_bytes = args->chunk_bytes,
		.total_bytes = args->total_bytes,
		.part_bytes = args->part_bytes,
		.tile_bytes = args->tile_bytes,
		.slot_bytes = args->slot_bytes,
		.stride_bytes = args->stride_bytes,
		.stage_bytes = args->stage_bytes,
		.span = args->span,
		.tile_count = args->tile_count,
		.channels = channels,
		.depth = args->head.depth,
		.is_vector = args->head.is_vector};
}

size_t haul_at(const struct haul_shape *shape, const struct haul_message *message,
	uint32_t channel, uint32_t tile, uint32_t part)
{
	uint64_t number = (uint64_t)tile * message->period + message->chunk;

	return channel * shape->stage_bytes +
	       (message->slot + (number & (shape->depth - 1))) * shape->slot_bytes +
	       part * shape->stride_bytes;
}

size_t haul_bytes(const struct haul_shape *shape, const struct haul_message *message,
	uint32_t channel, uint32_t tile, uint32_t part)
{
	uint64_t chunk = shape->is_vector ? message->bound + part : 0;
	uint64_t begin = chunk * shape->chunk_bytes;
	uint64_t from = channel * shape->part_bytes, done = tile * shape->tile_bytes;
	uint64_t bytes = shape->total_bytes > begin ? shape->total_bytes - begin : 0;

	bytes = bytes < shape->chunk_bytes ? bytes : shape->chunk_bytes;
	bytes = bytes > from ? bytes - from : 0;
	bytes = bytes < shape->part_bytes ? bytes : shape->part_bytes;
	bytes = bytes > done ? bytes - done : 0;
	return bytes < shape->tile_bytes ? bytes : shape->tile_bytes;
}
