/*
 * buffers.h - the send and receive buffers of one rank, with guards around them.
 *
 * A buffer is filled and compared as runs of a pattern of value.h: element j is element
 * (first + j) modulo PERIOD of it.
 */
#ifndef MULTI_BUFFERS_H
#define MULTI_BUFFERS_H

#include <stdbool.h>
#include <stddef.h>

#include "value.h"

enum memory { MEMORY_NCCL, MEMORY_MALLOC, MEMORY_UNALIGNED, MEMORY_MIXED, MEMORY_COUNT };

struct buffer {
	char *base; /* of the allocation, owned */
	char *data; /* between the guards */
	size_t room, bytes;
	bool is_nccl;
};

/* `rank` picks the kind where they are mixed. */
void buffer_create(
	struct buffer *buffer, enum memory memory, int rank, size_t room, size_t shift);
void buffer_destroy(struct buffer *buffer);

/* Use the first `bytes` of it from now on: all of it, and its guards, become filler. */
void buffer_reset(struct buffer *buffer, size_t bytes);

/* Are the guards, or all of it, still filler? */
bool buffer_guards_hold(const struct buffer *buffer);
bool buffer_is_untouched(const struct buffer *buffer);

void pattern_fill(
	void *data, const void *pattern, size_t size, size_t first, size_t count);
bool pattern_matches(
	const void *data, const void *pattern, size_t size, size_t first, size_t count);

#endif
