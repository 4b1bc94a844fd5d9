#include "link/watch.h"

#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

enum { FD_REFUSED = -1, FD_ENDED = -2 };

struct watch {
	struct watch *next;
	uint32_t pid, users;
	int fd;			 /* owned, or one of the above */
	unsigned long long born; /* where it is refused; 0: not known */
};

/* Guards the list and every member of it. */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct watch *watches;
static pid_t process; /* whose descriptors they are: a forked child begins anew */

static int watch_open(uint32_t pid)
{
	int fd = (int)syscall(SYS_pidfd_open, pid, 0);

	if (fd >= 0)
		return fd;
	return errno == ESRCH ? FD_ENDED : FD_REFUSED;
}

struct process_seen {
	bool is_seen;
	char state;
	unsigned threads;	 /* 0 of one that is being taken apart */
	unsigned long long born; /* no two processes of one number have the same */
};

static struct process_seen process_look(uint32_t pid)
{
	struct process_seen seen = {0};
	char path[64], line[512];
	const char *rest = NULL;
	FILE *file;

	snprintf(path, sizeof(path), "/proc/%u/stat", pid);
	file = fopen(path, "re");
	if (!file)
		return seen;
	if (fgets(line, sizeof(line), file))
		rest = strrchr(line, ')'); /* the name before it may hold anything */
	seen.is_seen = rest && sscanf(rest,
				       ") %c %*d %*d %*d %*d %*d %*u %*u %*u %*u %*u "
				       "%*u %*u %*d %*d %*d %*d %u %*d %llu",
				       &seen.state, &seen.threads, &seen.born) == 3;
	fclose(file);
	return seen;
}

/* Without a descriptor. One that nobody has waited for yet is still to be seen; its first
 * thread may end long before the others. */
static bool process_has_ended(const struct watch *watch)
{
	struct process_seen seen = process_look(watch->pid);

	if (!seen.is_seen)
		return kill((pid_t)watch->pid, 0) && errno == ESRCH;
	return ((seen.state == 'Z' || seen.state == 'X') && seen.threads <= 1) ||
	       (watch->born && seen.born != watch->born);
}

static bool is_short_of(int cause)
{
	return cause == EMFILE || cause == ENFILE || cause == ENOMEM;
}

static struct watch *watch_find(uint32_t pid)
{
	struct watch *watch;

	if (process != getpid()) {
		watches = NULL;
		process = getpid();
	}
	/* one that has ended is not shared: its number may be another's by now */
	for (watch = watches; watch; watch = watch->next) {
		struct pollfd look = {.fd = watch->fd, .events = POLLIN};

		if (watch->pid != pid)
			continue;
		if (watch->fd >= 0 ? !poll(&look, 1, 0)
				   : watch->fd == FD_REFUSED && !process_has_ended(watch))
			break;
	}
	return watch;
}

static enum err watch_create(uint32_t pid, struct watch **out)
{
	struct watch *watch = calloc(1, sizeof(*watch));

	if (!watch)
		return err_set(ERR_SYSTEM, "no memory to watch process %u", pid);
	watch->pid = pid;
	watch->fd = watch_open(pid);
	if (watch->fd == FD_REFUSED && is_short_of(errno)) {
		free(watch);
		return err_set(ERR_SYSTEM, "cannot watch process %u: %m%s", pid,
			errno == ENOMEM ? "" : "; see ulimit -n");
	}
	if (watch->fd == FD_REFUSED)
		watch->born = process_look(pid).born;
	watch->users = 1;
	watch->next = watches;
	watches = watch;
	*out = watch;
	return OK;
}

enum err watch_get(uint32_t pid, struct watch **watch)
{
	enum err e = OK;

	*watch = NULL;
	if (pid == (uint32_t)getpid())
		return OK;
	pthread_mutex_lock(&lock);
	*watch = watch_find(pid);
	if (*watch)
		(*watch)->users++;
	else
		e = watch_create(pid, watch);
	pthread_mutex_unlock(&lock);
	return e;
}

/* Is the descriptor still the one that was opened? The system says of which process it
 * is; -1 when that has ended and was waited for. */
static bool is_still_ours(const struct watch *watch)
{
	char path[64], line[128];
	FILE *file;
	int pid = 0;

	snprintf(path, sizeof(path), "/proc/self/fdinfo/%d", watch->fd);
	file = fopen(path, "re");
	if (!file)
		return errno != ENOENT;
	while (fgets(line, sizeof(line), file) && sscanf(line, "Pid: %d", &pid) != 1)
		;
	fclose(file);
	return pid == (int)watch->pid || pid == -1;
}

bool watch_has_ended(struct watch *watch)
{
	bool ended = false;

	if (!watch)
		return false;
	pthread_mutex_lock(&lock);
	if (watch->fd >= 0) {
		struct pollfd look = {.fd = watch->fd, .events = POLLIN};

		if (poll(&look, 1, 0) > 0) {
			ended = look.revents & POLLIN && is_still_ours(watch);
			if (!ended) /* the number is the program's now: not closed */
				watch->fd = watch_open(watch->pid);
		}
	}
	ended = ended || watch->fd == FD_ENDED ||
		(watch->fd == FD_REFUSED && process_has_ended(watch));
	pthread_mutex_unlock(&lock);
	return ended;
}

void watch_put(struct watch *watch)
{
	struct watch **at = &watches;

	if (!watch)
		return;
	pthread_mutex_lock(&lock);
	if (!--watch->users && process == getpid()) {
		while (*at && *at != watch)
			at = &(*at)->next;
		if (*at)
			*at = watch->next;
		if (watch->fd >= 0 && is_still_ours(watch))
			close(watch->fd);
		free(watch);
	}
	pthread_mutex_unlock(&lock);
}
