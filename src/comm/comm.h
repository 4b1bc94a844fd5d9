/*
 * comm.h - a communicator: the ranks that talk, and the life they have together.
 *
 * The api checks arguments and groups calls; everything that happens to a communicator
 * happens here. One thread at a time uses a comm (inside.h refuses a second), except for
 * comm_async_*(), comm_abort() and comm_revoke(), which any thread may call at any time.
 */
#ifndef COMM_COMM_H
#define COMM_COMM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/dtype.h"
#include "base/err.h"
#include "boot/boot.h"
#include "sched/sched.h"

struct comm;
struct stream;
struct window;
struct call_profile;

/* Signals from one rank to another, of all contexts together. */
enum { COMM_SIGNALS_MAX = 64 };

/* What the user asked for, resolved: defaults filled in, environment applied. */
struct comm_config {
	bool blocking;
	bool split_share, shrink_share;
	int cga_cluster_size, min_ctas, max_ctas, cta_policy, traffic_class;
	int rma_contexts, rma_signals; /* every context has so many signals */
	bool rma_eager;
	int host_cft_mode;
	char net_name[64];
	char comm_name[64];
};

void comm_config_default(struct comm_config *config);

/* ---- life ---- */

/* The key that processes show each other, and by which they hide what they say over
 * sockets; NULL: none. ERR_ARGUMENT when it is too short. Of connections made later. */
enum err comm_set_key(const char *text);

/* An id by which the ranks of a new communicator meet, made and served by this process;
 * and one that nobody will use (again). */
enum err comm_id_create(struct boot_id *id);
void comm_id_drop(const struct boot_id *id);

/* A handle with nothing behind it yet; comm_is_ready() is false until comm_init(). */
enum err comm_alloc(const struct comm_config *config, struct comm **comm);

struct comm_init_args {
	const struct boot_id *ids; /* borrowed during the call */
	uint32_t id_count;
	uint32_t rank_count, rank;
	int device;	    /* what ncclCommCuDevice() reports */
	const char *caller; /* "ncclCommInitRank", for the log */
	/* a split, for the log: whose, which one of its, and what was asked; else NULL */
	const struct comm *parent;
	uint32_t split_count;
	int color, key;
	/* a child: what its parent knows of the members' end, see boot_args; else NULL */
	enum err (*hope)(void *hope_arg, bool has_met);
	void *hope_arg;
	const char *root;   /* .. and who gathers them */
	bool *is_root_lost; /* .. and whether that one has gone */
};

/* Meet the others and connect. Blocks, bounded by WEFT_BOOT_TIMEOUT_SEC and comm_abort().
 */
enum err comm_init(struct comm *comm, const struct comm_init_args *args);

/* This rank cannot even begin, for the reason in err_last(): the others are told. */
void comm_refuse(const struct comm_init_args *args, enum err code);
/* .. and the same of a child: the parent fails, on all ranks. */
void comm_refuse_child(struct comm *parent, enum err code);

/* Children. Each blocks like comm_init() and fills an allocated, empty `child`. */
enum err comm_split(struct comm *parent, int color, int key, struct comm *child,
	bool *no_color); /* *no_color: the caller gave NCCL_SPLIT_NOCOLOR, child unused */
enum err comm_shrink(struct comm *parent, const int *exclude, uint32_t exclude_count,
	bool abort, struct comm *child);
enum err comm_get_unique_id(struct comm *comm, struct boot_id *id);
/* parent NULL: a new rank (id and rank given). Else an old one, which keeps its rank. */
enum err comm_grow(struct comm *parent, uint32_t rank_count, const struct boot_id *id,
	int rank, struct comm *child);

/* Another rank has ended, and nothing of this rank's
 * was under way: it may end in peace. */
bool comm_is_unharmed(struct comm *comm);

/* Finish everything enqueued. A second call is ERR_ARGUMENT. */
enum err comm_finalize(struct comm *comm);
/* Finalize if that was not done, then free. The handle is gone whatever it returns. */
enum err comm_destroy(struct comm *comm);
/* Stop everything in flight, tell the peers, free. Never waits for a peer. */
enum err comm_abort(struct comm *comm);
/* Make everything in flight fail, for good; somebody will abort it. */
void comm_interrupt(struct comm *comm);
/* Stop what is in flight; afterwards only destroy, split, shrink. */
enum err comm_revoke(struct comm *comm);

/* Until it is resumed it takes no calls. ERR_USAGE when it is as asked for already. What
 * could be given back in between is nothing yet. */
enum err comm_suspend(struct comm *comm);
enum err comm_resume(struct comm *comm);

/* ---- asking ---- */

bool comm_is_suspended(const struct comm *comm);
uint64_t comm_gpu_bytes(const struct comm *comm); /* of device memory it holds */

bool comm_is_revoked(const struct comm *comm);
bool comm_is_finalized(const struct comm *comm); /* comm_finalize() was called */
bool comm_is_blocking(const struct comm *comm);
uint32_t comm_rank(const struct comm *comm);
uint32_t comm_rank_count(const struct comm *comm);
int comm_device(const struct comm *comm);
uint64_t comm_hash(const struct comm *comm); /* the same on all ranks */
bool comm_can_put(const struct comm *comm);  /* windows of others can be reached */
bool comm_is_near(const struct comm *comm, uint32_t rank); /* on the same host */
uint32_t comm_near_count(const struct comm *comm);	   /* how many are */
/* May signals be used: has it ever had a window, or was it told to be ready? */
bool comm_can_signal(const struct comm *comm);
const struct comm_config *comm_config(const struct comm *comm);

/* What this thread logs from now on is this rank's. */
void comm_speak(const struct comm *comm);
/* .. of a rank that has no comm yet. */
void comm_speak_as(uint32_t rank);

/* The stored result: OK, ERR_PROGRESS while something non-blocking runs, or the first
 * failure. Setting a failure over a failure keeps the first. */
enum err comm_async_get(struct comm *comm);
void comm_async_set(struct comm *comm, enum err code);
/* The same, and if nothing failed here, what other ranks' failures mean for this one. */
enum err comm_peers_get(struct comm *comm);
/* The sentence of the stored failure; false when there is none. */
bool comm_reason(struct comm *comm, char *text, size_t room);

/* ---- operators ---- */

/* A PreMulSum handle, valid on this comm for this type. With `immediate` the scalar is
 * copied now, otherwise it is read when a collective runs. */
enum err comm_redop_create(struct comm *comm, const void *scalar, enum dtype type,
	bool immediate, int *handle);
enum err comm_redop_destroy(struct comm *comm, int handle);
/* What a handle (or a built-in operator) means; ERR_ARGUMENT when it means nothing here.
 */
struct comm_op {
	enum redop op;
	uint64_t scalar_bits;	    /* PREMUL, immediate */
	const void *scalar_pointer; /* PREMUL, not immediate; else NULL */
};
enum err comm_redop_resolve(
	struct comm *comm, int handle, enum dtype type, struct comm_op *out);

/* ---- work ---- */

enum call_kind { CALL_COLL, CALL_SEND, CALL_RECV, CALL_PUT, CALL_WAIT };

/* A CALL_PUT goes into the peer's part of a window, and is a bare signal when its count
 * is 0; a CALL_WAIT waits for some. */
struct call_put {
	const struct window *window;
	size_t offset;
	uint32_t signals; /* CALL_WAIT: how many */
	uint32_t signal;  /* which, of all contexts' */
};

struct comm_call {
	struct comm *comm;
	enum call_kind kind;
	enum coll coll; /* of a CALL_COLL */
	const void *in;
	void *out;
	size_t count; /* elements, as in nccl.h */
	enum dtype type;
	struct comm_op op;
	uint32_t root;	       /* or the peer of a send or receive */
	struct call_put put;   /* CALL_PUT, CALL_WAIT */
	struct stream *stream; /* NULL: done when comm_submit() returns */
	bool on_gpu;	       /* enqueue on gpu_stream, whatever memory it is */
	void *gpu_stream;      /* a CUDA stream */
	/* from comm_select(); NULL, 0: no wish */
	const char *schedule;
	unsigned protos; /* bit per protocol, for a GPU */
	void *launched;	 /* on a GPU: an event to record when its turn comes; or NULL */
	uint64_t tag;	 /* the user's, for a profiler; 0: none */
	struct call_profile *profile; /* see profile.h; NULL: nobody listens */
};

/* What the algorithms named for a collective mean for it: fills in schedule and protos.
 * ERR_ARGUMENT when they cannot be met; but when not `is_forced`, the call has no wish
 * then, and the log says so. */
enum err comm_select(struct comm_call *call, const char *names, bool is_forced);

/* Does `root` mean anything in such a call? */
bool call_has_root(enum call_kind kind, enum coll coll);

/* Blocks of `count` elements that this rank's buffers have in such a call; 0: it has no
 * such buffer. */
struct call_blocks {
	uint32_t in, out;
};
struct call_blocks comm_call_blocks(
	const struct comm *comm, enum call_kind kind, enum coll coll, uint32_t root);

/* Does a call with this memory go through the GPU? ERR_USAGE when it cannot and the
 * memory is the device's. */
enum err comm_on_gpu(struct comm *comm, const void *in, const void *out, bool *on_gpu);

/* Has CUDA come into the process since? comm_on_gpu() looks once for a communicator. */
bool comm_is_relayed(const struct comm *comm);
bool comm_look_for_cuda(struct comm *comm);
bool comm_is_device(const void *ptr);

/* Run one group's calls (copied): of one comm in order, of several comms side by side,
 * sends and receives side by side. On streams and non-blocking comms it only enqueues.
 * ERR_ARGUMENT: no plan can serve a call, nothing has begun, blocking comms live on; on a
 * stream it is the stream's. Any other failure is the comm's. */
enum err comm_submit(const struct comm_call *calls, uint32_t count);

/* About how many microseconds comm_submit() of these would take; nothing is run. */
enum err comm_estimate(const struct comm_call *calls, uint32_t count, double *us);

/* ---- memory ---- */

/* Memory that ranks of other processes can map. */
enum err mem_alloc(size_t bytes, void **ptr);
enum err mem_free(void *ptr);

/* Registration: counted per (address, size); makes mappable memory known to the comm. A
 * handle that is none of this comm's, also one given back before, is ERR_ARGUMENT and is
 * not looked into; so is a window below. Any thread may call these. */
enum err comm_register(struct comm *comm, void *ptr, size_t bytes, void **handle);
enum err comm_deregister(struct comm *comm, void *handle);

/* Windows: collective registration. What is not given back goes with the comm. *window
 * is NULL, and that is no failure, where ranks cannot reach each other's memory. */
enum {
	WINDOW_SYMMETRIC = 1,
	WINDOW_ORDERED = 2,
	WINDOW_GIN_ONLY = 4,
	WINDOW_COUNTED = 8
};
enum err comm_window_register(
	struct comm *comm, void *ptr, size_t bytes, int flags, struct window **window);
enum err comm_window_deregister(struct comm *comm, struct window *window);
enum err comm_window_pointer(struct comm *comm, const struct window *window, void **ptr);

/* Is [offset, offset + bytes) inside the part of this window that `peer` registered? */
enum err comm_window_check(struct comm *comm, const struct window *window, uint32_t peer,
	size_t offset, size_t bytes);

/* ---- host streams ---- */

enum err stream_create(struct stream **stream);
/* Finish what is queued, then free. */
enum err stream_destroy(struct stream *stream);
enum err stream_synchronize(struct stream *stream);
/* OK when idle, ERR_PROGRESS when not, or the first failure since the last query. */
enum err stream_query(struct stream *stream);

#endif
