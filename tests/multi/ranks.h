/*
 * ranks.h - run a function as the ranks of a communicator, and never hang.
 *
 * A job is p processes of t threads each: p * t ranks. The test's own process never calls
 * the library, so it can fork at any time; all it does is wait, with a deadline, and end
 * what is left. Ranks share a page: unique ids, a barrier, and words for the test's use.
 */
#ifndef MULTI_RANKS_H
#define MULTI_RANKS_H

#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "nccl.h"
#include "patience.h"
#include "test.h"

enum { RANKS_MAX = 32, RANKS_IDS = 512, RANKS_WORDS = 256 };

struct ranks_page {
	pthread_barrier_t barrier;
	_Atomic uint64_t words[RANKS_WORDS]; /* the test's; zero at the start */
	_Atomic uint64_t result;	     /* handed back by ranks_wait() */
	_Atomic uint32_t id_ready[RANKS_IDS];
	ncclUniqueId ids[RANKS_IDS];
};

struct rank {
	int rank, rank_count;
	int process, thread;	 /* which of the job, which of the process */
	struct ranks_page *page; /* shared by all ranks */
	const void *argument;	 /* borrowed */
};

typedef void rank_function(struct rank *rank);

struct ranks {
	int processes, threads;
	rank_function *function;
	const void *argument;
	const char *const *environment; /* NAME, value, .., NULL; may be NULL */
	int limit_s;			/* of patience.h; 0: 60 */
	uint64_t result;		/* what a rank left in the page */
	/* the runner's */
	struct ranks_page *page;
	pid_t pids[RANKS_MAX];
};

/* Start, then wait until all processes have ended well. A process that ends badly, or not
 * in time, ends the test with exit code 1; `killed` is a mask of processes that are
 * expected to die by SIGKILL. */
void ranks_start(struct ranks *ranks);
void ranks_wait(struct ranks *ranks, unsigned killed);
void ranks_run(struct ranks *ranks);

/* ---- for ranks ---- */

/* The id number `index` of this job: rank 0 makes it, the others wait for it. */
ncclUniqueId rank_id(struct rank *rank, int index);

/* A communicator of all ranks through id `index`. */
ncclComm_t rank_comm(struct rank *rank, int index);

/* The rank that this thread is; 0 for a thread that is none. */
int rank_of_thread(void);

/* All ranks of the job are here. */
void rank_meet(struct rank *rank);

uint64_t now_us(void);

/* The page's result becomes this, unless it is more already. */
void rank_raise(struct rank *rank, uint64_t value);

/* The first failure stays: of calls, and what the communicator says. */
void error_note(ncclResult_t *first, ncclResult_t got);
void error_note_state(ncclResult_t *first, ncclComm_t comm);

/* What a failed check says besides its place; of this thread. */
void rank_context(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* The call returned this code; shows the library's sentence when it did not. */
#define GIVES(call, code) gives((call), (code), #call, __FILE__, __LINE__)
#define OK(call)	  GIVES(call, ncclSuccess)
void gives(ncclResult_t got, ncclResult_t want, const char *text, const char *file,
	int line);

/* As TRUE() of test.h, with the context. */
#define HOLDS(what) holds(!!(what), #what, __FILE__, __LINE__)
void holds(bool is_true, const char *text, const char *file, int line);

/* Is this built with a sanitizer, which has maps and memory of its own? */
bool is_sanitized(void);

/* Are ranks of several processes on several hosts, as far as the library can tell? */
bool has_hosts(void);

/* How many names a folder has: descriptors and threads of this process, say. */
int entries(const char *path);

/* Is `name` among the arguments? */
bool has_option(int argc, char **argv, const char *name);

#endif
