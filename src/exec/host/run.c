#include "exec/host/run.h"

#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/futex.h"
#include "base/param.h"
#include "exec/host/cut.h"
#include "exec/host/doing.h"
#include "exec/host/peers.h"
#include "exec/host/remote.h"
#include "exec/host/squad.h"
#include "exec/host/state.h"

enum {
	YIELD_NS = 1000000,	 /* yield this long before sleeping */
	LEAVING_NS = 1000000000, /* a message to another host may just be slow */
	SLEEP_FIRST_US = 200,	 /* a wake can be missed, see word_publish() */
	SLEEP_US = 10000,      /* later ones double up to this; slow checks in between */
	SLEEP_SHARED_US = 500, /* .. when one thread drives several jobs */
	STACKED_YIELDS = 2,    /* yields before asking whether two ranks share a core */
	CLOCK_EVERY = 16,      /* yields between looks at the clock */
	DOZE_US = 200,
	DOZES = 1024,	   /* after a yield .. */
	TIDE_US = 20,	   /* copies follow each other, so the next is under way */
	CARRY_US = 50,	   /* .. and so do messages */
	TURNS_US = 50,	   /* asleep for one share while another has news */
	HOG_NS = 1000000,  /* .. that took so long */
	RUNNING_INLINE = 8 /* enough for a send and a receive per neighbour */
};

/* How long this thread has been without progress. */
struct idle {
	uint32_t turns, spin_turns;
	uint32_t sleep_us; /* the next sleep */
	uint64_t since_ns;
	uint64_t grief_ns; /* since when we know that a rank died; 0: none */
	bool has_warned;
};

static uint32_t idle_sleep_us(struct idle *idle)
{
	uint32_t now = idle->sleep_us ? idle->sleep_us : SLEEP_FIRST_US;

	idle->sleep_us = now * 2 < SLEEP_US ? now * 2 : SLEEP_US;
	return now;
}

/* Whoever loses its patience leaves its note: others who lose theirs at the same time
 * find by it for whom all have waited. */
static bool is_note_over(enum err e)
{
	return e != ERR_TIMEOUT;
}

static enum err wait_timeout(
	struct host_engine *engine, const struct doing *doing, int64_t limit_s)
{
	uint32_t cause = doing_cause(engine->peers, doing);
	char text[DOING_TEXT_BYTES], beyond[48] = "", way[DOING_WAY_BYTES];

	engine->culprit = cause;
	doing_print(doing, text);
	doing_way(engine, doing, way);
	if (cause != doing->rank)
		snprintf(beyond, sizeof(beyond), "; that one waits for rank %u", cause);
	return err_set(ERR_TIMEOUT,
		"rank %u has waited %ld s (WEFT_TIMEOUT_SEC) for rank %u%s in %s%s",
		engine->rank, (long)limit_s, doing->rank, way, text, beyond);
}

/* No progress for a while: note for the others what this rank waits for, see whether
 * that can ever end, warn when it takes long, and give up when it takes too long. */
static enum err wait_check(
	struct host_engine *engine, struct idle *idle, struct doing *doing)
{
	int64_t limit_s = param_int(PARAM_TIMEOUT), warn_s = param_int(PARAM_STALL);
	enum err e;

	doing->since_ns = idle->since_ns;
	if (!doing->is_leaving || clock_ns() - idle->since_ns > LEAVING_NS) {
		doing_tell(engine, doing);
		e = doing_circle_check(engine, doing);
		if (e)
			return e;
		doing_tell_far(engine, doing);
	}
	e = host_bereaved_check(engine, doing, &idle->grief_ns);
	if (e)
		return e;
	if (!idle->has_warned && clock_is_over(idle->since_ns, warn_s)) {
		idle->has_warned = true;
		doing_warn(engine, doing);
	}
	return clock_is_over(idle->since_ns, limit_s)
		       ? wait_timeout(engine, doing, limit_s)
		       : OK;
}

/*
 * Two ranks that take turns on one core while another core idles: yielding keeps both
 * runnable and the kernel content. One that sleeps is woken on a free core. Cores are
 * only compared where there should be one for each.
 */
static bool is_stacked(const struct host_engine *engine, uint32_t blocked_rank)
{
	uint32_t cpu = (uint32_t)sched_getcpu() + 1;

	if (!engine->waits.patience || blocked_rank == engine->rank)
		return false;
	atomic_store_explicit(&peer_status(engine->peers, engine->rank)->cpu, cpu,
		memory_order_relaxed);
	return atomic_load_explicit(&peer_status(engine->peers, blocked_rank)->cpu,
		       memory_order_relaxed) == cpu;
}

/*
 * A rank that yields its core is after others of its job, who yield in turn. A program
 * that computes keeps the core for milliseconds, again and again (16 MiB, 2 hosts, beside
 * a compiler: 184 ms). Then it is better to sleep until there is news: the kernel gives
 * the core back at once. Inside one host a sleeper costs those who have to wake it.
 */
static void yield_to_ranks(struct host_engine *engine)
{
	uint64_t before;

	if (!engine->remote) {
		sched_yield();
		return;
	}
	before = clock_ns();
	sched_yield();
	if (clock_ns() - before > HOG_NS)
		engine->waits.dozes = DOZES;
}

enum idle_turn { IDLE_AGAIN, IDLE_DOZE, IDLE_CHECK };

/* Spin, yield or doze, until it is time for the slow checks and a sleep. */
static enum idle_turn idle_turn(struct host_engine *engine, struct idle *idle)
{
	if (++idle->turns <= idle->spin_turns) {
		cpu_relax();
		return IDLE_AGAIN;
	}
	if (!idle->since_ns)
		idle->since_ns = clock_ns();
	if ((idle->turns - idle->spin_turns) % CLOCK_EVERY == 0 &&
		clock_ns() - idle->since_ns >= YIELD_NS)
		return IDLE_CHECK;
	if (engine->waits.dozes) {
		engine->waits.dozes--;
		return IDLE_DOZE;
	}
	yield_to_ranks(engine);
	return IDLE_AGAIN;
}

static void idle_reset(struct idle *idle)
{
	idle->turns = 0;
	idle->since_ns = 0;
	idle->sleep_us = 0;
	idle->grief_ns = 0;
	idle->has_warned = false;
}

/* The abort word, and whether another thread has failed, is looked at once more after it
 * is known where we sleep: who sets it wakes us there (host_engine_wake()). */
static void engine_sleep(struct host_engine *engine, _Atomic uint64_t *word,
	_Atomic uint32_t *sleepers, uint64_t seen, uint32_t timeout_us)
{
	atomic_store(&engine->asleep, word);
	if ((!engine->abort || !atomic_load(engine->abort)) && !squad_has_stopped(engine))
		word_sleep(word, sleepers, seen, timeout_us);
	atomic_store(&engine->asleep, NULL);
}

static void call_sleep(struct host_call *call, uint32_t timeout_us)
{
	const struct peers *peers = call->engine->peers;
	uint64_t number = call->blocked.want >> BOARD_CALL_SHIFT;
	struct card *card = peer_card(peers, call->blocked.rank, number);
	_Atomic uint64_t *word = &card->position[call->blocked.lane];
	uint64_t seen = atomic_load(word);
	struct host_call *turn;

	if (call->plan->squad > 1 && (turn = squad_turns_left(call))) {
		timeout_us = timeout_us < TURNS_US ? timeout_us : TURNS_US;
		if (call->phase == PHASE_JOIN) {
			call_sleep(turn, timeout_us);
			return;
		}
	}
	if (call->phase == PHASE_JOIN) {
		squad_sleep(call, timeout_us);
		return;
	}
	if (call->blocked.awaits_tide) {
		usleep(timeout_us < TIDE_US ? timeout_us : TIDE_US);
		return;
	}
	/* a GPU wakes nobody */
	if (call->spec->carry && call->phase == PHASE_RUN) {
		usleep(timeout_us < CARRY_US ? timeout_us : CARRY_US);
		return;
	}
	if (!peer_is_local(peers, call->blocked.rank)) {
		remote_sleep(call, timeout_us);
		return;
	}
	/* a message that has not left is somebody's to wait for */
	if (call->engine->remote && !remote_flush(call) && timeout_us > SLEEP_FIRST_US)
		timeout_us = SLEEP_FIRST_US;
	if (!position_reached(seen, call->blocked.want))
		engine_sleep(call->engine, word, &card->sleepers, seen, timeout_us);
}

static struct doing call_doing(const struct host_call *call)
{
	const struct plan_key *key = &call->spec->key;

	struct doing doing = {.kind = DOING_COLL,
		.rank = call->blocked.rank,
		.jobs = 1,
		.colls = 1,
		.number = call->number + call->engine->calls.ahead,
		.want = call->blocked.want,
		.lane = call->blocked.lane,
		.sign = {key->coll, key->type, call->spec->op, key->root, key->count},
		.sign_hash = call->sign,
		.is_leaving = call->blocked.is_leaving};

	if (!call->shape) /* not settled yet: no lane has moved */
		return doing;
	if (position_reached(call->blocked.want, call->origin))
		doing.moves_want = call->blocked.want - call->origin;
	for (uint32_t i = 0; i < call->shape->program->lane_count; i++)
		doing.moves_done[i] = (uint64_t)call->lanes[i].tile *
					      call->shape->program->lanes[i].count +
				      call->lanes[i].move;
	return doing;
}

/* What is not over is given up: its memory may be somebody else's from now on. */
static void engine_rest(const struct host_engine *engine)
{
	if (engine->remote)
		wires_rest(remote_wires(engine->remote));
}

static enum err checked(struct host_call *call)
{
	enum err e = host_call_check(call);

	return e ? e : squad_check(call);
}

/* A call of the rank's own: what it waits for is told, and how long. */
static enum err call_check(struct host_call *call, struct idle *idle)
{
	enum err e = checked(call);
	struct doing doing = call_doing(call);

	return !e && idle->since_ns && !call->blocked.awaits_tide
		       ? wait_check(call->engine, idle, &doing)
		       : e;
}

/* A mate's: the rank's first thread, which waits for it in the end, tells the rest. */
enum err host_share_check(struct host_call *call, uint64_t *grief_ns)
{
	enum err e = host_call_check(call);
	struct doing doing = call_doing(call);

	if (e || call->blocked.awaits_tide)
		return e;
	squad_block(call);
	return host_bereaved_check(call->engine, &doing, grief_ns);
}

/* To the end, the common way for both. */
static inline __attribute__((always_inline)) enum err call_run(
	struct host_call *call, bool is_share)
{
	struct host_engine *engine = call->engine;
	struct idle idle = {.spin_turns = engine->waits.spin_turns};
	uint64_t stamp = 0;
	enum err e;

	call->patience = engine->waits.patience;
	while ((e = host_call_step(call)) == ERR_AGAIN) {
		uint64_t now = host_call_stamp(call);
		enum idle_turn turn;

		if (now != stamp) {
			idle_reset(&idle);
			if (is_share)
				squad_move(call, now);
		}
		stamp = now;
		turn = idle_turn(engine, &idle);
		if (turn == IDLE_DOZE)
			call_sleep(call, DOZE_US);
		if (turn != IDLE_CHECK &&
			(idle.turns != idle.spin_turns + STACKED_YIELDS ||
				!is_stacked(engine, call->blocked.rank)))
			continue;
		e = is_share ? host_share_check(call, &idle.grief_ns)
			     : call_check(call, &idle);
		if (e)
			break;
		call_sleep(call, idle_sleep_us(&idle));
	}
	return e;
}

void host_share_leave(struct host_call *call)
{
	host_call_leave(call);
	engine_rest(call->engine);
}

enum err host_run_share(struct host_call *call)
{
	enum err e = call_run(call, true);

	if (e)
		host_share_leave(call);
	return e;
}

enum err host_run_one(struct host_engine *engine, const struct host_spec *spec)
{
	struct host_call call;
	enum err e = host_call_start(engine, spec, &call);

	if (e)
		return e;
	e = call_run(&call, false);
	if (engine->notes.has_told && is_note_over(e))
		doing_end(engine);
	if (e)
		host_share_leave(&call);
	return e;
}

/* A job on its way. */
struct running {
	struct host_job asked;
	struct host_call call; /* of a JOB_COLL */
	enum err result;       /* ERR_AGAIN until it ends */
	bool started;
	struct running *before; /* must end first; NULL: may start at once */
};

/* Must b, which comes first, end before a begins? */
static bool jobs_conflict(const struct running *a, const struct running *b)
{
	if (a->asked.engine != b->asked.engine || a->asked.kind != b->asked.kind)
		return false;
	if (a->asked.kind == JOB_P2P)
		return a->asked.p2p.peer == b->asked.p2p.peer &&
		       a->asked.p2p.is_send == b->asked.p2p.is_send &&
		       a->asked.p2p.share.number == b->asked.p2p.share.number;
	if (a->asked.kind == JOB_ONESIDED)
		return a->asked.onesided.peer == b->asked.onesided.peer &&
		       !a->asked.onesided.awaited == !b->asked.onesided.awaited;
	return true;
}

static void jobs_order(struct running *jobs, uint32_t count)
{
	for (uint32_t i = 0; i < count; i++) {
		jobs[i].before = NULL;
		jobs[i].started = false;
		jobs[i].result = ERR_AGAIN;
		for (uint32_t j = i; j-- > 0 && !jobs[i].before;)
			if (jobs_conflict(&jobs[i], &jobs[j]))
				jobs[i].before = &jobs[j];
	}
}

/* One attempt at one job; *moved when anything happened. */
static enum err job_step(struct running *job, bool *moved)
{
	uint64_t stamp;

	if (job->before && job->before->result)
		return ERR_AGAIN;
	if (!job->started) {
		enum err e = OK;

		if (job->asked.kind == JOB_COLL)
			e = host_call_start(
				job->asked.engine, &job->asked.spec, &job->call);
		if (e)
			return e;
		job->started = true;
		*moved = true;
	}
	switch (job->asked.kind) {
	case JOB_COLL:
		stamp = host_call_stamp(&job->call);
		job->result = host_call_step(&job->call);
		*moved = *moved || stamp != host_call_stamp(&job->call);
		break;
	case JOB_P2P:
		stamp = p2p_stamp(&job->asked.p2p);
		job->result = p2p_step(&job->asked.p2p);
		*moved = *moved || stamp != p2p_stamp(&job->asked.p2p);
		break;
	case JOB_ONESIDED:
		stamp = onesided_stamp(&job->asked.onesided);
		job->result = onesided_step(&job->asked.onesided);
		*moved = *moved || stamp != onesided_stamp(&job->asked.onesided);
		break;
	}
	*moved = *moved || !job->result;
	return job->result;
}

static enum err job_check(struct running *job)
{
	switch (job->asked.kind) {
	case JOB_COLL:
		return checked(&job->call);
	case JOB_P2P:
		return p2p_check(&job->asked.p2p);
	default:
		return onesided_check(&job->asked.onesided);
	}
}

static struct doing job_doing(
	const struct running *job, const struct running *jobs, uint32_t count)
{
	struct doing doing;

	if (job->asked.kind == JOB_COLL)
		doing = call_doing(&job->call);
	else if (job->asked.kind == JOB_P2P)
		doing = p2p_doing(&job->asked.p2p);
	else
		doing = onesided_doing(&job->asked.onesided);
	doing.jobs = doing.colls = 0;
	for (uint32_t i = 0; i < count; i++)
		if (jobs[i].asked.engine == job->asked.engine && jobs[i].result) {
			doing.jobs++;
			doing.colls += jobs[i].asked.kind == JOB_COLL;
		}
	return doing;
}

/* Does it wait for this rank's own buffers? No peer is to blame for that. */
static bool awaits_tide(const struct running *job)
{
	return (job->asked.kind == JOB_COLL && job->call.blocked.awaits_tide) ||
	       (job->asked.kind == JOB_P2P && p2p_awaits_tide(&job->asked.p2p));
}

/* Is it over but for shares that are run elsewhere in the list, or by other threads? */
static bool is_joining(const struct running *job)
{
	return job->asked.kind == JOB_P2P && job->asked.p2p.share.is_over;
}

/* Does it stand for its communicator, in the rank's first thread? The first share of a
 * message is not over before the others. */
static bool is_to_tell(const struct running *job)
{
	return !job->asked.engine->calls.share && !awaits_tide(job) &&
	       (job->asked.kind != JOB_P2P || !job->asked.p2p.share.number);
}

/* Nothing wakes who sleeps for one job when the buffers of another have come. */
static uint32_t sleep_most(
	const struct running *jobs, uint32_t count, uint32_t timeout_us)
{
	for (uint32_t i = 0; i < count; i++)
		if (jobs[i].result && jobs[i].started && awaits_tide(&jobs[i]))
			return timeout_us < TIDE_US ? timeout_us : TIDE_US;
	return timeout_us;
}

/* The first blocked job of each communicator stands for it in the notes. */
static enum err jobs_check(
	struct running *jobs, uint32_t count, struct idle *idle, struct running **sleeper)
{
	const struct host_engine *noted = NULL;
	enum err e = OK;

	*sleeper = NULL;
	for (uint32_t i = 0; i < count && !e; i++) {
		if (!jobs[i].result || !jobs[i].started)
			continue;
		e = job_check(&jobs[i]);
		if (!*sleeper || is_joining(*sleeper))
			*sleeper = &jobs[i];
		if (!e && jobs[i].asked.engine != noted && is_to_tell(&jobs[i])) {
			struct doing doing = job_doing(&jobs[i], jobs, count);

			noted = jobs[i].asked.engine;
			e = wait_check(jobs[i].asked.engine, idle, &doing);
		}
	}
	return e;
}

static void notes_end(struct running *jobs, uint32_t count, enum err e)
{
	for (uint32_t i = 0; i < count; i++)
		if (jobs[i].asked.engine->notes.has_told && is_note_over(e))
			doing_end(jobs[i].asked.engine);
}

static void job_sleep(struct running *job, uint32_t timeout_us)
{
	_Atomic uint32_t *sleepers;
	_Atomic uint64_t *word;

	if (job->asked.kind == JOB_COLL) {
		call_sleep(&job->call, timeout_us);
		return;
	}
	if (job->asked.kind == JOB_ONESIDED) {
		word = onesided_word(&job->asked.onesided, &sleepers);
		engine_sleep(
			job->asked.engine, word, sleepers, atomic_load(word), timeout_us);
		return;
	}
	if (!peer_is_local(job->asked.engine->peers, job->asked.p2p.peer)) {
		p2p_sleep(&job->asked.p2p, timeout_us);
		return;
	}
	word = p2p_word(&job->asked.p2p, &sleepers);
	engine_sleep(job->asked.engine, word, sleepers,
		job->asked.p2p.is_send
			? atomic_load(word)
			: job->asked.engine->letters.taken[job->asked.p2p.peer],
		timeout_us);
}

/* True when it is time for the slow checks. */
static bool jobs_idle(struct running *jobs, uint32_t count, struct idle *idle)
{
	enum idle_turn turn = idle_turn(jobs[0].asked.engine, idle);

	for (uint32_t i = 0; turn == IDLE_DOZE && i < count; i++)
		if (jobs[i].result && jobs[i].started) {
			job_sleep(&jobs[i], sleep_most(jobs, count, DOZE_US));
			break;
		}
	return turn == IDLE_CHECK;
}

static enum err jobs_run(struct running *jobs, uint32_t count)
{
	struct idle idle = {
		.spin_turns = count ? jobs[0].asked.engine->waits.spin_turns : 0};
	uint32_t left = count;

	jobs_order(jobs, count);
	while (left) {
		struct running *sleeper;
		bool moved = false;
		enum err e = OK;

		left = 0;
		for (uint32_t i = 0; i < count; i++) {
			if (!jobs[i].result)
				continue;
			e = job_step(&jobs[i], &moved);
			if (e && e != ERR_AGAIN)
				return e;
			left += e == ERR_AGAIN;
		}
		if (moved) {
			if (idle.sleep_us)
				notes_end(jobs, count, OK);
			idle_reset(&idle);
		}
		if (!left || moved || !jobs_idle(jobs, count, &idle))
			continue;
		e = jobs_check(jobs, count, &idle, &sleeper);
		if (e)
			return e;
		if (sleeper)
			job_sleep(sleeper, sleep_most(jobs, count,
						   left == 1 ? idle_sleep_us(&idle)
							     : SLEEP_SHARED_US));
	}
	return OK;
}

enum err host_run(const struct host_job *const *jobs, uint32_t count)
{
	return cut_count(jobs, count) ? cut_run(jobs, count, host_run_here)
				      : host_run_here(jobs, count);
}

enum err host_run_here(const struct host_job *const *jobs, uint32_t count)
{
	struct running few[RUNNING_INLINE], *all = few;
	enum err e;

	if (count > RUNNING_INLINE)
		all = malloc(count * sizeof(*all));
	if (!all)
		return err_set(ERR_SYSTEM, "no memory for %u calls", count);
	for (uint32_t i = 0; i < count; i++)
		all[i].asked = *jobs[i];
	e = jobs_run(all, count);
	notes_end(all, count, e);
	for (uint32_t i = 0; e && i < count; i++)
		if (all[i].asked.kind == JOB_COLL && all[i].started && all[i].result)
			host_call_leave(&all[i].call);
	for (uint32_t i = 0; e && e != ERR_ARGUMENT && i < count; i++)
		engine_rest(all[i].asked.engine);
	if (all != few)
		free(all);
	return e;
}
