/* Pairs: made on first use, the same for both ends and every process, none over another;
 * memory grows with those that are used; a file that may not grow is said so. */
#include "link/pair.h"

#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>

#include "child.h"

static struct board *board_of(uint32_t rank_count, uint32_t signal_count)
{
	struct board *board;

	EQ(board_create(&(struct board_size){rank_count, signal_count, rank_count, 1}, "",
		   &board),
		OK);
	return board;
}

static size_t file_bytes(const struct board *board)
{
	struct stat status;

	EQ(fstat(board->fd, &status), 0);
	return (size_t)status.st_size;
}

/* Every pair, each filled with its own number: nothing is written twice. */
static void test_apart(uint32_t n, uint32_t signal_count)
{
	struct board *board = board_of(n, signal_count);
	struct pair_room *pair;

	EQ(file_bytes(board), board->bytes);
	for (uint32_t i = 0; i < n * n; i++) {
		TRUE(!pair_find(board, i / n, i % n));
		EQ(pair_get(board, i / n, i % n, &pair), OK);
		TRUE(pair_find(board, i / n, i % n) == pair);
		EQ((uintptr_t)pair % 64, 0);
		atomic_store(&pair->box.posted, i);
		atomic_store(&pair->box.taken, i);
		for (uint32_t k = 0; k < signal_count; k++)
			atomic_store(&pair->signals[k].given, i);
		for (uint32_t k = 0; k < BOX_LETTERS; k++) {
			EQ((uintptr_t)pair_slot(board, pair, k) % 64, 0);
			memset(pair_slot(board, pair, k), (int)(i % 251),
				board->pair_bytes);
		}
	}
	for (uint32_t i = 0; i < n * n; i++) {
		const char *slot;

		pair = pair_find(board, i / n, i % n);
		EQ(atomic_load(&pair->box.posted), i);
		EQ(atomic_load(&pair->box.taken), i);
		EQ(atomic_load(&pair->signals[signal_count - 1].given), i);
		slot = pair_slot(board, pair, BOX_LETTERS + 1);
		EQ((unsigned char)slot[0], i % 251);
		EQ((unsigned char)slot[board->pair_bytes - 1], i % 251);
	}
	board_release(board);
}

/* What two ranks store for each other and load from each other begins at different
 * offsets of pages. */
static void test_skew(uint32_t n)
{
	enum { PAGE = 4096, LINE = 64 };
	struct board *board = board_of(n, 1);
	bool is_taken[PAGE / LINE] = {false};

	for (uint32_t way = 0; way < 2; way++) {
		struct pair_room *pair;
		const char *places[1 + BOX_LETTERS];

		EQ(pair_get(board, way, 1 - way, &pair), OK);
		places[0] = (const char *)pair;
		for (uint32_t i = 0; i < BOX_LETTERS; i++)
			places[1 + i] = pair_slot(board, pair, i);
		for (uint32_t i = 0; i < 1 + BOX_LETTERS; i++) {
			size_t line = (uintptr_t)places[i] % PAGE / LINE;
			size_t lines = i ? 1 : sizeof(struct box) / LINE;

			for (; lines; lines--, line = (line + 1) % (PAGE / LINE)) {
				TRUE(!is_taken[line]);
				is_taken[line] = true;
			}
		}
	}
	board_release(board);
}

/* Many ranks that each have two neighbours: no n x n. */
static void test_growth(void)
{
	enum { N = 1024 };
	struct board *board = board_of(N, 1);
	struct pair_room *pair;

	TRUE(board->bytes < 400ull << 20);
	for (uint32_t rank = 0; rank < N; rank++) {
		EQ(pair_get(board, rank, (rank + 1) % N, &pair), OK);
		EQ(pair_get(board, (rank + 1) % N, rank, &pair), OK);
	}
	TRUE(file_bytes(board) - board->bytes < 16 << 20);
	board_release(board);
}

enum { RANKS = 16 };

static void *race(void *arg)
{
	const struct board *board = arg;

	for (uint32_t i = 0; i < RANKS * RANKS; i++) {
		struct pair_room *pair;

		EQ(pair_get(board, i / RANKS, i % RANKS, &pair), OK);
		atomic_fetch_add(&pair->box.posted, 1);
	}
	return NULL;
}

static void race_in_child(const struct child *parent)
{
	struct board_address address;
	struct board *board;

	child_hear(parent, &address, sizeof(address));
	EQ(board_attach(&address, &(struct board_size){RANKS, 1, RANKS, 1}, &board), OK);
	race(board);
	child_say(parent, &address, sizeof(address));
	board_release(board);
}

/* Two threads and another process make all pairs at once. */
static void test_race(void)
{
	struct child child = child_start(race_in_child);
	struct board *board = board_of(RANKS, 1), view;
	struct board_address address = board_address(board);
	pthread_t thread;
	void *file;

	child_say(&child, &address, sizeof(address));
	EQ(pthread_create(&thread, NULL, race, board), 0);
	race(board);
	pthread_join(thread, NULL);
	child_hear(&child, &address, sizeof(address));
	child_join(&child);
	file = mmap(NULL, file_bytes(board), PROT_READ, MAP_SHARED, board->fd, 0);
	TRUE(file != MAP_FAILED);
	EQ(board_view(file, file_bytes(board), &view), OK);
	for (uint32_t i = 0; i < RANKS * RANKS; i++) {
		struct pair_room *pair = pair_find(board, i / RANKS, i % RANKS);

		EQ(atomic_load(&pair->box.posted), 3);
		pair = pair_find(&view, i / RANKS, i % RANKS);
		EQ(atomic_load(&pair->box.posted), 3);
	}
	/* who has mapped less than there is sees none of what lies behind */
	EQ(board_view(file, board->bytes, &view), OK);
	TRUE(!pair_find(&view, 0, 1));
	munmap(file, file_bytes(board));
	board_release(board);
}

static void limit_in_child(const struct child *parent)
{
	struct board *board = board_of(2, 1);
	struct rlimit limit = {board->bytes + 4096, board->bytes + 4096};
	struct pair_room *pair;

	EQ(setrlimit(RLIMIT_FSIZE, &limit), 0);
	EQ(pair_get(board, 0, 1, &pair), ERR_SYSTEM);
	TRUE(strstr(err_last(), "ulimit -f"));
	TRUE(!pair_find(board, 0, 1));
	for (int i = 0; i < 20; i++) /* there are only so many numbers */
		EQ(pair_get(board, 0, 1, &pair), ERR_SYSTEM);
	TRUE(strstr(err_last(), "too often"));
	board_release(board);
	child_say(parent, "", 1);
}

static void test_limit(void)
{
	struct child child = child_start(limit_in_child);
	char answer;

	child_hear(&child, &answer, 1);
	child_join(&child);
}

/* A number that no pair has, written by whoever shares the memory. */
static void test_overwritten(void)
{
	struct board *board = board_of(4, 1);
	struct pair_room *pair;

	*((uint32_t *)(void *)board_region(board, 0, BOARD_REGIONS) + 1) = 0x7fffffff;
	TRUE(!pair_find(board, 0, 1));
	EQ(pair_get(board, 0, 1, &pair), ERR_SYSTEM);
	TRUE(strstr(err_last(), "names pair 2147483647 of 32"));
	board_release(board);
}

int main(void)
{
	test_overwritten();
	test_apart(1, 1);
	test_apart(2, 3);
	test_apart(7, 1);
	test_apart(64, 1);
	test_skew(2);
	test_skew(16);
	test_skew(64);
	test_growth();
	test_race();
	test_limit();
	return 0;
}
