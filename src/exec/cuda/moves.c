#include "exec/cuda/moves.h"

#include <stdlib.h>
#include <string.h>

#include "sched/lower.h"

/* Does this move carry bytes, or does it only tell somebody that they are there? */
static bool is_work(const struct move *move)
{
	return move->output_count > 0 && move->input_count > 0;
}

static void count_all(struct program *const *programs, uint32_t rank_count,
	uint32_t *move_count, uint32_t *place_count)
{
	*move_count = *place_count = 0;
	for (uint32_t r = 0; r < rank_count; r++)
		for (uint32_t l = 0; l < programs[r]->lane_count; l++)
			for (uint32_t m = 0; m < programs[r]->lanes[l].count; m++) {
				const struct move *move = &programs[r]->lanes[l].moves[m];

				if (!is_work(move))
					continue;
				++*move_count;
				*place_count += move->input_count + move->output_count;
			}
}

static enum err place_copy(const struct place *from, struct dev_place *to, bool is_input)
{
	if (from->space != PLACE_IN && (from->space != PLACE_OUT || is_input))
		return err_set(ERR_INTERNAL,
			"a direct schedule that reads or writes more than IN and OUT");
	*to = (struct dev_place){
		.rank = from->rank, .space = from->space, .chunk = from->chunk};
	return OK;
}

static enum err move_copy(const struct program *program, const struct move *move,
	struct dev_move *to, struct dev_place *places, uint32_t *used)
{
	enum err e = OK;

	*to = (struct dev_move){.input_first = *used,
		.input_count = (uint16_t)move->input_count,
		.output_first = *used + move->input_count,
		.output_count = (uint16_t)move->output_count,
		.count = move->count,
		.op = move->op};
	for (uint32_t i = 0; i < move->input_count && !e; i++)
		e = place_copy(&program->places[move->input_first + i],
			&places[(*used)++], true);
	for (uint32_t i = 0; i < move->output_count && !e; i++)
		e = place_copy(&program->places[move->output_first + i],
			&places[(*used)++], false);
	return e;
}

static enum err moves_write(struct program *const *programs, uint32_t rank_count,
	struct dev_moves **moves, size_t *bytes)
{
	uint32_t move_count, place_count, move_used = 0, place_used = 0;
	struct dev_moves *head;
	struct dev_move *list;
	struct dev_place *places;
	enum err e = OK;

	count_all(programs, rank_count, &move_count, &place_count);
	*bytes = sizeof(*head) + move_count * sizeof(*list) +
		 place_count * sizeof(*places);
	head = calloc(1, *bytes);
	if (!head)
		return err_set(ERR_SYSTEM, "no memory for a list of moves");
	*head = (struct dev_moves){.rank_count = rank_count,
		.move_count = move_count,
		.place_count = place_count,
		.moves_at = sizeof(*head),
		.places_at = (uint32_t)(sizeof(*head) + move_count * sizeof(*list))};
	list = (struct dev_move *)((char *)head + head->moves_at);
	places = (struct dev_place *)((char *)head + head->places_at);
	for (uint32_t r = 0; r < rank_count && !e; r++) {
		head->first[r] = move_used;
		for (uint32_t l = 0; l < programs[r]->lane_count; l++)
			for (uint32_t m = 0; m < programs[r]->lanes[l].count && !e; m++) {
				const struct move *move = &programs[r]->lanes[l].moves[m];

				if (is_work(move))
					e = move_copy(programs[r], move,
						&list[move_used++], places, &place_used);
			}
	}
	head->first[rank_count] = move_used;
	*moves = head;
	if (e)
		free(head);
	return e;
}

enum err moves_flatten(enum coll coll, uint32_t rank_count, uint32_t root,
	struct dev_moves **moves, size_t *bytes)
{
	struct program *programs[MOVES_RANKS_MAX] = {NULL};
	struct lower_args args = {.kind = catalog_find(coll, "direct"),
		.rank_count = rank_count,
		.root = root,
		.mode = MODE_DIRECT,
		.depth = 1};
	enum err e = OK;

	if (!args.kind || rank_count > MOVES_RANKS_MAX)
		return err_set(ERR_USAGE,
			"%s of %u ranks on one GPU; at most %d can share it",
			coll_name(coll), rank_count, MOVES_RANKS_MAX);
	for (args.rank = 0; args.rank < rank_count && !e; args.rank++)
		e = program_lower(&args, &programs[args.rank]);
	if (!e)
		e = moves_write(programs, rank_count, moves, bytes);
	for (uint32_t r = 0; r < rank_count; r++)
		program_destroy(programs[r]);
	return e;
}
