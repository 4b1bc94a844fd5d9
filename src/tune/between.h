/*
 * between.h - which schedule ranks on several hosts get: what each would cost.
 *
 * A schedule between hosts costs its rounds, its messages, the bytes that pass between
 * the hosts and those that a rank copies or folds inside. How many of each a kind has
 * follows from the shape of the job: that is the table in between.c. What a round and a
 * byte cost is configured (WEFT_NET_LATENCY_US, WEFT_NET_MB_PER_SEC), alike on all ranks,
 * because they must choose alike.
 */
#ifndef TUNE_BETWEEN_H
#define TUNE_BETWEEN_H

#include <stddef.h>

#include "sched/catalog.h"

struct between_call {
	enum coll coll;
	size_t bytes;			 /* of the vector, or of one rank's block */
	const struct sched_hosts *hosts; /* borrowed; several */
};

/* The cheapest kind there is for the call: of all, or of those that run the plain
 * schedule `plain` between hosts. NULL: there is none of it, or none for such hosts. */
const struct sched_kind *between_choose(
	const struct between_call *call, const char *plain);

/* What a kind is taken to cost, in microseconds; negative: it is not in the table. */
double between_cost(const struct sched_kind *kind, const struct between_call *call);

#endif
