/*
 * thread.h - a thread of the library's own, which leaves the application's signals to the
 * application.
 */
#ifndef BASE_THREAD_H
#define BASE_THREAD_H

#include <pthread.h>

/* Start one that needs little stack, under this name (15 characters at most). Returns
 * what pthread_create() does. */
int thread_start(
	pthread_t *thread, const char *name, void *(*function)(void *), void *argument);

#endif
