/*
 * pmix.h - the few calls of libpmix.so.2 that carry a text from rank 0 to the others.
 *
 * The library is loaded when it is needed (WEFT_PMIX_LIBRARY names another file); we are
 * built without it.
 */
#ifndef LAUNCH_PMIX_H
#define LAUNCH_PMIX_H

#include <stdbool.h>
#include <stddef.h>

#include "base/err.h"

/* Load the library and introduce this process, once; false when there is no library to
 * load, with the reason in `why`. A library that is there and refuses is a failure of
 * what follows. */
bool pmix_load(char *why, size_t room);

/* This process's rank, and how many there are. */
enum err pmix_job(int *rank, int *rank_count);

/* Rank 0 puts `value` under `key`, all wait for each other (at most so many seconds; 0:
 * for ever), and all have it in `value`. */
enum err pmix_share(const char *key, char *value, size_t room, int timeout_s);

/* Say goodbye, at the end of the process. */
void pmix_unload(void);

#endif
