/*
 * fate.c - how an engine learns that it is over, tells, and lets go of what waits.
 *
 * Looked for are, in this order: calls that differ (ledger.h, or a kernel's word); a rank
 * that left and owes a call; one that died or failed; one that did not come within
 * WEFT_TIMEOUT_SEC. The first cause stays. Everybody's kernels are stopped then, at once,
 * by a word that all processes can write, and the desk's thread frees the streams that
 * wait.
 */
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/param.h"
#include "base/thread.h"
#include "exec/cuda/meet/table.h"
#include "exec/cuda/state.h"
#include "exec/host/doing.h"

enum { IDLE_MS = 20, NAP_US = 50 };

bool engine_is_stopped(const struct cuda_engine *engine)
{
	return __atomic_load_n(&engine->words.here->abort, __ATOMIC_ACQUIRE) != 0;
}

/* Without words that others can write, what they wrote is passed on by the desk. */
static void words_pass_on(struct cuda_engine *engine)
{
	const struct words *shared = ledger_words(engine->ledger);

	if (__atomic_load_n(&shared->abort, __ATOMIC_ACQUIRE))
		__atomic_store_n(&engine->words.here->abort, 1, __ATOMIC_RELEASE);
}

static void all_stop(struct cuda_engine *engine)
{
	ledger_stop_all(engine->ledger);
	__atomic_store_n(&engine->words.here->abort, 1, __ATOMIC_RELEASE);
}

/* ---- causes ---- */

/* A kernel saw signs or sizes that differ; the ledger has the words for it, unless it was
 * a graph's call. */
static enum err trouble_check(struct cuda_engine *engine, uint32_t *culprit)
{
	uint32_t trouble = __atomic_load_n(
		&engine->words.here->trouble, __ATOMIC_ACQUIRE);
	enum err e = trouble ? ledger_search(engine->ledger, culprit) : OK;

	if (!trouble || e)
		return e;
	*culprit = trouble - 1;
	return err_set(ERR_USAGE,
		"rank %u called another collective, type, operator, root or count than "
		"the others",
		trouble - 1);
}

/* Who saw a difference first and stopped may have been neither of the two. */
static enum err peers_check(struct cuda_engine *engine, uint32_t *culprit)
{
	enum err e = health_look(engine->fate.health, culprit), found = OK;

	if (e == ERR_USAGE)
		found = ledger_search(engine->ledger, culprit);
	return found ? found : e;
}

/* Once for each call that it owes. */
static void late_warn(struct cuda_engine *engine, uint32_t peer, const char *owed)
{
	struct fate *fate = &engine->fate;
	uint32_t pid = health_process(fate->health, peer);
	const char *state = doing_process(pid);

	fate->is_late_told[peer] = true;
	log_warn("rank %u has waited %.1f s for rank %u (process %u%s%s) to make %s",
		engine->rank, (double)(clock_ns() - fate->late_since[peer]) * 1e-9, peer,
		pid, state[0] ? ", " : "", state, owed);
}

/* The peer owes this call: since when? */
static enum err late_check(struct cuda_engine *engine, uint32_t peer, const char *owed)
{
	int64_t limit_s = param_int(PARAM_TIMEOUT);
	uint64_t at = ledger_progress(engine->ledger, peer);
	struct fate *fate = &engine->fate;

	if (!fate->late_since[peer] || fate->late_at[peer] != at) {
		fate->late_since[peer] = clock_ns();
		fate->late_at[peer] = at;
		fate->is_late_told[peer] = false;
	}
	if (!fate->is_late_told[peer] &&
		clock_is_over(fate->late_since[peer], param_int(PARAM_STALL)))
		late_warn(engine, peer, owed);
	if (!clock_is_over(fate->late_since[peer], limit_s))
		return OK;
	return err_set(ERR_TIMEOUT, "rank %u did not make %s within %ld s", peer, owed,
		(long)limit_s);
}

/* Does a peer that has left, or has not, owe a call? */
static enum err debts_check(struct cuda_engine *engine, bool of_left, uint32_t *culprit)
{
	enum err e = OK;

	for (uint32_t r = 0; r < engine->rank_count && !e; r++) {
		char owed[LEDGER_TEXT_BYTES];

		if (r == engine->rank ||
			health_has_left(engine->fate.health, r) != of_left)
			continue;
		*culprit = r;
		if (!ledger_is_behind(engine->ledger, r, owed))
			engine->fate.late_since[r] = 0;
		else if (of_left)
			e = err_set(ERR_REMOTE,
				"rank %u destroyed its communicator without %s", r, owed);
		else
			e = late_check(engine, r, owed);
	}
	return e;
}

static enum err cause_find(struct cuda_engine *engine, uint32_t *culprit)
{
	enum err e = ledger_check(engine->ledger, culprit);

	if (!e)
		e = trouble_check(engine, culprit);
	if (!e)
		e = debts_check(engine, true, culprit);
	if (!e)
		e = peers_check(engine, culprit);
	return e ? e : debts_check(engine, false, culprit);
}

/* ---- the end ---- */

/* Is all of it done that this rank has enqueued? Any thread may ask. */
static bool is_idle(struct cuda_engine *engine)
{
	const struct stream_order *order = &engine->past.order;
	cu_context had;
	bool is_done;
	int mode;

	if (atomic_load(&engine->now.is_enqueuing))
		return false;
	had = context_enter(engine);
	cuda_capture_relax(engine->driver, &mode);
	is_done = memops_are_done(engine) &&
		  (!order->is_recorded || !engine->driver->event_query(order->event));
	cuda_capture_restore(engine->driver, mode);
	context_leave(engine->driver, engine->context, had);
	return is_done;
}

/* Once a rank has made no call for a while it is found out whether all are done: when a
 * peer has ended, words are set free, and it cannot be told any more. Whoever ends says
 * so before, and is looked for once more. */
static void rest_note(struct cuda_engine *engine)
{
	struct fate *fate = &engine->fate;
	uint64_t at = ledger_made(engine->ledger);
	uint32_t culprit;

	if (fate->rested_at == at && fate->done_at != at && is_idle(engine) &&
		!cause_find(engine, &culprit))
		fate->done_at = at;
	fate->rested_at = at;
}

/* With the lock held. The others can read why before they find their kernels stopped. */
static void end_begin(struct cuda_engine *engine, enum err code, uint32_t culprit)
{
	struct fate *fate = &engine->fate;

	snprintf(fate->reason, sizeof(fate->reason), "%s", err_last());
	fate->culprit = culprit;
	fate->is_cut = code != ERR_REMOTE || fate->done_at != ledger_made(engine->ledger);
	atomic_store(&fate->code, (int)code);
	health_tell(engine->fate.health, code, culprit, fate->reason);
	all_stop(engine);
}

enum err engine_judge(struct cuda_engine *engine)
{
	struct fate *fate = &engine->fate;
	uint32_t culprit = engine->rank;
	enum err e;

	pthread_mutex_lock(&fate->lock);
	if (!atomic_load(&fate->code) && engine->fate.health) {
		e = cause_find(engine, &culprit);
		if (e)
			end_begin(engine, e, culprit);
		else
			rest_note(engine);
	}
	e = (enum err)atomic_load(&fate->code);
	pthread_mutex_unlock(&fate->lock);
	if (e)
		err_adopt(fate->reason);
	return e;
}

enum err cuda_engine_check(struct cuda_engine *engine)
{
	bool is_troubled = __atomic_load_n(
		&engine->words.here->trouble, __ATOMIC_ACQUIRE);

	return is_troubled || engine_is_stopped(engine) ? engine_judge(engine) : OK;
}

bool cuda_engine_is_cut(struct cuda_engine *engine)
{
	return !atomic_load(&engine->fate.code) || engine->fate.is_cut;
}

enum err engine_is_well(struct cuda_engine *engine)
{
	return engine_is_stopped(engine) ? engine_blame(engine, OK) : OK;
}

enum err engine_blame(struct cuda_engine *engine, enum err code)
{
	bool is_others = code == ERR_USAGE || code == ERR_REMOTE;
	enum err e = is_others || engine_is_stopped(engine) ? engine_judge(engine) : OK;

	if (e || code)
		return e ? e : code;
	return err_set(ERR_REMOTE,
		"the communicator has failed or was aborted: no more calls on it");
}

/* What was let go is let go again and again, since a graph may be replayed, and a peer's
 * stream may count what it had enqueued before. */
void engine_look(void *arg)
{
	struct cuda_engine *engine = arg;

	words_pass_on(engine);
	engine_judge(engine);
	if (!engine_is_stopped(engine))
		return;
	memops_free(engine);
	if (atomic_load(&engine->fate.is_stuck))
		memops_free_aside(engine);
}

/* Nobody is told or asked any more. */
static void engine_mute(struct cuda_engine *engine)
{
	pthread_mutex_lock(&engine->fate.lock);
	engine->fate.health = NULL;
	pthread_mutex_unlock(&engine->fate.lock);
}

void cuda_engine_abort(struct cuda_engine *engine)
{
	cu_context had;
	int mode;

	if (!engine || !engine->words.here)
		return;
	all_stop(engine);
	had = context_enter(engine);
	cuda_capture_relax(engine->driver, &mode);
	memops_free(engine);
	cuda_capture_restore(engine->driver, mode);
	context_leave(engine->driver, engine->context, had);
}

/* ---- freed ---- */

/* Everything on the device that is ours. */
static void device_free(struct cuda_engine *engine)
{
	const struct cuda_driver *driver = engine->driver;

	if (engine->streams.side)
		driver->stream_destroy(engine->streams.side);
	if (engine->streams.watcher)
		driver->stream_destroy(engine->streams.watcher);
	if (engine->streams.rescue)
		driver->stream_destroy(engine->streams.rescue);
	for (uint32_t i = 0; i < engine->kept.pool_count; i++)
		driver->mem_free(engine->kept.pools[i]);
	if (engine->past.order.event)
		driver->event_destroy(engine->past.order.event);
	if (engine->past.puts.event)
		driver->event_destroy(engine->past.puts.event);
	bounce_free(engine);
	staged_free(engine);
	trays_close(engine->reach.trays);
	for (uint32_t r = 0; r < engine->rank_count; r++)
		if (engine->reach.is_mapped[r])
			driver->ipc_close(engine->reach.halls[r]);
		else if (engine->reach.halls[r])
			lent_drop(engine->reach.halls[r]);
	lent_sweep(engine);
	if (engine->code.module)
		driver->module_unload(engine->code.module);
	if (engine->words.are_shared)
		driver->mem_host_unregister(engine->words.here);
	else if (engine->words.here)
		driver->mem_host_free(engine->words.here);
}

/* After everything that was enqueued. */
static void engine_free(struct cuda_engine *engine)
{
	desk_close(engine->reach.desk);
	aside_close(engine->fate.aside);
	if (engine->way)
		engine->way->close(engine);
	table_release(engine->reach.table);
	device_free(engine);
	ledger_close(engine->ledger);
	pthread_mutex_destroy(&engine->fate.lock);
	pthread_mutex_destroy(&engine->fate.freeing);
	free(engine->kept.list);
	free(engine->reach.hellos);
	free(engine);
}

/* A thread that frees an engine when the context has nothing more to do. */
struct reaper {
	struct cuda_engine *engine;
	_Atomic uint32_t stage; /* 1: it frees, 2: it is done, 3: nobody waits for it */
};

static void *reaper_main(void *argument)
{
	struct reaper *reaper = argument;
	const struct cuda_driver *driver = reaper->engine->driver;
	uint32_t stage = 0;

	driver->context_set(reaper->engine->context);
	cuda_capture_relax(driver, NULL);
	driver->context_synchronize();
	atomic_compare_exchange_strong(&reaper->stage, &stage, 1);
	engine_free(reaper->engine);
	if (stage == 3)
		free(reaper);
	else
		atomic_store(&reaper->stage, 2);
	return NULL;
}

/* Its own part is over when the context is idle within this time; other work is not
 * waited for. False: there is no thread. */
static bool engine_leave(struct cuda_engine *engine)
{
	struct reaper *reaper = calloc(1, sizeof(*reaper));
	uint64_t end = clock_ns() + IDLE_MS * CLOCK_MS;
	bool is_stuck = atomic_load(&engine->fate.is_stuck);
	uint32_t stage = 0;
	pthread_t thread;

	if (!reaper)
		return false;
	reaper->engine = engine;
	if (thread_start_roomy(&thread, "weft-reaper", reaper_main, reaper)) {
		free(reaper);
		return false;
	}
	/* what is stuck is not free that soon */
	while (!atomic_load(&reaper->stage) && clock_ns() < end && !is_stuck)
		usleep(NAP_US);
	if (atomic_compare_exchange_strong(&reaper->stage, &stage, 3)) {
		pthread_detach(thread);
		return true;
	}
	pthread_join(thread, NULL);
	free(reaper);
	return true;
}

void cuda_engine_destroy(struct cuda_engine *engine)
{
	const struct cuda_driver *driver;
	cu_context mine, had;
	int mode;

	if (!engine)
		return;
	if (engine->words.here && engine_is_stopped(engine)) {
		engine_mute(engine);
		if (engine_leave(engine))
			return;
	}
	driver = engine->driver;
	mine = engine->context;
	had = context_enter(engine);
	cuda_capture_relax(driver, &mode);
	/* kernels may still use what is freed below; if a rank dies meanwhile the desk
	 * sees to it */
	driver->context_synchronize();
	engine_mute(engine);
	engine_free(engine);
	cuda_capture_restore(driver, mode);
	context_leave(driver, mine, had);
}
