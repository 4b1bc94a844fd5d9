/*
 * bounce.h - device memory of our own for buffers that others cannot reach.
 *
 * Host memory, memory of a pool or managed memory cannot be mapped by another process: it
 * is copied here before a call and from here after it, in the stream's order. Nothing is
 * given back before the end, because freeing waits for the device; so the memory doubles
 * whenever it grows.
 */
#ifndef EXEC_CUDA_BOUNCE_H
#define EXEC_CUDA_BOUNCE_H

#include <stdbool.h>

#include "exec/cuda/driver/driver.h"

struct cuda_engine;

enum { BOUNCE_GENERATIONS = 48, BOUNCE_BACKS = 64 };

struct bounce {
	cu_ptr memory[BOUNCE_GENERATIONS]; /* the newest is in use */
	uint32_t generation_count;
	size_t bytes, used; /* of the newest */
	cu_event event;	    /* recorded when it was last used */
	bool is_recorded;
	uint64_t stream; /* .. on this one */
	/* what the call under way has to copy back */
	struct bounce_back {
		cu_ptr from;
		void *to;
		size_t bytes;
	} * backs; /* owned */
	uint32_t back_count, back_room;
};

/* A buffer of a call, not empty. */
struct bounce_buffer {
	const void *ptr;
	size_t bytes;
	bool is_sent;  /* else received into */
	bool is_shown; /* ranks of other processes must reach it, else only this one */
};

/* Must it be copied, because those who must reach it cannot do so where it is?
 * ERR_ARGUMENT when it goes beyond its allocation. */
enum err bounce_look(
	struct cuda_engine *engine, const struct bounce_buffer *buffer, bool *is_needed);

/* Before a call: room for all that it will put here, in all. */
enum err bounce_begin(struct cuda_engine *engine, size_t bytes, cu_stream stream);

/* A copy of `ptr` here; with `from` NULL, memory for as many bytes. */
enum err bounce_in(struct cuda_engine *engine, const void *from, size_t bytes,
	cu_stream stream, void **here);

/* What is at `here` after the call belongs to `to`. */
enum err bounce_out(struct cuda_engine *engine, void *here, void *to, size_t bytes);

/* After a call: copy back. */
enum err bounce_end(struct cuda_engine *engine, cu_stream stream);

/* The call was not made after all: nothing is copied back. */
void bounce_drop(struct cuda_engine *engine);

void bounce_free(struct cuda_engine *engine);

/* Bytes that a buffer takes here. */
static inline size_t bounce_size(size_t bytes)
{
	return (bytes + 511) / 512 * 512;
}

#endif
