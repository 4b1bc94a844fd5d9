#include "buffers.h"

#include <stdint.h>

#include "ranks.h"

enum { GUARD = 64, FILLER = 0xa5 };

void buffer_create(
	struct buffer *buffer, enum memory memory, int rank, size_t room, size_t shift)
{
	size_t bytes = room + 2 * GUARD + shift;
	void *base;

	*buffer = (struct buffer){.room = room};
	buffer->is_nccl = memory == MEMORY_NCCL || (memory == MEMORY_MIXED && rank % 2);
	if (buffer->is_nccl)
		OK(ncclMemAlloc(&base, bytes));
	else
		base = malloc(bytes);
	HOLDS(base);
	buffer->base = base;
	buffer->data = buffer->base + GUARD + (memory == MEMORY_UNALIGNED ? shift : 0);
}

void buffer_destroy(struct buffer *buffer)
{
	if (buffer->is_nccl)
		OK(ncclMemFree(buffer->base));
	else
		free(buffer->base);
}

void buffer_reset(struct buffer *buffer, size_t bytes)
{
	HOLDS(bytes <= buffer->room);
	buffer->bytes = bytes;
	memset(buffer->data - GUARD, FILLER, bytes + 2 * GUARD);
}

static bool is_filler(const char *data, size_t bytes)
{
	for (size_t i = 0; i < bytes; i++)
		if ((unsigned char)data[i] != FILLER)
			return false;
	return true;
}

bool buffer_guards_hold(const struct buffer *buffer)
{
	return is_filler(buffer->data - GUARD, GUARD) &&
	       is_filler(buffer->data + buffer->bytes, GUARD);
}

bool buffer_is_untouched(const struct buffer *buffer)
{
	return is_filler(buffer->data, buffer->bytes);
}

static size_t run_length(size_t at, size_t count)
{
	return count < PERIOD - at ? count : PERIOD - at;
}

void pattern_fill(
	void *data, const void *pattern, size_t size, size_t first, size_t count)
{
	char *to = data;

	for (size_t at = first % PERIOD; count; at = 0) {
		size_t run = run_length(at, count);

		memcpy(to, (const char *)pattern + at * size, run * size);
		to += run * size;
		count -= run;
	}
}

bool pattern_matches(
	const void *data, const void *pattern, size_t size, size_t first, size_t count)
{
	const char *from = data;

	for (size_t at = first % PERIOD; count; at = 0) {
		size_t run = run_length(at, count);

		if (memcmp(from, (const char *)pattern + at * size, run * size))
			return false;
		from += run * size;
		count -= run;
	}
	return true;
}
