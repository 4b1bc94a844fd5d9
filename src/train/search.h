/*
 * search.h - all layouts of a model on a cluster, and the fastest that fit.
 *
 * The space: tensor, context, expert and pipeline parallelism by what divides, chunks of
 * a stage, micro-batches, recomputation, and what is sharded. What layouts have in common
 * is worked out once: products and wires of a layer for each way to cut it, and the rest
 * is a few sums.
 */
#ifndef TRAIN_SEARCH_H
#define TRAIN_SEARCH_H

#include "train/calib.h"

enum { SEARCH_HITS = 10, SEARCH_CELLS = 512 };

struct search_hit {
	struct train_layout layout;
	double seconds, bytes;
};

/* The fastest of all layouts with this tp and pp that fit. */
struct search_cell {
	uint32_t tp, pp;
	double seconds; /* 0: none fits */
};

struct search_result {
	struct search_cell cells[SEARCH_CELLS]; /* tp by tp, ascending */
	uint32_t cell_count;
	struct search_hit hits[SEARCH_HITS]; /* the fastest first */
	uint32_t hit_count;
	uint64_t tried;	    /* layouts whose numbers divide */
	uint64_t fitting;   /* of those, in memory */
	double least_bytes; /* of the one that needs the least memory */
};

/* Bits of what was said of a layout: a search keeps it. */
enum {
	SAID_TP = 1,
	SAID_CP = 2,
	SAID_PP = 4,
	SAID_EP = 8,
	SAID_ETP = 16,
	SAID_DP = 32,
	SAID_VP = 64,
	SAID_MICRO = 128,
	SAID_SHARD = 256,
	SAID_RECOMPUTE = 512
};

/* `job->layout` gives GPUs, batch, sequence, precision and flags, and what is `said`.
 * ERR_USAGE when the model or batch divides in no way. */
enum err layouts_search(const struct train_job *job, const struct calib_answer *answer,
	uint32_t said, struct search_result *result);

#endif
