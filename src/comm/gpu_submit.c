/*
 * gpu_submit.c - a group's calls on device memory become works of the CUDA engine.
 */
#include <stdio.h>
#include <stdlib.h>

#include "comm/comm_log.h"
#include "comm/gpu.h"
#include "comm/gpu_slots.h"
#include "comm/inside.h"
#include "comm/state.h"

/* What the engine does at a time for one communicator: a collective, or all sends and
 * receives of a group. */
struct gpu_work {
	struct comm *comm;
	struct cuda_call call;
	struct cuda_pair *pairs; /* owned */
	char stage;		 /* 1 begun, 2 finished */
};

struct gpu_works {
	struct gpu_work *list; /* owned */
	uint32_t count;
};

static enum err coll_fill(const struct comm_call *call, struct gpu_work *work)
{
	const struct host_spec spec = call_spec(call);
	enum err e;

	work->comm = call->comm;
	work->call = (struct cuda_call){.key = spec.key,
		.op = spec.op,
		.scalar = spec.scalar,
		.scalar_at = coll_reduces(call->coll) ? call->op.scalar_pointer : NULL,
		.in = spec.in,
		.out = spec.out,
		.stream = (cu_stream)call->gpu_stream,
		.launched = (cu_event)call->launched};
	e = gpu_plan(call, &work->call.plan);
	if (!e)
		comm_log_device(call->comm, &spec.key, &work->call.plan);
	return e;
}

static struct cuda_pair pair_of(const struct comm_call *call)
{
	bool is_send = call->kind == CALL_SEND;

	return (struct cuda_pair){.is_send = is_send,
		.peer = call->root,
		.data = is_send ? (void *)(uintptr_t)call->in : call->out,
		.bytes = call->count * dtype_size(call->type)};
}

static bool is_pair(const struct comm_call *call)
{
	return call->kind == CALL_SEND || call->kind == CALL_RECV;
}

/* All sends and receives of this call's communicator, from call `first` on. */
static enum err pairs_fill(const struct comm_call *calls, uint32_t first, uint32_t count,
	struct gpu_work *work)
{
	struct cuda_pair *pairs = calloc(count - first, sizeof(*pairs));
	uint32_t used = 0;

	if (!pairs)
		return err_set(ERR_SYSTEM, "no memory for %u calls", count);
	for (uint32_t i = first; i < count; i++)
		if (calls[i].comm == calls[first].comm && is_pair(&calls[i]))
			pairs[used++] = pair_of(&calls[i]);
	work->comm = calls[first].comm;
	work->pairs = pairs;
	work->call = (struct cuda_call){.pairs = pairs,
		.pair_count = used,
		.stream = (cu_stream)calls[first].gpu_stream};
	return OK;
}

static bool has_pairs_before(const struct comm_call *calls, uint32_t at)
{
	for (uint32_t i = 0; i < at; i++)
		if (calls[i].comm == calls[at].comm && is_pair(&calls[i]))
			return true;
	return false;
}

/* A group's collectives in their order, and after them, wherever the user has put them,
 * sends and receives as one: so that ranks which mix them differently do not wait for
 * each other. */
static enum err works_make(
	const struct comm_call *calls, uint32_t count, struct gpu_works *works)
{
	enum err e = OK;

	works->count = 0;
	works->list = calloc(count, sizeof(*works->list));
	if (!works->list)
		return err_set(ERR_SYSTEM, "no memory for %u calls", count);
	for (uint32_t i = 0; i < count && !e; i++) {
		e = cuda_engine_takes(
			calls[i].comm->gpu.engine, (cu_stream)calls[i].gpu_stream);
		if (!e && calls[i].kind == CALL_COLL)
			e = coll_fill(&calls[i], &works->list[works->count++]);
	}
	for (uint32_t i = 0; i < count && !e; i++)
		if (is_pair(&calls[i]) && !has_pairs_before(calls, i))
			e = pairs_fill(calls, i, count, &works->list[works->count++]);
	return e;
}

static void works_free(struct gpu_works *works)
{
	for (uint32_t i = 0; works->list && i < works->count; i++)
		free(works->list[i].pairs);
	free(works->list);
}

/* Is an earlier call of the same communicator still to be begun or finished? */
static bool is_behind(const struct gpu_works *works, uint32_t at)
{
	for (uint32_t i = 0; i < at; i++)
		if (works->list[i].comm == works->list[at].comm &&
			works->list[i].stage < 2)
			return true;
	return false;
}

typedef enum err engine_step(struct cuda_engine *engine, const struct cuda_call *call);

static enum err work_step(const struct gpu_work *work, engine_step *step)
{
	enum err e = step(work->comm->gpu.engine, &work->call);

	/* whom to blame for it, if it is not us, the engine has told already */
	if (e)
		comm_fail(work->comm, e, work->comm->rank);
	return e;
}

/* One round: begin the first call of each communicator that is left, then go on with
 * these. A thread that calls for several ranks must not wait for one before all have
 * begun. */
static enum err works_round(struct gpu_works *works)
{
	enum err e = OK;

	for (uint32_t i = 0; i < works->count && !e; i++) {
		if (works->list[i].stage || is_behind(works, i))
			continue;
		works->list[i].stage = 1;
		e = work_step(&works->list[i], cuda_engine_begin);
	}
	for (uint32_t i = 0; i < works->count && !e; i++)
		if (works->list[i].stage == 1)
			e = work_step(&works->list[i], cuda_engine_move);
	for (uint32_t i = 0; i < works->count && !e; i++)
		if (works->list[i].stage == 1) {
			e = work_step(&works->list[i], cuda_engine_finish);
			works->list[i].stage = 2;
		}
	return e;
}

/* What was begun is taken back, so that nobody uses what will be freed; the first failure
 * stays the one that is read. */
static void works_take_back(struct gpu_works *works)
{
	char cause[ERR_TEXT_BYTES];

	snprintf(cause, sizeof(cause), "%s", err_last());
	for (uint32_t i = 0; i < works->count; i++)
		if (works->list[i].stage == 1) {
			cuda_engine_abort(works->list[i].comm->gpu.engine);
			work_step(&works->list[i], cuda_engine_finish);
		}
	err_adopt(cause);
}

static enum err works_run_all(struct gpu_works *works)
{
	bool is_left = true;
	enum err e = OK;

	while (!e && is_left) {
		e = works_round(works);
		is_left = false;
		for (uint32_t i = 0; i < works->count; i++)
			is_left = is_left || works->list[i].stage < 2;
	}
	if (e)
		works_take_back(works);
	return e;
}

/* A call by itself needs no lists. */
static enum err submit_one(const struct comm_call *call)
{
	struct gpu_work work;
	enum err e = cuda_engine_takes(
		call->comm->gpu.engine, (cu_stream)call->gpu_stream);

	if (!e)
		e = coll_fill(call, &work);
	if (!e)
		e = work_step(&work, cuda_engine_begin);
	return e ? e : work_step(&work, cuda_engine_finish);
}

/* Sends and receives of one communicator on several streams are done on the first. */
static enum err streams_join(
	const struct comm_call *calls, uint32_t count, bool is_before)
{
	enum err e = OK;

	for (uint32_t i = 0; i < count && !e; i++)
		for (uint32_t j = 0; j < i && !e; j++) {
			if (calls[j].comm != calls[i].comm || !is_pair(&calls[j]) ||
				!is_pair(&calls[i]))
				continue;
			if (calls[j].gpu_stream != calls[i].gpu_stream)
				e = cuda_engine_join(calls[i].comm->gpu.engine,
					is_before ? calls[j].gpu_stream
						  : calls[i].gpu_stream,
					is_before ? calls[i].gpu_stream
						  : calls[j].gpu_stream);
			break; /* the first one's stream is where it is done */
		}
	return e;
}

/* Puts do not wait for anybody; what waits for signals comes last. One that was not made
 * would be waited for, but for ERR_USAGE, which tells a capture to call elsewhere. */
static enum err onesided_submit(
	const struct comm_call *calls, uint32_t count, enum call_kind kind)
{
	enum err e = OK;

	for (uint32_t i = 0; i < count && !e; i++) {
		struct cuda_engine *engine = calls[i].comm->gpu.engine;
		cu_stream stream = (cu_stream)calls[i].gpu_stream;
		const struct cuda_await await = {
			calls[i].root, calls[i].put.signal, calls[i].put.signals};
		struct cuda_put put = {.peer = calls[i].root,
			.signal = calls[i].put.signal,
			.data = calls[i].in,
			.bytes = calls[i].count * dtype_size(calls[i].type)};

		if (calls[i].kind != kind)
			continue;
		if (put.bytes) {
			put.to = window_address(&calls[i]);
			put.is_device = window_holds(
				calls[i].put.window, put.data, put.bytes);
		}
		e = kind == CALL_PUT ? cuda_engine_put(engine, &put, stream)
				     : cuda_engine_await(engine, &await, stream);
		if (e && e != ERR_USAGE)
			comm_fail(calls[i].comm, e, calls[i].comm->rank);
	}
	return e;
}

static enum err submit_group(const struct comm_call *calls, uint32_t count)
{
	struct gpu_works works = {0};
	enum err e = onesided_submit(calls, count, CALL_PUT);

	if (!e)
		e = streams_join(calls, count, true);
	if (!e)
		e = works_make(calls, count, &works);
	if (!e)
		e = works_run_all(&works);
	if (!e)
		e = streams_join(calls, count, false);
	if (!e)
		e = onesided_submit(calls, count, CALL_WAIT);
	works_free(&works);
	return e;
}

enum err gpu_submit(const struct comm_call *calls, uint32_t count)
{
	bool one = false, *first = count == 1 ? &one : calloc(count, sizeof(*first));
	enum err e;

	if (!first)
		return err_set(ERR_SYSTEM, "no memory for %u calls", count);
	e = gpu_slots_provide(calls, count);
	/* whoever aborts waits until nobody enqueues */
	if (!e)
		e = inside_enqueue(calls, count, first);
	if (!e) {
		e = count == 1 && calls->kind == CALL_COLL ? submit_one(calls)
							   : submit_group(calls, count);
		inside_enqueued(calls, count, first);
	}
	if (first != &one)
		free(first);
	return e;
}
