#include "exec/cuda/bounce.h"

#include <stdlib.h>

#include "exec/cuda/state.h"

enum { BOUNCE_LEAST = 2 << 20 };

/* Does it lie on another GPU, which kernels of this one need not reach? What was mapped
 * piece by piece is for the program to give access to. */
static bool is_elsewhere(const struct cuda_engine *engine, const struct cuda_where *where)
{
	return where->is_device && !where->is_managed && where->context &&
	       where->device >= 0 && where->device != engine->reach.device;
}

enum err bounce_look(
	struct cuda_engine *engine, const struct bounce_buffer *buffer, bool *is_needed)
{
	struct cuda_where where;
	enum err e = engine_where(engine, buffer->ptr, &where);

	if (!e && !cuda_where_holds(&where, buffer->ptr, buffer->bytes))
		e = engine_where_now(engine, buffer->ptr, &where);
	if (e)
		return e;
	e = cuda_where_check(&where, buffer->ptr, buffer->bytes, buffer->is_sent);
	if (e)
		return e;
	*is_needed = !where.is_device || is_elsewhere(engine, &where);
	if (*is_needed || !buffer->is_shown)
		return OK;
	/* a range of cuMemCreate may be many blocks, and a descriptor is of one */
	if (where.is_by_fd)
		*is_needed = !engine->reach.can_pass_fds ||
			     !cuda_where_is_one_block(&where, buffer->ptr, buffer->bytes);
	else
		*is_needed = !where.is_shareable;
	return OK;
}

static enum err grow(struct cuda_engine *engine, size_t bytes)
{
	struct bounce *bounce = &engine->bounce;
	size_t room = bounce->bytes ? 2 * bounce->bytes : (size_t)BOUNCE_LEAST;
	int mode;
	enum err e;

	while (room < bytes && room <= SIZE_MAX / 2)
		room *= 2;
	if (room < bytes || bounce->generation_count == BOUNCE_GENERATIONS)
		return err_set(ERR_USAGE, "no room for a copy of %zu bytes", bytes);
	cuda_capture_relax(engine->driver, &mode);
	e = engine_alloc(engine, room,
		"allocate device memory for a buffer that cannot be shared",
		&bounce->memory[bounce->generation_count]);
	cuda_capture_restore(engine->driver, mode);
	if (e)
		return e;
	bounce->generation_count++;
	bounce->bytes = room;
	return OK;
}

enum err bounce_begin(struct cuda_engine *engine, size_t bytes, cu_stream stream)
{
	struct bounce *bounce = &engine->bounce;
	enum err e = OK;

	bounce->used = 0;
	bounce->back_count = 0;
	if (bytes && !engine->now.is_capturing)
		engine->now.stream_number = cuda_stream_number(engine->driver, stream);
	if (bytes > bounce->bytes)
		e = grow(engine, bytes);
	if (e || !bytes || !bounce->is_recorded || engine->now.is_capturing ||
		bounce->stream == engine->now.stream_number)
		return e;
	return cuda_check(engine->driver->stream_wait_event(stream, bounce->event, 0),
		"wait for an earlier copy");
}

enum err bounce_in(struct cuda_engine *engine, const void *from, size_t bytes,
	cu_stream stream, void **here)
{
	struct bounce *bounce = &engine->bounce;
	cu_ptr at = bounce->memory[bounce->generation_count - 1] + bounce->used;

	bounce->used += bounce_size(bytes);
	*here = (void *)(uintptr_t)at;
	if (!from)
		return OK;
	return cuda_check(
		engine->driver->memcpy_async(at, (cu_ptr)(uintptr_t)from, bytes, stream),
		"copy a buffer that cannot be shared");
}

enum err bounce_out(struct cuda_engine *engine, void *here, void *to, size_t bytes)
{
	struct bounce *bounce = &engine->bounce;

	if (bounce->back_count == bounce->back_room) {
		uint32_t room = bounce->back_room ? 2 * bounce->back_room : BOUNCE_BACKS;
		void *backs = realloc(bounce->backs, room * sizeof(*bounce->backs));

		if (!backs)
			return err_set(ERR_SYSTEM, "no memory for a list of copies");
		bounce->backs = backs;
		bounce->back_room = room;
	}
	bounce->backs[bounce->back_count++] = (struct bounce_back){
		.from = (cu_ptr)(uintptr_t)here, .to = to, .bytes = bytes};
	return OK;
}

enum err bounce_end(struct cuda_engine *engine, cu_stream stream)
{
	struct bounce *bounce = &engine->bounce;
	const struct cuda_driver *driver = engine->driver;
	enum err e = OK;

	if (!bounce->used)
		return OK;
	bounce->used = 0;
	for (uint32_t i = 0; i < bounce->back_count && !e; i++)
		e = cuda_check(
			driver->memcpy_async((cu_ptr)(uintptr_t)bounce->backs[i].to,
				bounce->backs[i].from, bounce->backs[i].bytes, stream),
			"copy a result back");
	bounce->back_count = 0;
	if (e || engine->now.is_capturing)
		return e;
	if (!bounce->event)
		e = cuda_check(driver->event_create(&bounce->event, CU_EVENT_NO_TIMING),
			"make an event");
	if (!e)
		e = cuda_check(
			driver->event_record(bounce->event, stream), "record an event");
	bounce->is_recorded = !e;
	bounce->stream = engine->now.stream_number;
	return e;
}

void bounce_drop(struct cuda_engine *engine)
{
	engine->bounce.used = 0;
	engine->bounce.back_count = 0;
}

void bounce_free(struct cuda_engine *engine)
{
	struct bounce *bounce = &engine->bounce;

	for (uint32_t i = 0; i < bounce->generation_count; i++)
		engine->driver->mem_free(bounce->memory[i]);
	if (bounce->event)
		engine->driver->event_destroy(bounce->event);
	free(bounce->backs);
}
