/*
 * mistakes.h - calls that do not fit together, for tests on any kind of memory: every
 * collective and a message, and what one rank may do wrong in each.
 */
#ifndef MULTI_MISTAKES_H
#define MULTI_MISTAKES_H

#include "colls.h"

/* Beside the collectives: from the first rank to the last. */
enum { MESSAGE = COLLECTIVES, KINDS };

/* As sentences name them. */
extern const char *const kind_names[KINDS];

/* What the last rank does. */
enum mistake { SIZE, TYPE, OPERATOR, ROOT, KIND, ORDER, OTHER_SORT, MISTAKES };

extern const char *const mistake_names[MISTAKES];

struct request {
	int kind;
	size_t count;
	ncclDataType_t type;
	ncclRedOp_t op;
	int root;
};

/* Who makes it, and where. */
struct request_place {
	int rank, rank_count;
	void *in, *out;
	ncclComm_t comm;
	cudaStream_t stream;
};

ncclResult_t request_call(
	const struct request *request, const struct request_place *place);

/* False: there is no such mistake with this call. */
bool request_wrong(
	const struct request *right, enum mistake mistake, struct request *wrong);

#endif
