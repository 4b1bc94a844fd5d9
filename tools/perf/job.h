/*
 * job.h - one run of processes that a launcher started: they form one job, as nccl-tests'
 * do with MPI.
 *
 * The processes meet through a communicator of their own, one rank each, beside the one
 * that is measured; it costs nothing while it is not used.
 */
#ifndef TOOLS_PERF_JOB_H
#define TOOLS_PERF_JOB_H

#include <stdint.h>

#include "perf/run.h"

/* Read the launcher's variables. Without one, or when it started one process only, the
 * run has one process and is its own. TEST_OK, or the exit status after a sentence. */
int job_find(struct run *run);

/* Meet the other processes, if there are any, and learn where they are. Fills
 * run->places and lets run->meet reach them. */
int job_open(struct run *run);

/* At the end, when all workers are done. */
void job_close(struct run *run);

#endif
