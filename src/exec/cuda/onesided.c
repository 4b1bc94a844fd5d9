/*
 * onesided.c - puts and signals on device memory.
 *
 * A rank counts its signals to another in a word of that one's hall, which nobody else
 * writes; the other's stream waits until the word has grown. The numbers are the host's:
 * a graph would repeat them, so a stream that is captured is refused.
 */
#include <sched.h>

#include "base/clock.h"
#include "exec/cuda/state.h"

enum { GIVEN_MS = 500 };

/* Is it a rank of this process? */
static bool is_here(const struct cuda_engine *engine, uint32_t peer)
{
	return engine->reach.hellos[peer].pid == engine->reach.hellos[engine->rank].pid;
}

static enum err capture_refuse(const struct cuda_engine *engine, cu_stream stream)
{
	int status = 0;

	if (engine->driver->stream_is_capturing(stream, &status) || !status)
		return OK;
	return err_set(ERR_USAGE,
		"puts and signals cannot be part of a CUDA graph: call outside the "
		"capture");
}

/* Copy what is put to where this process sees it: of another process's memory the driver
 * knows only what was opened first of a block, so that a kernel does it, which reads
 * device memory. */
static enum err copy_by_kernel(
	struct cuda_engine *engine, const struct cuda_put *put, cu_stream stream)
{
	const struct bounce_buffer buffer = {
		.ptr = put->data, .bytes = put->bytes, .is_sent = true};
	struct dev_pair receive = {.data = put->to,
		.from = (uint64_t)(uintptr_t)put->data,
		.bytes = put->bytes,
		.peer = (uint16_t)put->peer,
		.is_put = true};
	bool is_bounced = false;
	enum err e = OK;
	void *here;

	if (!put->is_device) {
		engine->now.moment++;
		e = bounce_look(engine, &buffer, &is_bounced);
	}
	if (!e && is_bounced) {
		e = bounce_begin(engine, bounce_size(put->bytes), stream);
		if (!e)
			e = bounce_in(engine, put->data, put->bytes, stream, &here);
		receive.from = e ? 0 : (uint64_t)(uintptr_t)here;
	}
	if (!e)
		e = pair_copy(engine, &receive, stream);
	return e || !is_bounced ? e : bounce_end(engine, stream);
}

/* Between threads a kernel would be kept back by a stream that waits for the signal, if
 * the two share one of the GPU's channels; copies have channels of their own. */
static enum err data_copy(
	struct cuda_engine *engine, const struct cuda_put *put, cu_stream stream)
{
	if (!is_here(engine, put->peer))
		return copy_by_kernel(engine, put, stream);
	return cuda_check(engine->driver->memcpy_async(put->to,
				  (cu_ptr)(uintptr_t)put->data, put->bytes, stream),
		"copy into a window");
}

/* Copy, then count. */
static enum err put_enqueue(struct cuda_engine *engine, const struct cuda_put *put,
	cu_ptr hall, cu_stream stream)
{
	uint32_t *given = &engine->signals.given[put->signal][put->peer];
	struct cu_memop op = memop_write(
		signal_at(hall, engine->rank, put->signal), *given + 1);
	enum err e;

	/* the count must not go back: puts run in the order in which they were made */
	engine->now.is_capturing = false;
	engine->now.stream_number = cuda_stream_number(engine->driver, stream);
	e = order_begin(engine, &engine->past.puts, stream);
	if (!e && put->bytes)
		e = data_copy(engine, put, stream);
	if (!e)
		e = memops_submit(engine, stream, &op, 1);
	if (e)
		return e;
	++*given;
	ledger_give(engine->ledger, put->peer);
	return order_end(engine, &engine->past.puts, stream);
}

enum err cuda_engine_put(
	struct cuda_engine *engine, const struct cuda_put *put, cu_stream stream)
{
	cu_context had = context_enter(engine);
	cu_ptr hall = 0;
	enum err e = capture_refuse(engine, stream);

	if (!e)
		e = engine_is_well(engine);
	if (!e)
		e = engine_hall(engine, put->peer, &hall);
	if (!e)
		e = put_enqueue(engine, put, hall, stream);
	context_leave(engine->driver, engine->context, had);
	return e;
}

/* Streams of one process share the GPU's channels, and one that waits can hold back the
 * one it waits for. So a thread enqueues its wait behind the other's signal, which must
 * have been made for that; when it is not made for long, its maker may wait for this
 * thread, and then the stream waits. */
static void given_await(const struct cuda_engine *engine, uint32_t peer)
{
	const uint32_t *abort = &engine->words.here->abort;
	uint64_t end = clock_ns() + GIVEN_MS * CLOCK_MS;

	if (!is_here(engine, peer))
		return;
	while (ledger_lacks_signals(engine->ledger, peer) &&
		!__atomic_load_n(abort, __ATOMIC_ACQUIRE) && clock_ns() < end)
		sched_yield();
}

enum err cuda_engine_await(
	struct cuda_engine *engine, const struct cuda_await *await, cu_stream stream)
{
	uint32_t *awaited = &engine->signals.awaited[await->signal][await->peer];
	cu_context had = context_enter(engine); /* whose NULL stream is meant */
	struct cu_memop op;
	enum err e = capture_refuse(engine, stream);

	if (!e)
		e = engine_is_well(engine);
	if (!e) {
		*awaited += await->count;
		ledger_await(engine->ledger, await->peer, await->count);
		given_await(engine, await->peer);
		e = engine_is_well(engine);
	}
	if (!e) {
		op = memop_wait(signal_at(engine->reach.hall, await->peer, await->signal),
			*awaited);
		e = memops_submit(engine, stream, &op, 1);
	}
	context_leave(engine->driver, engine->context, had);
	return e;
}

/* Another process maps one block, which all of it must be in. */
static enum err check_block(const struct cuda_engine *engine, uint32_t peer,
	const struct cuda_where *where, const void *ptr, size_t bytes)
{
	if (!where->is_by_fd || is_here(engine, peer) ||
		cuda_where_is_one_block(where, ptr, bytes))
		return OK;
	return err_set(ERR_ARGUMENT,
		"a window of %zu bytes at %p goes beyond a block of %zu bytes: make "
		"it of one cuMemCreate, or with ncclMemAlloc",
		bytes, ptr, where->block_bytes);
}

enum err cuda_engine_show(struct cuda_engine *engine, uint32_t peer, const void *ptr,
	size_t bytes, uint64_t *address)
{
	struct cuda_where where;
	enum err e = cuda_where(engine->driver, ptr, &where);

	if (!e && !cuda_where_holds(&where, ptr, bytes))
		e = err_set(ERR_ARGUMENT,
			"a window of %zu bytes at %p goes beyond its allocation of %zu "
			"bytes at %#llx",
			bytes, ptr, where.bytes, (unsigned long long)where.base);
	if (!e)
		e = check_block(engine, peer, &where, ptr, bytes);
	if (!e)
		e = desk_show(engine->reach.desk, peer, &where, ptr, address);
	if (!e)
		desk_pin(engine->reach.desk, &where);
	return e;
}
