/*
 * order.h - calls on several streams run one after the other, where they must.
 */
#ifndef EXEC_CUDA_ORDER_H
#define EXEC_CUDA_ORDER_H

#include <stdbool.h>

#include "exec/cuda/driver/driver.h"

struct stream_order {
	cu_event event; /* owned by who has the order; recorded after the last call */
	bool is_recorded;
	uint64_t stream; /* .. which was on this one */
};

/* The stream of a call, and its number (cuda_stream_number()) unless it is captured. */
struct order_call {
	cu_stream stream;
	uint64_t number;
	bool is_capturing;
};

/* Before the first and after the last thing a call enqueues. What is captured is for the
 * program to order. */
enum err stream_order_begin(
	const struct stream_order *order, const struct order_call *call);
enum err stream_order_end(struct stream_order *order, const struct order_call *call);

#endif
