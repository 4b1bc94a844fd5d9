#include "base/thread.h"

#include <signal.h>

enum { STACK_BYTES = 1 << 20 };

int thread_start(
	pthread_t *thread, const char *name, void *(*function)(void *), void *argument)
{
	pthread_attr_t attr;
	sigset_t all, before;
	int rc;

	sigfillset(&all);
	pthread_attr_init(&attr);
	pthread_attr_setstacksize(&attr, STACK_BYTES);
	pthread_sigmask(SIG_SETMASK, &all, &before);
	rc = pthread_create(thread, &attr, function, argument);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	pthread_attr_destroy(&attr);
	if (!rc)
		pthread_setname_np(*thread, name);
	return rc;
}
