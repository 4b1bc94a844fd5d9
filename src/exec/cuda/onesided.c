/*
 * onesided.c - puts and signals on device memory.
 *
 * A rank counts its signals to another in a word of that one's hall, which nobody else
 * writes; the other's stream waits until the word has grown. The numbers are the host's:
 * a graph would repeat them, so a stream that is captured is refused.
 */
#include "exec/cuda/state.h"

static cu_ptr signal_at(cu_ptr hall, uint32_t from)
{
	return hall + offsetof(struct dev_hall, signals) + from * sizeof(uint32_t);
}

static enum err check_stream(const struct cuda_engine *engine, cu_stream stream)
{
	int status = 0;

	if (engine->driver->stream_is_capturing(stream, &status) || !status)
		return OK;
	return err_set(ERR_USAGE,
		"puts and signals cannot be part of a CUDA graph: call outside the "
		"capture");
}

enum err cuda_engine_put(
	struct cuda_engine *engine, const struct cuda_put *put, cu_stream stream)
{
	struct cu_memop op;
	cu_ptr hall = 0;
	enum err e = check_stream(engine, stream);

	if (!e)
		e = engine_hall(engine, put->peer, &hall);
	/* the count must not go back: puts run in the order in which they were made */
	engine->is_capturing = false;
	engine->stream_number = cuda_stream_number(engine->driver, stream);
	if (!e)
		e = order_begin(engine, &engine->puts, stream);
	if (!e && put->bytes)
		e = cuda_check(engine->driver->memcpy_async(put->to,
				       (cu_ptr)(uintptr_t)put->data, put->bytes, stream),
			"copy into a window");
	if (e)
		return e;
	op = memop_write(signal_at(hall, engine->rank), engine->given[put->peer] + 1);
	e = memops_submit(engine, stream, &op, 1);
	if (e)
		return e;
	engine->given[put->peer]++;
	return order_end(engine, &engine->puts, stream);
}

enum err cuda_engine_await(
	struct cuda_engine *engine, uint32_t peer, uint32_t count, cu_stream stream)
{
	struct cu_memop op;
	enum err e = check_stream(engine, stream);

	if (e)
		return e;
	engine->awaited[peer] += count;
	op = memop_wait(signal_at(engine->hall, peer), engine->awaited[peer]);
	return memops_submit(engine, stream, &op, 1);
}

enum err cuda_engine_show(
	struct cuda_engine *engine, uint32_t peer, const void *ptr, uint64_t *address)
{
	struct cuda_where where;
	enum err e = cuda_where(engine->driver, ptr, &where);

	if (!e)
		e = desk_show(engine->desk, peer, &where, ptr, address);
	if (!e)
		desk_pin(engine->desk, &where);
	return e;
}
