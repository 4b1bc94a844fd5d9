/*
 * errand.h - call a function that may never return: one of a plugin's, which cannot be
 * ended from outside.
 *
 * It is called in a thread of its own. Who has waited long enough goes on, and what the
 * function works on is the thread's from then on.
 */
#ifndef BASE_ERRAND_H
#define BASE_ERRAND_H

#include <stdint.h>

struct errand {
	const char *name; /* of the thread, 15 characters at most */
	void (*run)(void *argument);
	void (*discard)(void *argument); /* after a return that nobody waited for */
	void *argument;
};

/* 0: it has returned. ETIMEDOUT: not within `limit_s` (0: there is no limit), and
 * `argument` is no longer the caller's. Else there is no thread for it, and it was not
 * called. */
int errand_run(const struct errand *errand, int64_t limit_s);

#endif
