/*
 * run_rank.h - one rank of this host: its process, and our ends of what it reads and
 * writes.
 */
#ifndef TOOLS_WEFT_RUN_RANK_H
#define TOOLS_WEFT_RUN_RANK_H

#include <sys/types.h>

#include "weft/run_pmi.h"
#include "weft/run_wire.h"

struct run_rank {
	pid_t pid;	    /* also its process group's; 0: it has ended */
	int input;	    /* owned; -1: it reads /dev/null, or nobody has more to say */
	int output, errors; /* owned; -1: closed */
	struct run_pmi_client pmi;
};

/* A rank takes four descriptors of ours: allow this process as many as it may have. */
void run_rank_more_files(void);

/* Start it. False, with a sentence in `why`, when that cannot be. */
bool run_rank_start(const struct run_job *job, uint32_t local_rank, struct run_rank *rank,
	char *why, size_t room);

#endif
