/*
 * engine.h - runs collectives on the memory of one GPU that all ranks share.
 *
 * The direct schedule is one list of moves (moves.h), done by one kernel for all ranks.
 * Who launches it depends on where the ranks live:
 *   threads    of one process meet at a table (table.h); the last to come launches, and
 *              events order the streams of all around it
 *   processes  rank 0 launches; streams are ordered by memory operations on words that
 *              all have mapped, so no kernel ever waits for another process's
 * A call only enqueues; that of a thread waits for the other threads to make theirs.
 * Every rank calls in the same order.
 */
#ifndef EXEC_CUDA_ENGINE_H
#define EXEC_CUDA_ENGINE_H

#include <stdatomic.h>
#include <stdbool.h>

#include "exec/cuda/driver.h"
#include "exec/fold.h"

struct cuda_engine;

/* What a rank tells the others when they meet: plain bytes. */
struct cuda_hello {
	uint32_t has_gpu; /* a CUDA context was current when the communicator was made */
	uint32_t pid;
	char uuid[16];		   /* of the device */
	struct cu_ipc_handle mail; /* rank 0's: where calls meet */
	uint64_t table;		   /* rank 0's: where threads meet, in its own process */
	uint32_t desk_fd;	   /* rank 0's: where buffers are made known */
	uint32_t unused;
};

/* Before the ranks meet. *engine stays NULL, and hello says so, in a process that has no
 * CUDA context; that is no failure. */
enum err cuda_engine_prepare(uint32_t rank, uint32_t rank_count, struct cuda_hello *hello,
	struct cuda_engine **engine);

/* After they met. ERR_USAGE, with a sentence, when these ranks cannot share a GPU. */
enum err cuda_engine_connect(
	struct cuda_engine *engine, const struct cuda_hello *const *hellos);

/* Stops what waits on the device, then frees. NULL is fine. */
void cuda_engine_abort(struct cuda_engine *engine);
void cuda_engine_destroy(struct cuda_engine *engine);

/* Is this memory the device's? False, at once, in a process without CUDA. */
bool cuda_memory_is(const void *ptr);

/* Memory on the current device; *ptr stays NULL when there is none. */
enum err cuda_memory_alloc(size_t bytes, void **ptr);
enum err cuda_memory_free(void *ptr);

struct cuda_call {
	struct plan_key key;
	enum redop op;
	union kernel_scalar scalar; /* of REDOP_PREMUL */
	const void *in;
	void *out;
	cu_stream stream;
};

/* ERR_USAGE when the stream is being captured: a captured call would be replayed with
 * the words of the first time. */
enum err cuda_engine_takes(const struct cuda_engine *engine, cu_stream stream);

/* Enqueue, in two halves, so that one thread can begin for several ranks before it waits
 * for any. A rank finishes a call before it begins the next. */
enum err cuda_engine_begin(struct cuda_engine *engine, const struct cuda_call *call);
enum err cuda_engine_finish(struct cuda_engine *engine, const struct cuda_call *call);

/* What a kernel found wrong since the last time: OK, or ERR_USAGE naming the rank whose
 * call differs. */
enum err cuda_engine_check(struct cuda_engine *engine);

/* "threads" or "processes", for the log. */
const char *cuda_engine_way(const struct cuda_engine *engine);

#endif
