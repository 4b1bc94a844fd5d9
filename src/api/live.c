#include "api/live.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <time.h>

#include "base/hash.h"
#include "comm/comm.h"

enum { REVOKE_AGAIN_NS = 2000000, BUCKETS = 256, CACHE_BITS = 3, KIND_BITS = 3 };

struct live {
	struct live *next;
	enum live_kind kind;
	const void *object; /* borrowed; not looked into */
	uint32_t jobs;
	bool doomed;  /* an abort waits for the jobs to end, then frees it */
	bool leaving; /* a job that will run, perhaps at the end of a group, frees it */
	uint64_t calls;
};

/* The lock covers the table and every member of it. */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t job_ended = PTHREAD_COND_INITIALIZER;
static struct live *buckets[BUCKETS];

/* The first object of each bucket and its kind in one word, so that the usual question is
 * answered by one load. Objects are aligned; written under the lock. */
static _Atomic uintptr_t heads[BUCKETS];

/* Moves, under the lock, whenever an object comes or goes. */
static _Atomic uint64_t generation = 1;

/* What this thread has asked before; of no use once the generation has moved. */
static _Thread_local struct answer {
	const void *object;
	uint64_t generation; /* 0: none */
	enum live_kind kind;
} answers[1 << CACHE_BITS];

static uint64_t hash_of(const void *object)
{
	return hash_spread((uint64_t)(uintptr_t)object);
}

/* The link that points at the entry, or at NULL when there is none. */
static struct live **find(enum live_kind kind, const void *object)
{
	struct live **link = &buckets[hash_of(object) >> 56];

	while (*link && ((*link)->object != object || (*link)->kind != kind))
		link = &(*link)->next;
	return link;
}

static void generation_move(void)
{
	atomic_fetch_add_explicit(&generation, 1, memory_order_release);
}

static void head_show(uint64_t bucket)
{
	const struct live *live = buckets[bucket];

	atomic_store_explicit(&heads[bucket],
		live ? (uintptr_t)live->object | live->kind : 0, memory_order_release);
}

static void drop(struct live **link)
{
	struct live *live = *link;

	*link = live->next;
	head_show(hash_of(live->object) >> 56);
	generation_move();
	free(live);
}

enum err live_add(enum live_kind kind, const void *object)
{
	struct live *live = calloc(1, sizeof(*live)), **link;

	if (!live)
		return err_set(ERR_SYSTEM, "no memory for a %s",
			kind == LIVE_COMM ? "communicator" : "stream");
	live->kind = kind;
	live->object = object;
	pthread_mutex_lock(&lock);
	link = &buckets[hash_of(object) >> 56];
	live->next = *link;
	*link = live;
	head_show(hash_of(object) >> 56);
	generation_move();
	pthread_mutex_unlock(&lock);
	return OK;
}

/* An object is of one kind, and most pointers that are asked for are of some. */
static __attribute__((noinline)) enum live_kind kind_find(
	const void *object, struct answer *answer)
{
	const struct live *live;

	pthread_mutex_lock(&lock);
	for (live = buckets[hash_of(object) >> 56]; live && live->object != object;)
		live = live->next;
	*answer = (struct answer){.object = object,
		.kind = live ? live->kind : LIVE_NOTHING,
		.generation = atomic_load_explicit(&generation, memory_order_relaxed)};
	pthread_mutex_unlock(&lock);
	return answer->kind;
}

static __attribute__((noinline)) bool is_known(enum live_kind kind, const void *object)
{
	struct answer *answer = &answers[hash_of(object) >> (64 - CACHE_BITS)];
	uint64_t now = atomic_load_explicit(&generation, memory_order_acquire);

	if (answer->object == object && answer->generation == now)
		return answer->kind == kind;
	return kind_find(object, answer) == kind;
}

bool live_is(enum live_kind kind, const void *object)
{
	uintptr_t head = atomic_load_explicit(
		&heads[hash_of(object) >> 56], memory_order_acquire);

	return (head == ((uintptr_t)object | kind) && !((uintptr_t)object & KIND_BITS)) ||
	       is_known(kind, object);
}

bool live_begin(struct comm *comm)
{
	struct live *live;

	pthread_mutex_lock(&lock);
	live = *find(LIVE_COMM, comm);
	if (live && live->leaving)
		live = NULL;
	if (live)
		live->jobs++;
	pthread_mutex_unlock(&lock);
	return live;
}

/* Lock held. */
static bool job_end(struct comm *comm)
{
	struct live *live = *find(LIVE_COMM, comm);

	if (!live || !live->jobs)
		return false;
	live->jobs--;
	pthread_cond_broadcast(&job_ended);
	return live->doomed;
}

bool live_end(struct comm *comm)
{
	bool doomed;

	pthread_mutex_lock(&lock);
	doomed = job_end(comm);
	pthread_mutex_unlock(&lock);
	return doomed;
}

/* Who destroys must take the lock, so cannot come between the result and the end. */
bool live_end_as(struct comm *comm, enum err result)
{
	bool doomed;

	pthread_mutex_lock(&lock);
	comm_async_set(comm, result);
	doomed = job_end(comm);
	pthread_mutex_unlock(&lock);
	return doomed;
}

/* May somebody end what is behind this link? Lock held. */
static enum err may_end(const struct live *live)
{
	if (!live || live->doomed || live->leaving)
		return ERR_ARGUMENT;
	return live->jobs ? ERR_PROGRESS : OK;
}

enum err live_take(enum live_kind kind, const void *object)
{
	struct live **link;
	enum err e;

	pthread_mutex_lock(&lock);
	link = find(kind, object);
	e = may_end(*link);
	if (!e)
		drop(link);
	pthread_mutex_unlock(&lock);
	return e;
}

enum err live_leave(struct comm *comm)
{
	struct live *live;
	enum err e;

	pthread_mutex_lock(&lock);
	live = *find(LIVE_COMM, comm);
	e = may_end(live);
	if (!e)
		live->leaving = true;
	pthread_mutex_unlock(&lock);
	return e;
}

void live_left(struct comm *comm, bool is_gone)
{
	struct live **link;

	pthread_mutex_lock(&lock);
	link = find(LIVE_COMM, comm);
	if (*link && is_gone)
		drop(link);
	else if (*link)
		(*link)->leaving = false;
	pthread_mutex_unlock(&lock);
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
	live = *find(LIVE_COMM, comm);
	if (!live || live->doomed || live->leaving) {
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
	drop(find(LIVE_COMM, comm));
	pthread_mutex_unlock(&lock);
	return OK;
}

uint64_t live_count_call(struct comm *comm)
{
	struct live *live;
	uint64_t calls = 0;

	pthread_mutex_lock(&lock);
	live = *find(LIVE_COMM, comm);
	if (live)
		calls = live->calls++;
	pthread_mutex_unlock(&lock);
	return calls;
}
