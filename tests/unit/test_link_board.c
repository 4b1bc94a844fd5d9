/* The board: where everything lies, who may attach, and words that wake sleepers. */
#include "link/board.h"

#include <pthread.h>

#include "base/clock.h"
#include "child.h"

struct extent {
	const char *name;
	const char *base;
	size_t bytes;
};

static void in_order(
	const struct board *board, struct extent *last, const struct extent *next)
{
	if (next->base < last->base + last->bytes ||
		next->base + next->bytes > board->base + board->bytes) {
		fprintf(stderr, "%u ranks: %s at %td overlaps %s or leaves the segment\n",
			board->rank_count, next->name, next->base - board->base,
			last->name);
		exit(1);
	}
	*last = *next;
}

/* Each part begins where the one before it has ended, rank after rank. */
static void check_rank(const struct board *b, uint32_t rank, struct extent *last)
{
	EQ((uintptr_t)board_status(b, rank) % 64, 0);
	in_order(b, last,
		&(struct extent){"status", (char *)board_status(b, rank),
			sizeof(struct rank_status)});
	for (uint64_t call = 0; call < BOARD_CARDS; call++) {
		struct card *card = board_card(b, rank, call);

		EQ((uintptr_t)card % 64, 0);
		TRUE(card == board_card(b, rank, call + BOARD_CARDS));
		in_order(b, last, &(struct extent){"card", (char *)card, sizeof(*card)});
	}
	for (uint32_t slot = 0; slot < BOARD_REGIONS; slot++)
		in_order(b, last,
			&(struct extent){"region", (char *)board_region(b, rank, slot),
				sizeof(struct region_entry)});
	in_order(b, last,
		&(struct extent){"numbers of pairs",
			(char *)board_region(b, rank, BOARD_REGIONS),
			b->rank_count * sizeof(uint32_t)});
	for (uint64_t call = 0; call < BOARD_CARDS; call++) {
		EQ((uintptr_t)board_eager(b, rank, call) % 64, 0);
		in_order(b, last,
			&(struct extent){
				"eager", board_eager(b, rank, call), b->eager_bytes});
	}
	EQ((uintptr_t)board_bulk(b, rank) % 64, 0);
	in_order(b, last, &(struct extent){"bulk", board_bulk(b, rank), b->bulk_bytes});
}

static void test_layout(uint32_t rank_count)
{
	struct board *board;
	struct extent last;

	EQ(board_create(&(struct board_size){rank_count, 1, rank_count, 1}, "", &board),
		OK);
	EQ(board->rank_count, rank_count);
	last = (struct extent){"header", board->base, sizeof(uint64_t)};
	for (uint32_t rank = 0; rank < rank_count; rank++)
		check_rank(board, rank, &last);
	if (rank_count == 64)
		TRUE(board->bytes <= 64 << 20);
	board_release(board);
}

static void test_same_process(void)
{
	struct board *board, *again;
	struct board_address address;

	EQ(board_create(&(struct board_size){2, 1, 2, 1}, "", &board), OK);
	address = board_address(board);
	EQ(address.pid, getpid());
	EQ(address.bytes, board->bytes);
	EQ(board_attach(&address, &(struct board_size){2, 1, 2, 1}, &again), OK);
	TRUE(again->base == board->base);
	board_release(board);
	board_card(again, 1, 0)->directory = 7; /* still mapped: one user is left */
	board_release(again);
	board_release(NULL);
	EQ(board_attach(&address, &(struct board_size){2, 1, 2, 1}, &again),
		ERR_SYSTEM); /* .. and now it is gone */
}

static void attach_in_child(const struct child *parent)
{
	struct board_address address, wrong;
	struct board *board;
	uint32_t answer = 43;

	child_hear(parent, &address, sizeof(address));
	wrong = address;
	wrong.token++;
	EQ(board_attach(&wrong, &(struct board_size){3, 1, 3, 1}, &board), ERR_REMOTE);
	TRUE(strstr(err_last(), "not this communicator"));
	wrong = address;
	wrong.bytes += 4096;
	EQ(board_attach(&wrong, &(struct board_size){3, 1, 3, 1}, &board), ERR_USAGE);
	TRUE(strstr(err_last(), "another version"));
	EQ(board_attach(&address, &(struct board_size){4, 1, 4, 1}, &board), ERR_USAGE);

	EQ(board_attach(&address, &(struct board_size){3, 1, 3, 1}, &board), OK);
	EQ(board_card(board, 2, 1)->directory, 42);
	EQ_STR(board_bulk(board, 2), "from the parent");
	board_card(board, 1, 1)->directory = answer;
	child_say(parent, &answer, sizeof(answer));
	board_release(board);
}

static void test_other_process(void)
{
	struct child child = child_start(attach_in_child);
	struct board_address address;
	struct board *board;
	uint32_t answer;

	EQ(board_create(&(struct board_size){3, 1, 3, 1}, "", &board), OK);
	board_card(board, 2, 1)->directory = 42;
	strcpy(board_bulk(board, 2), "from the parent");
	address = board_address(board);
	child_say(&child, &address, sizeof(address));
	child_hear(&child, &answer, sizeof(answer));
	EQ(board_card(board, 1, 1)->directory, answer);
	child_join(&child);
	board_release(board);
}

enum { PATIENCE_US = 10000000 }; /* far more than a wake takes */

struct word {
	_Atomic uint64_t value;
	_Atomic uint32_t sleepers;
};

static void *publish_later(void *arg)
{
	struct word *word = arg;

	while (!atomic_load(&word->sleepers))
		;
	usleep(1000);
	word_publish(&word->value, &word->sleepers, 6);
	return NULL;
}

static void test_sleep(void)
{
	struct word word = {.value = 5};
	uint64_t begin = clock_ns();
	pthread_t thread;

	word_sleep(&word.value, &word.sleepers, 4, PATIENCE_US); /* changed already */
	word_sleep(&word.value, &word.sleepers, 5, 1000);	 /* nobody wakes it */
	EQ(word.sleepers, 0);
	EQ(pthread_create(&thread, NULL, publish_later, &word), 0);
	while (atomic_load(&word.value) == 5) /* a sleep may end early */
		word_sleep(&word.value, &word.sleepers, 5, PATIENCE_US);
	EQ(word.value, 6);
	TRUE(clock_ns() - begin < PATIENCE_US * 1000ull);
	EQ(word.sleepers, 0);
	pthread_join(thread, NULL);
}

static void test_positions(void)
{
	TRUE(position_reached(5, 5));
	TRUE(position_reached(6, 5));
	TRUE(!position_reached(4, 5));
	TRUE(position_reached(0, UINT64_MAX));
	TRUE(position_reached(3, UINT64_MAX - 3));
	TRUE(!position_reached(UINT64_MAX, 0));
	TRUE(!position_reached(UINT64_MAX - 3, 3));
}

/* No two ranks have their cards at the same offset in a page, up to what pages hold. */
static void test_skew(void)
{
	enum { N = 16, PAGE = 4096, LINE = 64 };
	bool is_taken[PAGE / LINE] = {false};
	struct board *b;

	EQ(board_create(&(struct board_size){N, 1, N, 1}, "", &b), OK);
	for (uint32_t rank = 0; rank < N; rank++) {
		size_t line = (uintptr_t)board_card(b, rank, 0) % PAGE / LINE;

		TRUE(!is_taken[line]);
		is_taken[line] = true;
		EQ((uintptr_t)board_card(b, rank, 0) % (2 * LINE), 0);
	}
	board_release(b);
}

int main(void)
{
	static const uint32_t counts[] = {1, 2, 16, 64, 256};

	for (size_t i = 0; i < sizeof(counts) / sizeof(*counts); i++)
		test_layout(counts[i]);
	test_skew();
	test_same_process();
	test_other_process();
	test_sleep();
	test_positions();
	return 0;
}
