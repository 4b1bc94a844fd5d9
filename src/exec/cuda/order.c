/*
 * order.c - calls on several streams, one after the other where they must be.
 */
#include "exec/cuda/state.h"

enum err order_begin(
	struct cuda_engine *engine, struct stream_order *order, cu_stream stream)
{
	if (!order->is_recorded || engine->now.is_capturing ||
		order->stream == engine->now.stream_number)
		return OK;
	return cuda_check(engine->driver->stream_wait_event(stream, order->event, 0),
		"wait for the call before");
}

enum err order_end(
	struct cuda_engine *engine, struct stream_order *order, cu_stream stream)
{
	enum err e;

	if (engine->now.is_capturing)
		return OK;
	e = cuda_check(
		engine->driver->event_record(order->event, stream), "record an event");
	order->is_recorded = !e;
	order->stream = engine->now.stream_number;
	return e;
}
