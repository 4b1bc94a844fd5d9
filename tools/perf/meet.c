#include "perf/meet.h"

#include <linux/futex.h>
#include <sched.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

enum { SHARE_BYTES = 128, SPINS = 2000, SLEEP_MS = 50 };

struct slot {
	double value;
	int pid;
	char pad[52]; /* one cache line per worker */
};

struct meet {
	atomic_int failure;
	atomic_uint arrived;
	atomic_uint round; /* the futex word: grows when the last worker arrives */
	uint32_t worker_count;
	unsigned char shared[SHARE_BYTES];
	struct slot slots[];
};

struct meet *meet_create(uint32_t worker_count)
{
	size_t bytes = sizeof(struct meet) + worker_count * sizeof(struct slot);
	struct meet *meet = mmap(
		NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);

	if (meet == MAP_FAILED)
		return NULL;
	meet->worker_count = worker_count;
	return meet;
}

/* Sleep until the word is no longer `seen`, a moment at most: a dead worker wakes no one.
 */
static void sleep_on(atomic_uint *word, unsigned seen)
{
	struct timespec limit = {.tv_nsec = SLEEP_MS * 1000000L};

	syscall(SYS_futex, word, FUTEX_WAIT, seen, &limit, NULL, 0);
}

bool meet_wait(struct meet *meet)
{
	unsigned round = atomic_load_explicit(&meet->round, memory_order_acquire);

	/* The last to arrive resets the count before the round grows; pairs with the
	 * acquire loads of `round` below. */
	if (atomic_fetch_add(&meet->arrived, 1) + 1 == meet->worker_count) {
		atomic_store(&meet->arrived, 0);
		atomic_fetch_add(&meet->round, 1);
		syscall(SYS_futex, &meet->round, FUTEX_WAKE, INT32_MAX, NULL, NULL, 0);
		return !meet_failure(meet);
	}
	for (int spin = 0; spin < SPINS; spin++) {
		if (atomic_load_explicit(&meet->round, memory_order_acquire) != round)
			return !meet_failure(meet);
		if (spin % 64 == 63)
			sched_yield();
	}
	while (atomic_load_explicit(&meet->round, memory_order_acquire) == round) {
		if (meet_failure(meet))
			return false;
		sleep_on(&meet->round, round);
	}
	return !meet_failure(meet);
}

static double fold(enum combine how, double a, double b)
{
	switch (how) {
	case COMBINE_FIRST:
		return a;
	case COMBINE_MIN:
		return a < b ? a : b;
	case COMBINE_MAX:
		return a > b ? a : b;
	default:
		return a + b;
	}
}

bool meet_combine(struct meet *meet, uint32_t worker, enum combine how, double *value)
{
	double all;

	meet->slots[worker].value = *value;
	if (!meet_wait(meet))
		return false;
	all = meet->slots[0].value;
	for (uint32_t i = 1; i < meet->worker_count; i++)
		all = fold(how, all, meet->slots[i].value);
	if (how == COMBINE_AVERAGE)
		all /= meet->worker_count;
	*value = all;
	return meet_wait(meet); /* nobody writes a slot again before all have read */
}

bool meet_share(struct meet *meet, uint32_t worker, void *data, size_t bytes)
{
	if (bytes > SHARE_BYTES)
		return false;
	if (!worker)
		memcpy(meet->shared, data, bytes);
	if (!meet_wait(meet))
		return false;
	memcpy(data, meet->shared, bytes);
	return meet_wait(meet);
}

void meet_set_pid(struct meet *meet, uint32_t worker, int pid)
{
	meet->slots[worker].pid = pid;
}

int meet_pid(const struct meet *meet, uint32_t worker)
{
	return meet->slots[worker].pid;
}

int meet_fail(struct meet *meet, int code)
{
	int none = 0;

	atomic_compare_exchange_strong(&meet->failure, &none, code);
	return atomic_load(&meet->failure);
}

int meet_failure(const struct meet *meet)
{
	return atomic_load_explicit(&meet->failure, memory_order_acquire);
}
