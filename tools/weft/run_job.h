/*
 * run_job.h - a job of `weft run` from its first process to its last, seen from where it
 * was typed.
 */
#ifndef TOOLS_WEFT_RUN_JOB_H
#define TOOLS_WEFT_RUN_JOB_H

#include "weft/run_args.h"

/* Start the helpers of all hosts and stay until the last has gone. The exit status: that
 * of the first rank that failed, 128 and the number for a signal, else 0. */
int run_job_run(const struct run_args *args);

#endif
