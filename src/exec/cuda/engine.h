/*
 * engine.h - runs collectives, sends and receives on device memory.
 *
 * The direct schedule of a collective is one list of moves (moves.h). Who does them
 * depends on where the ranks live:
 *   threads    of one process that share a GPU meet at a table (table.h); rank 0's
 *              launches one kernel for all, and events order the streams around it
 *   leader     processes that share a GPU: rank 0 launches for all; streams are ordered
 *              by memory operations on words that all have mapped, so no kernel ever
 *              waits for another process's
 *   resident   processes under MPS, and ranks on different GPUs: every rank launches, and
 *              the kernels wait for each other
 * A call only enqueues; that of a thread waits for the other threads to make theirs, and
 * one with memory that must be copied from or to pageable host memory waits for the copy,
 * as CUDA's own copies do. Every rank makes the same collective calls in the same order.
 */
#ifndef EXEC_CUDA_ENGINE_H
#define EXEC_CUDA_ENGINE_H

#include <stdatomic.h>
#include <stdbool.h>

#include "exec/cuda/driver/driver.h"
#include "exec/cuda/meet/desk.h"
#include "exec/cuda/meet/ledger.h"
#include "exec/cuda/meet/trays.h"
#include "exec/fold.h"
#include "exec/health.h"
#include "plan/device.h"

struct cuda_engine;

/* "0000:14:00.0" */
enum { CUDA_BUSID_BYTES = 20 };

/* What a rank tells the others when they meet: plain bytes. */
struct cuda_hello {
	uint32_t has_gpu;    /* the program shows that it works on one, context.h */
	uint32_t has_failed; /* it does, and it cannot be used */
	uint32_t pid;
	char uuid[16]; /* of the device */
	char busid[CUDA_BUSID_BYTES];
	uint32_t is_mps, multiprocessors;
	uint64_t context, hall, table; /* in its own process; table: rank 0's */
	struct cu_ipc_handle hall_handle;
	struct desk_address desk;
	struct ledger_address ledger;
	struct trays_address trays;
};

/* Before the ranks meet. *engine stays NULL, and hello says so, in a program that shows
 * no CUDA context; that is no failure. */
enum err cuda_engine_prepare(uint32_t rank, uint32_t rank_count, struct cuda_hello *hello,
	struct cuda_engine **engine);

/* After they met. ERR_USAGE, with a sentence, when these ranks cannot work together. */
enum err cuda_engine_connect(
	struct cuda_engine *engine, const struct cuda_hello *const *hellos);

/* Slots, for calls with a schedule of their own and where memory cannot be reached: every
 * rank makes an offer, and after they were exchanged accepts those of all. */
struct cuda_offer {
	uint32_t pid, fd;
	uint64_t address;
	struct cu_ipc_handle handle;
};
/* Can this rank take over descriptors of the others? All must, or none is passed. */
bool cuda_engine_passes_fds(const struct cuda_engine *engine);
void cuda_engine_pass_fds(struct cuda_engine *engine, bool is_allowed);
bool cuda_engine_is_apart(const struct cuda_engine *engine);
enum err cuda_engine_offer(
	struct cuda_engine *engine, bool is_apart, struct cuda_offer *offer);
enum err cuda_engine_accept(struct cuda_engine *engine, const struct cuda_offer *offers);

/* Everybody is connected. From now on, until cuda_engine_destroy(), a thread of the
 * engine's looks every now and then whether the others are well, and tells them when it
 * finds that this engine is over; who uses the engine asks cuda_engine_check(). `health`
 * is borrowed. */
enum err cuda_engine_start(struct cuda_engine *engine, struct health *health);

/* Stops what waits on the device, of every rank: the others must be able to learn why
 * before. What others' kernels were in the middle of is over then. NULL is fine. */
void cuda_engine_abort(struct cuda_engine *engine);

/* False when another rank's end was seen, and this one had nothing under way then. */
bool cuda_engine_is_cut(struct cuda_engine *engine);

/* Waits for what is enqueued, then frees. After an abort or a failure it does not wait
 * for other work of the process, which may never end: a thread frees when that has. */
void cuda_engine_destroy(struct cuda_engine *engine);

/* The CUDA context that this thread works in, which is current then; NULL: none,
 * context.h. Then those of a device, of memory of a device, and of an engine. */
enum err cuda_context(cu_context *context);
enum err cuda_device_context(int ordinal, cu_context *context);
cu_context cuda_engine_context(const struct cuda_engine *engine);

/* The device of the context that is current; negative: there is none. */
int cuda_device(void);

enum err cuda_memory_context(const void *ptr, cu_context *context);

/* Is this memory the device's? False, at once, in a process without CUDA. */
bool cuda_memory_is(const void *ptr);

/* .. and do kernels on the current device reach it? */
bool cuda_memory_is_here(const void *ptr);

/* .. and such that a network card can be given it? Its number tells allocations apart. */
bool cuda_memory_is_direct(const void *ptr, uint64_t *buffer_id);

/* What is current; and from now on this thread works there. For struct net_gpu, as is the
 * next. */
void *cuda_context_now(void);
void cuda_context_enter(void *context);

/* .. as a dma-buf. */
bool cuda_memory_dmabuf(const void *ptr, size_t bytes, int *fd, uint64_t *offset);

/* Where the current device is on the bus; "": there is none, or it is not known. */
void cuda_device_busid(char busid[CUDA_BUSID_BYTES]);

/* The first number of the current device's compute capability; 0: not known. */
int cuda_device_major(void);

/* ERR_ARGUMENT when a call's buffer in device memory goes beyond its allocation. */
enum err cuda_memory_check(const void *ptr, size_t bytes, bool is_sent);

/* Memory on the current device; *ptr stays NULL when there is none. */
enum err cuda_memory_alloc(size_t bytes, void **ptr);
enum err cuda_memory_free(void *ptr);

/* A send or a receive. */
struct cuda_pair {
	bool is_send;
	uint32_t peer;
	void *data;
	size_t bytes;
};

struct cuda_call {
	cu_stream stream;
	cu_event launched; /* recorded when the call's turn comes; NULL: none */
	/* sends and receives, in order for each peer; NULL: a collective, as follows */
	const struct cuda_pair *pairs; /* borrowed */
	uint32_t pair_count;
	struct plan_key key;
	enum redop op;
	union kernel_scalar scalar; /* of REDOP_PREMUL */
	const void *scalar_at;	    /* .. or where it will be then; NULL: not so */
	const void *in;
	void *out;
	struct device_plan plan; /* of this planner's that all its calls are of */
};

/* ERR_USAGE when the stream is being captured and these ranks cannot do that. */
enum err cuda_engine_takes(const struct cuda_engine *engine, cu_stream stream);

/* Enqueue, in three steps, so that one thread can take each for several ranks before it
 * waits for any. A rank finishes a call before it begins the next. */
enum err cuda_engine_begin(struct cuda_engine *engine, const struct cuda_call *call);
enum err cuda_engine_move(struct cuda_engine *engine, const struct cuda_call *call);
enum err cuda_engine_finish(struct cuda_engine *engine, const struct cuda_call *call);

/* Copy to device memory of another rank that this process sees at `to`, and signal it; or
 * only that when bytes is 0. */
enum { CUDA_SIGNALS_MAX = 64 };
struct cuda_put {
	uint32_t peer;
	uint32_t signal; /* which, below CUDA_SIGNALS_MAX */
	const void *data;
	bool is_device; /* the data is device memory, and there is enough of it */
	uint64_t to;
	size_t bytes;
};
enum err cuda_engine_put(
	struct cuda_engine *engine, const struct cuda_put *put, cu_stream stream);
/* The stream waits for as many signals of this rank as were not waited for before. */
struct cuda_await {
	uint32_t peer, signal, count;
};
enum err cuda_engine_await(
	struct cuda_engine *engine, const struct cuda_await *await, cu_stream stream);

/* Where rank `peer`'s process sees this memory of ours. ERR_ARGUMENT when it goes beyond
 * its allocation or cannot be shared. */
enum err cuda_engine_show(struct cuda_engine *engine, uint32_t peer, const void *ptr,
	size_t bytes, uint64_t *address);

/* What is enqueued on `first` from now on comes after all that is on `other` now. */
enum err cuda_engine_join(struct cuda_engine *engine, cu_stream first, cu_stream other);

/* OK, or why the engine is over: the first cause stays. Costs next to nothing as long as
 * nobody has stopped it. */
enum err cuda_engine_check(struct cuda_engine *engine);

/* Bytes of device memory it has for itself. Any thread may ask. */
uint64_t cuda_engine_held(const struct cuda_engine *engine);

/* In words, for the log, with what would be better if anything. */
const char *cuda_engine_way(const struct cuda_engine *engine);

#endif
