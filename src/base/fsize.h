/*
 * fsize.h - the limit on the size of files (ulimit -f) as an error instead of a death.
 *
 * Growing a file beyond RLIMIT_FSIZE raises SIGXFSZ, whose default ends the program, and
 * shared memory is a file too. Between fsize_begin() and fsize_end() this thread gets
 * EFBIG alone. What the program has said of the signal, and one that was pending for its
 * own reasons, stay as they are. Without a limit the two cost one system call.
 */
#ifndef BASE_FSIZE_H
#define BASE_FSIZE_H

#include <signal.h>
#include <stdbool.h>
#include <stddef.h>

struct fsize {
	bool is_held;	  /* there is a limit */
	bool was_pending; /* a signal of somebody else's making */
	sigset_t before;  /* the thread's mask */
};

/* Every begin has its end, in the same thread. fsize_end() leaves errno alone. */
void fsize_begin(struct fsize *hold);
void fsize_end(const struct fsize *hold);

/* ftruncate() between the two. */
int fsize_truncate(int fd, size_t bytes);

/* What to add to a sentence about a failure with this errno: names the limit where it is
 * the cause, else "". */
const char *fsize_hint(int error);

#endif
