/*
 * fit.h - every index in a schedule is in range.
 *
 * Hostile input ends here: what reads a schedule after this follows its peers,
 * connections, chunks and waits without looking again.
 */
#ifndef SCHED_FIT_H
#define SCHED_FIT_H

#include "sched/sched.h"

/* ERR_USAGE with a sentence that names rank, lane and instruction. */
enum err sched_fits(const struct sched *sched);

#endif
