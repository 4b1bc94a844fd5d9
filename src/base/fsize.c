#include "base/fsize.h"

#include <errno.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

static bool is_limited(void)
{
	struct rlimit limit;

	return !getrlimit(RLIMIT_FSIZE, &limit) && limit.rlim_cur != RLIM_INFINITY;
}

void fsize_begin(struct fsize *hold)
{
	sigset_t signals;

	hold->is_held = is_limited();
	if (!hold->is_held)
		return;
	sigpending(&signals);
	hold->was_pending = sigismember(&signals, SIGXFSZ) == 1;
	sigemptyset(&signals);
	sigaddset(&signals, SIGXFSZ);
	pthread_sigmask(SIG_BLOCK, &signals, &hold->before);
}

void fsize_end(const struct fsize *hold)
{
	const struct timespec at_once = {0};
	int saved = errno;
	sigset_t signals;

	if (!hold->is_held)
		return;
	sigemptyset(&signals);
	sigaddset(&signals, SIGXFSZ);
	if (!hold->was_pending)
		while (sigtimedwait(&signals, NULL, &at_once) < 0 && errno == EINTR)
			;
	pthread_sigmask(SIG_SETMASK, &hold->before, NULL);
	errno = saved;
}

int fsize_truncate(int fd, size_t bytes)
{
	struct fsize hold;
	int result;

	fsize_begin(&hold);
	result = ftruncate(fd, (off_t)bytes);
	fsize_end(&hold);
	return result;
}

const char *fsize_hint(int error)
{
	return error == EFBIG && is_limited()
		       ? " (the limit on the size of files, ulimit -f, is too low)"
		       : "";
}
