#include "sched/told.h"

#include <assert.h>
#include <stdlib.h>

struct told {
	uint32_t rank_count;
	struct told_move **lanes; /* owned: [rank * SCHED_LANES_MAX + lane], owned */
};

static struct told_move *move_at(
	const struct told *told, uint32_t rank, uint32_t lane, uint32_t move)
{
	return &told->lanes[rank * SCHED_LANES_MAX + lane][move];
}

const struct told_move *told_at(
	const struct told *told, uint32_t rank, uint32_t lane, uint32_t move)
{
	return move_at(told, rank, lane, move);
}

/* Data of another host is sent, and known to be there by itself. */
static bool is_of_inbox(const struct program *program, const struct wait *wait)
{
	if (wait->kind != WAIT_DATA)
		return false;
	for (uint32_t i = 0; i < program->net_rx_count; i++)
		if (program->net_rx[i].rank == wait->rank)
			return true;
	return false;
}

static void note_wait(struct told *told, struct program *const *programs,
	const struct program *program, const struct wait *wait)
{
	uint32_t position = wait->position;

	if (wait->kind == WAIT_SENT || is_of_inbox(program, wait))
		return;
	/* nothing of this tile is all of the one before */
	if (!position)
		position = programs[wait->rank]->lanes[wait->lane].count;
	move_at(told, wait->rank, wait->lane, position - 1)->what |=
		wait->kind == WAIT_DATA	   ? TOLD_DATA
		: wait->kind == WAIT_LOCAL ? TOLD_LOCAL
		: wait->back		   ? TOLD_ACK_LATER
					   : TOLD_ACK;
}

/* What came with a message: each is waited for, and a move has one of a rank at most. */
static uint32_t message_bound(const struct told *told, const struct program *program,
	const struct move *move, const struct place *place)
{
	const struct wait *wait = &program->waits[move->wait_first];
	const struct wait *last = wait + move->wait_count;

	while (wait < last && (wait->kind != WAIT_DATA || wait->rank != place->rank))
		wait++;
	assert(wait < last);
	return move_at(told, wait->rank, wait->lane, wait->position - 1)->bound;
}

/* The highest chunk of the buffers, and of what came with messages. */
static uint32_t bound_find(
	const struct told *told, const struct program *program, const struct move *move)
{
	uint32_t bound = 0, last = move->input_first + move->input_count;

	for (uint32_t i = move->output_first; i < last; i++) {
		const struct place *place = &program->places[i];
		bool is_message = place->space >= PLACE_STAGE && i >= move->input_first;
		uint32_t chunk = 0;

		if (place->space == PLACE_IN || place->space == PLACE_OUT)
			chunk = place->chunk;
		else if (is_message)
			chunk = message_bound(told, program, move, place);
		bound = chunk > bound ? chunk : bound;
	}
	return bound;
}

/* One look at every move; false when nothing was new. Bounds only grow, and no further
 * than the chunks there are. */
static bool bounds_grow(struct told *told, struct program *const *programs)
{
	bool is_new = false;

	for (uint32_t r = 0; r < told->rank_count; r++)
		for (uint32_t l = 0; l < programs[r]->lane_count; l++)
			for (uint32_t m = 0; m < programs[r]->lanes[l].count; m++) {
				struct told_move *move = move_at(told, r, l, m);
				uint32_t bound = bound_find(told, programs[r],
					&programs[r]->lanes[l].moves[m]);

				is_new = is_new || bound != move->bound;
				move->bound = bound;
			}
	return is_new;
}

static enum err told_room(struct told *told, struct program *const *programs)
{
	told->lanes = calloc(
		(size_t)told->rank_count * SCHED_LANES_MAX, sizeof(*told->lanes));
	if (!told->lanes)
		return err_set(
			ERR_SYSTEM, "no memory to look at %u programs", told->rank_count);
	for (uint32_t i = 0; i < told->rank_count * SCHED_LANES_MAX; i++) {
		uint32_t count =
			programs[i / SCHED_LANES_MAX]->lanes[i % SCHED_LANES_MAX].count;

		told->lanes[i] = calloc(count + 1u, sizeof(**told->lanes));
		if (!told->lanes[i])
			return err_set(
				ERR_SYSTEM, "no memory to look at %u moves", count);
	}
	return OK;
}

enum err told_create(struct program *const *programs, struct told **told)
{
	struct told *made = calloc(1, sizeof(*made));
	enum err e;

	if (!made)
		return err_set(ERR_SYSTEM, "no memory to look at programs");
	made->rank_count = programs[0]->rank_count;
	e = told_room(made, programs);
	if (e) {
		told_destroy(made);
		return e;
	}
	for (uint32_t r = 0; r < made->rank_count; r++)
		for (uint32_t i = 0; i < programs[r]->wait_count; i++)
			note_wait(made, programs, programs[r], &programs[r]->waits[i]);
	while (coll_is_vector(programs[0]->coll) && bounds_grow(made, programs))
		continue;
	*told = made;
	return OK;
}

void told_destroy(struct told *told)
{
	if (!told)
		return;
	for (uint32_t i = 0; told->lanes && i < told->rank_count * SCHED_LANES_MAX; i++)
		free(told->lanes[i]);
	free(told->lanes);
	free(told);
}
