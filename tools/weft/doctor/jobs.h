/*
 * jobs.h - the jobs of a log: runs one after the other, or side by side, in one stream.
 *
 * A job begins where processes appear that were not there before and that take ranks
 * which are taken: a file of logs joined rank by rank is one job, a run after a run is
 * two. What new processes write before they say their rank is kept until then. A table of
 * nccl-tests that begins after another one ended begins a job as well, unless the
 * launcher says that another rank wrote it: then every rank runs alone, and it is one
 * job.
 */
#ifndef TOOLS_WEFT_DOCTOR_JOBS_H
#define TOOLS_WEFT_DOCTOR_JOBS_H

#include "base/err.h"
#include "weft/doctor/lines.h"
#include "weft/doctor/log_facts.h"

enum { JOBS_MAX = 16, JOBS_HELD_BYTES = 1 << 20 };

struct jobs {
	struct log_facts *facts[JOBS_MAX]; /* owned */
	uint32_t count;
	char *held; /* owned; lines that are not yet anybody's */
	size_t held_bytes;
	bool is_holding;
	int test_rank; /* the launcher's, of who wrote the newest head of a test; -1 */
};

/* What to do with a line. */
enum jobs_verdict {
	JOBS_TAKE,    /* read it; jobs_of() says whose each record is */
	JOBS_HELD,    /* it is kept */
	JOBS_DECIDED, /* read the lines kept, of which this is the last */
	JOBS_FULL     /* read the lines kept, and then this one */
};

enum err jobs_init(struct jobs *jobs);
void jobs_fini(struct jobs *jobs);

/* A line before anybody reads it: its first record, and where the next one begins. */
enum jobs_verdict jobs_look(struct jobs *jobs, const struct line *line,
	const struct record *first, size_t from);

/* Whose a record is: the newest job's, unless an earlier one has the process. */
struct log_facts *jobs_of(struct jobs *jobs, const struct record *record);

/* The lines kept, one by one, from 0; false: no more, and they are forgotten. */
bool jobs_release(struct jobs *jobs, size_t *from, struct line *line);

/* A log's name begins; for all jobs. */
enum err jobs_file(struct jobs *jobs, const char *name);

#endif
