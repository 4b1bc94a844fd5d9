/*
 * way_leader.c - processes that share a GPU without MPS: rank 0 launches for all.
 *
 * Streams are ordered by memory operations on words that all have mapped, so no kernel
 * ever waits for another process's. A rank puts its buffers' addresses into its mail in
 * rank 0's hall and waits in its own hall until it is told that the launch is done. Sends
 * and receives have no leader: leader_pairs.c.
 */
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "exec/cuda/leader.h"

enum {
	GRACE_MS = 10, /* for a launch that was under way */
	NAP_US = 50
};

static enum err leader_open(struct cuda_engine *engine)
{
	engine->own = calloc(1, sizeof(struct leader));
	return engine->own ? OK : err_set(ERR_SYSTEM, "no memory for a CUDA engine");
}

static void leader_close(struct cuda_engine *engine)
{
	free(engine->own);
}

static bool leader_needs_hall(const struct cuda_engine *engine, uint32_t rank)
{
	return !engine->rank || !rank;
}

static const char *leader_says(const struct cuda_engine *engine)
{
	(void)engine;
	return "processes share a GPU without MPS: rank 0 launches for all; an MPS "
	       "server (nvidia-cuda-mps-control -d) would save about 145 us a rank "
	       "whenever ranks run kernels of their own in between";
}

/* ---- collectives ---- */

/* Where rank `rank` is told that its call is done: in its own hall, so that it can always
 * end its own wait. Rank 0, who tells, looks at what it has told rank 1 as long as it
 * does not tell itself. */
static cu_ptr mail_done_at(
	const struct cuda_engine *engine, bool is_constant, uint32_t rank)
{
	const struct leader *own = engine->own;
	uint32_t told = rank || atomic_load(&own->tells_itself) ? rank : 1;

	return mail_at(engine->reach.halls[told], is_constant, told,
		offsetof(struct dev_mail, done));
}

/* A scalar that is on the device is copied into the mail when the stream is there. */
static enum err scalar_copy(
	struct cuda_engine *engine, const struct cuda_call *call, bool is_constant)
{
	struct leader *own = engine->own;
	cu_ptr to = mail_at(engine->reach.halls[0], is_constant, engine->rank,
		offsetof(struct dev_mail, scalar));

	if (!call->scalar_at)
		return OK;
	own->sent_on = 0; /* nobody knows what is there */
	return cuda_check(
		engine->driver->memcpy_async(to, (cu_ptr)(uintptr_t)call->scalar_at,
			dtype_size(call->key.type), call->stream),
		"copy the operator's scalar");
}

/* The facts of a rank's mail, as far as they are not there already: on the same stream
 * what was written last still stands. */
static uint32_t mail_write(struct cuda_engine *engine, const struct cuda_call *call,
	const struct dev_mail *mine, bool is_constant, struct cu_memop *ops)
{
	struct leader *own = engine->own;
	static const size_t offsets[] = {offsetof(struct dev_mail, in),
		offsetof(struct dev_mail, out), offsetof(struct dev_mail, sign),
		offsetof(struct dev_mail, scalar)};
	uint64_t values[] = {mine->in, mine->out, mine->sign, mine->scalar};
	/* to ask for a stream's number ends its capture */
	uint64_t number = is_constant ? 0 : engine->now.stream_number + 1;
	const struct dev_mail *sent = !is_constant && own->sent_on == number ? &own->sent
									     : NULL;
	uint32_t facts = call->scalar_at ? 3 : 4, count = 0;

	for (uint32_t i = 0; i < facts; i++)
		if (!sent || memcmp((const char *)sent + offsets[i],
				     (const char *)mine + offsets[i], sizeof(uint64_t)))
			ops[count++] = memop_write_64(
				mail_at(engine->reach.halls[0], is_constant, engine->rank,
					offsets[i]),
				values[i]);
	if (is_constant)
		return count;
	own->sent = *mine;
	own->sent_on = call->scalar_at ? 0 : number;
	return count;
}

/* The mail holds one call. On another stream than the last one's, wait until that call
 * is done before it is overwritten. Who leads reads that in rank 1's hall the first time,
 * and in its own from then on: with one stream there is no word to write for it, and with
 * several, it must be able to set them free by itself. */
static uint32_t mail_wait(struct cuda_engine *engine, struct cu_memop *op)
{
	struct leader *own = engine->own;

	if (engine->past.call < 2 || own->sent_on == engine->now.stream_number + 1)
		return 0;
	*op = memop_wait(
		mail_done_at(engine, false, engine->rank), engine->past.call - 1);
	atomic_store(&own->tells_itself, !engine->rank);
	return 1;
}

static enum err follow(struct cuda_engine *engine, const struct cuda_call *call,
	const struct dev_mail *mine)
{
	cu_ptr hall = engine->reach.halls[0];
	struct cu_memop ops[8];
	uint32_t count = mail_wait(engine, ops);
	enum err e = count ? memops_submit(engine, call->stream, ops, count) : OK;

	if (!e)
		e = scalar_copy(engine, call, false);
	if (e)
		return e;
	count = mail_write(engine, call, mine, false, ops);
	ops[count++] = memop_write(
		mail_at(hall, false, engine->rank, offsetof(struct dev_mail, ready)),
		engine->past.call);
	ops[count++] = memop_wait(
		mail_done_at(engine, false, engine->rank), engine->past.call);
	return memops_submit(engine, call->stream, ops, count);
}

/* The launch is done: a word in each other rank's hall, perhaps in its own. */
static enum err all_tell(struct cuda_engine *engine, const struct cuda_call *call)
{
	const struct leader *own = engine->own;
	struct cu_memop ops[MOVES_RANKS_MAX];
	uint32_t count = 0;

	for (uint32_t r = !atomic_load(&own->tells_itself); r < engine->rank_count; r++)
		ops[count++] = memop_write(
			mail_done_at(engine, false, r), engine->past.call);
	return memops_submit(engine, call->stream, ops, count);
}

static enum err lead(struct cuda_engine *engine, const struct cuda_call *call,
	struct moves_args *args, const struct dev_mail *mine)
{
	cu_ptr hall = engine->reach.halls[0];
	struct cu_memop ops[6 + MOVES_RANKS_MAX];
	uint32_t count = mail_wait(engine, ops);
	enum err e = OK;

	if (call->scalar_at) {
		e = memops_submit(engine, call->stream, ops, count);
		count = 0;
		if (!e)
			e = scalar_copy(engine, call, false);
	}
	count += mail_write(engine, call, mine, false, ops + count);
	for (uint32_t r = 1; r < engine->rank_count; r++)
		ops[count++] = memop_wait(
			mail_at(hall, false, r, offsetof(struct dev_mail, ready)),
			engine->past.call);
	args->mail = (const void *)(uintptr_t)mail_at(hall, false, 0, 0);
	args->call = engine->past.call;
	if (!e)
		e = memops_submit(engine, call->stream, ops, count);
	if (!e)
		e = coll_launch(engine, call, args, grid_fused(engine, call));
	return e ? e : all_tell(engine, call);
}

/* The same for a graph, which repeats the same words: they are 1 while something is
 * there, and whoever has seen that puts them back. */
static enum err follow_constant(struct cuda_engine *engine, const struct cuda_call *call,
	const struct dev_mail *mine)
{
	cu_ptr hall = engine->reach.halls[0];
	cu_ptr ready = mail_at(
		hall, true, engine->rank, offsetof(struct dev_mail, ready));
	cu_ptr done = mail_done_at(engine, true, engine->rank);
	struct cu_memop ops[8];
	uint32_t count;
	enum err e = scalar_copy(engine, call, true);

	count = mail_write(engine, call, mine, true, ops);
	ops[count++] = memop_write(ready, 1);
	ops[count++] = memop_wait(done, 1);
	ops[count++] = memop_write(done, 0);
	return e ? e : memops_submit(engine, call->stream, ops, count);
}

static enum err lead_constant(struct cuda_engine *engine, const struct cuda_call *call,
	struct moves_args *args, const struct dev_mail *mine)
{
	cu_ptr hall = engine->reach.halls[0];
	struct cu_memop ops[4 + 2 * MOVES_RANKS_MAX];
	uint32_t count;
	enum err e = scalar_copy(engine, call, true);

	count = mail_write(engine, call, mine, true, ops);
	for (uint32_t r = 1; r < engine->rank_count; r++)
		ops[count++] = memop_wait(
			mail_at(hall, true, r, offsetof(struct dev_mail, ready)), 1);
	args->mail = (const void *)(uintptr_t)mail_at(hall, true, 0, 0);
	args->call = 1;
	if (!e)
		e = memops_submit(engine, call->stream, ops, count);
	if (!e)
		e = coll_launch(engine, call, args, grid_fused(engine, call));
	count = 0;
	for (uint32_t r = 1; r < engine->rank_count; r++) {
		ops[count++] = memop_write(
			mail_at(hall, true, r, offsetof(struct dev_mail, ready)), 0);
		ops[count++] = memop_write(mail_done_at(engine, true, r), 1);
	}
	return e ? e : memops_submit(engine, call->stream, ops, count);
}

static enum err leader_coll(struct cuda_engine *engine, const struct coll_work *work)
{
	const struct cuda_call *call = work->call;
	struct moves_args *args = work->args;
	struct dev_mail *mine = work->mine;
	enum err e = engine->rank ? buffers_post(engine, call, 0, 1, args->posts) : OK;

	if (e)
		return e;
	if (engine->rank) {
		mine->in = args->posts[0].in;
		mine->out = args->posts[0].out;
	}
	if (engine->now.is_capturing)
		return engine->rank ? follow_constant(engine, call, mine)
				    : lead_constant(engine, call, args, mine);
	engine->past.call++;
	return engine->rank ? follow(engine, call, mine) : lead(engine, call, args, mine);
}

/* ---- the end ---- */

static cu_ptr leader_done_at(const struct cuda_engine *engine)
{
	return mail_done_at(engine, false, engine->rank);
}

/* No launch for this call, or a later one, finds what it waits for, also
 * one that a stopped process makes when it goes on. */
static void mails_withdraw(struct cuda_engine *engine, struct writes *writes)
{
	cu_ptr hall = engine->reach.halls[0];

	for (uint32_t r = 1; r < engine->rank_count; r++) {
		writes_add(writes,
			mail_at(hall, false, r, offsetof(struct dev_mail, ready)),
			engine->past.call + FREE_WAIT);
		writes_add(writes,
			mail_at(hall, true, r, offsetof(struct dev_mail, ready)),
			FREE_WAIT);
	}
}

static void leader_withdraw(struct cuda_engine *engine, struct writes *writes)
{
	if (engine->reach.halls[0])
		mails_withdraw(engine, writes);
	leader_sends_withdraw(engine, writes);
}

/* Has the launch before ended that was under way, perhaps, when its words went? Whoever
 * launched it says so on the device. */
static void leader_settle(struct cuda_engine *engine)
{
	uint64_t end = clock_ns() + GRACE_MS * CLOCK_MS;
	int32_t beyond = 0;

	if (engine->past.was_captured || !engine->past.call) {
		usleep(SETTLE_US);
		return;
	}
	while (word_see(engine, leader_done_at(engine), &beyond) && beyond < 0 &&
		clock_ns() < end)
		usleep(NAP_US);
}

static void leader_let_go(struct cuda_engine *engine, struct writes *writes)
{
	trays_let_go(engine->reach.trays, FREE_WAIT);
	writes_add(writes,
		mail_at(engine->reach.hall, false, engine->rank,
			offsetof(struct dev_mail, done)),
		engine->past.call + FREE_WAIT);
	if (engine->rank)
		writes_add(writes, mail_done_at(engine, true, engine->rank), FREE_WAIT);
	else
		mails_withdraw(engine, writes);
}

const struct cuda_way way_leader = {
	.is_fused = true,
	.needs_hall = leader_needs_hall,
	.open = leader_open,
	.close = leader_close,
	.says = leader_says,
	.coll = leader_coll,
	.passes = leader_passes,
	.pairs = leader_pairs,
	.done_at = leader_done_at,
	.withdraw = leader_withdraw,
	.settle = leader_settle,
	.let_go = leader_let_go,
};
