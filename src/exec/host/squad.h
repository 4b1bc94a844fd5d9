/*
 * squad.h - several threads of a rank that move a large call between hosts.
 *
 * The caller's thread, or whoever runs its calls, is the first; the others are its mates.
 * Each runs the same program on its share of the tiles (plan.h) and does everything for
 * it: it has an engine, a layer of the board, shadows and a set of wires of its own, so
 * that the threads meet at the end of the call only. The call is over when all are; when
 * one fails the others stop, and none of them touches the call's buffers after it has
 * returned. Mates come about with the first such call and sleep between calls.
 *
 * Where a thread cannot be had (a container's limit, say), the first runs its mate's
 * share besides its own, in turns: others deal the tiles by the same number of threads
 * and notice nothing. None of the shares it runs waits while another could go on.
 *
 * A mate counts its own calls, and its positions and signs follow these. Notes of what a
 * rank waits for, touching and the count of completed calls are the first thread's alone.
 */
#ifndef EXEC_HOST_SQUAD_H
#define EXEC_HOST_SQUAD_H

#include <pthread.h>

#include "exec/host/run.h"
#include "exec/host/state.h"

struct mate {
	pthread_t thread;	    /* if there is one: squad.threads */
	struct squad *squad;	    /* borrowed */
	struct host_engine *engine; /* owned; its `share` is this mate's number */
	struct peers *peers;	    /* owned */
	/* why the call failed, written before squad.stop says that it was this one */
	enum err error;
	uint32_t culprit;
	char sentence[ERR_TEXT_BYTES];
	/* the call it is in, and how the first runs it where there is no thread */
	struct host_spec spec;
	struct host_call call;
	uint64_t grief_ns;
	bool takes_turns;
	/* how far it is, for the first: a number that changes, and whom it waits for,
	 * counted from one; 0: nobody that it knows */
	_Atomic uint32_t stamp, blocked;
};

struct squad {
	struct host_engine *engine; /* borrowed: the rank's */
	/* The number of the call and how many threads run it: what mates sleep on. */
	_Atomic uint32_t order, sleepers;
	_Atomic uint32_t busy; /* mates that are in the call: what the first sleeps on */
	_Atomic uint32_t stop; /* 1 + the thread that failed, from 0; 0: none has */
	atomic_bool quit;
	/* shares of messages (cut.h), if it is for those; NULL: for a call */
	const struct host_job *jobs;
	uint32_t job_count;
	/* the call: borrowed while mates are busy */
	const struct host_spec *spec;
	const struct plan *plan;
	uint64_t number;
	/* per thread: tiles of its share that are as they will be */
	_Atomic uint32_t tiles[SQUAD_MAX];
	uint32_t count;	  /* mates */
	uint32_t threads; /* .. that have a thread: those below */
	struct mate mates[SQUAD_MAX - 1];
};

/* The mates begin, if this is not one of them. After a failure none has. */
enum err squad_begin(struct host_call *call);

/* What a mate is to run. */
static inline const struct plan *squad_plan(const struct host_engine *engine)
{
	return atomic_load_explicit(&engine->calls.squad, memory_order_relaxed)->plan;
}

/* Has the call failed in another thread? */
static inline bool squad_has_stopped(const struct host_engine *engine)
{
	const struct squad *squad = atomic_load_explicit(
		&engine->calls.squad, memory_order_acquire);

	return squad && atomic_load_explicit(&squad->stop, memory_order_acquire);
}

/* .. then this is the failure, the first thread's from now on. */
enum err squad_failure(struct host_engine *engine);

/* A step of each share that the first runs in turns; and slow checks of them. For any
 * call that several run. */
enum err squad_turn(struct host_call *call);
enum err squad_check(struct host_call *call);

/* One of those that is not through yet; NULL: none. */
struct host_call *squad_turns_left(const struct host_call *call);

/* The first has done its share: OK when all have, else ERR_AGAIN, or their failure. */
enum err squad_join(struct host_call *call);

/* .. and sleeps for that. */
void squad_sleep(const struct host_call *call, uint32_t timeout_us);

/* The call has failed in the first thread: the others stop, and have when this returns.
 */
void squad_leave(struct host_engine *engine);

/* Mates that have a thread; they come about with the first such question. The engine of
 * mate `number`, from 1 on. */
enum err squad_helpers(struct host_engine *engine, uint32_t *helpers);
struct host_engine *squad_engine(const struct host_engine *engine, uint32_t number);

/* They run those of these jobs that have their engines, until they are taken back: all
 * are over then, or have stopped after the failure `e`, which is handed back, or theirs.
 */
void squad_hand(struct host_engine *engine, const struct host_job *jobs, uint32_t count);
enum err squad_take_back(struct host_engine *engine, enum err e);

/* A mate has come on; it waits for somebody. */
void squad_move(const struct host_call *call, uint64_t stamp);
void squad_block(const struct host_call *call);

/* So many tiles of this thread's share are as they will be. How many of all, from the
 * first on? */
uint32_t squad_tell(const struct host_call *call, uint32_t tiles);

/* Whoever is asleep looks up. */
void squad_wake(struct squad *squad); /* NULL is fine, as below */

void squad_end(struct squad *squad);

#endif
