#include "base/errand.h"

#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <time.h>

#include "base/clock.h"
#include "base/thread.h"

/* Freed by whoever is the last to know it. */
struct chore {
	pthread_mutex_t lock;
	pthread_cond_t is_over;
	bool has_ended, is_abandoned; /* guarded by lock */
	struct errand errand;
};

static void chore_free(struct chore *chore)
{
	pthread_cond_destroy(&chore->is_over);
	pthread_mutex_destroy(&chore->lock);
	free(chore);
}

static void *chore_main(void *argument)
{
	struct chore *chore = argument;
	bool is_abandoned;

	chore->errand.run(chore->errand.argument);
	pthread_mutex_lock(&chore->lock);
	chore->has_ended = true;
	is_abandoned = chore->is_abandoned;
	pthread_cond_signal(&chore->is_over);
	pthread_mutex_unlock(&chore->lock);
	if (is_abandoned) {
		chore->errand.discard(chore->errand.argument);
		chore_free(chore);
	}
	return NULL;
}

static struct chore *chore_make(const struct errand *errand)
{
	struct chore *chore = calloc(1, sizeof(*chore));
	pthread_condattr_t attr;

	if (!chore)
		return NULL;
	chore->errand = *errand;
	pthread_mutex_init(&chore->lock, NULL);
	pthread_condattr_init(&attr);
	pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
	pthread_cond_init(&chore->is_over, &attr);
	pthread_condattr_destroy(&attr);
	return chore;
}

/* Has it come back in time? If not, `chore` is the thread's from now on. */
static bool chore_await(struct chore *chore, int64_t limit_s)
{
	uint64_t end_ns = clock_ns() + (uint64_t)limit_s * CLOCK_SEC;
	struct timespec end = {.tv_sec = (time_t)(end_ns / CLOCK_SEC),
		.tv_nsec = (long)(end_ns % CLOCK_SEC)};
	bool has_ended;
	int rc = 0;

	pthread_mutex_lock(&chore->lock);
	while (!chore->has_ended && rc != ETIMEDOUT)
		rc = limit_s ? pthread_cond_timedwait(&chore->is_over, &chore->lock, &end)
			     : pthread_cond_wait(&chore->is_over, &chore->lock);
	has_ended = chore->has_ended;
	chore->is_abandoned = !has_ended;
	pthread_mutex_unlock(&chore->lock);
	return has_ended;
}

int errand_run(const struct errand *errand, int64_t limit_s)
{
	struct chore *chore = chore_make(errand);
	pthread_t thread;
	int rc = chore ? thread_start_roomy(&thread, errand->name, chore_main, chore)
		       : ENOMEM;

	if (rc) {
		if (chore)
			chore_free(chore);
		return rc;
	}
	if (!chore_await(chore, limit_s)) {
		pthread_detach(thread);
		return ETIMEDOUT;
	}
	pthread_join(thread, NULL);
	chore_free(chore);
	return 0;
}
