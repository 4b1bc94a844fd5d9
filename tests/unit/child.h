/*
 * child.h - a second process for a test, with a pipe each way.
 *
 * Fork before making what is to be shared, so that the child inherits nothing of it and
 * has to find it the way a rank in another process does.
 */
#ifndef CHILD_H
#define CHILD_H

#include <sys/types.h>
#include <sys/wait.h>
#include <unistd.h>

#include "test.h"

/* One end of the conversation: the same struct on both sides. */
struct child {
	pid_t pid;
	int in, out; /* read from the other, write to the other */
};

static inline void child_say(const struct child *other, const void *data, size_t bytes)
{
	EQ(write(other->out, data, bytes), (ssize_t)bytes);
}

/* Messages are far below PIPE_BUF, so they arrive whole. */
static inline void child_hear(const struct child *other, void *data, size_t bytes)
{
	EQ(read(other->in, data, bytes), (ssize_t)bytes);
}

/* Run `body` in a new process, which ends when that returns. */
static inline struct child child_start(void (*body)(const struct child *parent))
{
	int down[2], up[2];
	pid_t pid;

	EQ(pipe(down) | pipe(up), 0);
	pid = fork();
	TRUE(pid >= 0);
	if (!pid) {
		struct child parent = {.pid = getppid(), .in = down[0], .out = up[1]};

		close(down[1]);
		close(up[0]);
		body(&parent);
		_exit(0);
	}
	close(down[0]);
	close(up[1]);
	return (struct child){.pid = pid, .in = up[0], .out = down[1]};
}

/* Wait for the end of it; a check that failed there fails here. */
static inline void child_join(const struct child *child)
{
	int status;

	close(child->out);
	EQ(waitpid(child->pid, &status, 0), child->pid);
	EQ(status, 0);
	close(child->in);
}

#endif
