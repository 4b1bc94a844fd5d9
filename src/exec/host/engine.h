/*
 * engine.h - runs plans on host memory: one engine per rank of a communicator.
 *
 * Calls of one engine run one at a time, in the order all ranks agree on; run.h runs
 * them. What an engine is made of is known to the files of this folder only (state.h).
 */
#ifndef EXEC_HOST_ENGINE_H
#define EXEC_HOST_ENGINE_H

#include <stdatomic.h>

#include "exec/fold.h"
#include "exec/health.h"
#include "exec/host/tide.h"

struct peers;
struct wires;
struct host_engine;
struct host_carry;
struct limits;

/* What goes with a piece of a put to a rank on another host, see onesided.h. */
struct far_put {
	uint32_t window; /* its number: the first of a communicator is 1 */
	uint32_t signal;
	uint64_t offset;
	uint64_t given; /* signals so far, this one included; 0: none yet */
	uint32_t wants_receipt, unused;
};

/* A put to a rank on another host by way of a port: from memory, or a bare signal where
 * there are no bytes. */
struct port_put {
	uint32_t peer, signal;
	uint32_t window; /* into which: this rank's number of it */
	size_t offset, bytes;
	const void *data;
};

/* .. on its way. */
struct far_order {
	_Atomic uint64_t over; /* 0: it is not; then it has to be ended */
	_Atomic uint32_t sleepers;
};

/* A one-sided plugin, where a communicator has one. */
struct host_port {
	/* In sentences; NULL: puts do not go by it (yet, or any more). */
	const char *(*name)(void *arg);
	/* Would it take this one? Bare signals it takes all. */
	bool (*takes)(void *arg, const struct port_put *put);
	/* Counts one signal more there, when all that was put before is there, too. OK
	 * and no order: it takes it no more. ERR_AGAIN: later. With `order` NULL nobody
	 * waits for it. */
	enum err (*put)(void *arg, const struct port_put *put, struct far_order **order);
	/* Is the source its owner's again? Frees the order, which is over. */
	enum err (*end)(void *arg, struct far_order *order);
	/* OK while it works. */
	enum err (*check)(void *arg);
	/* Somebody waits for what comes. */
	void (*attend)(void *arg);
};

/* How this rank tells ranks on other hosts what is not part of a call; all are called by
 * the thread that runs calls. */
struct host_far {
	/* its note on the board has changed (doing.h) */
	void (*note)(void *arg);
	/* at most FAR_PUT_BYTES; copied */
	enum err (*put)(void *arg, uint32_t to, const struct far_put *put,
		const void *data, size_t bytes);
	void *arg;
	const struct host_port *port; /* NULL: there is none */
};

enum { SQUAD_MAX = 8 };

enum { FAR_PUT_BYTES = 60 << 10 };

/* A message of a call with a rank on another host. */
struct host_message {
	uint32_t peer, lane;
	bool is_send;
	uint32_t count; /* that the call has with this rank, this way and on this lane */
	size_t bytes;
};

/* Who is told of such messages while they are under way, by the thread that runs the
 * call. */
struct host_teller {
	/* `call` is what the call carries (`told`). What to name it by; NULL: the rest of
	 * it is of no interest. */
	void *(*began)(void *call, const struct host_message *message);
	void (*over)(void *message);
};

struct host_engine_args {
	const struct peers *peers; /* borrowed */
	struct health *health;	   /* borrowed, of the same rank */
	const atomic_int *abort;   /* borrowed: non-zero stops every wait */
	struct wires *wires;	   /* borrowed; NULL where all ranks are on this host */
	size_t tile_bytes;	   /* between hosts, where nobody says another; 0: any */
	/* threads to move a large call by (squad.h), at most SQUAD_MAX; the wires have as
	 * many sets and the board as many layers */
	struct squad_room squad;
	bool zero_copy;
	struct limits *limits; /* borrowed: on the choice of schedules; NULL none */
	struct host_far far;   /* only where there are other hosts */
	const struct host_teller *teller; /* borrowed; NULL: nobody is told */
};

enum err host_engine_create(
	const struct host_engine_args *args, struct host_engine **engine);
/* Its other threads end, and it runs no call any more; then it goes. The wires go between
 * the two: until they are closed a network plugin may write into memory of the engine's.
 */
void host_engine_rest(struct host_engine *engine);
void host_engine_destroy(struct host_engine *engine);

/* The kernel copies between these processes, or does not: known when all have tried. */
void host_engine_reach(struct host_engine *engine, bool foreign);

/* The rank the last failure of a call is blamed on; for the thread that ran it. */
uint32_t host_engine_culprit(const struct host_engine *engine);

/* From any thread: whoever of this engine is asleep looks up, and sees the abort word. */
void host_engine_wake(struct host_engine *engine);

/* The planner of this engine: plans fit its host's board. */
struct planner *host_engine_planner(const struct host_engine *engine);

/* A reference to memory of this rank, for peers to follow (link/ref.h), and the version
 * of the directory it is in. REF_NONE when they cannot. */
uint64_t host_engine_show(
	struct host_engine *engine, const void *ptr, size_t bytes, uint32_t *directory);

/* At the end: compare the last call with whoever is in it, and is anything left that was
 * sent to this rank? */
enum err host_signs_check(struct host_engine *engine);

/* This rank has failed and said so: wait until nobody is in the middle of reading or
 * writing its buffers, so that its user may use or free them; for some milliseconds. Who
 * is stopped, or stuck, is not waited for any longer: what the call had shown to others
 * to write is withdrawn (region.h), so that a late store lands in pages that nobody
 * reads. The answer says whether a stuck rank may also be writing a window. */
bool host_peers_leave(struct host_engine *engine);

/* What to do, with pointers. */
struct host_spec {
	struct plan_key key;
	enum redop op;
	union kernel_scalar scalar; /* of REDOP_PREMUL */
	const void *in;
	void *out;
	const struct host_tide *tide; /* borrowed; NULL: the buffers are there */
	void *told;		      /* for a host_teller; NULL: nobody is told of it */
	const struct host_carry *carry; /* borrowed: its moves are done elsewhere, see
					 * carry.h; NULL: here */
};

/* An AllGather has no operator. This one marks that of ranks which meet because device
 * memory has come: who makes a program's call instead is told what it met. */
enum { OP_MEETING = REDOP_PREMUL };

#endif
