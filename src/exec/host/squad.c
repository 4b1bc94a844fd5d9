#include "exec/host/squad.h"

#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/futex.h"
#include "base/log.h"
#include "base/thread.h"
#include "exec/host/remote.h"
#include "link/wires.h"

enum {
	ORDER_SHIFT = 4,
	ORDER_THREADS = (1 << ORDER_SHIFT) - 1,
	IDLE_US = 1000000000,
	LEAVE_US = 1000, /* between looks whether all have stopped */
	LINGER_NS = 20000
};

_Static_assert((int)SQUAD_MAX <= (int)ORDER_THREADS, "an order holds them");

/* ---- a mate ---- */

static uint32_t order_await(struct squad *squad, uint32_t seen)
{
	uint64_t start = clock_ns();
	uint32_t order = atomic_load(&squad->order);

	/* calls come in rows, and who sleeps is late */
	while (order == seen && clock_ns() - start < LINGER_NS) {
		cpu_relax();
		order = atomic_load(&squad->order);
	}
	while (order == seen) {
		/* pairs with the look at the sleepers in order_give() */
		atomic_fetch_add(&squad->sleepers, 1);
		futex_wait(&squad->order, seen, IDLE_US);
		atomic_fetch_sub(&squad->sleepers, 1);
		order = atomic_load(&squad->order);
	}
	return order;
}

static void order_give(struct squad *squad, uint32_t threads)
{
	uint32_t before = atomic_load(&squad->order) >> ORDER_SHIFT;

	atomic_store(&squad->order, (before + 1) << ORDER_SHIFT | threads);
	if (atomic_load(&squad->sleepers))
		futex_wake(&squad->order);
}

static enum err mate_start(struct mate *mate)
{
	struct squad *squad = mate->squad;
	struct host_engine *engine = mate->engine;

	mate->spec = *squad->spec;
	mate->spec.told = NULL; /* whoever listens is told by one thread */
	engine->memory.foreign = squad->engine->memory.foreign;
	engine->calls.ahead = squad->number - (engine->calls.number + 1);
	return host_call_start(engine, &mate->spec, &mate->call);
}

/* Its own of the shares that were handed over. */
static enum err mate_jobs(const struct mate *mate)
{
	const struct squad *squad = mate->squad;
	const struct host_job **mine = calloc(squad->job_count, sizeof(*mine));
	uint32_t count = 0;
	enum err e;

	if (!mine)
		return err_set(ERR_SYSTEM, "no memory for %u calls", squad->job_count);
	for (uint32_t i = 0; i < squad->job_count; i++)
		if (squad->jobs[i].engine == mate->engine)
			mine[count++] = &squad->jobs[i];
	e = count ? host_run_here(mine, count) : OK;
	free(mine);
	return e;
}

static enum err mate_run(struct mate *mate)
{
	enum err e;

	if (mate->squad->jobs)
		return mate_jobs(mate);
	e = mate_start(mate);

	return e ? e : host_run_share(&mate->call);
}

static void mate_end(struct mate *mate)
{
	atomic_store(&mate->blocked, 0);
	if (atomic_fetch_sub(&mate->squad->busy, 1) == 1)
		futex_wake(&mate->squad->busy);
}

/* Only the first failure counts: it is the cause of the others. */
static void mate_fail(struct mate *mate, enum err e)
{
	struct squad *squad = mate->squad;
	uint32_t nobody = 0;

	mate->error = e;
	mate->culprit = mate->engine->culprit;
	snprintf(mate->sentence, sizeof(mate->sentence), "%s", err_last());
	if (atomic_compare_exchange_strong(
		    &squad->stop, &nobody, 1 + mate->engine->calls.share))
		host_engine_wake(squad->engine);
}

/* On the cores that the rank had when it came: whoever makes the first large call may be
 * bound to one by now, and all mates with it. */
static void mate_spread(const struct mate *mate)
{
	const struct rank_status *status = peer_status(mate->peers, mate->engine->rank);

	sched_setaffinity(0, sizeof(status->cpus), (const cpu_set_t *)status->cpus);
}

static void *mate_main(void *arg)
{
	struct mate *mate = arg;
	struct squad *squad = mate->squad;
	uint32_t order = 0;

	err_hush();
	mate_spread(mate);
	for (;;) {
		enum err e;

		order = order_await(squad, order);
		if (atomic_load(&squad->quit))
			return NULL;
		if (mate->engine->calls.share >= (order & ORDER_THREADS))
			continue;
		e = mate_run(mate);
		if (e)
			mate_fail(mate, e);
		mate_end(mate);
	}
}

static struct mate *mate_of(const struct host_call *call)
{
	struct squad *squad = call->engine->calls.squad;

	return &squad->mates[call->engine->calls.share - 1];
}

void squad_move(const struct host_call *call, uint64_t stamp)
{
	struct mate *mate = mate_of(call);

	atomic_store_explicit(
		&mate->stamp, (uint32_t)(stamp ^ stamp >> 32), memory_order_relaxed);
	atomic_store_explicit(&mate->blocked, 0, memory_order_relaxed);
}

void squad_block(const struct host_call *call)
{
	atomic_store(&mate_of(call)->blocked, 1 + call->blocked.rank);
}

/* ---- one without a thread ---- */

static enum err mate_turn(struct mate *mate, bool *moved)
{
	uint64_t stamp = host_call_stamp(&mate->call), now;
	enum err e = host_call_step(&mate->call);

	now = host_call_stamp(&mate->call);
	*moved = now != stamp;
	if (*moved) {
		mate->grief_ns = 0;
		squad_move(&mate->call, now);
	}
	if (e == ERR_AGAIN)
		return OK;
	if (e) {
		mate->squad->engine->culprit = mate->engine->culprit;
		return e;
	}
	mate->takes_turns = false;
	mate_end(mate);
	return OK;
}

enum err squad_turn(struct host_call *call)
{
	struct squad *squad = call->engine->calls.squad;
	enum err e = OK;

	if (call->engine->calls.share)
		return OK;
	for (uint32_t i = squad->threads; i < squad->count && !e; i++) {
		bool moved = false;

		if (squad->mates[i].takes_turns)
			e = mate_turn(&squad->mates[i], &moved);
		call->come.turns += moved;
	}
	return e;
}

enum err squad_check(struct host_call *call)
{
	struct squad *squad = call->engine->calls.squad;
	enum err e = OK;

	if (!squad || call->engine->calls.share)
		return OK;
	for (uint32_t i = squad->threads; i < squad->count && !e; i++) {
		struct mate *mate = &squad->mates[i];

		if (!mate->takes_turns)
			continue;
		e = host_share_check(&mate->call, &mate->grief_ns);
		if (e)
			call->engine->culprit = mate->engine->culprit;
	}
	return e;
}

struct host_call *squad_turns_left(const struct host_call *call)
{
	struct squad *squad = call->engine->calls.squad;

	for (uint32_t i = squad->threads; i < squad->count; i++)
		if (!call->engine->calls.share && squad->mates[i].takes_turns)
			return &squad->mates[i].call;
	return NULL;
}

static enum err turns_begin(struct squad *squad)
{
	enum err e = OK;

	for (uint32_t i = squad->threads; i + 1 < squad->plan->squad && !e; i++) {
		squad->mates[i].grief_ns = 0;
		e = mate_start(&squad->mates[i]);
	}
	for (uint32_t i = squad->threads; i + 1 < squad->plan->squad; i++)
		squad->mates[i].takes_turns = !e;
	return e;
}

static void turns_leave(struct squad *squad)
{
	for (uint32_t i = squad->threads; i < squad->count; i++) {
		struct mate *mate = &squad->mates[i];

		if (!mate->takes_turns)
			continue;
		host_share_leave(&mate->call);
		mate->takes_turns = false;
		mate_end(mate);
	}
}

/* ---- they come and go ---- */

static enum err mate_make(struct squad *squad, struct mate *mate)
{
	struct host_engine *engine = squad->engine;
	uint32_t index = squad->count + 1;
	struct wires *set;
	enum err e = peers_layer(engine->peers, index, &mate->peers);

	if (!e)
		e = wires_set(remote_wires(engine->remote), index, &set);
	if (!e)
		e = host_engine_for_mate(engine, mate->peers, set, &mate->engine);
	if (e)
		return e;
	mate->engine->calls.share = index;
	mate->engine->calls.squad = squad;
	mate->squad = squad;
	squad->count++;
	return OK;
}

/* As many as can be had: what a container grants may be used up by now. */
static void mates_start(struct squad *squad)
{
	int rc = 0;

	while (!rc && squad->threads < squad->count) {
		struct mate *mate = &squad->mates[squad->threads];

		rc = thread_start(&mate->thread, "weft-mate", mate_main, mate);
		squad->threads += !rc;
	}
	if (rc)
		log_warn("rank %u has %u of %u threads for large calls between hosts, "
			 "which are slower for it: %s (ulimit -u, or pids.max of the "
			 "container)",
			squad->engine->rank, squad->threads + 1, squad->count + 1,
			strerror(rc));
}

static void mate_free(struct mate *mate)
{
	host_engine_destroy(mate->engine);
	peers_destroy(mate->peers);
}

static enum err squad_make(struct host_engine *engine)
{
	struct squad *squad = calloc(1, sizeof(*squad));
	enum err e = OK;

	if (!squad)
		return err_set(ERR_SYSTEM, "no memory for threads of large calls");
	squad->engine = engine;
	while (!e && squad->count + 1 < engine->calls.squad_max)
		e = mate_make(squad, &squad->mates[squad->count]);
	if (e) {
		mate_free(&squad->mates[squad->count]);
		squad_end(squad);
		return e;
	}
	engine->calls.squad = squad;
	mates_start(squad);
	return OK;
}

void squad_end(struct squad *squad)
{
	if (!squad)
		return;
	atomic_store(&squad->quit, true);
	order_give(squad, 0);
	for (uint32_t i = 0; i < squad->threads; i++)
		pthread_join(squad->mates[i].thread, NULL);
	for (uint32_t i = 0; i < squad->count; i++)
		mate_free(&squad->mates[i]);
	free(squad);
}

void squad_wake(struct squad *squad)
{
	if (!squad)
		return;
	futex_wake(&squad->busy);
	for (uint32_t i = 0; i < squad->count; i++)
		host_engine_wake(squad->mates[i].engine);
}

/* ---- the first thread ---- */

enum err squad_begin(struct host_call *call)
{
	struct host_engine *engine = call->engine;
	struct squad *squad = engine->calls.squad;
	enum err e = squad ? OK : squad_make(engine);

	if (e || engine->calls.share)
		return e;
	squad = engine->calls.squad;
	squad->spec = call->spec;
	squad->plan = call->plan;
	squad->number = call->number;
	e = turns_begin(squad);
	if (e)
		return e;
	/* before any thread touches what others have shown, and until all are done */
	if (!call->spec->carry)
		host_call_show(call);
	for (uint32_t i = 0; i < call->plan->squad; i++)
		atomic_store(&squad->tiles[i], 0);
	for (uint32_t i = 0; i + 1 < call->plan->squad; i++) {
		atomic_store(&squad->mates[i].stamp, 0);
		atomic_store(&squad->mates[i].blocked, 0);
	}
	atomic_store(&squad->busy, call->plan->squad - 1);
	order_give(squad, call->plan->squad);
	return OK;
}

enum err squad_failure(struct host_engine *engine)
{
	const struct squad *squad = engine->calls.squad;
	uint32_t failed = atomic_load(&squad->stop) - 1;
	const struct mate *mate;

	/* a mate has nothing to say of what it was not the first to see */
	if (engine->calls.share || !failed)
		return ERR_REMOTE;
	mate = &squad->mates[failed - 1];
	engine->culprit = mate->culprit;
	return err_set(mate->error, "%s", mate->sentence);
}

/* Whom one of those that are still at it waits for. What is missing there is not on this
 * thread's cards, and that rank is in the call: so no note says what it has not done. */
static void mates_look(struct host_call *call)
{
	const struct squad *squad = call->engine->calls.squad;
	uint32_t blocked = 0, stamp = 0;

	for (uint32_t i = 0; i + 1 < call->plan->squad; i++) {
		stamp += atomic_load(&squad->mates[i].stamp);
		if (!blocked)
			blocked = atomic_load(&squad->mates[i].blocked);
	}
	call->peer = stamp;
	call->blocked.awaits_tide = !blocked;
	if (blocked)
		host_call_block(call, blocked - 1, 0, call->base);
}

enum err squad_join(struct host_call *call)
{
	const struct squad *squad = call->engine->calls.squad;

	/* pairs with the subtraction in mate_main() */
	if (!atomic_load(&squad->busy))
		return squad_has_stopped(call->engine) ? squad_failure(call->engine) : OK;
	mates_look(call);
	return ERR_AGAIN;
}

void squad_sleep(const struct host_call *call, uint32_t timeout_us)
{
	struct squad *squad = call->engine->calls.squad;
	uint32_t busy = atomic_load(&squad->busy);

	if (busy && !squad_has_stopped(call->engine))
		futex_wait(&squad->busy, busy, timeout_us);
}

static void busy_await(struct squad *squad)
{
	uint32_t busy;

	while ((busy = atomic_load(&squad->busy)))
		futex_wait(&squad->busy, busy, LEAVE_US);
}

void squad_leave(struct host_engine *engine)
{
	struct squad *squad = engine->calls.squad;
	uint32_t nobody = 0;

	atomic_compare_exchange_strong(&squad->stop, &nobody, 1);
	turns_leave(squad);
	squad_wake(squad);
	busy_await(squad);
	atomic_store(&squad->stop, 0);
}

enum err squad_helpers(struct host_engine *engine, uint32_t *helpers)
{
	struct squad *squad = engine->calls.squad;
	enum err e = squad ? OK : squad_make(engine);

	squad = engine->calls.squad;
	*helpers = e ? 0 : squad->threads;
	return e;
}

struct host_engine *squad_engine(const struct host_engine *engine, uint32_t number)
{
	const struct squad *squad = engine->calls.squad;

	return squad->mates[number - 1].engine;
}

void squad_hand(struct host_engine *engine, const struct host_job *jobs, uint32_t count)
{
	struct squad *squad = engine->calls.squad;
	bool has_any = false;

	for (uint32_t i = 0; squad && i < count; i++)
		for (uint32_t k = 0; k < squad->threads; k++)
			has_any = has_any || jobs[i].engine == squad->mates[k].engine;
	if (!has_any)
		return;
	squad->jobs = jobs;
	squad->job_count = count;
	atomic_store(&squad->busy, squad->threads);
	order_give(squad, 1 + squad->threads);
}

enum err squad_take_back(struct host_engine *engine, enum err e)
{
	struct squad *squad = engine->calls.squad;

	if (!squad || !squad->jobs)
		return e;
	if (!e)
		busy_await(squad);
	/* one that had nothing to run may have failed to find that out */
	if (!e && squad_has_stopped(engine))
		e = squad_failure(engine);
	if (e)
		squad_leave(engine);
	squad->jobs = NULL;
	return e;
}

uint32_t squad_tell(const struct host_call *call, uint32_t tiles)
{
	struct squad *squad = call->engine->calls.squad;
	uint32_t count = call->plan->squad, least = UINT32_MAX;

	/* who comes last sees what all have stored */
	atomic_store(&squad->tiles[call->engine->calls.share], tiles);
	for (uint32_t i = 0; i < count; i++) {
		uint32_t until = atomic_load(&squad->tiles[i]) * count + i;

		least = until < least ? until : least;
	}
	return least;
}
