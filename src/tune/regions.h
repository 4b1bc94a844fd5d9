/*
 * regions.h - which algorithm and protocol is the best on AWS's instances, by the size of
 * a message and the number of nodes.
 *
 * Measured by AWS for 4 to 128 nodes in steps of two. For numbers between, where both
 * neighbours have the same choices in the same order, the sizes at which they change are
 * taken to lie on straight lines when both are drawn as logarithms; elsewhere those of
 * the smaller neighbour hold.
 */
#ifndef TUNE_REGIONS_H
#define TUNE_REGIONS_H

#include <stdbool.h>
#include <stdint.h>

#include "tune/model.h"

enum region_machine {
	REGION_NONE,
	REGION_P5, /* and p5e */
	REGION_P5EN,
	REGION_P6_B200,
	REGION_P6_B300
};

/* Of an instance type; REGION_NONE: nothing is known of it. */
enum region_machine region_machine(const char *type);

struct region_question {
	enum region_machine machine;
	uint32_t node_count, ranks_per_node;
	enum model_func func;
	uint64_t bytes;
};

/* False: no opinion. */
bool region_choose(
	const struct region_question *question, enum algo *algo, enum proto *proto);

#endif
