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
	atomic_uint round;     /* the futex word: grows when the last worker arrives */
	uint32_t worker_count; /* on this page */
	uint32_t first_worker; /* the first of them */
	bool has_others;
	struct meet_others others;
	int others_failure;
	double value; /* of all workers; written before the round grows */
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

/* What the last to arrive does before the others go on. */
enum task { TASK_WAIT, TASK_COMBINE, TASK_SHARE };

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

static bool values_combine(struct meet *meet, enum combine how)
{
	const struct meet_others *others = &meet->others;
	double all = meet->slots[0].value, count = meet->worker_count;

	for (uint32_t i = 1; i < meet->worker_count; i++)
		all = fold(how, all, meet->slots[i].value);
	if (meet->has_others) {
		enum combine between = how == COMBINE_AVERAGE ? COMBINE_SUM : how;

		if (!others->combine(others->arg, between, &all))
			return false;
		count *= others->process_count;
	}
	meet->value = how == COMBINE_AVERAGE ? all / count : all;
	return true;
}

static bool task_do(struct meet *meet, enum task task, enum combine how)
{
	const struct meet_others *others = &meet->others;
	double nothing = 0;

	if (task == TASK_COMBINE)
		return values_combine(meet, how);
	if (!meet->has_others)
		return true;
	if (task == TASK_SHARE)
		return others->share(others->arg, meet->shared, SHARE_BYTES);
	return others->combine(others->arg, COMBINE_SUM, &nothing);
}

/* Wait for all workers of the page. What one wrote before is seen by the task, and what
 * the task wrote is seen by all: nobody writes again before all have come to the next
 * wait. */
static bool arrive(struct meet *meet, enum task task, enum combine how)
{
	unsigned round = atomic_load_explicit(&meet->round, memory_order_acquire);

	/* The last to arrive resets the count before the round grows; pairs with the
	 * acquire loads of `round` below. */
	if (atomic_fetch_add(&meet->arrived, 1) + 1 == meet->worker_count) {
		if (!meet_failure(meet) && !task_do(meet, task, how))
			meet_fail(meet, meet->others_failure);
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

void meet_join(struct meet *meet, const struct meet_others *others, int failure)
{
	meet->others = *others;
	meet->has_others = true;
	meet->others_failure = failure;
	meet->first_worker = others->process * meet->worker_count;
}

bool meet_wait(struct meet *meet)
{
	return arrive(meet, TASK_WAIT, COMBINE_SUM);
}

bool meet_combine(struct meet *meet, uint32_t worker, enum combine how, double *value)
{
	meet->slots[worker - meet->first_worker].value = *value;
	if (!arrive(meet, TASK_COMBINE, how))
		return false;
	*value = meet->value;
	return true;
}

bool meet_share(struct meet *meet, uint32_t worker, void *data, size_t bytes)
{
	if (bytes > SHARE_BYTES)
		return false;
	if (!worker)
		memcpy(meet->shared, data, bytes);
	if (!arrive(meet, TASK_SHARE, COMBINE_SUM))
		return false;
	memcpy(data, meet->shared, bytes);
	return true;
}

void meet_set_pid(struct meet *meet, uint32_t worker, int pid)
{
	meet->slots[worker - meet->first_worker].pid = pid;
}

int meet_pid(const struct meet *meet, uint32_t worker)
{
	return meet->slots[worker - meet->first_worker].pid;
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
