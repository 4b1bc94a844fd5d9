#include "exec/cuda/table.h"

#include <pthread.h>
#include <sched.h>
#include <stdlib.h>

#include "base/futex.h"

enum { SPIN_TURNS = 20000, NAP_US = 2000 };

struct table {
	pthread_mutex_t lock; /* guards laid, users */
	uint32_t rank_count, laid, users;
	_Atomic uint32_t round; /* how many were served */
	struct table_answer answer;
	uint32_t joined[MOVES_RANKS_MAX]; /* the round each rank laid down for */
	struct table_entry entries[MOVES_RANKS_MAX];
};

enum err table_create(uint32_t rank_count, struct table **table)
{
	struct table *made = calloc(1, sizeof(*made));

	if (!made)
		return err_set(ERR_SYSTEM, "no memory for %u ranks on a GPU", rank_count);
	pthread_mutex_init(&made->lock, NULL);
	made->rank_count = rank_count;
	made->users = 1;
	*table = made;
	return OK;
}

void table_hold(struct table *table)
{
	pthread_mutex_lock(&table->lock);
	table->users++;
	pthread_mutex_unlock(&table->lock);
}

void table_release(struct table *table)
{
	uint32_t users;

	if (!table)
		return;
	pthread_mutex_lock(&table->lock);
	users = --table->users;
	pthread_mutex_unlock(&table->lock);
	if (users)
		return;
	pthread_mutex_destroy(&table->lock);
	free(table);
}

bool table_put(struct table *table, uint32_t rank, const struct table_entry *entry)
{
	bool is_last;

	pthread_mutex_lock(&table->lock);
	table->entries[rank] = *entry;
	table->joined[rank] = atomic_load(&table->round);
	is_last = ++table->laid == table->rank_count;
	if (is_last)
		table->laid = 0;
	pthread_mutex_unlock(&table->lock);
	return is_last;
}

const struct table_entry *table_entries(const struct table *table)
{
	return table->entries;
}

void table_served(struct table *table, const struct table_answer *answer)
{
	table->answer = *answer;
	atomic_fetch_add_explicit(&table->round, 1, memory_order_release);
	futex_wake(&table->round);
}

enum err table_wait(struct table *table, uint32_t rank, const uint32_t *abort,
	struct table_answer *answer)
{
	uint32_t round = table->joined[rank];

	for (uint32_t turn = 0;
		atomic_load_explicit(&table->round, memory_order_acquire) == round;
		turn++) {
		if (__atomic_load_n(abort, __ATOMIC_RELAXED))
			return err_set(ERR_REMOTE, "the communicator was aborted");
		if (turn < SPIN_TURNS)
			cpu_relax();
		else
			futex_wait(&table->round, round, NAP_US);
	}
	*answer = table->answer;
	return OK;
}
