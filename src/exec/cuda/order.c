#include "exec/cuda/order.h"

#include "exec/cuda/state.h"

enum err stream_order_begin(
	const struct stream_order *order, const struct order_call *call)
{
	if (!order->is_recorded || call->is_capturing || order->stream == call->number)
		return OK;
	return cuda_check(cuda_driver()->stream_wait_event(call->stream, order->event, 0),
		"wait for the call before");
}

enum err stream_order_end(struct stream_order *order, const struct order_call *call)
{
	enum err e;

	if (call->is_capturing)
		return OK;
	e = cuda_check(cuda_driver()->event_record(order->event, call->stream),
		"record an event");
	order->is_recorded = !e;
	order->stream = call->number;
	return e;
}

static struct order_call call_now(const struct cuda_engine *engine, cu_stream stream)
{
	return (struct order_call){
		stream, engine->now.stream_number, engine->now.is_capturing};
}

enum err order_begin(
	struct cuda_engine *engine, struct stream_order *order, cu_stream stream)
{
	const struct order_call call = call_now(engine, stream);

	return stream_order_begin(order, &call);
}

enum err order_end(
	struct cuda_engine *engine, struct stream_order *order, cu_stream stream)
{
	const struct order_call call = call_now(engine, stream);

	return stream_order_end(order, &call);
}
