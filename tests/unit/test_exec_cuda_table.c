/* Threads that meet at a table: every round has one server, who sees all entries, and
 * nobody leaves with another round's answer. */
#include "exec/cuda/table.h"

#include <pthread.h>
#include <unistd.h>

#include "test.h"

enum { RANKS = 8, ROUNDS = 200 };

struct seat {
	struct table *table;
	uint32_t rank, rank_count;
	uint32_t abort;
	uint32_t served; /* rounds this one served */
	pthread_t thread;
};

/* Streams and events are never looked into: numbers will do. */
static cu_stream stream_number(uint64_t number)
{
	return (cu_stream)(uintptr_t)number;
}

static struct table_entry entry_of(uint32_t rank, uint64_t round)
{
	return (struct table_entry){.post = {.in = round * 100 + rank, .out = round},
		.sign = round,
		.stream = stream_number(rank + 1)};
}

static void serve(struct seat *seat, uint64_t round)
{
	const struct table_entry *entries = table_entries(seat->table);
	struct table_answer answer = {.culprit = (uint32_t)round};

	for (uint32_t r = 0; r < seat->rank_count; r++) {
		EQ(entries[r].sign, round);
		EQ(entries[r].post.in, round * 100 + r);
		TRUE(entries[r].stream == stream_number(r + 1));
	}
	seat->served++;
	table_served(seat->table, &answer);
}

static void *seat_main(void *argument)
{
	struct seat *seat = argument;

	for (uint64_t round = 0; round < ROUNDS; round++) {
		struct table_entry entry = entry_of(seat->rank, round);
		struct table_answer answer = {0};

		if (table_put(seat->table, seat->rank, &entry))
			serve(seat, round);
		EQ(table_wait(seat->table, seat->rank, &seat->abort, &answer), OK);
		EQ(answer.culprit, round);
	}
	table_release(seat->table);
	return NULL;
}

static void test_rounds(uint32_t rank_count)
{
	struct seat seats[RANKS] = {0};
	struct table *table;
	uint32_t served = 0;

	EQ(table_create(rank_count, &table), OK);
	for (uint32_t r = 0; r < rank_count; r++) {
		seats[r] = (struct seat){
			.table = table, .rank = r, .rank_count = rank_count};
		table_hold(table);
	}
	table_release(table); /* the seats keep it */
	for (uint32_t r = 0; r < rank_count; r++)
		EQ(pthread_create(&seats[r].thread, NULL, seat_main, &seats[r]), 0);
	for (uint32_t r = 0; r < rank_count; r++) {
		EQ(pthread_join(seats[r].thread, NULL), 0);
		served += seats[r].served;
	}
	EQ(served, ROUNDS);
}

/* One thread for several ranks: all lay down before it waits for any. */
static void test_one_thread(void)
{
	uint32_t abort = 0;
	struct table *table;

	EQ(table_create(3, &table), OK);
	for (uint32_t round = 0; round < 10; round++) {
		for (uint32_t r = 0; r < 3; r++) {
			struct table_entry entry = entry_of(r, round);
			struct table_answer answer = {
				.error = ERR_USAGE, .culprit = round};

			EQ(table_put(table, r, &entry), r == 2);
			if (r == 2)
				table_served(table, &answer);
		}
		for (uint32_t r = 0; r < 3; r++) {
			struct table_answer answer = {0};

			EQ(table_wait(table, r, &abort, &answer), OK);
			EQ(answer.error, ERR_USAGE);
			EQ(answer.culprit, round);
		}
	}
	table_release(table);
}

static void *wait_main(void *argument)
{
	struct seat *seat = argument;
	struct table_answer answer;

	EQ(table_wait(seat->table, seat->rank, &seat->abort, &answer), ERR_REMOTE);
	return NULL;
}

/* A rank that waits for one that never comes is let go by its abort word. */
static void test_abort(void)
{
	struct seat seat = {.rank = 1, .rank_count = 2};
	struct table_entry entry = entry_of(1, 0);

	EQ(table_create(2, &seat.table), OK);
	EQ(table_put(seat.table, 1, &entry), false);
	EQ(pthread_create(&seat.thread, NULL, wait_main, &seat), 0);
	usleep(20000); /* so that it sleeps, as likely as not */
	__atomic_store_n(&seat.abort, 1, __ATOMIC_RELEASE);
	EQ(pthread_join(seat.thread, NULL), 0);
	table_release(seat.table);
	table_release(NULL);
}

int main(void)
{
	test_rounds(1);
	test_rounds(2);
	test_rounds(3);
	test_rounds(RANKS);
	test_one_thread();
	test_abort();
	return 0;
}
