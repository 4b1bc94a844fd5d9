/*
 * move.c - turns the places of a move into addresses and folds what is there.
 *
 * The arithmetic is in fold.c.
 */
#include "exec/host/move.h"

#include "exec/host/foreign_move.h"
#include "exec/host/remote.h"

static inline char *stage_base(const struct host_call *call, uint32_t rank)
{
	const struct peers *peers = call->engine->peers;

	if (call->shape->is_inline)
		return (char *)peer_card(peers, rank, call->number)->payload;
	return call->plan->eager ? peer_eager(peers, rank, call->number)
				 : peer_bulk(peers, rank);
}

/* Address of chunk `j` of a place, tile applied. */
static inline __attribute__((always_inline)) char *place_pointer(
	const struct host_call *call, const struct place *place, uint32_t tile,
	uint32_t j)
{
	const struct shape *shape = call->shape;
	const struct host_engine *engine = call->engine;

	switch (place->space) {
	case PLACE_IN:
		return engine->memory.buffers[place->rank].in +
		       place_offset(shape, place, tile, j);
	case PLACE_OUT:
		return engine->memory.buffers[place->rank].out +
		       place_offset(shape, place, tile, j);
	case PLACE_TMP:
		return engine->memory.scratch + place_offset(shape, place, tile, j);
	case PLACE_INBOX:
	case PLACE_INBOX_IN:
		return remote_inbox(engine, place) + j * shape->staged_bytes;
	default:
		return stage_base(call, place->rank) +
		       place_slot(shape, place, tile) * shape->slot_bytes +
		       j * shape->staged_bytes;
	}
}

char *host_place(const struct host_call *call, const struct place *place, uint32_t tile,
	uint32_t j)
{
	return place_pointer(call, place, tile, j);
}

/* Which operands are scaled, and by what: each rank's input by its own number. */
static void fold_scale(
	struct fold *fold, const struct host_call *call, const struct place *places)
{
	for (uint32_t i = 0; i < fold->in_count; i++) {
		struct operand *in = &fold->in[i];

		in->scaled = places[i].space == PLACE_IN ||
			     places[i].space == PLACE_INBOX_IN;
		in->scalar = call->engine->memory.buffers[places[i].rank].scalar;
		fold->any_scaled = fold->any_scaled || in->scaled;
	}
}

static void fold_load(struct fold *fold, const struct host_call *call,
	const struct move *move, uint32_t tile, uint32_t j)
{
	const struct place *places = call->shape->program->places;

	for (uint32_t i = 0; i < move->input_count; i++)
		fold->in[i].data = place_pointer(
			call, &places[move->input_first + i], tile, j);
	fold->any_scaled = false;
	if (call->rule.scaled)
		fold_scale(fold, call, &places[move->input_first]);
	for (uint32_t i = 0; i < move->output_count; i++)
		fold->out[i] = place_pointer(
			call, &places[move->output_first + i], tile, j);
}

static uint32_t place_pid(const struct host_call *call, const struct place *place)
{
	const struct host_buffers *buffers = &call->engine->memory.buffers[place->rank];
	bool foreign = (place->space == PLACE_IN && buffers->in_foreign) ||
		       (place->space == PLACE_OUT && buffers->out_foreign);

	return foreign ? peer_status(call->engine->peers, place->rank)->pid : 0;
}

static enum err move_foreign(struct host_call *call, const struct move *move,
	const struct fold *fold, size_t bytes)
{
	const struct place *places = call->shape->program->places;
	struct foreign foreign;

	for (uint32_t i = 0; i < move->input_count; i++)
		foreign.in_pid[i] = place_pid(call, &places[move->input_first + i]);
	return foreign_fold(fold, &foreign, bytes, call->engine->memory.bounce);
}

bool host_move_is_copy(const struct host_call *call, const struct move *move)
{
	return move->input_count == 1 && move->output_count == 1 && !call->rule.scaled &&
	       !call->foreign && !(move->op & OP_POST && call->rule.divisor);
}

/* What goes on to another host is read again at once, by this rank or its neighbour. */
static bool is_streaming(
	const struct host_call *call, const struct move *move, bool folds)
{
	return call->streaming && !(call->engine->remote && (folds || move->sent_count));
}

static void move_copy(struct host_call *call, const struct move *move, uint32_t tile)
{
	const struct place *places = call->shape->program->places;
	bool streaming = is_streaming(call, move, false);

	for (uint32_t j = 0; j < move->count; j++) {
		size_t bytes = move_piece(call->shape, move, tile, j);
		const char *in = place_pointer(call, &places[move->input_first], tile, j);
		char *out = place_pointer(call, &places[move->output_first], tile, j);

		if (bytes && in != out)
			fold_copy(out, in, bytes, streaming);
	}
}

static __attribute__((noinline)) enum err move_fold(
	struct host_call *call, const struct move *move, uint32_t tile)
{
	struct fold fold;
	enum err e = OK;

	fold.kernel = call->rule.kernel;
	fold.width = dtype_size(call->spec->key.type);
	fold.divisor = move->op & OP_POST ? call->rule.divisor : 0;
	fold.streaming = is_streaming(call, move, true);
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

enum err host_move(struct host_call *call, const struct move *move, uint32_t tile)
{
	if (!host_move_is_copy(call, move))
		return move_fold(call, move, tile);
	move_copy(call, move, tile);
	return OK;
}

/* Lines that are missed one after the other cost more than all the rest of a small call.
 * Between two ranks there is only one, and it is needed at once. All ranks' parts of the
 * board are laid out alike, so what lies where is counted from our own card. */
void host_fetch(const struct host_call *call)
{
	const struct program *program = call->shape->program;
	const struct peers *peers = call->engine->peers;
	ptrdiff_t stage = stage_base(call, program->rank) -
			  (const char *)peer_card(peers, program->rank, call->number);

	if (program->mode != MODE_STAGED || program->rank_count <= 2 ||
		program->wait_count + 1 < program->rank_count)
		return;
	for (uint32_t i = 0; i < program->place_count; i++) {
		const struct place *place = &program->places[i];
		const char *card = (const char *)peer_card(
			peers, place->rank, call->number);

		if (place->space != PLACE_STAGE || place->rank == program->rank)
			continue;
		__builtin_prefetch(card);
		__builtin_prefetch(
			card + stage +
			place_slot(call->shape, place, 0) * call->shape->slot_bytes);
	}
}
