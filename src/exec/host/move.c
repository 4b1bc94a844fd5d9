/*
 * move.c - where the time goes: everything else is arrangement.
 *
 * Folding works in blocks that stay in the first-level cache: a block is folded into the
 * first output and then copied to the others while it is hot. All inputs of a block are
 * read before any output of that block is written, so outputs may be inputs (in place).
 */
#include "exec/host/move.h"

#include <string.h>

enum { BLOCK_BYTES = 16 << 10, INPUTS_MAX = PROG_PEERS_MAX + 2 };

struct operand {
	const char *data;
	bool scaled;
	union kernel_scalar scalar;
};

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
	uint64_t message = (uint64_t)tile * place->period + place->chunk;
	uint64_t slot = place->slot + message % shape->program->depth;

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
	size_t offset = (place->chunk + (size_t)j) * shape->chunk_bytes +
			(size_t)tile * shape->tile_bytes;

	switch (place->space) {
	case PLACE_IN:
		return buffers->in + offset;
	case PLACE_OUT:
		return buffers->out + offset;
	case PLACE_TMP:
		return call->engine->scratch +
		       (place->chunk + (size_t)j) * shape->tile_bytes;
	default:
		return stage_pointer(call, place, tile) +
		       j * (shape->inline_bytes ? shape->inline_bytes
						: shape->tile_bytes);
	}
}

/* The shortest piece any buffer of the move has; scratch and slots take what they get. */
static size_t move_bytes(
	const struct host_call *call, const struct move *move, uint32_t tile, uint32_t j)
{
	const struct place *places = call->shape->program->places;
	size_t bytes = shape_piece(call->shape, 0, tile);
	uint32_t first = move->output_first;
	uint32_t last = move->input_first + move->input_count;

	for (uint32_t i = first; i < last; i++) {
		size_t piece;

		if (places[i].space != PLACE_IN && places[i].space != PLACE_OUT)
			continue;
		piece = shape_piece(call->shape, places[i].chunk + j, tile);
		bytes = piece < bytes ? piece : bytes;
	}
	return bytes;
}

struct fold {
	struct host_call *call;
	struct operand in[INPUTS_MAX];
	char *out[INPUTS_MAX];
	uint32_t in_count, out_count;
	bool any_scaled, post;
};

static void fold_plain(const struct fold *fold, char *dst, size_t offset, size_t elems)
{
	const struct kernel *kernel = fold->call->kernel;
	const struct operand *in = fold->in;
	const void *four[4];
	uint32_t i = 0;

	if (fold->in_count >= 4) {
		for (; i < 4; i++)
			four[i] = in[i].data + offset;
		kernel->fold4(dst, four, elems);
		for (; i + 3 <= fold->in_count; i += 3) {
			four[0] = dst;
			for (uint32_t k = 0; k < 3; k++)
				four[k + 1] = in[i + k].data + offset;
			kernel->fold4(dst, four, elems);
		}
	} else {
		kernel->fold(dst, in[0].data + offset, in[1].data + offset, elems);
		i = 2;
	}
	for (; i < fold->in_count; i++)
		kernel->fold(dst, dst, in[i].data + offset, elems);
}

static void fold_scaled(const struct fold *fold, char *dst, size_t offset, size_t elems)
{
	const struct kernel *kernel = fold->call->kernel;
	const struct operand *in = fold->in;
	const char *acc = in[0].data + offset;

	if (in[0].scaled) {
		kernel->scale(dst, acc, in[0].scalar, elems);
		acc = dst;
	}
	for (uint32_t i = 1; i < fold->in_count; i++) {
		if (in[i].scaled)
			kernel->fold_scaled(
				dst, acc, in[i].data + offset, in[i].scalar, elems);
		else
			kernel->fold(dst, acc, in[i].data + offset, elems);
		acc = dst;
	}
}

static void put(const struct fold *fold, char *dst, const char *src, size_t bytes)
{
	if (fold->call->streaming)
		kernel_copy_stream(dst, src, bytes);
	else
		kernel_copy(dst, src, bytes);
}

static void fold_block(const struct fold *fold, char *dst, size_t at, size_t bytes)
{
	const struct host_call *call = fold->call;
	size_t elems = bytes / dtype_size(call->spec.key.type);

	if (fold->any_scaled)
		fold_scaled(fold, dst, at, elems);
	else if (fold->in_count > 1)
		fold_plain(fold, dst, at, elems);
	else if (dst != fold->in[0].data + at)
		memcpy(dst, fold->in[0].data + at, bytes);
	if (fold->post && call->spec.op == REDOP_AVG && call->kernel->divide)
		call->kernel->divide(dst, call->engine->rank_count, elems);
}

/* Is the first output also an input that is read only after that output was begun? */
static bool fold_overwrites(const struct fold *fold)
{
	uint32_t first = fold->any_scaled ? 1 : fold->in_count >= 4 ? 4 : 2;

	for (uint32_t i = first; i < fold->in_count; i++)
		if (fold->in[i].data == fold->out[0])
			return true;
	return false;
}

static void fold_run(const struct fold *fold, size_t bytes)
{
	bool aside = fold->call->streaming || fold_overwrites(fold);
	alignas(64) char hot[BLOCK_BYTES];

	for (size_t at = 0; at < bytes; at += BLOCK_BYTES) {
		size_t block = bytes - at < BLOCK_BYTES ? bytes - at : BLOCK_BYTES;
		char *dst = aside ? hot : fold->out[0] + at;

		fold_block(fold, dst, at, block);
		for (uint32_t i = aside ? 0 : 1; i < fold->out_count; i++)
			put(fold, fold->out[i] + at, dst, block);
	}
}

static void copy_run(const struct fold *fold, size_t bytes)
{
	for (uint32_t i = 0; i < fold->out_count; i++)
		if (fold->out[i] != fold->in[0].data)
			put(fold, fold->out[i], fold->in[0].data, bytes);
}

static void fold_load(
	struct fold *fold, const struct move *move, uint32_t tile, uint32_t j)
{
	const struct host_call *call = fold->call;
	const struct place *places = call->shape->program->places;

	fold->any_scaled = false;
	for (uint32_t i = 0; i < move->input_count; i++) {
		const struct place *place = &places[move->input_first + i];
		struct operand *in = &fold->in[i];

		in->data = place_pointer(call, place, tile, j);
		in->scaled = call->scaled && place->space == PLACE_IN;
		in->scalar = call->engine->buffers[place->rank].scalar;
		fold->any_scaled = fold->any_scaled || in->scaled;
	}
	for (uint32_t i = 0; i < move->output_count; i++)
		fold->out[i] = place_pointer(
			call, &places[move->output_first + i], tile, j);
}

void host_move(struct host_call *call, const struct move *move, uint32_t tile)
{
	struct fold fold;

	fold.call = call;
	fold.in_count = move->input_count;
	fold.out_count = move->output_count;
	fold.post = move->op & OP_POST && call->kernel;
	for (uint32_t j = 0; j < move->count; j++) {
		size_t bytes = move_bytes(call, move, tile, j);

		if (!bytes)
			continue;
		fold_load(&fold, move, tile, j);
		if (fold.in_count == 1 && !fold.any_scaled && !fold.post)
			copy_run(&fold, bytes);
		else
			fold_run(&fold, bytes);
	}
}
