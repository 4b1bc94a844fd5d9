/*
 * reference.h - what a collective must give, worked out the slow and plain way.
 *
 * Inputs are small whole numbers, so sums are exact in every type and the order of
 * additions cannot show.
 */
#ifndef REFERENCE_H
#define REFERENCE_H

#include "base/dtype.h"
#include "sched/sched.h"
#include "test.h"

struct reference {
	enum coll coll;
	enum dtype type; /* one of int8, int32, int64, float, double */
	uint32_t rank_count, root;
	size_t count;
};

static inline void reference_store(enum dtype type, void *at, size_t i, int value)
{
	if (type == DTYPE_INT8)
		((int8_t *)at)[i] = (int8_t)value;
	else if (type == DTYPE_INT32)
		((int32_t *)at)[i] = value;
	else if (type == DTYPE_INT64)
		((int64_t *)at)[i] = value;
	else if (type == DTYPE_FLOAT32)
		((float *)at)[i] = (float)value;
	else
		((double *)at)[i] = value;
}

/* Blocks of `count` elements in a rank's IN and OUT; 0 where it has none. */
static inline uint32_t reference_blocks(
	const struct reference *r, uint32_t rank, enum space space)
{
	struct sched view = {.coll = r->coll,
		.rank_count = r->rank_count,
		.rank = rank,
		.root = r->root,
		.chunk_count = 1};

	return sched_chunks(&view, space);
}

/* Element `i` of IN: at most 13 so that nine of them fit in a byte. */
static inline int reference_input(uint32_t rank, size_t i)
{
	return (int)((rank * 7 + i * 3 + i / 11) % 14);
}

/* Element `i` of the sum of everyone's IN. */
static inline int reference_sum(const struct reference *r, size_t i)
{
	int sum = 0;

	for (uint32_t rank = 0; rank < r->rank_count; rank++)
		sum += reference_input(rank, i);
	return sum;
}

/* Element `i` of a rank's OUT. */
static inline int reference_output(const struct reference *r, uint32_t rank, size_t i)
{
	uint32_t block = (uint32_t)(i / r->count);
	size_t at = i % r->count;

	switch (r->coll) {
	case COLL_ALL_REDUCE:
	case COLL_REDUCE:
		return reference_sum(r, i);
	case COLL_BROADCAST:
		return reference_input(r->root, i);
	case COLL_REDUCE_SCATTER:
		return reference_sum(r, rank * r->count + at);
	case COLL_ALL_GATHER:
	case COLL_GATHER:
		return reference_input(block, at);
	case COLL_ALL_TO_ALL:
		return reference_input(block, rank * r->count + at);
	default: /* COLL_SCATTER */
		return reference_input(r->root, rank * r->count + at);
	}
}

static inline size_t reference_bytes(
	const struct reference *r, uint32_t rank, enum space space)
{
	return reference_blocks(r, rank, space) * r->count * dtype_size(r->type);
}

static inline void reference_fill(const struct reference *r, uint32_t rank, void *in)
{
	size_t elems = reference_blocks(r, rank, SPACE_IN) * r->count;

	for (size_t i = 0; i < elems; i++)
		reference_store(r->type, in, i, reference_input(rank, i));
}

/* The rank's OUT as it must be. */
static inline void reference_result(const struct reference *r, uint32_t rank, void *out)
{
	size_t elems = reference_blocks(r, rank, SPACE_OUT) * r->count;

	for (size_t i = 0; i < elems; i++)
		reference_store(r->type, out, i, reference_output(r, rank, i));
}

/* Where IN and OUT lie when the call is in place: the smaller within the larger. */
static inline void reference_in_place(
	const struct reference *r, uint32_t rank, char *memory, char **in, char **out)
{
	size_t block = r->count * dtype_size(r->type);
	bool both = reference_blocks(r, rank, SPACE_IN) &&
		    reference_blocks(r, rank, SPACE_OUT);

	*in = *out = memory;
	if (!both || coll_is_vector(r->coll))
		return;
	if (r->coll == COLL_ALL_GATHER || r->coll == COLL_GATHER)
		*in = memory + rank * block;
	else
		*out = memory + rank * block;
}

#endif
