/*
 * state.h - what a CUDA engine is made of; for the files of this folder only.
 */
#ifndef EXEC_CUDA_STATE_H
#define EXEC_CUDA_STATE_H

#include <pthread.h>

#include "exec/cuda/bounce.h"
#include "exec/cuda/driver/aside.h"
#include "exec/cuda/driver/where.h"
#include "exec/cuda/engine.h"
#include "exec/cuda/lists/moves.h"
#include "exec/cuda/meet/desk.h"
#include "exec/cuda/order.h"
#include "exec/cuda/staged.h"
#include "exec/cuda/way.h"

/* One collective's moves, on the device. */
struct kept_moves {
	cu_ptr address; /* 0: not yet */
	uint32_t page_bytes;
};

/* An address that a call came with, and what it is. */
enum { SEEN_MAX = 8 };
struct seen_pointer {
	const void *ptr;
	uint64_t moment; /* the call for which it was looked at */
	struct cuda_where where;
};

/* Lists of moves, and the memory they are in: the newest pool has room. */
enum { POOLS_MAX = 64 };
struct kept {
	struct kept_moves *list; /* owned: by number of the plan's program */
	uint32_t count;
	cu_ptr pools[POOLS_MAX]; /* owned */
	uint32_t pool_count;
	size_t used;
};

/* Whether the engine is over, and why: see fate.c. */
struct fate {
	pthread_mutex_t lock; /* of the members below, and of who looks */
	/* borrowed; NULL: nobody is asked or told yet, or any more */
	struct health *health;
	_Atomic int code; /* enum err; the others are valid when it is not 0 */
	uint32_t culprit;
	/* how many calls this rank had made at the last look, and when all were done */
	uint64_t rested_at, done_at;
	bool is_cut; /* a call of this rank's was under way, as far as can be told */
	char reason[ERR_TEXT_BYTES];
	/* since when a peer was waited for, and how far it was; 0: it is not */
	uint64_t late_since[MOVES_RANKS_MAX], late_at[MOVES_RANKS_MAX];
	bool is_late_told[MOVES_RANKS_MAX]; /* .. and was said to be */
	pthread_mutex_t freeing;	    /* of memops_free() */
	bool is_freed;			    /* .. it has run once */
	_Atomic bool is_stuck;		    /* .. and did not get through */
	struct aside *aside;		    /* opened then */
	bool has_warned;
};

/* Where the other ranks are, and how far this one can reach. */
struct reach {
	struct cuda_hello *hellos;     /* owned */
	cu_device device;	       /* this rank's */
	bool is_one_device;	       /* all ranks share a GPU */
	bool is_apart;		       /* on GPUs that cannot reach each other's memory */
	bool can_pass_fds;	       /* between all processes */
	unsigned blocks;	       /* that run together, of one rank */
	unsigned blocks_all;	       /* .. of all that share a GPU */
	cu_ptr hall;		       /* owned */
	cu_ptr halls[MOVES_RANKS_MAX]; /* as this process sees them; 0: not yet */
	bool is_mapped[MOVES_RANKS_MAX]; /* .. by us */
	struct desk *desk;		 /* owned */
	struct trays *trays;		 /* owned; NULL: messages do not go through any */
	struct table *table;		 /* counted: where threads of one process meet */
};

/* The kernels of direct collectives, and of sends and receives. */
struct code {
	cu_module module;
	cu_function functions[DTYPE_COUNT][4], copy, pairs;
	bool is_launched_whole; /* the driver wants all arguments, also unused ones */
};

/* Words in host memory that the device reads and writes. */
struct pinned_words {
	struct words *here; /* the ledger's, or owned: pinned */
	bool are_shared;    /* .. the ledger's */
	cu_ptr device;
};

/* Of our own, of the highest priority: such streams have channels of the GPU that others'
 * do not share, so that what waits there keeps nobody from setting it free. */
struct own_streams {
	cu_stream side;	   /* what waits for nobody's kernels */
	cu_stream watcher; /* of memops_free() */
	cu_stream rescue;  /* the same, when that one does not get through */
};

/* The call under way. */
struct call_now {
	atomic_bool is_enqueuing; /* a thread is in the middle of it */
	bool is_capturing;
	uint64_t stream_number; /* unless it is captured: asking would end that */
	uint64_t moment;	/* counts calls */
};

/* The calls before. */
struct calls_past {
	uint32_t call;		   /* how many the words of the halls count */
	atomic_bool was_captured;  /* a graph counts calls that we do not know of */
	struct stream_order order; /* calls that share words of the halls */
	struct stream_order puts;
};

/* Addresses that calls came with lately, and what they are. */
struct seen_list {
	struct seen_pointer list[SEEN_MAX];
	uint32_t next;
};

/* All ranks' signals of a number side by side. */
struct signals {
	uint32_t given[CUDA_SIGNALS_MAX][MOVES_RANKS_MAX];
	uint32_t awaited[CUDA_SIGNALS_MAX][MOVES_RANKS_MAX];
};

struct cuda_engine {
	const struct cuda_driver *driver;
	cu_context context;
	uint32_t rank, rank_count;
	const struct cuda_way *way; /* NULL: not connected yet */
	void *own;		    /* the way's state, owned by it */
	struct ledger *ledger;	    /* owned */
	struct reach reach;
	struct code code;
	struct pinned_words words;
	struct own_streams streams;
	struct call_now now;
	struct calls_past past;
	struct seen_list seen;
	struct kept kept;
	struct bounce bounce;
	struct staged staged;
	struct signals signals;
	struct fate fate;
	_Atomic uint64_t held; /* bytes of device memory, see engine_alloc() */
};

/* Where in a hall rank `from` counts its signals of this number: the first is part of
 * what kernels know, the others lie behind it. */
static inline cu_ptr signal_at(cu_ptr hall, uint32_t from, uint32_t signal)
{
	size_t others = sizeof(struct dev_hall) +
			(signal - 1) * MOVES_RANKS_MAX * sizeof(uint32_t);

	return hall + (signal ? others : offsetof(struct dev_hall, signals)) +
	       from * sizeof(uint32_t);
}

/* ---- seen.c ---- */

/* What an address is; one that was asked for lately is only looked at again, and once for
 * each call. */
enum err engine_where(
	struct cuda_engine *engine, const void *ptr, struct cuda_where *where);
/* The same, whatever it was before. */
enum err engine_where_now(
	struct cuda_engine *engine, const void *ptr, struct cuda_where *where);

/* ---- reach.c ---- */

/* The rank's hall in this process's addresses. */
enum err engine_hall(struct cuda_engine *engine, uint32_t rank, cu_ptr *hall);

/* Device memory of a rank that others of its process use as well, counted; between
 * processes the driver counts. To free waits for all that its GPU was given, which may
 * wait for what another rank is yet to call: so an engine of the same GPU frees, when it
 * goes itself, whatever is not used any more; or the last one that used it, where its GPU
 * has no engine left. lent_take(): false, it is gone. */
enum err lent_make(const struct cuda_engine *engine, cu_ptr ptr);
bool lent_take(cu_ptr ptr);
void lent_drop(cu_ptr ptr);
void lent_sweep(const struct cuda_engine *engine);

/* ---- engine.c ---- */

/* This thread, perhaps one without, has the engine's context; returns what it had. */
cu_context context_enter(const struct cuda_engine *engine);
void context_leave(const struct cuda_driver *driver, cu_context mine, cu_context had);

/* Copy to device memory, or clear some, now: nobody else's work is waited for. */
enum err engine_upload(
	struct cuda_engine *engine, cu_ptr to, const void *from, size_t bytes);
/* Device memory that stays until the engine goes. */
enum err engine_alloc(
	struct cuda_engine *engine, size_t bytes, const char *what, cu_ptr *ptr);
enum err engine_clear(struct cuda_engine *engine, cu_ptr to, size_t bytes);

/* ---- order.c ---- */

/* Calls of this communicator that share words run one after the other, whatever streams
 * they are on: before the first and after the last thing a call enqueues. */
enum err order_begin(
	struct cuda_engine *engine, struct stream_order *order, cu_stream stream);
enum err order_end(
	struct cuda_engine *engine, struct stream_order *order, cu_stream stream);

/* ---- fate.c ---- */

/* The desk's thread, every now and then. */
void engine_look(void *arg);

/* Look now. OK, or why the engine is over, as this thread's own failure. */
enum err engine_judge(struct cuda_engine *engine);

/* Is it still to be used? */
enum err engine_is_well(struct cuda_engine *engine);

/* A call failed with this: the engine's end is the cause, if it has come, and has the
 * better sentence. */
enum err engine_blame(struct cuda_engine *engine, enum err code);

bool engine_is_stopped(const struct cuda_engine *engine);

/* ---- memops.c ---- */

struct cu_memop memop_write_64(cu_ptr address, uint64_t value);
struct cu_memop memop_write(cu_ptr address, uint32_t value);
/* Until the word has grown to `value`. */
struct cu_memop memop_wait(cu_ptr address, uint32_t value);
enum err memops_submit(struct cuda_engine *engine, cu_stream stream, struct cu_memop *ops,
	uint32_t count);

/* The address of a rank's mail in a hall. */
cu_ptr mail_at(cu_ptr hall, bool is_constant, uint32_t rank, size_t offset);

/* Words to be written, all of them at about the same time. */
struct writes;
enum {
	FREE_WAIT = 0x3fffffff, /* so far ahead that every wait is over */
	SETTLE_US = 5000 /* for a launch under way, where nothing tells: 1 GiB takes
			  * 2 ms */
};
void writes_add(struct writes *writes, cu_ptr address, uint32_t value);
/* How far a word of the device is beyond the number of the last call; false when it
 * cannot be read. */
bool word_see(struct cuda_engine *engine, cu_ptr word, int32_t *beyond);

/* Has this rank's last collective ended on the device? False also when that cannot be
 * told. */
bool memops_are_done(struct cuda_engine *engine);

/* Let everything of this rank that waits on the device go on, once no kernel of others is
 * in the middle of using its memory, and let none begin to; kernels that wait see the
 * abort word. Any thread; comes back in less than 60 ms. */
void memops_free(struct cuda_engine *engine);
/* After that, when it did not get through: takes a tenth of a second and more. */
void memops_free_aside(struct cuda_engine *engine);

/* ---- colls.c ---- */

/* The list with room for entry `number`, new ones with zeros; NULL: ERR_SYSTEM. */
void *kept_grow(void *list, uint32_t *count, uint32_t number, size_t size);

enum err coll_begin(struct cuda_engine *engine, const struct cuda_call *call);

/* Of a launch: blocks of each rank, ranks, threads of a block. */
struct grid {
	unsigned blocks, ranks, threads;
};
/* One that does the work of all ranks, or of one. */
struct grid grid_fused(const struct cuda_engine *engine, const struct cuda_call *call);
struct grid grid_single(const struct cuda_engine *engine, const struct cuda_call *call);
enum err coll_launch(struct cuda_engine *engine, const struct cuda_call *call,
	struct moves_args *args, struct grid grid);

/* Where ranks [first, end) see this call's buffers: posts[0] is the first's. */
enum err buffers_post(struct cuda_engine *engine, const struct cuda_call *call,
	uint32_t first, uint32_t end, struct dev_post *posts);

/* ---- pairs.c ---- */

enum err pairs_begin(struct cuda_engine *engine, const struct cuda_call *call);

/* Launches of copies: begin, add, launch; the latter empties. */
void pairs_args_begin(const struct cuda_engine *engine, struct pairs_args *args);
enum err pairs_args_add(struct cuda_engine *engine, struct pairs_args *args,
	const struct dev_pair *pair, cu_stream stream);
enum err pairs_args_launch(
	struct cuda_engine *engine, struct pairs_args *args, cu_stream stream);

enum err sizes_differ(uint32_t from, uint64_t sent, uint32_t to, uint64_t received);

/* Copy, now, in the stream's order. The kernel reaches all that is mapped; the driver's
 * own copies know only the allocation whose handle was opened, not its block. */
enum err pair_copy(
	struct cuda_engine *engine, const struct dev_pair *receive, cu_stream stream);

#endif
