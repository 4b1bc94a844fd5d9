#include "api/live.h"

#include <pthread.h>
#include <stdlib.h>
#include <time.h>

#include "comm/comm.h"

enum { REVOKE_AGAIN_NS = 2000000 };

struct live {
	struct live *next;
	struct comm *comm; /* borrowed; not looked into */
	uint32_t jobs;
	bool doomed; /* an abort waits for the jobs to end, then frees it */
	uint64_t calls;
};

/* The lock covers the list and every member of it. */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t job_ended = PTHREAD_COND_INITIALIZER;
static struct live *first;

/* The link that points at the entry, or at NULL when there is none. */
static struct live **find(const struct comm *comm)
{
	struct live **link = &first;

	while (*link && (*link)->comm != comm)
		link = &(*link)->next;
	return link;
}

static void drop(struct live **link)
{
	struct live *live = *link;

	*link = live->next;
	free(live);
}

enum err live_add(struct comm *comm)
{
	struct live *live = calloc(1, sizeof(*live));

	if (!live)
		return err_set(ERR_SYSTEM, "no memory for a communicator");
	live->comm = comm;
	pthread_mutex_lock(&lock);
	live->next = first;
	first = live;
	pthread_mutex_unlock(&lock);
	return OK;
}

bool live_begin(struct comm *comm)
{
	struct live *live;

	pthread_mutex_lock(&lock);
	live = *find(comm);
	if (live)
		live->jobs++;
	pthread_mutex_unlock(&lock);
	return live;
}

bool live_end(struct comm *comm)
{
	struct live *live;
	bool doomed = false;

	pthread_mutex_lock(&lock);
	live = *find(comm);
	if (live && live->jobs) {
		live->jobs--;
		doomed = live->doomed;
		pthread_cond_broadcast(&job_ended);
	}
	pthread_mutex_unlock(&lock);
	return doomed;
}

enum err live_take(struct comm *comm)
{
	struct live **link;
	enum err e = OK;

	pthread_mutex_lock(&lock);
	link = find(comm);
	if (!*link || (*link)->doomed)
		e = ERR_ARGUMENT;
	else if ((*link)->jobs)
		e = ERR_PROGRESS;
	else
		drop(link);
	pthread_mutex_unlock(&lock);
	return e;
}

/* Until a job ended or REVOKE_AGAIN_NS went by; the lock is held before and after. */
static void wait_a_little(void)
{
	struct timespec until;

	clock_gettime(CLOCK_REALTIME, &until);
	until.tv_nsec += REVOKE_AGAIN_NS;
	if (until.tv_nsec >= 1000000000) {
		until.tv_nsec -= 1000000000;
		until.tv_sec++;
	}
	pthread_cond_timedwait(&job_ended, &lock, &until);
}

enum err live_take_by_force(struct comm *comm)
{
	struct live *live;

	pthread_mutex_lock(&lock);
	live = *find(comm);
	if (!live || live->doomed) {
		pthread_mutex_unlock(&lock);
		return ERR_ARGUMENT;
	}
	/* Doomed, it is freed by nobody else, so it may be touched without the lock.
	 * Again and again, because a revocation before the job's first step stops
	 * nothing. */
	live->doomed = true;
	while (live->jobs) {
		pthread_mutex_unlock(&lock);
		comm_interrupt(comm);
		pthread_mutex_lock(&lock);
		wait_a_little();
	}
	drop(find(comm));
	pthread_mutex_unlock(&lock);
	return OK;
}

uint64_t live_count_call(struct comm *comm)
{
	struct live *live;
	uint64_t calls = 0;

	pthread_mutex_lock(&lock);
	live = *find(comm);
	if (live)
		calls = live->calls++;
	pthread_mutex_unlock(&lock);
	return calls;
}
