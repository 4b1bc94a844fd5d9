/*
 * state.h - what a communicator is made of; for the files of this room only.
 */
#ifndef COMM_STATE_H
#define COMM_STATE_H

#include <pthread.h>
#include <stdatomic.h>

#include "comm/comm.h"
#include "comm/profile.h"
#include "exec/host/run.h"
#include "link/peer.h"

enum { REDOP_BUILTIN = 5 };

struct redop_entry {
	bool used, immediate;
	enum dtype type;
	uint64_t scalar_bits;
	const void *scalar_pointer; /* borrowed */
};

/* Groups of members of which a parent's children were made. */
enum { BIRTHS_MAX = 64 };

/* How often a child with these members was made: names the letter that invites them. */
struct birth {
	uint64_t key, count;
};

struct comm {
	struct comm_config config;
	uint32_t rank, rank_count;
	uint32_t local; /* its number on the board */
	int device;
	int log_device; /* the [n] of its lines in the log */
	uint64_t id_hash;
	uint64_t probe;	       /* peers try to read this across processes */
	atomic_bool ready;     /* the members below will not change until the end */
	atomic_bool finalized; /* begun, at least */
	atomic_bool at_peace;  /* .. and well: what peers do does not matter any more */
	atomic_int abort;
	atomic_int revoked;
	atomic_bool suspended;
	atomic_int async;	     /* enum err */
	char reason[ERR_TEXT_BYTES]; /* of a failure in `async`; guarded by lock */
	atomic_bool is_told;	     /* a call has failed */
	bool has_pulse;		     /* held on the board for this rank */
	atomic_bool has_taken_back;  /* what it had shown to others, after a failure */
	struct board *board;	     /* counted: of this host */
	uint16_t *hosts;	     /* owned: of each rank; NULL where all are on one */
	struct wires *wires;	     /* owned: to ranks on other hosts; NULL: none */
	struct control *control;     /* owned: the same for what is told; NULL: none */
	struct host_record *host_records; /* owned: see hosts.c; NULL on one host */
	bool has_touch;		 /* the process listens for that on its account */
	struct peers *peers;	 /* owned: NULL until all are on their boards */
	struct profile *profile; /* counted: tells a plugin of calls; NULL: none */
	struct wiring *wiring;	 /* counted; NULL: nobody looks, or not known */
	struct limits *limits;	 /* owned; NULL none; needs the wiring */
	bool zero_copy;
	struct health *health;	    /* owned: of the peers */
	struct host_engine *engine; /* owned */
	atomic_bool has_cuda;	    /* the process uses CUDA: buffers are looked at */
	atomic_bool has_looked;	    /* and that was found out */
	_Atomic(struct cuda_engine *) gpu; /* owned: NULL without CUDA, or not yet */
	struct cuda_engine *gpu_made;	   /* owned: until it is known whether it works */
	_Atomic(struct relay *)
		relay;	      /* owned: device memory between hosts; NULL: none */
	uint32_t gpu_missing; /* a rank that had shown no GPU when the ranks met */
	bool gpu_staged;      /* there are slots for calls that go through some */
	bool gpu_apart;	      /* GPUs cannot reach each other's memory: all calls do */
	char gpu_reason[ERR_TEXT_BYTES]; /* why it is NULL though there is CUDA */
	struct stream *worker; /* owned: runs a non-blocking comm's calls; lazily made */
	struct redop_entry *redops; /* owned */
	uint32_t redop_count;
	struct birth births[BIRTHS_MAX];
	uint32_t birth_count;
	char child_reason[ERR_TEXT_BYTES]; /* why the last child was not made; guarded by
					      lock */
	uint32_t split_count;		   /* splits asked for */
	uint64_t vote_count;		   /* splits decided on the board */
	uint64_t grow_number; /* of the id this rank gave out for growing; 0: none */
	struct registration *registrations; /* owned, a list */
	struct window *windows;		    /* owned, a list */
	uint32_t window_count;		    /* ever asked for */
	atomic_bool had_window; /* one was registered, whatever became of it */
	/* guards the two lists and busy; the condition tells when that is zero */
	pthread_mutex_t lock;
	pthread_cond_t idle;
	atomic_uint busy; /* calls enqueued and not finished */
	uint64_t turn_next,
		turn_now;   /* enqueued calls run in this order, whatever stream */
	atomic_uint inside; /* see inside.h; 1 in comm_init(), where nobody else can be */
	atomic_uint enqueuing; /* see inside.h */
};

/* A call was enqueued on, or finished for, this comm. Enqueued calls take turns: one
 * comm's calls run in order on however many streams. */
uint64_t comm_busy_add(struct comm *comm);
void comm_turn_wait(struct comm *comm, uint64_t turn);
void comm_busy_sub(struct comm *comm);

/* Wait until what was enqueued has run. */
void comm_drain(struct comm *comm);

/* Wait until nothing of this comm runs anywhere. */
void comm_finish_work(struct comm *comm);

/* A call on this comm has failed, which is that rank's doing: it is remembered, the peers
 * are told, and what the call had shown to them is the user's again. */
void comm_fail(struct comm *comm, enum err code, uint32_t culprit);

/* The same for what is found wrong beside calls that may be under way: they go on until
 * they see it themselves. */
void comm_trouble(struct comm *comm, enum err code, uint32_t culprit);

/* Has this rank failed, so that its memory is its user's again? */
bool comm_has_failed(const struct comm *comm);

/* Run one collective of our own on host memory, with all ranks; no thread may be inside.
 * A failure is the comm's. */
enum err comm_exchange(struct comm *comm, const struct host_spec *spec);

/* One job of a batch, with what only this room knows. */
struct work {
	struct host_job job;
	struct comm *comm;
	const void *scalar_pointer;   /* read when the batch starts; may be NULL */
	uint64_t turn;		      /* on a stream: from comm_busy_add() */
	struct call_profile *profile; /* on a stream: counted; or NULL */
	bool entered;		      /* the first of its comm: it leaves, too */
	struct cuda_berth *berth; /* where its buffers lie, see relay.h; NULL: nowhere */
	struct p2p_trial trial;	  /* .. what is tried after it, if the job says so */
	struct host_tide tide;	  /* .. and how they come and go, if the job says so */
};

/* What a CALL_COLL asks of an engine: what means nothing in it is made the same on all
 * ranks. A scalar that is read when the call runs is not in it yet. */
struct host_spec call_spec(const struct comm_call *call);

/* The job that a call is. */
void work_fill(const struct comm_call *call, struct work *work);

/* Come inside all of a batch's comms, or none; run it; and go again. A failure of the
 * first leaves them alive, and so does ERR_ARGUMENT of the second: nothing has begun. */
enum err works_enter(struct work *works, uint32_t count);
enum err works_run(struct work *works, uint32_t count);
void works_leave(const struct work *works, uint32_t count);

/* Hand a batch to a stream's thread; takes ownership of `works` (from malloc). */
enum err stream_push(struct stream *stream, struct work *works, uint32_t count);

/* Where the peer's part of a put's window is. */
void window_target(const struct comm_call *call, struct onesided *onesided);

/* What has come from another host for a window of this rank. */
enum err window_land(struct comm *comm, uint32_t from, const struct far_put *put,
	const void *data, size_t bytes);

/* The same on a GPU: in this process. */
uint64_t window_address(const struct comm_call *call);

/* Are these bytes in this rank's own part? */
bool window_holds(const struct window *window, const void *ptr, size_t bytes);

/* A process that is stuck may still write into windows: they become this one's alone. */
void comm_windows_withdraw(struct comm *comm);

/* Forget registrations and windows when a comm goes. */
void comm_registrations_drop(struct comm *comm);

#endif
