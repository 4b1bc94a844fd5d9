#include "base/errand.h"

#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <time.h>

#include "base/clock.h"
#include "base/thread.h"

/* Freed by whoever is the last to know it. */
struct trip {
	pthread_mutex_t lock;
	pthread_cond_t is_over;
	bool has_ended, is_abandoned; /* guarded by lock */
	struct errand errand;
};

static void trip_free(struct trip *trip)
{
	pthread_cond_destroy(&trip->is_over);
	pthread_mutex_destroy(&trip->lock);
	free(trip);
}

static void *trip_main(void *argument)
{
	struct trip *trip = argument;
	bool is_abandoned;

	trip->errand.run(trip->errand.argument);
	pthread_mutex_lock(&trip->lock);
	trip->has_ended = true;
	is_abandoned = trip->is_abandoned;
	pthread_cond_signal(&trip->is_over);
	pthread_mutex_unlock(&trip->lock);
	if (is_abandoned) {
		trip->errand.discard(trip->errand.argument);
		trip_free(trip);
	}
	return NULL;
}

static struct trip *trip_make(const struct errand *errand)
{
	struct trip *trip = calloc(1, sizeof(*trip));
	pthread_condattr_t attr;

	if (!trip)
		return NULL;
	trip->errand = *errand;
	pthread_mutex_init(&trip->lock, NULL);
	pthread_condattr_init(&attr);
	pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
	pthread_cond_init(&trip->is_over, &attr);
	pthread_condattr_destroy(&attr);
	return trip;
}

/* Has it come back in time? If not, `trip` is the thread's from now on. */
static bool trip_await(struct trip *trip, int64_t limit_s)
{
	uint64_t end_ns = clock_ns() + (uint64_t)limit_s * CLOCK_SEC;
	struct timespec end = {.tv_sec = (time_t)(end_ns / CLOCK_SEC),
		.tv_nsec = (long)(end_ns % CLOCK_SEC)};
	bool has_ended;
	int rc = 0;

	pthread_mutex_lock(&trip->lock);
	while (!trip->has_ended && rc != ETIMEDOUT)
		rc = limit_s ? pthread_cond_timedwait(&trip->is_over, &trip->lock, &end)
			     : pthread_cond_wait(&trip->is_over, &trip->lock);
	has_ended = trip->has_ended;
	trip->is_abandoned = !has_ended;
	pthread_mutex_unlock(&trip->lock);
	return has_ended;
}

int errand_run(const struct errand *errand, int64_t limit_s)
{
	struct trip *trip = trip_make(errand);
	pthread_t thread;
	int rc = trip ? thread_start(&thread, errand->name, trip_main, trip) : ENOMEM;

	if (rc) {
		if (trip)
			trip_free(trip);
		return rc;
	}
	if (!trip_await(trip, limit_s)) {
		pthread_detach(thread);
		return ETIMEDOUT;
	}
	pthread_join(thread, NULL);
	trip_free(trip);
	return 0;
}
