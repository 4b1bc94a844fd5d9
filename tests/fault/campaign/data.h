/*
 * data.h - a rank's two buffers, the collective on them, and what must be in them.
 *
 * Every element of every rank and call is different, and sums are exact, so that a byte
 * of another call, rank or place shows. Guards stand around both buffers.
 */
#ifndef CAMPAIGN_DATA_H
#define CAMPAIGN_DATA_H

#include "job.h"
#include "nccl.h"

/* A communicator and who is in it, by their ranks in the first one. */
struct group {
	ncclComm_t comm; /* owned; NULL when there is none */
	int members[JOB_RANKS];
	int count, me;
};

struct data {
	const struct job *job;
	char *base[2]; /* of the allocations, owned */
	int32_t *in, *out;
	size_t elems; /* in each */
};

/* False when there is no memory. */
bool data_create(struct data *data, const struct job *job);
void data_destroy(struct data *data);

/* The inputs of call number `call`, then the call itself. */
void data_fill(struct data *data, const struct group *group, int call);
ncclResult_t data_call(struct data *data, const struct group *group, int call);

/* After success: is everything as it must be? Else what is wrong, else NULL. */
const char *data_check(const struct data *data, const struct group *group, int call);

/* The buffers are ours alone: fill them with a pattern, and look whether it stays. */
void data_claim(struct data *data);
const char *data_check_claim(const struct data *data);

#endif
