/*
 * run.h - runs a group's jobs to the end: spins, yields, then sleeps.
 *
 * One thread drives all jobs it is given, of one communicator or of many: collectives of
 * one engine in order, sends and receives side by side, and those of one pair and
 * direction in order. Nothing here waits without looking at the abort word, at the
 * peers' health and at the deadline.
 */
#ifndef EXEC_HOST_RUN_H
#define EXEC_HOST_RUN_H

#include "exec/host/engine.h"
#include "exec/host/onesided.h"
#include "exec/host/p2p.h"

enum host_job_kind { JOB_COLL, JOB_P2P, JOB_ONESIDED };

/* What to do. */
struct host_job {
	enum host_job_kind kind;
	struct host_engine *engine;
	struct host_spec spec;	  /* JOB_COLL */
	struct p2p p2p;		  /* JOB_P2P: initialised, with data and bytes */
	struct onesided onesided; /* JOB_ONESIDED: filled */
};

/* Run one collective. */
enum err host_run_one(struct host_engine *engine, const struct host_spec *spec);

/* .. those that this thread is to run, of calls that several may run (squad.h, cut.h). */
enum err host_run_here(const struct host_job *const *jobs, uint32_t count);

/* Run them all; the first failure ends the others where they are. */
enum err host_run(const struct host_job *const *jobs, uint32_t count);

#endif
