/*
 * point.h - what one line of the table measures: the shapes and calls of its ranks, and
 * what is in their buffers before and after.
 */
#ifndef TOOLS_PERF_POINT_H
#define TOOLS_PERF_POINT_H

#include "perf/run.h"

struct point {
	enum element type;
	enum data_op op;
	uint32_t root;
	size_t total; /* elements of the size asked for */
	bool in_place;
};

struct coll_shape point_shape(
	const struct worker *worker, const struct point *point, uint32_t rank);

/* What a rank's larger buffer holds. */
size_t point_row_elems(const struct coll_kind *kind, const struct coll_shape *shape);

/* The call of one rank `shift` bytes into its buffers. */
struct coll_call point_call(const struct worker *worker, const struct point *point,
	const struct rank *rank, size_t shift);

/* Put the values of `seed` into the buffers of the thread's ranks; TEST_OK, or everybody
 * is told of the failure. */
int point_fill(struct worker *worker, const struct point *point, uint64_t seed);

/* Bring what the calls left to where it is looked at, when they are through. */
int point_fetch(struct worker *worker, const struct point *point);

/* How much of it is wrong. */
int point_count_wrong(
	struct worker *worker, const struct point *point, uint64_t seed, double *wrong);

/* What this thread has enqueued is done. */
int worker_wait(struct worker *worker);

/* A GPU refused something, which was said: tell everybody. */
int worker_device_failed(const struct worker *worker);

bool worker_is_on_device(const struct worker *worker);

#endif
