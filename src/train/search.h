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

enum { SEARCH_HITS = 10 };

struct search_hit {
	struct train_layout layout;
	double seconds, bytes;
};

struct search_result {
	struct search_hit hits[SEARCH_HITS]; /* the fastest first */
	uint32_t hit_count;
	uint64_t tried;	    /* layouts whose numbers divide */
	uint64_t fitting;   /* of those, in memory */
	double least_bytes; /* of the one that needs the least memory */
};

/* `job->layout` gives GPUs, batch, sequence, precision and flags; its degrees are not
 * looked at. ERR_USAGE when the model or batch divides in no way. */
enum err layouts_search(const struct train_job *job, const struct calib_answer *answer,
	struct search_result *result);

#endif
