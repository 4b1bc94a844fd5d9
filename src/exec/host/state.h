/*
 * state.h - what a host engine is made of, and a call on its way through it; for the
 * files of this folder only.
 *
 * A call goes through: its card is free, (unless eager) everyone has arrived and shown
 * its buffers, the lanes run, lent buffers are given back, other threads that run shares
 * of it are through. host_call_step() does what
 * can be done without blocking; run.c decides how to wait.
 */
#ifndef EXEC_HOST_STATE_H
#define EXEC_HOST_STATE_H

#include "exec/host/engine.h"
#include "exec/lane.h"
#include "link/peer.h"
#include "link/ref.h"

enum host_phase {
	PHASE_CARD,
	PHASE_ARRIVE,
	PHASE_RUN,
	PHASE_DRAIN,
	PHASE_JOIN, /* other threads of the rank are not through yet: squad.h */
	PHASE_DONE
};

/* What of its positions others have been told. */
struct host_news {
	bool announced; /* some position of this call was published, or is about to be */
	/* per lane: a position retired and not yet announced, see plan.terse; 0: none */
	uint64_t untold[SCHED_LANES_MAX];
	bool has_untold;
};

/* What has come about without a move of its own. */
struct host_come {
	uint32_t turns; /* so often have shares come on that this thread runs beside it */
	bool has_fetched; /* see host_fetch() */
	/* per lane: what its move waited for has come straight to where it belongs */
	bool has_landed[SCHED_LANES_MAX];
};

/* What it is blocked on, for sleeping and for reports. */
struct host_blocked {
	uint32_t rank, lane;
	uint64_t want;
	bool is_leaving;  /* a message of ours, which is to leave for that rank */
	bool awaits_tide; /* a lane waits for a part of this rank's own buffers */
};

/* A call in flight. Plain memory of the caller's; nothing to free. */
struct host_call {
	struct host_engine *engine;
	const struct host_spec *spec; /* borrowed */
	const struct plan *plan;
	const struct shape *shape; /* set once the mode is known */
	struct fold_rule rule;
	bool foreign;	   /* some buffer in use is foreign */
	uint64_t trial_ns; /* when a call began that is timed for plan_note(); 0: it is
			      not */
	bool streaming;	   /* outputs are too large for the caches to keep */
	uint64_t number, base; /* call number; position zero of this call */
	uint64_t origin;       /* .. and of the chosen way through it */
	enum host_phase phase;
	uint32_t patience; /* looks at a position before giving way to other jobs */
	uint32_t peer;	   /* progress within PHASE_CARD, _ARRIVE and _DRAIN */
	struct lane lanes[SCHED_LANES_MAX];
	uint64_t sign;
	struct host_news news;
	struct host_come come;
	enum err error;
	struct host_blocked blocked;
};

/* Begin; `spec` stays with the call until it ends. Fails without effect on the peers only
 * for want of memory or a bad schedule. */
enum err host_call_start(
	struct host_engine *engine, const struct host_spec *spec, struct host_call *call);

/* Others may be about to write what the call has shown them. */
void host_call_show(struct host_call *call);

/* Run it to the end. A failure says nothing when another thread has failed before. */
enum err host_run_share(struct host_call *call);

/* .. or step by step, by a thread that has other shares to run: slow checks while it is
 * blocked, with a time that is kept for it (host_bereaved_check()). */
enum err host_share_check(struct host_call *call, uint64_t *grief_ns);

/* It will not go on. */
void host_share_leave(struct host_call *call);

/* Go on: OK when complete, ERR_AGAIN when blocked, else the failure. */
enum err host_call_step(struct host_call *call);

/* A call that failed will not go on: its peers' buffers are no longer touched. */
void host_call_leave(const struct host_call *call);

/* What it is blocked by. */
static inline void host_call_block(
	struct host_call *call, uint32_t rank, uint32_t lane, uint64_t want)
{
	call->blocked.rank = rank;
	call->blocked.lane = lane;
	call->blocked.want = want;
	call->blocked.is_leaving = false;
}

/* A number that changes whenever the call makes progress. */
uint64_t host_call_stamp(const struct host_call *call);

/* Slow checks while blocked: abort, a peer that died or left, a call that does not match
 * ours. OK means keep waiting. */
enum err host_call_check(struct host_call *call);

struct host_buffers {
	char *in, *out;
	bool in_foreign, out_foreign; /* addresses in that rank's process, not here */
	union kernel_scalar scalar;
	/* what the rank's card said of them; in_ref is REF_NONE when it is to be read
	 * again */
	uint64_t in_ref, out_ref;
	uint32_t directory;
};

/* What a call in flight lets others write: this rank's OUT. */
struct host_shown {
	char *out; /* NULL: nothing */
	size_t bytes;
	const struct shape *shape;
};

/* What the last calls were, for ranks of other hosts that are left behind. */
enum { SIGNS_PAST = 256 };
struct past_sign {
	uint64_t number, hash;
	struct call_sign sign;
};

/* How it waits, see run.c. */
struct host_waits {
	uint32_t spin_turns, patience;
	bool has_cores; /* for each rank of this host */
	uint32_t dozes; /* so often it sleeps where it would yield */
};

struct squad;

/* Numbers of calls, and of the thread of the rank that they are for: see squad.h. */
struct host_calls {
	uint64_t number;	    /* of the last one begun */
	_Atomic uint64_t completed; /* .. and of the last one that ended well */
	uint64_t ahead;		    /* of a mate: by how much the rank's number is */
	uint32_t share, squad_max;  /* which thread; how many there may be */
	/* owned by share 0; NULL: no call was for several yet */
	_Atomic(struct squad *) squad;
};

/* What it has called so far, see sign.h. */
struct host_signs {
	uint64_t chain;		/* sign of all calls */
	struct past_sign *past; /* owned: SIGNS_PAST; NULL on one host */
};

/* What it waits for, see doing.h. */
struct host_notes {
	bool has_told;	     /* there is a note of that */
	uint32_t wait_count; /* notes of new waits, so far */
	uint32_t told;	     /* serial of the one that other hosts know; 0: none */
};

/* How far others are, as far as it has looked. */
struct host_seen {
	uint64_t *positions; /* owned: highest position, [rank * lanes + lane] */
	uint64_t entered;    /* .. and one that every rank's first lane has reached */
};

/* Memory of the call in flight. */
struct host_memory {
	size_t cache_bytes; /* kernel_copy_threshold(): a quarter of the last cache */
	struct host_shown shown;
	struct host_buffers *buffers;	/* owned: per rank */
	const struct program *followed; /* the last for which all of them were found; NULL
					   when some rank has shown others since */
	bool foreign;			/* see host_engine_reach() */
	bool zero_copy;
	struct shape share; /* of a call that several threads run: this one's */
	char *bounce;	    /* owned: for foreign memory; NULL until needed */
	char *scratch;	    /* owned: TMP chunks */
	size_t scratch_bytes;
};

/* Sends and receives: letters posted to and taken from each peer. */
struct host_letters {
	uint64_t *posted, *taken; /* owned */
};

/* One-sided: signals given to and waited for from each peer. */
struct host_signals {
	uint64_t *given, *awaited; /* owned */
	/* what puts to ranks on other hosts have cost, and at most cost now */
	uint64_t *puts, puts_bound; /* owned */
	bool *by_port;		    /* owned: how the last to each of them went */
	uint64_t asked_ns;	    /* when it was last asked what has landed */
};

struct host_engine {
	const struct peers *peers;  /* borrowed */
	struct health *health;	    /* borrowed */
	struct ref_table *refs;	    /* owned */
	struct planner *planner;    /* owned */
	struct host_remote *remote; /* owned; NULL where all ranks are on this host */
	const atomic_int *abort;    /* borrowed */
	uint32_t rank, rank_count;
	uint32_t culprit; /* the last failure is blamed on; of the thread that runs calls
			   */
	struct host_calls calls;
	struct host_far far;
	const struct host_teller *teller; /* borrowed; NULL: nobody listens */
	_Atomic(const void *) asleep;	  /* the word our thread sleeps on; NULL */
	struct host_waits waits;
	struct host_signs signs;
	struct host_notes notes;
	struct host_seen seen;
	struct host_memory memory;
	struct host_letters letters;
	struct host_signals signals;
};

/* An engine for a thread that runs shares of this one's calls, with a layer of its peers
 * and another set of its wires; both borrowed. */
enum err host_engine_for_mate(const struct host_engine *engine, const struct peers *peers,
	struct wires *wires, struct host_engine **made);

#endif
