/*
 * traces.h - what a process holds: descriptors, threads, memory shared with others.
 */
#ifndef CAMPAIGN_TRACES_H
#define CAMPAIGN_TRACES_H

#include <stdbool.h>
#include <stddef.h>

struct traces {
	int descriptors, threads, shared_maps;
};

struct traces traces_take(void);

/* Threads may take a moment to end. False, and what is too much in `text`, when there is
 * still more than `before` after the limit. */
bool traces_settle(const struct traces *before, int limit_ms, char *text, size_t room);

/* Files of the library in the folder of shared memory. */
int traces_in_shm(void);

#endif
