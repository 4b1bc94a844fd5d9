/*
 * thread.h - a thread of the library's own, which leaves the application's signals and
 * its environment to the application (environment.h).
 */
#ifndef BASE_THREAD_H
#define BASE_THREAD_H

#include <pthread.h>

/* Start one that needs little stack, under this name (15 characters at most). Returns
 * what pthread_create() does. */
int thread_start(
	pthread_t *thread, const char *name, void *(*function)(void *), void *argument);

/* The same with the stack that any thread has, for one that calls what others have
 * written: the driver, plugins, libraries that look at the machine. */
int thread_start_roomy(
	pthread_t *thread, const char *name, void *(*function)(void *), void *argument);

#endif
