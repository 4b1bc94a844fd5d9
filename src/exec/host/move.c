/*
 * move.c - turns the places of a move into addresses and folds what is there.
 *
 * The arithmetic is in fold.c.
 */
#include "exec/host/move.h"

#include "exec/host/foreign_move.h"

static char *stage_base(const struct host_call *call, uint32_t rank)
{
	const struct board *board = call->engine->board;

	return call->plan->eager ? board_eager(board, rank, call->number)
				 : board_bulk(board, rank);
}

static char *stage_pointer(
	const struct host_call *call, const struct place *place, uint32_t tile)
{
	const struct shape *shape = call->shape;
	uint64_t slot = place_slot(shape, place, tile);

	if (shape->inline_bytes)
		return (char *)board_card(call->engine->board, place->rank, call->number)
			       ->payload +
		       slot * shape->program->slot_chunks * shape->inline_bytes;
	return stage_base(call, place->rank) + slot * shape->slot_bytes;
}

/* Address of chunk `j` of a place, tile applied. */
static char *place_pointer(const struct host_call *call, const struct place *place,
	uint32_t tile, uint32_t j)
{
	const struct shape *shape = call->shape;
	const struct host_buffers *buffers = &call->engine->buffers[place->rank];

	switch (place->space) {
	case PLACE_IN:
		return buffers->in + place_offset(shape, place, tile, j);
	case PLACE_OUT:
		return buffers->out + place_offset(shape, place, tile, j);
	case PLACE_TMP:
		return call->engine->scratch + place_offset(shape, place, tile, j);
	default:
		return stage_pointer(call, place, tile) +
		       j * (shape->inline_bytes ? shape->inline_bytes
						: shape->tile_bytes);
	}
}

static void fold_load(struct fold *fold, const struct host_call *call,
	const struct move *move, uint32_t tile, uint32_t j)
{
	const struct place *places = call->shape->program->places;

	fold->any_scaled = false;
	for (uint32_t i = 0; i < move->input_count; i++) {
		const struct place *place = &places[move->input_first + i];
		struct operand *in = &fold->in[i];

		in->data = place_pointer(call, place, tile, j);
		in->scaled = call->rule.scaled && place->space == PLACE_IN;
		in->scalar = call->engine->buffers[place->rank].scalar;
		fold->any_scaled = fold->any_scaled || in->scaled;
	}
	for (uint32_t i = 0; i < move->output_count; i++)
		fold->out[i] = place_pointer(
			call, &places[move->output_first + i], tile, j);
}

static uint32_t place_pid(const struct host_call *call, const struct place *place)
{
	const struct host_buffers *buffers = &call->engine->buffers[place->rank];
	bool foreign = (place->space == PLACE_IN && buffers->in_foreign) ||
		       (place->space == PLACE_OUT && buffers->out_foreign);

	return foreign ? board_status(call->engine->board, place->rank)->pid : 0;
}

static enum err move_foreign(struct host_call *call, const struct move *move,
	const struct fold *fold, size_t bytes)
{
	const struct place *places = call->shape->program->places;
	struct foreign foreign;

	for (uint32_t i = 0; i < move->input_count; i++)
		foreign.in_pid[i] = place_pid(call, &places[move->input_first + i]);
	return foreign_fold(fold, &foreign, bytes, call->engine->bounce);
}

enum err host_move(struct host_call *call, const struct move *move, uint32_t tile)
{
	struct fold fold;
	enum err e = OK;

	fold.kernel = call->rule.kernel;
	fold.width = dtype_size(call->spec->key.type);
	fold.divisor = move->op & OP_POST ? call->rule.divisor : 0;
	fold.streaming = call->streaming;
	fold.in_count = move->input_count;
	fold.out_count = move->output_count;
	for (uint32_t j = 0; j < move->count && !e; j++) {
		size_t bytes = move_piece(call->shape, move, tile, j);

		if (!bytes)
			continue;
		fold_load(&fold, call, move, tile, j);
		if (call->foreign)
			e = move_foreign(call, move, &fold, bytes);
		else
			fold_run(&fold, bytes);
	}
	return e;
}
