/*
 * way.h - how the ranks of an engine go together: who launches, and who waits for whom.
 *
 * The engine knows a way by these operations and facts only. What a way remembers is its
 * own: the engine keeps a pointer to it (`own` of state.h) and never looks.
 */
#ifndef EXEC_CUDA_WAY_H
#define EXEC_CUDA_WAY_H

#include <stdbool.h>

#include "exec/cuda/engine.h"
#include "exec/cuda/lists/moves_abi.h"

struct cuda_hello;
struct writes;

/* A collective, as the ways get it: what everybody's launch needs, and this rank's mail.
 */
struct coll_work {
	const struct cuda_call *call;
	struct moves_args *args; /* all but the posts */
	struct dev_mail *mine;
};

/* A group's sends and receives in the order in which they are done. */
struct pair_list {
	struct dev_pair *pairs; /* owned */
	uint32_t count;
};

struct cuda_way {
	bool is_fused;	     /* one launch does the work of all ranks */
	bool is_one_process; /* no rank maps another's memory */

	/* After the ranks met: does this rank need that one's hall? */
	bool (*needs_hall)(const struct cuda_engine *engine, uint32_t rank);
	/* What it remembers. */
	enum err (*open)(struct cuda_engine *engine);
	void (*close)(struct cuda_engine *engine);

	/* For the log, with what would be better if anything. */
	const char *(*says)(const struct cuda_engine *engine);
	/* Can a stream's capture be taken? NULL: always. */
	enum err (*takes_capture)(const struct cuda_engine *engine);

	/* A call. `list` may be taken: then its pairs are NULL afterwards. */
	enum err (*coll)(struct cuda_engine *engine, const struct coll_work *work);
	enum err (*pairs)(
		struct cuda_engine *engine, struct pair_list *list, cu_stream stream);
	/* Does a message so long get to its receiver without that one's process seeing
	 * the sender's memory? Both must say the same. NULL: never. */
	bool (*passes)(const struct cuda_engine *engine, uint64_t bytes);
	/* What is left of it when every rank of this thread has begun; NULL: nothing. */
	enum err (*move)(struct cuda_engine *engine, const struct cuda_call *call);
	enum err (*finish)(struct cuda_engine *engine, const struct cuda_call *call);

	/* The word of the device that says which collective was the last to end; NULL:
	 * there is none. */
	cu_ptr (*done_at)(const struct cuda_engine *engine);
	/* Words that tell others not to use this rank's memory any more; then time for
	 * who is in the middle of it; then words that let this rank's streams go on.
	 * NULL: none. */
	void (*withdraw)(struct cuda_engine *engine, struct writes *writes);
	void (*settle)(struct cuda_engine *engine);
	void (*let_go)(struct cuda_engine *engine, struct writes *writes);
};

/* Threads of one process that share a GPU; processes that do, without MPS; and with it,
 * or ranks that have a GPU each. */
extern const struct cuda_way way_threads, way_leader, way_resident;

/* A call that is captured with others' launches out of reach goes as a resident one,
 * whatever the way is: without numbers, which a graph would repeat. */
enum err resident_coll(struct cuda_engine *engine, const struct coll_work *work);
enum err resident_pairs(
	struct cuda_engine *engine, struct pair_list *list, cu_stream stream);

#endif
