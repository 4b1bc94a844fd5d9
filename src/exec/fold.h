/*
 * fold.h - the bytes of one move: where they lie, how many, and their arithmetic.
 *
 * The engines that run in C share it, so a plan gives the same bytes on the host and in
 * the simulation. An engine says where the spaces of each rank begin; everything after
 * that is here.
 */
#ifndef EXEC_FOLD_H
#define EXEC_FOLD_H

#include "exec/host/kernel.h"
#include "plan/plan.h"

enum { FOLD_INPUTS_MAX = PROG_PEERS_MAX + 2 };

struct operand {
	const char *data;
	bool scaled;
	union kernel_scalar scalar;
};

struct fold {
	const struct kernel *kernel; /* NULL when nothing is folded */
	size_t width;		     /* bytes of an element */
	uint32_t divisor;	     /* divide the result by it; 0: do not */
	bool any_scaled;	     /* of the operands */
	bool streaming;		     /* store past the caches */
	uint32_t in_count, out_count;
	struct operand in[FOLD_INPUTS_MAX];
	char *out[FOLD_INPUTS_MAX];
};

/* How a collective folds, from its operator: set once per call. */
struct fold_rule {
	const struct kernel *kernel; /* NULL when nothing is folded */
	bool scaled;		     /* IN is scaled when read */
	union kernel_scalar scalar;  /* .. by this */
	uint32_t divisor;	     /* POST divides by it; 0: it does nothing */
};

/* `scalar` is REDOP_PREMUL's; the average's is made here. */
void fold_rule(struct fold_rule *rule, const struct plan_key *key, enum redop op,
	union kernel_scalar scalar, uint32_t rank_count);

/* Bytes of chunk `j` of a move in this tile: the shortest piece any buffer of it has. */
size_t move_piece_of_many(
	const struct shape *shape, const struct move *move, uint32_t tile, uint32_t j);

static inline size_t move_piece(
	const struct shape *shape, const struct move *move, uint32_t tile, uint32_t j)
{
	if (shape->is_whole)
		return shape->chunk_bytes;
	return move_piece_of_many(shape, move, tile, j);
}

/* Bytes of part `j` of a message between hosts, whose first part is of `chunk` of the
 * vector, or CHUNK_ANY (struct sent, or an INBOX place): the same at both ends. */
static inline size_t message_piece(
	const struct shape *shape, uint32_t chunk, uint32_t tile, uint32_t j)
{
	return shape_piece(shape, chunk == CHUNK_ANY ? 0 : chunk + j, tile);
}

/* Slot of a STAGE place in its rank's stage. */
static inline uint64_t place_slot(
	const struct shape *shape, const struct place *place, uint32_t tile)
{
	uint64_t message = (uint64_t)tile * place->period + place->chunk;

	/* a division takes longer than all the rest of a small message */
	if (shape->program->depth == 1)
		return place->slot;
	return place->slot + message % shape->program->depth;
}

/* Bytes from the beginning of IN, OUT or TMP to chunk `j` of a place, tile applied. */
static inline size_t place_offset(
	const struct shape *shape, const struct place *place, uint32_t tile, uint32_t j)
{
	size_t chunk = place->chunk + (size_t)j;

	if (place->space == PLACE_TMP)
		return chunk * shape->tile_bytes;
	return chunk * shape->chunk_bytes + shape_tile_offset(shape, tile);
}

/* Copy bytes as they are; `streaming` stores past the caches. */
void fold_copy(char *dst, const char *src, size_t bytes, bool streaming);

/* Fold the inputs, from the left, into every output. An output may be exactly one of the
 * inputs: that is what in place needs. */
void fold_run(const struct fold *fold, size_t bytes);

#endif
