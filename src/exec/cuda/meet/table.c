#include "exec/cuda/meet/table.h"

#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/futex.h"

enum {
	SPIN_TURNS = 500,
	YIELD_TURNS = 1500,
	NAP_US = 2000,
	LATE_US = 100, /* a nap when the round could be served */
	DONE = 1
};

/* One rank's place. On a line of its own: its thread writes it while others look at
 * theirs. */
struct seat {
	_Alignas(64) _Atomic uint32_t round; /* for which it has laid down */
	struct table_entry entry;
};

struct table {
	struct seat seats[MOVES_RANKS_MAX];
	_Alignas(64) _Atomic uint32_t round; /* how many were served */
	_Atomic uint32_t sleepers, bell;     /* who sleeps until it is rung */
	_Atomic pthread_t server;	     /* who laid down for rank 0 */
	bool is_broken; /* somebody laid down and left: there is no next round */
	struct table_answer answer;
	char reason[ERR_TEXT_BYTES]; /* of an answer that is an error */
	_Alignas(64) pthread_mutex_t lock;
	/* the lock guards these, is_broken, and the letters */
	uint32_t rank_count, users;
	bool is_serving; /* somebody launches, and waits for nobody */
	struct table_letter
		*letters[MOVES_RANKS_MAX][MOVES_RANKS_MAX]; /* [from][to], a list */
	_Atomic uint32_t letter_count;			    /* ever put */
};

/* Wait a little; false: it has been long enough to sleep. Who spins may be keeping the
 * one it waits for from a core. */
static bool wait_turn(uint32_t turn)
{
	if (turn < SPIN_TURNS)
		cpu_relax();
	else if (turn < YIELD_TURNS)
		sched_yield();
	return turn < YIELD_TURNS;
}

enum err table_create(uint32_t rank_count, struct table **table)
{
	struct table *made = aligned_alloc(_Alignof(struct table), sizeof(*made));

	if (!made)
		return err_set(ERR_SYSTEM, "no memory for %u ranks on a GPU", rank_count);
	memset(made, 0, sizeof(*made));
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

/* After something was said that a sleeper waits for. */
static void bell_ring(struct table *table)
{
	if (!atomic_load(&table->sleepers))
		return;
	atomic_fetch_add(&table->bell, 1);
	futex_wake(&table->bell);
}

void table_put(struct table *table, uint32_t rank, const struct table_entry *entry)
{
	struct seat *seat = &table->seats[rank];

	seat->entry = *entry;
	if (rank == 0)
		atomic_store_explicit(
			&table->server, pthread_self(), memory_order_relaxed);
	atomic_store(&seat->round,
		atomic_load_explicit(&table->round, memory_order_relaxed) + 1);
	bell_ring(table);
}

const struct table_entry *table_entry(const struct table *table, uint32_t rank)
{
	return &table->seats[rank].entry;
}

struct table_answer table_answer(const struct table *table)
{
	return table->answer;
}

void table_served(struct table *table, const struct table_answer *answer)
{
	table->answer = *answer;
	if (answer->error)
		snprintf(table->reason, sizeof(table->reason), "%s", err_last());
	pthread_mutex_lock(&table->lock);
	table->is_serving = false;
	atomic_fetch_add(&table->round, 1);
	pthread_mutex_unlock(&table->lock);
	bell_ring(table);
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

static bool has_laid_down(const struct table *table, uint32_t rank, uint32_t round)
{
	return atomic_load_explicit(&table->seats[rank].round, memory_order_acquire) ==
	       round;
}

static bool is_whole(const struct table *table, uint32_t round)
{
	for (uint32_t r = 0; r < table->rank_count; r++)
		if (!has_laid_down(table, r, round))
			return false;
	return true;
}

/* Is it this thread that serves the round? */
static bool is_server(const struct table *table, uint32_t round)
{
	return has_laid_down(table, 0, round) &&
	       pthread_equal(atomic_load_explicit(&table->server, memory_order_relaxed),
		       pthread_self());
}

static bool is_served(const struct table *table, uint32_t round)
{
	return atomic_load_explicit(&table->round, memory_order_acquire) == round;
}

/* False: somebody does it or has done it, or has left. */
static bool serving_begin(struct table *table, uint32_t round)
{
	bool is_free;

	pthread_mutex_lock(&table->lock);
	is_free = !table->is_broken && !table->is_serving && !is_served(table, round);
	table->is_serving = table->is_serving || is_free;
	pthread_mutex_unlock(&table->lock);
	return is_free;
}

static void table_sleep(struct table *table, uint32_t round, uint32_t most_us)
{
	uint32_t bell;

	atomic_fetch_add(&table->sleepers, 1);
	bell = atomic_load(&table->bell);
	if (!is_served(table, round) &&
		!(is_server(table, round) && is_whole(table, round)))
		futex_wait(&table->bell, bell, most_us);
	atomic_fetch_sub(&table->sleepers, 1);
}

const char *table_reason(const struct table *table)
{
	return table->reason;
}

enum err table_wait(
	struct table *table, uint32_t rank, const uint32_t *abort, bool *is_ours)
{
	uint32_t round = atomic_load_explicit(
		&table->seats[rank].round, memory_order_relaxed);

	bool was_whole = false;

	*is_ours = false;
	for (uint32_t turn = 0; !is_served(table, round); turn++) {
		/* the others look now and then: twice it was whole, and still nobody */
		bool is_ours_first = is_server(table, round);
		bool looks = is_ours_first || turn >= YIELD_TURNS ||
			     turn % SPIN_TURNS == SPIN_TURNS - 1;
		bool whole = looks && is_whole(table, round);

		*is_ours = whole && (is_ours_first || was_whole) &&
			   serving_begin(table, round);
		if (*is_ours)
			return OK;
		if (is_left(table, abort))
			return err_set(ERR_REMOTE, "the communicator was aborted");
		was_whole = looks ? whole : was_whole;
		if (!wait_turn(turn))
			table_sleep(table, round, whole ? LATE_US : NAP_US);
	}
	return OK;
}

void letter_put(
	struct table *table, uint32_t from, uint32_t to, struct table_letter *letter)
{
	struct table_letter **last = &table->letters[from][to];

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

struct table_letter *letter_take(struct table *table, uint32_t from, uint32_t to)
{
	struct table_letter **first = &table->letters[from][to], *letter;

	pthread_mutex_lock(&table->lock);
	letter = *first;
	if (letter)
		*first = letter->next;
	pthread_mutex_unlock(&table->lock);
	return letter;
}

uint32_t letters_seen(struct table *table)
{
	return atomic_load(&table->letter_count);
}

enum err letters_await(
	struct table *table, uint32_t seen, const uint32_t *abort, uint32_t limit_us)
{
	uint64_t start = clock_ns();

	while (atomic_load(&table->letter_count) == seen) {
		if (__atomic_load_n(abort, __ATOMIC_RELAXED))
			return err_set(ERR_REMOTE, "the communicator was aborted");
		if (limit_us && clock_ns() - start >= limit_us * 1000ull)
			return ERR_AGAIN;
		for (uint32_t i = 0;
			atomic_load(&table->letter_count) == seen && wait_turn(i); i++)
			;
		futex_wait(&table->letter_count, seen,
			limit_us && limit_us < NAP_US ? limit_us : NAP_US);
	}
	return OK;
}

void letter_done(struct table_letter *letter, enum err error)
{
	atomic_store(&letter->state, DONE + (uint32_t)error);
	futex_wake(&letter->state);
}

/* Is it still there to be taken back? */
static bool letter_withdraw(struct table *table, const struct table_letter *letter)
{
	bool is_found = false;

	pthread_mutex_lock(&table->lock);
	for (uint32_t i = 0; i < MOVES_RANKS_MAX * MOVES_RANKS_MAX && !is_found; i++) {
		struct table_letter **link = &table->letters[0][0] + i;

		while (*link && *link != letter)
			link = &(*link)->next;
		is_found = *link;
		if (is_found)
			*link = letter->next;
	}
	pthread_mutex_unlock(&table->lock);
	return is_found;
}

enum err letter_wait(
	struct table *table, struct table_letter *letter, const uint32_t *abort)
{
	uint32_t state;

	for (uint32_t turn = 0; !(state = atomic_load(&letter->state)); turn++) {
		if (wait_turn(turn))
			continue;
		if (__atomic_load_n(abort, __ATOMIC_RELAXED) &&
			letter_withdraw(table, letter))
			return err_set(ERR_REMOTE, "the communicator was aborted");
		futex_wait(&letter->state, 0, NAP_US);
	}
	return state == DONE ? OK
			     : err_set((enum err)(state - DONE),
				       "the receiver of a send could not take it");
}
