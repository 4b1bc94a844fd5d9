/*
 * estimate.c - about how long a group's calls would take, without making them.
 *
 * Every byte a rank reads and writes passes at the rate this core copies, measured once
 * per process; each time the ranks must see one another costs a little for every rank
 * (docs/design/01: 1.8 us for 16 ranks). Calls of one communicator follow each other,
 * communicators run side by side. Good to a factor of two while the buffers of all ranks
 * stay in the caches; beyond them memory is slower than the probe, and the figure may be
 * four times too short.
 */
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "comm/comm.h"
#include "comm/state.h"

enum { PROBE_BYTES = 1 << 20, PROBE_ROUNDS = 3 };

static const double meet_us = 0.12; /* for one rank to see one other */

/* Bytes read plus bytes written, per microsecond. */
static double copy_rate_measure(void)
{
	char *from = malloc(PROBE_BYTES), *to = malloc(PROBE_BYTES);
	uint64_t best = UINT64_MAX;

	for (int i = 0; from && to && i < PROBE_ROUNDS; i++) {
		uint64_t start;

		memset(from, i, PROBE_BYTES); /* also brings the pages in */
		memset(to, i, PROBE_BYTES);
		start = clock_ns();
		kernel_copy(to, from, PROBE_BYTES);
		start = clock_ns() - start;
		best = start < best ? start : best;
	}
	free(from);
	free(to);
	return 2.0 * PROBE_BYTES / ((double)(best ? best : 1) * 1e-3);
}

static double copy_rate(void)
{
	static _Atomic double rate; /* 0: not measured; two threads measure the same */
	double now = atomic_load_explicit(&rate, memory_order_relaxed);

	if (now <= 0) {
		now = copy_rate_measure();
		atomic_store_explicit(&rate, now, memory_order_relaxed);
	}
	return now;
}

/* Bytes this rank reads and writes: what it has no buffer for, it touches elsewhere. */
static double plan_traffic(const struct plan *plan)
{
	double in = (double)plan->in_bytes, out = (double)plan->out_bytes;

	if (plan->key.coll == COLL_ALL_GATHER || in <= 0)
		return 2 * out;
	return out > 0 ? in + out : 2 * in;
}

static enum err call_estimate(const struct comm_call *call, double *us)
{
	double bytes = (double)call->count * (double)dtype_size(call->type);
	uint32_t meets = 1, ranks = 2;
	const struct plan *plan;
	enum err e;

	if (call->kind == CALL_COLL) {
		struct host_spec spec = call_spec(call);

		e = plan_get(host_engine_planner(call->comm->engine), &spec.key, &plan);
		if (e)
			return e;
		meets = plan->eager ? 1 : 2;
		ranks = call->comm->rank_count;
		bytes = plan_traffic(plan) / 2;
	}
	*us = meets * meet_us * ranks + 2 * bytes / copy_rate();
	return OK;
}

enum err comm_estimate(const struct comm_call *calls, uint32_t count, double *us)
{
	double longest = 0;

	for (uint32_t i = 0; i < count; i++) {
		double sum = 0;

		/* from a communicator's first call, all of its calls */
		for (uint32_t j = 0; j < i; j++)
			if (calls[j].comm == calls[i].comm)
				sum = -1;
		for (uint32_t j = i; j < count && sum >= 0; j++) {
			double one = 0;
			enum err e = OK;

			if (calls[j].comm == calls[i].comm)
				e = call_estimate(&calls[j], &one);
			if (e)
				return e;
			sum += one;
		}
		longest = sum > longest ? sum : longest;
	}
	*us = longest;
	return OK;
}
