/* A watched process has ended when it has, and not when somebody closes a descriptor. */
#include "link/watch.h"

#include <fcntl.h>

#include "child.h"

static void until_told(const struct child *parent)
{
	char word;

	child_hear(parent, &word, 1);
}

/* The lowest free descriptor: what the next open() gives. */
static int next_fd(void)
{
	int fd = dup(0);

	TRUE(fd >= 0);
	close(fd);
	return fd;
}

int main(void)
{
	struct child child = child_start(until_told);
	uint32_t pid = (uint32_t)child.pid;
	struct watch *one, *two, *self;
	int fd, pipes[2];

	EQ(watch_get((uint32_t)getpid(), &self), OK);
	TRUE(!self && !watch_has_ended(self));
	fd = next_fd();
	EQ(watch_get(pid, &one), OK);
	if (!one)
		return TEST_SKIP; /* the system gives no such descriptors */
	EQ(watch_get(pid, &two), OK);
	TRUE(one == two); /* one descriptor for all */
	TRUE(!watch_has_ended(one));

	close(fd); /* as a program does that closes all it does not know */
	TRUE(!watch_has_ended(one));
	/* closed, and the number made into something that is readable */
	watch_put(one);
	watch_put(two);
	fd = next_fd();
	EQ(watch_get(pid, &one), OK);
	close(fd);
	EQ(pipe(pipes), 0);
	EQ(pipes[0], fd);
	EQ(write(pipes[1], "x", 1), 1);
	TRUE(!watch_has_ended(one));

	child_say(&child, "x", 1);
	child_join(&child);
	TRUE(watch_has_ended(one));
	watch_put(one);
	EQ(fcntl(pipes[0], F_GETFD), 0); /* still the program's */
	EQ(watch_get(pid, &two), OK);
	TRUE(watch_has_ended(two)); /* gone before we came */
	watch_put(two);
	watch_put(NULL);
	return 0;
}
