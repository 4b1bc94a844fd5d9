/*
 * foreign_move.c - fetch a block of every foreign input, fold, deliver the result.
 *
 * A plain copy needs no bounce: the kernel puts it where it belongs. A fold works in
 * blocks that stay in the second-level cache between the kernel's copy and ours.
 */
#include "exec/host/foreign_move.h"

#include "link/foreign.h"

enum { FOREIGN_BLOCK = 64 << 10 };

size_t foreign_bounce_bytes(uint32_t in_count)
{
	return (in_count + 1u) * (size_t)FOREIGN_BLOCK;
}

static enum err deliver(const struct fold *fold, const struct foreign *foreign,
	uint32_t i, const char *from, size_t bytes)
{
	if (foreign->out_pid[i])
		return foreign_write(foreign->out_pid[i], from, fold->out[i], bytes);
	if (fold->out[i] != from)
		kernel_copy(fold->out[i], from, bytes);
	return OK;
}

/* One input, stored as it is: straight from process to process where only one of the
 * ends is foreign. */
static enum err foreign_copy(
	const struct fold *fold, const struct foreign *foreign, size_t bytes)
{
	const char *from = fold->in[0].data;
	uint32_t first = 0;
	enum err e = OK;

	if (foreign->in_pid[0]) {
		e = foreign_read(foreign->in_pid[0], fold->out[0], from, bytes);
		from = fold->out[0];
		first = 1;
	}
	for (uint32_t i = first; i < fold->out_count && !e; i++)
		e = deliver(fold, foreign, i, from, bytes);
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

enum err foreign_fold(
	struct fold *fold, const struct foreign *foreign, size_t bytes, char *bounce)
{
	bool plain = fold->in_count == 1 && !fold->any_scaled && !fold->divisor;
	char *result = bounce + fold->in_count * (size_t)FOREIGN_BLOCK;
	struct fold block = *fold;
	enum err e = OK;

	if (plain && !(foreign->in_pid[0] && foreign->out_pid[0]))
		return foreign_copy(fold, foreign, bytes);
	block.out_count = 1;
	block.streaming = false;
	for (size_t at = 0; at < bytes && !e; at += FOREIGN_BLOCK) {
		size_t size = bytes - at < FOREIGN_BLOCK ? bytes - at : FOREIGN_BLOCK;

		for (uint32_t i = 0; i < fold->in_count; i++)
			block.in[i].data = fold->in[i].data + at;
		e = block_fetch(&block, foreign, size, bounce);
		block.out[0] = foreign->out_pid[0] ? result : fold->out[0] + at;
		if (!e)
			fold_run(&block, size);
		for (uint32_t i = 0; i < fold->out_count && !e; i++) {
			fold->out[i] += at;
			e = deliver(fold, foreign, i, block.out[0], size);
			fold->out[i] -= at;
		}
	}
	return e;
}
