/*
 * run_pmi.h - the launcher's side of PMI-1 and PMI-2 (src/launch/pmi.h has the other):
 * ranks put values, wait for each other, and get what others have put.
 *
 * One client per rank of this host. Nothing here waits: bytes come in by
 * run_pmi_hear(), answers go out at once, and a fence is answered when the caller says
 * that all ranks of the job are in it.
 */
#ifndef TOOLS_WEFT_RUN_PMI_H
#define TOOLS_WEFT_RUN_PMI_H

#include <stdbool.h>
#include <stdint.h>

#include "weft/run_bytes.h"

struct run_pmi_client {
	int fd; /* owned; -1: it has gone, or said goodbye */
	uint32_t rank;
	int version; /* 0: not introduced yet */
	bool is_in_fence;
	struct run_bytes in;
};

struct run_pmi {
	uint32_t rank_count;	 /* of the job */
	struct run_bytes values; /* keys and values that all ranks have put */
	struct run_bytes news; /* those that ranks of this host have put since a fence */
};

/* Take in what a client has said and answer it. A client that says what no client says is
 * put out (fd -1). */
void run_pmi_hear(struct run_pmi *pmi, struct run_pmi_client *client);

/* Keys and values of all hosts have come: they can be got from now on. */
void run_pmi_learn(struct run_pmi *pmi, const void *data, size_t bytes);

/* Let a client out of its fence. */
void run_pmi_release(struct run_pmi_client *client);

void run_pmi_leave(struct run_pmi_client *client);

#endif
