/*
 * idfile.h - bytes from rank 0 to the others through a file that all of them see.
 *
 * Rank 0 writes it under another name and renames it, so nobody sees half of it; only its
 * owner can read it, and nobody takes one of another user. What an earlier job left
 * behind is older than any rank waits, or names another job, and is passed over.
 */
#ifndef LAUNCH_IDFILE_H
#define LAUNCH_IDFILE_H

#include <stddef.h>
#include <stdint.h>

#include "base/err.h"

struct idfile {
	const char *path;
	const char *job; /* what tells the job from others; on a shared path may be "" */
	uint32_t number; /* of the exchange, from 0: each has a file of its own */
	int rank;	 /* for sentences */
	int timeout_s;	 /* 0: for ever */
};

/* Of rank 0. */
enum err idfile_write(const struct idfile *file, const void *bytes, size_t count);

/* Of the others: wait for it. ERR_TIMEOUT names the file. */
enum err idfile_read(const struct idfile *file, void *bytes, size_t count);

/* All have it: rank 0 takes it away. */
void idfile_remove(const struct idfile *file);

#endif
