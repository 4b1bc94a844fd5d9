#include "base/fsize.h"

#include <errno.h>
#include <sys/mman.h>
#include <sys/resource.h>

#include "child.h"

static void limit(rlim_t bytes)
{
	struct rlimit now = {.rlim_cur = bytes, .rlim_max = RLIM_INFINITY};

	getrlimit(RLIMIT_FSIZE, &now);
	now.rlim_cur = bytes;
	EQ(setrlimit(RLIMIT_FSIZE, &now), 0);
}

static bool is_pending(void)
{
	sigset_t signals;

	sigpending(&signals);
	return sigismember(&signals, SIGXFSZ) == 1;
}

/* The default of the signal, which ends the process, stays what it is. */
static void grow(const struct child *parent)
{
	int fd = memfd_create("test", MFD_CLOEXEC);
	struct sigaction action;
	sigset_t mask;

	(void)parent;
	TRUE(fd >= 0);
	EQ(fsize_truncate(fd, 200 << 10), 0);
	EQ(ftruncate(fd, 0), 0);
	limit(100 << 10);
	EQ(fsize_truncate(fd, 100 << 10), 0);
	EQ(fsize_truncate(fd, 200 << 10), -1);
	EQ(errno, EFBIG);
	TRUE(strstr(fsize_hint(errno), "ulimit -f"));
	EQ_STR(fsize_hint(ENOSPC), "");
	limit(0);
	EQ(fsize_truncate(fd, 200 << 10), -1);
	EQ(sigaction(SIGXFSZ, NULL, &action), 0);
	TRUE(action.sa_handler == SIG_DFL);
	EQ(pthread_sigmask(SIG_SETMASK, NULL, &mask), 0);
	EQ(sigismember(&mask, SIGXFSZ), 0);
	TRUE(!is_pending());
	close(fd);
}

/* A signal that the program has blocked and that waits already is not ours to take. */
static void grow_pending(const struct child *parent)
{
	int fd = memfd_create("test", MFD_CLOEXEC);
	sigset_t signals;

	(void)parent;
	limit(0);
	sigemptyset(&signals);
	sigaddset(&signals, SIGXFSZ);
	EQ(pthread_sigmask(SIG_BLOCK, &signals, NULL), 0);
	EQ(fsize_truncate(fd, 1), -1);
	TRUE(!is_pending());
	EQ(raise(SIGXFSZ), 0);
	EQ(fsize_truncate(fd, 1), -1);
	TRUE(is_pending());
	close(fd);
}

int main(void)
{
	struct child child = child_start(grow);

	child_join(&child);
	child = child_start(grow_pending);
	child_join(&child);
	return 0;
}
