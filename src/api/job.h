/*
 * job.h - a call that meets other ranks before there is a plan to run: making, dividing,
 * ending communicators, registering windows.
 *
 * A job blocks until its peers came. Alone it runs in the caller's thread; the jobs of a
 * group run side by side, each in a thread of its own, but those of one parent in order.
 * On a non-blocking communicator it runs behind the caller's back.
 */
#ifndef API_JOB_H
#define API_JOB_H

#include <pthread.h>

#include "api/export.h"

enum job_kind {
	JOB_INIT,
	JOB_SPLIT,
	JOB_SHRINK,
	JOB_GROW,
	JOB_FINALIZE,
	JOB_DESTROY,
	JOB_WINDOW,
};

/* What was asked for: what means nothing to a kind is not looked at. */
struct job_args {
	struct comm_init_args init; /* JOB_INIT; JOB_GROW: ids, rank_count */
	struct boot_id *ids;	    /* owned; what init.ids points to */
	int color, key;		    /* JOB_SPLIT */
	int *exclude;		    /* JOB_SHRINK, owned */
	uint32_t exclude_count;
	bool abort;
	int rank;      /* JOB_GROW */
	void *pointer; /* JOB_WINDOW */
	size_t bytes;
	int flags;
	ncclWindow_t *window; /* the caller's */
};

struct job {
	struct job *next;  /* of the list it is in */
	struct job *chain; /* the next job of the same parent */
	enum job_kind kind;
	struct comm *parent; /* NULL for JOB_INIT and for a new rank of JOB_GROW */
	struct comm *child;  /* being made; NULL where nothing is */
	ncclComm_t *out;     /* the caller's; not touched once a background job runs */
	bool background;
	enum err result;

	/* of the first in a chain */
	bool entered_parent, holds_parent, has_thread;
	char sentence[ERR_TEXT_BYTES]; /* of its first failure, for whoever waits */
	pthread_t thread;
	void *gpu_context; /* of the thread that called; NULL: none */

	struct job_args args;
};

/* A zeroed job, or NULL after err_set(). */
struct job *job_create(enum job_kind kind, struct comm *parent);

/* Give it a child: allocate, make known, mark not ready, store in *out. */
enum err job_add_child(
	struct job *job, const struct comm_config *config, ncclComm_t *out);

/* Copy `count` ids into it. */
enum err job_add_ids(struct job *job, const ncclUniqueId *ids, int count);

/* Free a job that will not run; what it prepared is undone. */
void job_cancel(struct job *job);

/* Free a job that was not handed to anybody and prepared nothing. */
void job_discard(struct job *job);

/* Run a list, in the order and threads said above, and free it. The first failure; or
 * ERR_PROGRESS when some of it goes on in the background. */
enum err job_run_all(struct job *jobs);

#endif
