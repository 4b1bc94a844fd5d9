/*
 * way_resident.c - processes under MPS, and ranks on different GPUs: every rank launches,
 * and the kernels wait for each other.
 */
#include <stdlib.h>
#include <unistd.h>

#include "exec/cuda/state.h"

/* Calls that are captured, also those of another way, never touch it. */
struct resident {
	/* the stream, plus one, of the last call that has a number and no event */
	uint64_t last_numbered;
};

static enum err resident_open(struct cuda_engine *engine)
{
	engine->own = calloc(1, sizeof(struct resident));
	return engine->own ? OK : err_set(ERR_SYSTEM, "no memory for a CUDA engine");
}

static void resident_close(struct cuda_engine *engine)
{
	free(engine->own);
}

static bool resident_needs_hall(const struct cuda_engine *engine, uint32_t rank)
{
	(void)engine, (void)rank;
	return true;
}

static const char *resident_says(const struct cuda_engine *engine)
{
	if (engine->staged.is_host)
		return "a GPU each, without peer access: a kernel each, through slots in "
		       "host memory";
	return engine->reach.is_one_device
		       ? "processes share a GPU under MPS: a kernel each"
		       : "a GPU each, with peer access: a kernel each";
}

/* Calls whose kernels wait for each other run one after the other, whatever streams they
 * are on. As long as there was no other way, calls have numbers and no event, and the
 * hall's word tells that one is done. */
static enum err resident_order(struct cuda_engine *engine, cu_stream stream)
{
	const struct resident *own = engine->own;
	struct cu_memop op = memop_wait(
		engine->reach.hall + offsetof(struct dev_hall, call), engine->past.call);
	enum err e = OK;

	if (engine->now.is_capturing)
		return OK;
	if (own->last_numbered && own->last_numbered != engine->now.stream_number + 1)
		e = memops_submit(engine, stream, &op, 1);
	return e ? e : order_begin(engine, &engine->past.order, stream);
}

/* What the next call needs to know for that. */
static enum err resident_note(struct cuda_engine *engine, const struct cuda_call *call)
{
	struct resident *own = engine->own;

	if (engine->past.was_captured || call->plan.is_staged ||
		engine->past.order.is_recorded) {
		if (!engine->now.is_capturing)
			own->last_numbered = 0; /* it is before this one */
		return order_end(engine, &engine->past.order, call->stream);
	}
	own->last_numbered = engine->now.stream_number + 1;
	return OK;
}

enum err resident_coll(struct cuda_engine *engine, const struct coll_work *work)
{
	const struct cuda_call *call = work->call;
	struct moves_args *args = work->args;
	const struct dev_mail *mine = work->mine;
	enum err e = resident_order(engine, call->stream);

	/* through slots a rank reaches only its own buffers */
	if (call->plan.is_staged) {
		args->posts[0] = (struct dev_post){
			mine->in, mine->out, mine->scalar, NULL};
		args->is_posted = 1;
		args->scalars_at = call->scalar_at != NULL;
		if (call->scalar_at)
			args->posts[0].scalar = (uint64_t)(uintptr_t)call->scalar_at;
	} else if (!e) {
		e = buffers_post(engine, call, 0, engine->rank_count, args->posts);
	}
	for (uint32_t r = 0; r < engine->rank_count && !call->plan.is_staged; r++) {
		args->posts[r].scalar = mine->scalar;
		args->posts[r].hall =
			(struct dev_hall *)(uintptr_t)engine->reach.halls[r];
	}
	args->mail = (const void *)(uintptr_t)mail_at(engine->reach.hall, false, 0, 0);
	args->sign = mine->sign;
	args->scalar_at = call->scalar_at;
	args->is_resident = 1;
	if (!e && !call->plan.is_staged)
		args->call = engine->past.was_captured ? 0 : ++engine->past.call;
	if (!e)
		e = coll_launch(engine, call, args, grid_single(engine, call));
	return e ? e : resident_note(engine, call);
}

enum err resident_pairs(
	struct cuda_engine *engine, struct pair_list *list, cu_stream stream)
{
	struct resident *own = engine->own;
	struct pairs_args args;
	enum err e = resident_order(engine, stream);

	pairs_args_begin(engine, &args);
	args.is_resident = 1;
	for (uint32_t i = 0; i < list->count && !e; i++) {
		struct dev_pair pair = list->pairs[i];
		cu_ptr hall = 0;

		/* a launch counts from what the one before it left */
		if (args.count == PAIRS_MAX)
			e = pairs_args_launch(engine, &args, stream);
		if (!e)
			e = engine_hall(engine, pair.peer, &hall);
		args.peers[args.count] = (struct dev_hall *)(uintptr_t)hall;
		args.pairs[args.count++] = pair;
	}
	if (!e)
		e = pairs_args_launch(engine, &args, stream);
	if (!engine->now.is_capturing)
		own->last_numbered = 0; /* it is before this one */
	return e ? e : order_end(engine, &engine->past.order, stream);
}

/* ---- the end ---- */

static cu_ptr resident_done_at(const struct cuda_engine *engine)
{
	return engine->reach.hall + offsetof(struct dev_hall, call);
}

/* Who waits for what this rank says of its call, or will, waits on. A
 * process that was stopped may launch long after this rank has its memory back. The
 * kernels that this rank has enqueued say it once more before they see that they are to
 * stop: so it is taken back again when they have. */
static void resident_withdraw(struct cuda_engine *engine, struct writes *writes)
{
	for (uint32_t r = 0; r < engine->rank_count; r++)
		for (uint32_t word = 0; word < LINE_WORDS && engine->reach.halls[r];
			word++)
			writes_add(writes,
				engine->reach.halls[r] +
					offsetof(struct dev_hall, lines) +
					(engine->rank * LINE_WORDS + word) *
						sizeof(uint64_t) +
					sizeof(uint32_t),
				engine->past.call - FREE_WAIT);
}

/* Nothing tells when a kernel that was under way has ended. */
static void resident_settle(struct cuda_engine *engine)
{
	(void)engine;
	usleep(SETTLE_US);
}

static void resident_let_go(struct cuda_engine *engine, struct writes *writes)
{
	writes_add(writes, resident_done_at(engine), engine->past.call + FREE_WAIT);
}

const struct cuda_way way_resident = {
	.needs_hall = resident_needs_hall,
	.open = resident_open,
	.close = resident_close,
	.says = resident_says,
	.coll = resident_coll,
	.pairs = resident_pairs,
	.done_at = resident_done_at,
	.withdraw = resident_withdraw,
	.settle = resident_settle,
	.let_go = resident_let_go,
};
