#include "exec/cuda/driver/aside.h"

#include <pthread.h>
#include <stdbool.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/clock.h"

enum {
	NON_BLOCKING = 1, /* of streams */
	BATCH_MAX = 200,  /* operations the driver takes at a time, and some less */
	DEVICES_MAX = 64,
	LIMIT_MS = 500,
	NAP_US = 50
};

struct aside {
	const struct cuda_driver *driver;
	cu_context context; /* owned; NULL: there is none */
	cu_stream stream;   /* owned, in it */
	uint32_t users;
};

/* By the device's number. The lock guards them, and who writes. */
static struct aside asides[DEVICES_MAX];
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static bool is_leaving; /* the process ends */

/* The driver goes down with the process, and whoever is in the middle of making a context
 * with it: that one is waited for, and there is no next. */
static void leave_wait(void)
{
	pthread_mutex_lock(&lock);
	is_leaving = true;
	pthread_mutex_unlock(&lock);
}

static void leave_watch(void)
{
	atexit(leave_wait);
}

/* With the lock held, as the next ones. The new context is current then. */
static enum err context_make(
	struct aside *aside, const struct cuda_driver *driver, cu_device device)
{
	static pthread_once_t once = PTHREAD_ONCE_INIT;
	enum err e = OK;

	pthread_once(&once, leave_watch);
	if (is_leaving || !driver->context_create)
		return err_set(ERR_CUDA, "the driver makes no second context");
	aside->driver = driver;
	e = cuda_check(driver->context_create(&aside->context, 0, device),
		"make a second context");
	if (!e)
		e = cuda_check(driver->stream_create(&aside->stream, NON_BLOCKING),
			"make a stream");
	return e;
}

static void context_end(struct aside *aside)
{
	if (aside->context)
		aside->driver->context_destroy(aside->context);
	*aside = (struct aside){0};
}

enum err aside_open(const struct cuda_driver *driver, struct aside **aside)
{
	struct aside *found = NULL;
	cu_context had = NULL;
	cu_device device = 0;
	enum err e = cuda_check(driver->context_get(&had), "ask for the context");

	*aside = NULL;
	if (!e)
		e = cuda_check(driver->context_device(&device), "ask for the device");
	if (!e && (device < 0 || device >= DEVICES_MAX))
		e = err_set(ERR_CUDA, "device %d is one too many", device);
	if (e)
		return e;
	pthread_mutex_lock(&lock);
	found = &asides[device];
	if (!found->users)
		e = context_make(found, driver, device);
	if (e)
		context_end(found);
	found->users += !e;
	driver->context_set(had);
	pthread_mutex_unlock(&lock);
	*aside = e ? NULL : found;
	return e;
}

static enum err writes_enqueue(struct aside *aside, struct cu_memop *ops, uint32_t count)
{
	enum err e = OK;

	for (uint32_t done = 0; done < count && !e; done += BATCH_MAX) {
		uint32_t some = count - done < BATCH_MAX ? count - done : BATCH_MAX;

		e = cuda_check(aside->driver->stream_batch_memop(
				       aside->stream, some, ops + done, 0),
			"write words from a second context");
	}
	return e;
}

static enum err writes_await(const struct aside *aside)
{
	uint64_t end = clock_ns() + LIMIT_MS * CLOCK_MS;

	while (aside->driver->stream_query(aside->stream) == CU_NOT_READY) {
		if (clock_ns() > end)
			return err_set(ERR_CUDA,
				"a second context does not get through to the GPU");
		usleep(NAP_US);
	}
	return OK;
}

enum err aside_write(struct aside *aside, struct cu_memop *ops, uint32_t count)
{
	cu_context had = NULL;
	enum err e;

	pthread_mutex_lock(&lock);
	aside->driver->context_get(&had);
	aside->driver->context_set(aside->context);
	e = writes_enqueue(aside, ops, count);
	if (!e)
		e = writes_await(aside);
	aside->driver->context_set(had);
	pthread_mutex_unlock(&lock);
	return e;
}

void aside_close(struct aside *aside)
{
	cu_context had = NULL;

	if (!aside)
		return;
	pthread_mutex_lock(&lock);
	aside->driver->context_get(&had);
	if (!--aside->users) {
		const struct cuda_driver *driver = aside->driver;

		context_end(aside);
		driver->context_set(had);
	}
	pthread_mutex_unlock(&lock);
}
