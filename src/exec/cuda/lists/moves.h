/*
 * moves.h - the direct schedule of a collective as lists of moves for a kernel.
 */
#ifndef EXEC_CUDA_LISTS_MOVES_H
#define EXEC_CUDA_LISTS_MOVES_H

#include <stddef.h>

#include "base/err.h"
#include "exec/cuda/lists/moves_abi.h"
#include "sched/sched.h"

/* A struct dev_page for every rank, one behind the other, ready for the device. */
struct move_pages {
	void *data; /* the caller's, to be freed */
	size_t bytes, page_bytes;
};

/* Lower the collective's direct schedule for all ranks and write it down without waits.
 * The chunks of all_reduce, broadcast and reduce are as many as there are ranks.
 * ERR_INTERNAL when a move reads what another writes: then meeting once is not enough. */
enum err moves_flatten(
	enum coll coll, uint32_t rank_count, uint32_t root, struct move_pages *pages);

#endif
