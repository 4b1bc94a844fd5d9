#include "base/thread.h"

#include <errno.h>
#include <signal.h>
#include <stdlib.h>

#include "base/environment.h"

enum { STACK_BYTES = 1 << 20 };

struct beginning {
	void *(*function)(void *);
	void *argument;
};

static void *thread_main(void *arg)
{
	struct beginning begin = *(struct beginning *)arg;

	free(arg);
	environment_use_kept();
	return begin.function(begin.argument);
}

static int start(pthread_t *thread, const char *name, const pthread_attr_t *attr,
	struct beginning begin)
{
	struct beginning *moved = malloc(sizeof(*moved));
	sigset_t all, before;
	int rc;

	if (!moved)
		return ENOMEM;
	*moved = begin;
	environment_keep_first();
	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &before);
	rc = pthread_create(thread, attr, thread_main, moved);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	if (rc)
		free(moved);
	else
		pthread_setname_np(*thread, name);
	return rc;
}

int thread_start(
	pthread_t *thread, const char *name, void *(*function)(void *), void *argument)
{
	pthread_attr_t attr;
	int rc;

	pthread_attr_init(&attr);
	pthread_attr_setstacksize(&attr, STACK_BYTES);
	rc = start(thread, name, &attr, (struct beginning){function, argument});
	pthread_attr_destroy(&attr);
	return rc;
}

int thread_start_roomy(
	pthread_t *thread, const char *name, void *(*function)(void *), void *argument)
{
	return start(thread, name, NULL, (struct beginning){function, argument});
}
