/*
 * cores.h - how many processors this process may use.
 *
 * Who may run on all of a machine's processors may still be stopped, for the rest of each
 * tenth of a second, once it has used the time of two: a container's limit is such a
 * quota of its control group, or of one above it, of either generation.
 */
#ifndef BASE_CORES_H
#define BASE_CORES_H

#include <stdint.h>

struct cores_quota {
	double cores;	/* the time of so many; 0: no limit */
	uint64_t group; /* whose limit that is: the same for all processes in it; 0: none
			 */
};

/* The least quota of all control groups that this process is in. `root` is a folder with
 * proc and sys as a host has them; "": this host's own. */
void cores_quota_read(const char *root, struct cores_quota *quota);

/* Processors that this thread may run on, fewer where the quota is. At least 1. */
uint32_t cores_usable(const char *root);

#endif
