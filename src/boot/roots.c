/*
 * roots.c - the roots of this process: started with an id, joined when they have ended.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/thread.h"
#include "boot/porch.h"
#include "boot/state.h"

/* All roots of this process, so that none outlives the library's code. */
static pthread_mutex_t roots_lock = PTHREAD_MUTEX_INITIALIZER;
static struct root *roots;
static _Atomic pid_t roots_process; /* who made the newest */

static void fd_close(int *fd)
{
	if (*fd >= 0)
		close(*fd);
	*fd = -1;
}

/* All but its place in the list. */
static void root_empty(struct root *root)
{
	root_doors_close(root);
	fd_close(&root->wake_fd);
	fd_close(&root->spare_fd);
	fd_close(&root->epoll_fd);
	free(root->came);
	free(root->records);
	free(root->gathers[0].records);
	free(root->gathers[1].records);
	root->came = root->records = NULL;
	root->gathers[0].records = root->gathers[1].records = NULL;
	if (root->args.up)
		porch_fini(root->args.up);
	free(root->args.up);
	root->args.up = NULL;
}

static void root_destroy(struct root *root)
{
	root_empty(root);
	auth_wipe(&root->args, sizeof(root->args));
	free(root);
}

void root_end(struct root *root)
{
	pthread_mutex_lock(&roots_lock);
	root_empty(root);
	atomic_store_explicit(&root->is_done, true, memory_order_release);
	pthread_mutex_unlock(&roots_lock);
}

/* Join the roots that have ended; with `is_exit` end and join all, with `addr` this one.
 */
static void roots_reap(bool is_exit, const struct addr *addr)
{
	struct root *ended = NULL;

	pthread_mutex_lock(&roots_lock);
	for (struct root **at = &roots; *at;) {
		struct root *root = *at;
		bool is_done = atomic_load_explicit(&root->is_done, memory_order_acquire);

		bool is_meant = is_exit ||
				(addr && !memcmp(addr, &root->args.addr, sizeof(*addr)));

		if (root->process != getpid() || (!is_done && !is_meant)) {
			at = &root->next;
			continue;
		}
		*at = root->next;
		root->is_ending = true;
		root->next = ended;
		ended = root;
		if (root->wake_fd >= 0)
			eventfd_write(root->wake_fd, 1);
	}
	pthread_mutex_unlock(&roots_lock);
	while (ended) {
		struct root *root = ended;

		ended = root->next;
		pthread_join(root->thread, NULL);
		root_destroy(root);
	}
}

/* A forked child has the list but not the threads, and perhaps a lock nobody will free.
 */
__attribute__((destructor)) static void roots_stop(void)
{
	if (atomic_load(&roots_process) == getpid())
		roots_reap(true, NULL);
}

bool root_refusal_take(struct root *root, struct refusal *refusal)
{
	bool goes_on;

	pthread_mutex_lock(&roots_lock);
	*refusal = root->refusal;
	root->refusal.count = 0;
	goes_on = !root->is_ending;
	pthread_mutex_unlock(&roots_lock);
	return goes_on;
}

bool root_refuse(const struct root_args *args, const struct refusal *said)
{
	bool found = false;

	pthread_mutex_lock(&roots_lock);
	for (struct root *root = roots; root && !found; root = root->next) {
		struct refusal *refusal = &root->refusal;

		found = root->process == getpid() &&
			!memcmp(&args->addr, &root->args.addr, sizeof(args->addr)) &&
			!memcmp(args->secret, root->args.secret, sizeof(args->secret));
		if (!found)
			continue;
		refusal->count += said->count;
		if (!refusal->code) { /* the first is the one that is told */
			refusal->code = said->code;
			refusal->rank = said->rank;
			refusal->rank_count = said->rank_count;
			snprintf(refusal->sentence, sizeof(refusal->sentence), "%.*s",
				WIRE_SENTENCE_MAX - 1, err_last());
		}
		if (root->wake_fd >= 0)
			eventfd_write(root->wake_fd, 1);
	}
	pthread_mutex_unlock(&roots_lock);
	return found;
}

void roots_tidy(void)
{
	roots_reap(false, NULL);
}

void root_stop(const struct addr *addr)
{
	roots_reap(false, addr);
}

bool root_is_here(const struct addr *addr)
{
	bool is_here = false;

	roots_reap(false, NULL);
	pthread_mutex_lock(&roots_lock);
	for (const struct root *root = roots; root; root = root->next)
		is_here = is_here ||
			  (root->process == getpid() &&
				  !memcmp(addr, &root->args.addr, sizeof(*addr)));
	pthread_mutex_unlock(&roots_lock);
	return is_here;
}

/* Look at this descriptor from now on. */
static enum err fd_watch(struct root *root, int *fd)
{
	struct epoll_event event = {.events = EPOLLIN, .data.ptr = fd};

	if (*fd < 0 || !epoll_ctl(root->epoll_fd, EPOLL_CTL_ADD, *fd, &event))
		return OK;
	return err_set(ERR_SYSTEM, "epoll_ctl: %m");
}

static enum err doors_open(struct root *root, struct root_args *args)
{
	enum err e = OK;

	if (!args->up)
		e = addr_listen(&args->addr, &root->doors[DOOR_HERE], NULL);
	if (!e && args->up)
		e = fd_watch(root, &args->up->fd);
	if (!e && args->away.family)
		e = addr_listen(&args->away, &root->doors[DOOR_AWAY], &args->away);
	for (int i = 0; i < DOORS && !e; i++)
		e = fd_watch(root, &root->doors[i]);
	root->is_knockable = true;
	return e ? e : fd_watch(root, &root->wake_fd);
}

/* It comes to nothing: the root of all is not to take this rank for one that has died. */
static const struct porch_word no_porch = {.what = WIRE_NO_PORCH};

static void up_drop(struct root_args *args)
{
	if (!args->up)
		return;
	porch_say(args->up, &no_porch);
	porch_fini(args->up);
	free(args->up);
	close(args->door);
}

enum err root_start(struct root_args *args)
{
	struct root *root = calloc(1, sizeof(*root));
	enum err e;

	roots_tidy();
	if (!root) {
		up_drop(args);
		return err_set(ERR_SYSTEM, "no memory for a root");
	}
	root->args = *args;
	auth_random(root->news.meeting, sizeof(root->news.meeting));
	root->process = getpid();
	atomic_store(&roots_process, root->process);
	for (int i = 0; i < DOORS; i++)
		root->doors[i] = -1;
	if (args->up)
		root->doors[DOOR_HERE] = args->door;
	root->end_ns = clock_ns() + ROOT_IDLE_NS;
	root->wake_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	root->spare_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	root->epoll_fd = epoll_create1(EPOLL_CLOEXEC);
	e = root->wake_fd < 0 || root->spare_fd < 0 || root->epoll_fd < 0
		    ? err_set(ERR_SYSTEM, "no descriptors for a root: %m")
		    : OK;
	if (!e)
		e = doors_open(root, args);
	if (e)
		goto err_destroy;
	pthread_mutex_lock(&roots_lock);
	errno = thread_start(&root->thread, "weft-root", root_run, root);
	if (errno) {
		pthread_mutex_unlock(&roots_lock);
		e = err_set(ERR_SYSTEM, "no thread for a root: %m");
		goto err_destroy;
	}
	root->next = roots;
	roots = root;
	pthread_mutex_unlock(&roots_lock);
	return OK;

err_destroy:
	if (root->args.up)
		porch_say(root->args.up, &no_porch);
	root_destroy(root);
	return e;
}
