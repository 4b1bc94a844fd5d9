/*
 * pulse.c - the threads that hold this process's pulses.
 *
 * The list's head lies in shared pages: of a process that is killed for want of memory
 * the kernel may take the private ones away before it walks the list. The kernel walks
 * 2,048 entries at most, so there is a thread for every thousand boards. A list only
 * ever changes by one store, so that it is whole whenever the process ends.
 */
#include "link/pulse.h"

#include <errno.h>
#include <linux/futex.h>
#include <pthread.h>
#include <stddef.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/futex.h"
#include "base/thread.h"

enum { KEEPERS_MAX = 64, PULSES_MAX = 1000 };

/* What the kernel reads, in shared memory, and the word the thread sleeps on. */
struct keeper_page {
	struct robust_list_head
		head;		/* its list is the first pulse, or the head itself */
	_Atomic uint32_t state; /* 0 starting, 1 keeping, 2 refused, 3 to end */
};

enum { KEEPER_STARTING, KEEPER_KEEPING, KEEPER_REFUSED, KEEPER_ENDING };

struct keeper {
	pthread_t thread;
	struct keeper_page *page; /* owned; NULL: no such thread */
	uint32_t count;		  /* of pulses it holds */
	uint32_t tid;
};

/* All guarded by `lock`. A forked child has the table but not the threads. */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct keeper keepers[KEEPERS_MAX];
static pid_t process;

static void *keeper_main(void *argument)
{
	struct keeper *keeper = argument;
	struct keeper_page *page = keeper->page;
	uint32_t state = KEEPER_KEEPING;

	keeper->tid = (uint32_t)gettid();
	if (syscall(SYS_set_robust_list, &page->head, sizeof(page->head)))
		state = KEEPER_REFUSED;
	atomic_store(&page->state, state);
	futex_wake(&page->state);
	while ((state = atomic_load(&page->state)) == KEEPER_KEEPING)
		futex_wait(&page->state, state, UINT32_MAX);
	return NULL;
}

static void keeper_stop(struct keeper *keeper)
{
	atomic_store(&keeper->page->state, KEEPER_ENDING);
	futex_wake(&keeper->page->state);
	pthread_join(keeper->thread, NULL);
	munmap(keeper->page, sizeof(*keeper->page));
	memset(keeper, 0, sizeof(*keeper));
}

static enum err keeper_start(struct keeper *keeper)
{
	struct keeper_page *page = mmap(NULL, sizeof(*page), PROT_READ | PROT_WRITE,
		MAP_SHARED | MAP_ANONYMOUS, -1, 0);

	if (page == MAP_FAILED)
		return err_set(ERR_SYSTEM, "no memory to show that this process lives");
	page->head.list.next = &page->head.list;
	page->head.futex_offset = offsetof(struct pulse, word);
	*keeper = (struct keeper){.page = page};
	errno = thread_start(&keeper->thread, "weft-pulse", keeper_main, keeper);
	if (errno) {
		munmap(page, sizeof(*page));
		keeper->page = NULL;
		return err_set(
			ERR_SYSTEM, "no thread to show that this process lives: %m");
	}
	while (atomic_load(&page->state) == KEEPER_STARTING)
		futex_wait(&page->state, KEEPER_STARTING, UINT32_MAX);
	return OK;
}

/* A keeper with room, started if need be. */
static enum err keeper_find(struct keeper **found)
{
	if (process != getpid()) {
		memset(keepers, 0, sizeof(keepers));
		process = getpid();
	}
	for (uint32_t i = 0; i < KEEPERS_MAX; i++) {
		struct keeper *keeper = &keepers[i];

		if (keeper->page && keeper->count == PULSES_MAX)
			continue;
		*found = keeper;
		return keeper->page ? OK : keeper_start(keeper);
	}
	return err_set(ERR_SYSTEM, "more than %d communicators in one process",
		KEEPERS_MAX * PULSES_MAX);
}

enum err pulse_hold(struct pulse *pulse)
{
	struct keeper *keeper = NULL;
	enum err e;

	pthread_mutex_lock(&lock);
	e = keeper_find(&keeper);
	/* Where the kernel keeps no such lists (it is refused), nothing will mark the
	 * word: then the process is watched by its descriptor alone. */
	if (!e) {
		pulse->keeper = (uint32_t)(keeper - keepers);
		pulse->next = (struct pulse *)(void *)keeper->page->head.list.next;
		atomic_store(&pulse->word, keeper->tid);
		keeper->page->head.list.next = (struct robust_list *)(void *)pulse;
		keeper->count++;
	}
	pthread_mutex_unlock(&lock);
	return e;
}

void pulse_drop(struct pulse *pulse)
{
	struct keeper *keeper;
	struct pulse *at;

	pthread_mutex_lock(&lock);
	keeper = &keepers[pulse->keeper % KEEPERS_MAX];
	if (process != getpid() || !keeper->page) { /* a forked child's copy */
		pthread_mutex_unlock(&lock);
		return;
	}
	at = (struct pulse *)(void *)&keeper->page->head.list;
	for (uint32_t i = 0; i < keeper->count && at->next != pulse; i++)
		at = at->next;
	if (at->next == pulse) {
		at->next = pulse->next;
		atomic_store(&pulse->word, 0);
		if (!--keeper->count)
			keeper_stop(keeper);
	}
	pthread_mutex_unlock(&lock);
}

/* No thread may outlive the library's code. Another thread may be in here while the
 * process exits: then there is nothing to unload. */
__attribute__((destructor)) static void keepers_stop(void)
{
	if (pthread_mutex_trylock(&lock))
		return;
	for (uint32_t i = 0; i < KEEPERS_MAX && process == getpid(); i++)
		if (keepers[i].page)
			keeper_stop(&keepers[i]);
	pthread_mutex_unlock(&lock);
}

void pulse_mark_stopped(struct pulse *pulse)
{
	atomic_fetch_or(&pulse->word, PULSE_STOPPED);
}
