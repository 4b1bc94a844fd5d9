/*
 * colls.h - the collectives as numbers, for tests that walk all of them.
 *
 * A test with calls of its own beside them goes on counting at COLLECTIVES.
 */
#ifndef MULTI_COLLS_H
#define MULTI_COLLS_H

#include <stdbool.h>

#include "nccl.h"

enum collective {
	ALL_REDUCE,
	BROADCAST,
	REDUCE,
	ALL_GATHER,
	REDUCE_SCATTER,
	ALL_TO_ALL,
	GATHER,
	SCATTER,
	COLLECTIVES
};

/* "AllReduce", .. */
const char *collective_name(int collective);
bool collective_has_root(int collective);

/* What is not asked for is not looked at. */
struct collective_call {
	int collective; /* enum collective */
	const void *in;
	void *out;
	size_t count;
	ncclDataType_t type;
	ncclRedOp_t op;
	int root;
	ncclComm_t comm;
	cudaStream_t stream;
};

ncclResult_t collective_call(const struct collective_call *call);

/* In a group: to the next rank of a ring of `rank_count`, and from the one before. */
ncclResult_t ring_call(const struct collective_call *call, int rank, int rank_count);

#endif
