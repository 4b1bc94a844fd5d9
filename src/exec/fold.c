/*
 * fold.c - where the time goes: everything else is arrangement.
 *
 * Folding works in blocks that stay in the first-level cache: a block is folded into the
 * first output and then copied to the others while it is hot. All inputs of a block are
 * read before any other output of it is written, so an output may be an input.
 */
#include "exec/fold.h"

#include <stdalign.h>
#include <string.h>

enum { BLOCK_BYTES = 16 << 10, COPY_FEW = 16 };

void fold_rule(struct fold_rule *rule, const struct plan_key *key, enum redop op,
	union kernel_scalar scalar, uint32_t rank_count)
{
	bool is_float = dtype_is_float(key->type);

	rule->kernel = NULL;
	rule->scaled = false;
	rule->scalar = scalar;
	rule->divisor = 0;
	if (!coll_reduces(key->coll))
		return;
	rule->kernel = kernel_get(key->type, op);
	rule->scaled = op == REDOP_PREMUL || (op == REDOP_AVG && is_float);
	if (op == REDOP_AVG && is_float)
		rule->scalar = kernel_reciprocal(key->type, rank_count);
	if (op == REDOP_AVG && !is_float)
		rule->divisor = rank_count;
}

size_t move_piece_of_many(
	const struct shape *shape, const struct move *move, uint32_t tile, uint32_t j)
{
	const struct place *places = shape->program->places;
	size_t bytes = shape_piece(shape, 0, tile);
	uint32_t first = move->output_first;
	uint32_t last = move->input_first + move->input_count;

	if (!shape->uneven)
		return bytes;
	/* scratch and slots take what they get */
	for (uint32_t i = first; i < last; i++) {
		size_t piece;

		if (places[i].space == PLACE_TMP || places[i].space == PLACE_STAGE)
			continue;
		piece = message_piece(shape, places[i].chunk, tile, j);
		bytes = piece < bytes ? piece : bytes;
	}
	return bytes;
}

static void fold_plain(const struct fold *fold, char *dst, size_t offset, size_t elems)
{
	const struct kernel *kernel = fold->kernel;
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
	const struct kernel *kernel = fold->kernel;
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

/* At most 16 bytes, by two loads and two stores that may overlap. */
static void copy_few(char *dst, const char *src, size_t bytes)
{
	uint64_t first, last;
	uint32_t head, tail;

	if (bytes >= sizeof(first)) {
		memcpy(&first, src, sizeof(first));
		memcpy(&last, src + bytes - sizeof(last), sizeof(last));
		memcpy(dst, &first, sizeof(first));
		memcpy(dst + bytes - sizeof(last), &last, sizeof(last));
	} else if (bytes >= sizeof(head)) {
		memcpy(&head, src, sizeof(head));
		memcpy(&tail, src + bytes - sizeof(tail), sizeof(tail));
		memcpy(dst, &head, sizeof(head));
		memcpy(dst + bytes - sizeof(tail), &tail, sizeof(tail));
	} else {
		for (size_t i = 0; i < bytes; i++)
			dst[i] = src[i];
	}
}

void fold_copy(char *dst, const char *src, size_t bytes, bool streaming)
{
	if (bytes <= COPY_FEW) {
		copy_few(dst, src, bytes);
		return;
	}
	if (streaming)
		kernel_copy_stream(dst, src, bytes);
	else
		kernel_copy(dst, src, bytes);
}

static void fold_block(const struct fold *fold, char *dst, size_t at, size_t bytes)
{
	size_t elems = bytes / fold->width;

	if (fold->any_scaled)
		fold_scaled(fold, dst, at, elems);
	else if (fold->in_count > 1)
		fold_plain(fold, dst, at, elems);
	else if (dst != fold->in[0].data + at)
		memcpy(dst, fold->in[0].data + at, bytes);
	if (fold->divisor)
		fold->kernel->divide(dst, fold->divisor, elems);
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

static void copy_run(const struct fold *fold, size_t bytes)
{
	for (uint32_t i = 0; i < fold->out_count; i++)
		if (fold->out[i] != fold->in[0].data)
			fold_copy(fold->out[i], fold->in[0].data, bytes, fold->streaming);
}

/* Through a block of our own. Out of line: only who needs that much stack pays for it. */
static __attribute__((noinline)) void fold_aside(const struct fold *fold, size_t bytes)
{
	alignas(64) char hot[BLOCK_BYTES];

	for (size_t at = 0; at < bytes; at += BLOCK_BYTES) {
		size_t block = bytes - at < BLOCK_BYTES ? bytes - at : BLOCK_BYTES;

		fold_block(fold, hot, at, block);
		for (uint32_t i = 0; i < fold->out_count; i++)
			fold_copy(fold->out[i] + at, hot, block, fold->streaming);
	}
}

static void fold_here(const struct fold *fold, size_t bytes)
{
	for (size_t at = 0; at < bytes; at += BLOCK_BYTES) {
		size_t block = bytes - at < BLOCK_BYTES ? bytes - at : BLOCK_BYTES;
		char *dst = fold->out[0] + at;

		fold_block(fold, dst, at, block);
		for (uint32_t i = 1; i < fold->out_count; i++)
			fold_copy(fold->out[i] + at, dst, block, fold->streaming);
	}
}

void fold_run(const struct fold *fold, size_t bytes)
{
	if (fold->in_count == 1 && !fold->any_scaled && !fold->divisor)
		copy_run(fold, bytes);
	else if (fold->streaming || fold_overwrites(fold))
		fold_aside(fold, bytes);
	else
		fold_here(fold, bytes);
}
