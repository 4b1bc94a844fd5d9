/* Threads that meet at a table: every round is served once, by one who sees all entries,
 * and nobody leaves with another round's answer. */
#include "exec/cuda/meet/table.h"

#include <pthread.h>
#include <unistd.h>

#include "test.h"

enum { RANKS = 8, ROUNDS = 200, SLOW_ROUNDS = 50, SLOW_US = 5000 };

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
	struct table_answer answer = {.culprit = (uint32_t)round};

	for (uint32_t r = 0; r < seat->rank_count; r++) {
		const struct table_entry *entry = table_entry(seat->table, r);

		EQ(entry->sign, round);
		EQ(entry->post.in, round * 100 + r);
		TRUE(entry->stream == stream_number(r + 1));
	}
	seat->served++;
	table_served(seat->table, &answer);
}

static void *seat_main(void *argument)
{
	struct seat *seat = argument;

	for (uint64_t round = 0; round < ROUNDS; round++) {
		struct table_entry entry = entry_of(seat->rank, round);
		bool is_ours;

		if (round % SLOW_ROUNDS == seat->rank)
			usleep(SLOW_US); /* the others sleep, as likely as not */
		table_put(seat->table, seat->rank, &entry);
		EQ(table_wait(seat->table, seat->rank, &seat->abort, &is_ours), OK);
		if (is_ours)
			serve(seat, round);
		EQ(table_answer(seat->table).culprit, round);
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
struct crew {
	struct table *table;
	uint32_t ranks[2];
	uint32_t served;
};

static void *crew_main(void *argument)
{
	struct crew *crew = argument;
	uint32_t abort = 0;

	for (uint32_t round = 0; round < ROUNDS; round++) {
		for (uint32_t i = 0; i < 2; i++) {
			struct table_entry entry = entry_of(crew->ranks[i], round);

			table_put(crew->table, crew->ranks[i], &entry);
		}
		for (uint32_t i = 0; i < 2; i++) {
			struct table_answer answer = {
				.error = ERR_USAGE, .culprit = round};
			bool is_ours;

			EQ(table_wait(crew->table, crew->ranks[i], &abort, &is_ours), OK);
			if (is_ours) {
				crew->served++;
				table_served(crew->table, &answer);
			}
			EQ(table_answer(crew->table).error, ERR_USAGE);
			EQ(table_answer(crew->table).culprit, round);
		}
	}
	return NULL;
}

static void test_crews(void)
{
	struct crew crews[] = {{.ranks = {3, 0}}, {.ranks = {2, 1}}};
	struct table *table;
	pthread_t thread;

	EQ(table_create(4, &table), OK);
	crews[0].table = crews[1].table = table;
	EQ(pthread_create(&thread, NULL, crew_main, &crews[1]), 0);
	crew_main(&crews[0]);
	EQ(pthread_join(thread, NULL), 0);
	EQ(crews[0].served + crews[1].served, ROUNDS);
	table_release(table);
}

static void *absent_main(void *argument)
{
	struct seat *seat = argument;
	struct table_entry entry = entry_of(0, 0);

	table_put(seat->table, 0, &entry);
	return NULL;
}

/* Rank 0's thread has laid down and does not come: it may be waiting for us elsewhere. */
static void test_absent(void)
{
	struct table_entry entry = entry_of(1, 0);
	struct table_answer answer = {.culprit = 7};
	uint32_t abort = 0;
	struct table *table;
	pthread_t thread;
	struct seat seat;
	bool is_ours;

	EQ(table_create(2, &table), OK);
	seat = (struct seat){.table = table};
	table_put(table, 1, &entry);
	EQ(pthread_create(&thread, NULL, absent_main, &seat), 0);
	EQ(pthread_join(thread, NULL), 0);
	EQ(table_wait(table, 1, &abort, &is_ours), OK);
	TRUE(is_ours);
	table_served(table, &answer);
	EQ(table_wait(table, 0, &abort, &is_ours), OK);
	TRUE(!is_ours);
	EQ(table_answer(table).culprit, 7);
	table_release(table);
}

static void *wait_main(void *argument)
{
	struct seat *seat = argument;
	bool is_ours;

	EQ(table_wait(seat->table, seat->rank, &seat->abort, &is_ours), ERR_REMOTE);
	return NULL;
}

/* A rank that waits for one that never comes is let go by its abort word. */
static void test_abort(void)
{
	struct seat seat = {.rank = 1, .rank_count = 2};
	struct table_entry entry = entry_of(1, 0);

	EQ(table_create(2, &seat.table), OK);
	table_put(seat.table, 1, &entry);
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
	test_crews();
	test_absent();
	test_abort();
	return 0;
}
