/*
 * data.h - what goes into the buffers, and what must come out of them.
 *
 * Every element is a function of (seed, rank, index), so the right answer is computed,
 * never communicated. Float sums and products are built so that every partial result is
 * exact in the element type: any order of reduction gives the same bits, and the check
 * needs no tolerance (average: two units in the last place, for its scaling rounds).
 */
#ifndef TOOLS_PERF_DATA_H
#define TOOLS_PERF_DATA_H

#include "perf/element.h"

enum data_op {
	DATA_SUM,
	DATA_PROD,
	DATA_MAX,
	DATA_MIN,
	DATA_AVG,
	DATA_MULSUM,
	DATA_OP_COUNT
};

/* What a piece of a buffer holds. */
enum part_kind {
	PART_COPY,   /* `rank`'s own values, for collectives that move */
	PART_GIVE,   /* `rank`'s contribution to a reduction */
	PART_REDUCED /* the reduction over all ranks */
};

struct data_part {
	enum part_kind kind;
	uint32_t rank;
	size_t offset; /* first element in the buffer */
	size_t count;  /* elements */
	size_t index;  /* element number of the first in the sequence of values */
};

struct data_rule {
	enum element type;
	enum data_op op;
	uint32_t rank_count;
	uint64_t seed;
};

/* Which of a part's elements: every `step`th from the first on. The host has all, {0, 1};
 * each thread of a GPU has its own. */
struct data_stride {
	size_t first, step;
};

/* Write them into `buffer`. */
ON_BOTH void data_fill(const struct data_rule *rule, const struct data_part *part,
	void *buffer, struct data_stride stride);

/* How many of them are not what they must be. */
ON_BOTH uint64_t data_count_wrong(const struct data_rule *rule,
	const struct data_part *part, const void *buffer, struct data_stride stride);

/* mulsum's factor of a rank, 1 or 2, as bits of the type. */
ON_BOTH uint64_t data_scalar(enum element type, uint32_t rank);

#endif
