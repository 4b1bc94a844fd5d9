/* A watched process has ended when it has, and not when somebody closes a descriptor;
 * also where there are no descriptors of processes. */
#include "link/watch.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <pthread.h>
#include <stddef.h>
#include <sys/prctl.h>
#include <sys/syscall.h>

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

static void by_descriptor(void)
{
	struct child child = child_start(until_told);
	uint32_t pid = (uint32_t)child.pid;
	struct watch *one, *two, *self;
	int fd, pipes[2];

	EQ(watch_get((uint32_t)getpid(), &self), OK);
	TRUE(!self && !watch_has_ended(self));
	fd = next_fd();
	EQ(watch_get(pid, &one), OK);
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
}

static void *hear_later(void *parent)
{
	until_told(parent);
	_exit(0);
}

/* Its first thread ends at once, and the process when it is told. */
static void leave_a_thread(const struct child *parent)
{
	static struct child copy; /* a stack ends with its thread */
	pthread_t thread;

	copy = *parent;
	EQ(pthread_create(&thread, NULL, hear_later, &copy), 0);
	pthread_exit(NULL);
}

/* No descriptors for processes any more, as in an old sandbox. */
static bool refuse(void)
{
	struct sock_filter code[] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_pidfd_open, 0, 1),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EPERM),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW)};
	struct sock_fprog filter = {sizeof(code) / sizeof(code[0]), code};

	return !prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) &&
	       !prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &filter);
}

static void refused(void (*body)(const struct child *parent))
{
	struct child child = child_start(body);
	struct watch *one, *two;
	siginfo_t info;

	EQ(watch_get((uint32_t)child.pid, &one), OK);
	EQ(watch_get((uint32_t)child.pid, &two), OK);
	TRUE(one && one == two);
	usleep(20000); /* for a thread to end */
	TRUE(!watch_has_ended(one));
	child_say(&child, "x", 1);
	EQ(waitid(P_PID, (id_t)child.pid, &info, WEXITED | WNOWAIT), 0);
	TRUE(watch_has_ended(one)); /* nobody has waited for it */
	child_join(&child);
	TRUE(watch_has_ended(one));
	watch_put(one);
	watch_put(two);
	EQ(watch_get((uint32_t)child.pid, &two), OK);
	TRUE(watch_has_ended(two)); /* gone before we came */
	watch_put(two);
}

int main(void)
{
	int fd = (int)syscall(SYS_pidfd_open, getpid(), 0);

	if (fd >= 0) {
		close(fd);
		by_descriptor();
	}
	if (!refuse())
		return TEST_SKIP;
	refused(until_told);
	refused(leave_a_thread);
	return 0;
}
