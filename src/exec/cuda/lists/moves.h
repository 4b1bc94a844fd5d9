/*
 * moves.h - the direct schedule of a collective as lists of moves for a kernel.
 */
#ifndef EXEC_CUDA_LISTS_MOVES_H
#define EXEC_CUDA_LISTS_MOVES_H

#include <stddef.h>

#include "base/err.h"
#include "exec/cuda/lists/moves_abi.h"
#include "sched/lower.h"

/* A struct dev_page for every rank, one behind the other, ready for the device. */
struct move_pages {
	void *data; /* the caller's, to be freed */
	size_t bytes, page_bytes;
};

/* The direct schedule of a collective, by the programs of all ranks in direct mode,
 * without waits. The chunks of all_reduce, broadcast and reduce are as many as there are
 * ranks. ERR_INTERNAL when a move reads what another writes: then meeting once is not
 * enough. */
enum err moves_flatten(struct program *const *programs, struct move_pages *pages);

#endif
