/*
 * state.h - what a communicator is made of; for the files of this room only.
 */
#ifndef COMM_STATE_H
#define COMM_STATE_H

#include <pthread.h>
#include <stdatomic.h>

#include "comm/comm.h"
#include "comm/profile.h"
#include "exec/host/carry.h"
#include "exec/host/run.h"
#include "link/peer.h"

enum { REDOP_BUILTIN = 5 };

struct redop_entry {
	bool used, immediate;
	enum dtype type;
	uint64_t scalar_bits;
	const void *scalar_pointer; /* borrowed */
};

/* Operators that were made with it. */
struct comm_redops {
	struct redop_entry *entries; /* owned */
	uint32_t count;
};

/* How far its life has come, and what ends it. */
struct comm_life {
	atomic_bool ready;     /* what the comm is made of stays so until the end */
	atomic_bool finalized; /* begun, at least */
	atomic_bool at_peace;  /* .. and well: what peers do does not matter any more */
	atomic_bool has_taken_back; /* what it had shown to others, after a failure */
	atomic_bool suspended;
	atomic_int abort;
	atomic_int revoked;
	atomic_int async;	     /* enum err */
	char reason[ERR_TEXT_BYTES]; /* of a failure in `async`; guarded by comm's lock */
	atomic_bool is_told;	     /* a call has failed */
};

/* The hosts its ranks are on: the board of this one, and what leads to the others. */
struct comm_hosts {
	struct board *board; /* counted */
	uint32_t local;	     /* this rank's number on it */
	uint64_t probe;	     /* peers try to read this across processes */
	bool has_pulse;	     /* held on the board for this rank */
	bool has_touch;	     /* the process listens for that on its account */
	uint16_t *numbers;   /* owned: each rank's host; NULL where all are on one */
	struct host_record *records; /* owned: see hosts.c; NULL on one host */
	struct wires *wires;	     /* owned: to ranks on other hosts; NULL: none */
	struct comm_rma *rma;	     /* owned: a one-sided plugin; NULL: none */
	uint32_t layers;	     /* of the board; 0: one */
	struct squad_room squad;     /* threads that move a large call, of each rank */
	uint32_t call_files;	     /* .. and files kept for them: call_files.h */
	struct control *control;     /* owned: the same for what is told; NULL: none */
};

/* Its way to device memory. */
struct comm_gpu {
	int device;		/* what ncclCommCuDevice() reports */
	atomic_bool has_cuda;	/* the process uses CUDA: buffers are looked at */
	atomic_bool has_looked; /* and that was found out */
	_Atomic(struct cuda_engine *) engine; /* owned: NULL without CUDA, or not yet */
	struct cuda_engine *made; /* owned: until it is known whether it works */
	_Atomic(struct relay *)
		relay;		     /* owned: device memory between hosts; NULL: none */
	uint32_t missing;	     /* a rank that had shown no GPU when the ranks met */
	bool is_staged;		     /* there are slots for calls that go through some */
	bool is_apart;		     /* GPUs cannot reach each other's memory: all do */
	char reason[ERR_TEXT_BYTES]; /* why `engine` is NULL though there is CUDA */
};

/* Groups of members of which a parent's children were made. */
enum { BIRTHS_MAX = 64 };

/* How often a child with these members was made: names the letter that invites them. */
struct birth {
	uint64_t key, count;
};

/* What was made of it. */
struct comm_children {
	struct birth births[BIRTHS_MAX];
	uint32_t birth_count;
	uint32_t split_count;	     /* splits asked for */
	uint64_t vote_count;	     /* splits decided on the board */
	uint64_t grow_number;	     /* of the id given out for growing; 0: none */
	char reason[ERR_TEXT_BYTES]; /* why the last was not made; guarded by comm's lock
				      */
};

/* Memory that it was told of. The lists are guarded by the comm's lock. */
struct comm_memory {
	bool zero_copy;			    /* others' may be touched in place */
	struct registration *registrations; /* owned, a list */
	struct window *windows;		    /* owned, a list */
	uint32_t window_count;		    /* ever asked for */
	atomic_bool had_window; /* one was registered, whatever became of it */
};

/* Whose turn it is to run or to enqueue a call. */
struct comm_turns {
	struct stream *worker; /* owned: runs a non-blocking comm's calls; lazily made */
	pthread_cond_t idle;   /* tells when busy is zero, and of a new turn */
	atomic_uint busy;   /* calls enqueued and not finished; guarded by comm's lock */
	uint64_t next, now; /* enqueued calls run in this order, whatever stream */
	atomic_uint inside; /* see inside.h; 1 in comm_init(), where nobody else can be */
	atomic_uint enqueuing; /* see inside.h */
};

struct comm {
	struct comm_config config;
	uint32_t rank, rank_count;
	int log_device; /* the [n] of its lines in the log */
	uint64_t id_hash;
	struct comm_life life;
	struct comm_hosts hosts;
	struct peers *peers;	    /* owned: NULL until all are on their boards */
	struct health *health;	    /* owned: of the peers */
	struct host_engine *engine; /* owned */
	struct comm_gpu gpu;
	struct comm_redops redops;
	struct comm_children children;
	struct comm_memory memory;
	struct comm_turns turns;
	pthread_mutex_t lock;
	struct profile *profile; /* counted: tells a plugin of calls; NULL: none */
	struct wiring *wiring;	 /* counted; NULL: nobody looks, or not known */
	struct limits *limits;	 /* owned; NULL none; needs the wiring */
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
	/* of a call that kernels run; without a list: it is none */
	struct host_carry carry;
};

/* What a CALL_COLL asks of an engine: what means nothing in it is made the same on all
 * ranks. A scalar that is read when the call runs is not in it yet. */
struct host_spec call_spec(const struct comm_call *call);

/* The job that a call is. */
void work_fill(const struct comm_call *call, struct work *work);

/* Its job's buffers come and go as its own `tide` says, and its messages are carried as
 * its own `carry` says, where it has them: after it was copied. */
void work_join(struct work *work);

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

/* Where a one-sided plugin has both ends of a put; false: it has not. */
struct rma_put;
bool window_port(struct comm *comm, const struct port_put *put, struct rma_put *found);

/* Take what such a plugin calls one of the windows away from it; NULL: it has none. */
void *window_unknow(struct comm *comm);

/* The same on a GPU: in this process. */
uint64_t window_address(const struct comm_call *call);

/* Are these bytes in this rank's own part? */
bool window_holds(const struct window *window, const void *ptr, size_t bytes);

/* A process that is stuck may still write into windows: they become this one's alone. */
void comm_windows_withdraw(struct comm *comm);

/* Forget registrations and windows when a comm goes. */
void comm_registrations_drop(struct comm *comm);

#endif
