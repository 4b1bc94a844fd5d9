/*
 * foreign_move.c - fetch a block of every foreign input, fold, store the result.
 *
 * A plain copy needs no bounce: the kernel puts it where it belongs. A fold works in
 * blocks that stay in the second-level cache between the kernel's copy and ours.
 */
#include "exec/host/foreign_move.h"

#include "link/foreign.h"

enum { FOREIGN_BLOCK = 64 << 10 };

size_t foreign_bounce_bytes(uint32_t in_count)
{
	return in_count * (size_t)FOREIGN_BLOCK;
}

/* One input, stored as it is. */
static enum err foreign_copy(
	const struct fold *fold, const struct foreign *foreign, size_t bytes)
{
	enum err e = foreign_read(
		foreign->in_pid[0], fold->out[0], fold->in[0].data, bytes);

	for (uint32_t i = 1; i < fold->out_count && !e; i++)
		kernel_copy(fold->out[i], fold->out[0], bytes);
	return e;
}

/* Fetch `bytes` of every foreign input of `block` into the bounce; the others stay. */
static enum err block_fetch(
	struct fold *block, const struct foreign *foreign, size_t bytes, char *bounce)
{
	enum err e = OK;

	for (uint32_t i = 0; i < block->in_count && !e; i++) {
		if (!foreign->in_pid[i])
			continue;
		e = foreign_read(foreign->in_pid[i], bounce, block->in[i].data, bytes);
		block->in[i].data = bounce;
		bounce += FOREIGN_BLOCK;
	}
	return e;
}

enum err foreign_fold(const struct fold *fold, const struct foreign *foreign,
	size_t bytes, char *bounce)
{
	bool plain = fold->in_count == 1 && !fold->any_scaled && !fold->divisor;
	struct fold block = *fold;
	enum err e = OK;

	if (plain && foreign->in_pid[0])
		return foreign_copy(fold, foreign, bytes);
	for (size_t at = 0; at < bytes && !e; at += FOREIGN_BLOCK) {
		size_t size = bytes - at < FOREIGN_BLOCK ? bytes - at : FOREIGN_BLOCK;

		for (uint32_t i = 0; i < fold->in_count; i++)
			block.in[i].data = fold->in[i].data + at;
		for (uint32_t i = 0; i < fold->out_count; i++)
			block.out[i] = fold->out[i] + at;
		e = block_fetch(&block, foreign, size, bounce);
		if (!e)
			fold_run(&block, size);
	}
	return e;
}
