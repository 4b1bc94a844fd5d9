/*
 * run.h - one job from its first process to its last, and what is to be said of it.
 *
 * The coordinator never calls the library. It forks the processes, stops and resumes the
 * victim, and ends whatever is left when the limit has passed.
 */
#ifndef CAMPAIGN_RUN_H
#define CAMPAIGN_RUN_H

#include "job.h"
#include "page.h"

enum { LINE_BYTES = 6000, WHY_BYTES = 400 };

struct run_limits {
	int hang_s;    /* then a job hangs */
	int settle_ms; /* for threads to end */
};

/* How the processes of a job ended. */
struct run_end {
	int statuses[JOB_RANKS]; /* as of waitpid() */
	bool hangs;
	bool was_stopped;
	bool left_child; /* a process that none of the ranks is */
	int troubles;	 /* that the relay has made */
};

struct run_result {
	enum fault fault;
	bool is_made, is_ok, is_struck;
	double named_ms, silent_ms, abort_ms,
		shrink_ms; /* the slowest rank's; < 0: none */
	char why[WHY_BYTES];
	char line[LINE_BYTES];
};

void run_job(const struct job *job, const struct run_limits *limits,
	struct run_result *result);

#endif
