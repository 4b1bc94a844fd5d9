#include "exec/cuda/table.h"

#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/futex.h"

enum { SPIN_TURNS = 20000, NAP_US = 2000, DONE = 1 };

struct table {
	pthread_mutex_t lock; /* guards all up to is_broken, and the letters */
	uint32_t rank_count, laid, users;
	bool is_serving; /* the last one has come and launches, waiting for nobody */
	bool is_broken;	 /* somebody laid down and left: there is no next round */
	_Atomic uint32_t round; /* how many were served */
	struct table_answer answer;
	char reason[ERR_TEXT_BYTES];	  /* of an answer that is an error */
	uint32_t joined[MOVES_RANKS_MAX]; /* the round each rank laid down for */
	struct table_entry entries[MOVES_RANKS_MAX];
	struct letter *letters[MOVES_RANKS_MAX][MOVES_RANKS_MAX]; /* [from][to], a list */
	_Atomic uint32_t letter_count;				  /* ever put */
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
	is_last = !table->is_broken && ++table->laid == table->rank_count;
	if (is_last) {
		table->laid = 0;
		table->is_serving = true;
	}
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
	if (answer->error)
		snprintf(table->reason, sizeof(table->reason), "%s", err_last());
	pthread_mutex_lock(&table->lock);
	table->is_serving = false;
	pthread_mutex_unlock(&table->lock);
	atomic_fetch_add_explicit(&table->round, 1, memory_order_release);
	futex_wake(&table->round);
}

/* Is there nothing more to wait for? Who leaves takes its buffers and events along, so
 * that nobody may launch for it any more; one who launches already is waited for. */
static bool is_left(struct table *table, const uint32_t *abort)
{
	bool is_told = __atomic_load_n(abort, __ATOMIC_RELAXED), is_over;

	if (!is_told && !__atomic_load_n(&table->is_broken, __ATOMIC_RELAXED))
		return false;
	pthread_mutex_lock(&table->lock);
	is_over = !table->is_serving;
	if (is_over)
		__atomic_store_n(&table->is_broken, true, __ATOMIC_RELAXED);
	pthread_mutex_unlock(&table->lock);
	return is_over;
}

const char *table_reason(const struct table *table)
{
	return table->reason;
}

enum err table_wait(struct table *table, uint32_t rank, const uint32_t *abort,
	struct table_answer *answer)
{
	uint32_t round = table->joined[rank];

	for (uint32_t turn = 0;
		atomic_load_explicit(&table->round, memory_order_acquire) == round;
		turn++) {
		if (is_left(table, abort))
			return err_set(ERR_REMOTE, "the communicator was aborted");
		if (turn < SPIN_TURNS)
			cpu_relax();
		else
			futex_wait(&table->round, round, NAP_US);
	}
	*answer = table->answer;
	return OK;
}

void letter_put(struct table *table, uint32_t from, uint32_t to, struct letter *letter)
{
	struct letter **last = &table->letters[from][to];

	letter->next = NULL;
	atomic_store(&letter->state, 0);
	pthread_mutex_lock(&table->lock);
	while (*last)
		last = &(*last)->next;
	*last = letter;
	pthread_mutex_unlock(&table->lock);
	atomic_fetch_add(&table->letter_count, 1);
	futex_wake(&table->letter_count);
}

enum err letter_take(struct table *table, uint32_t from, uint32_t to,
	const uint32_t *abort, struct letter **letter)
{
	for (uint32_t turn = 0;; turn++) {
		uint32_t seen = atomic_load(&table->letter_count);

		pthread_mutex_lock(&table->lock);
		*letter = table->letters[from][to];
		if (*letter)
			table->letters[from][to] = (*letter)->next;
		pthread_mutex_unlock(&table->lock);
		if (*letter)
			return OK;
		if (__atomic_load_n(abort, __ATOMIC_RELAXED))
			return err_set(ERR_REMOTE, "the communicator was aborted");
		for (uint32_t i = 0;
			i < SPIN_TURNS && atomic_load(&table->letter_count) == seen; i++)
			cpu_relax();
		futex_wait(&table->letter_count, seen, NAP_US);
	}
}

void letter_done(struct letter *letter, enum err error)
{
	atomic_store(&letter->state, DONE + (uint32_t)error);
	futex_wake(&letter->state);
}

/* Is it still there to be taken back? */
static bool letter_withdraw(struct table *table, const struct letter *letter)
{
	bool is_found = false;

	pthread_mutex_lock(&table->lock);
	for (uint32_t i = 0; i < MOVES_RANKS_MAX * MOVES_RANKS_MAX && !is_found; i++) {
		struct letter **link = &table->letters[0][0] + i;

		while (*link && *link != letter)
			link = &(*link)->next;
		is_found = *link;
		if (is_found)
			*link = letter->next;
	}
	pthread_mutex_unlock(&table->lock);
	return is_found;
}

enum err letter_wait(struct table *table, struct letter *letter, const uint32_t *abort)
{
	uint32_t state;

	for (uint32_t turn = 0; !(state = atomic_load(&letter->state)); turn++) {
		if (turn < SPIN_TURNS) {
			cpu_relax();
			continue;
		}
		if (__atomic_load_n(abort, __ATOMIC_RELAXED) &&
			letter_withdraw(table, letter))
			return err_set(ERR_REMOTE, "the communicator was aborted");
		futex_wait(&letter->state, 0, NAP_US);
	}
	return state == DONE ? OK
			     : err_set((enum err)(state - DONE),
				       "the receiver of a send could not take it");
}
