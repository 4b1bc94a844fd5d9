/* What two ranks have called is compared, and who owes a call is known. */
#include "exec/cuda/meet/ledger.h"

#include <string.h>

#include "base/dtype.h"
#include "sched/sched.h"
#include "test.h"

enum { RANKS = 2, MANY = 10000 };

static struct ledger *ledgers[RANKS];

static struct ledger_call call_of(uint64_t count)
{
	return (struct ledger_call){.coll = COLL_ALL_REDUCE,
		.type = DTYPE_FLOAT32,
		.op = REDOP_SUM,
		.count = count};
}

static void open_all(void)
{
	struct ledger_address addresses[RANKS];

	for (uint32_t r = 0; r < RANKS; r++)
		EQ(ledger_open(r, RANKS, &ledgers[r], &addresses[r]), OK);
	for (uint32_t r = 0; r < RANKS; r++)
		EQ(ledger_connect(ledgers[r], addresses), OK);
}

static void close_all(void)
{
	for (uint32_t r = 0; r < RANKS; r++)
		ledger_close(ledgers[r]);
	ledger_close(NULL);
}

/* True: it is time to look. */
static bool make(uint32_t rank, uint64_t count)
{
	const struct ledger_call call = call_of(count);
	bool is_time = ledger_call_begin(ledgers[rank], &call);

	ledger_call_end(ledgers[rank]);
	return is_time;
}

static void check_all(enum err want)
{
	for (uint32_t r = 0; r < RANKS; r++) {
		uint32_t culprit = 99;

		EQ(ledger_check(ledgers[r], &culprit), want);
		if (want)
			EQ(culprit, 1 - r);
	}
}

/* The one call that differs is found, though lists go round, when looked at in time. */
static void test_calls(void)
{
	uint32_t culprit;

	open_all();
	for (uint64_t i = 0; i < MANY; i++)
		if (make(0, i) | make(1, i))
			check_all(OK);
	make(0, 7);
	check_all(OK); /* it may come yet */
	make(1, 8);
	make(0, 9);
	make(1, 9);
	check_all(ERR_USAGE);
	TRUE(strstr(err_last(), "rank 0 calls all_reduce of 7 float"));
	TRUE(strstr(err_last(), "rank 1 calls all_reduce of 8 float"));
	check_all(OK); /* said once */
	EQ(ledger_search(ledgers[1], &culprit), ERR_USAGE);
	EQ(culprit, 1);
	close_all();
}

static void test_messages(void)
{
	open_all();
	for (uint64_t i = 0; i < MANY; i++) {
		ledger_pair_begin(ledgers[0], true, 1, i);
		ledger_pair_begin(ledgers[1], false, 0, i);
	}
	check_all(OK);
	ledger_pair_begin(ledgers[0], true, 1, 5);
	check_all(OK);
	ledger_pair_begin(ledgers[1], false, 0, 6);
	check_all(ERR_USAGE);
	TRUE(strstr(err_last(), "rank 0 sends 5 bytes and rank 1 receives 6"));
	close_all();
}

static void test_debts(void)
{
	char owed[LEDGER_TEXT_BYTES];
	uint64_t progress;

	open_all();
	TRUE(!ledger_is_behind(ledgers[0], 1, owed));
	make(0, 3);
	TRUE(ledger_is_behind(ledgers[0], 1, owed));
	EQ(strcmp(owed, "collective 1 (all_reduce of 3 float, sum)"), 0);
	TRUE(!ledger_is_behind(ledgers[1], 0, owed));
	progress = ledger_progress(ledgers[0], 1);
	make(1, 3);
	TRUE(ledger_progress(ledgers[0], 1) != progress);
	TRUE(!ledger_is_behind(ledgers[0], 1, owed));
	ledger_pair_end(ledgers[0], false, 1);
	TRUE(ledger_is_behind(ledgers[0], 1, owed));
	EQ(strcmp(owed, "send 1 to rank 0"), 0);
	ledger_pair_end(ledgers[1], true, 0);
	TRUE(!ledger_is_behind(ledgers[0], 1, owed));
	ledger_pair_end(ledgers[0], true, 1);
	TRUE(ledger_is_behind(ledgers[0], 1, owed));
	ledger_pair_end(ledgers[1], false, 0);
	ledger_await(ledgers[1], 0, 2);
	ledger_give(ledgers[0], 1);
	TRUE(ledger_is_behind(ledgers[1], 0, owed));
	EQ(strcmp(owed, "signal 2 to rank 1"), 0);
	ledger_give(ledgers[0], 1);
	TRUE(!ledger_is_behind(ledgers[1], 0, owed));
	close_all();
}

static void test_stop(void)
{
	open_all();
	EQ((uintptr_t)ledger_words(ledgers[1]) % 4096, 0);
	EQ(ledger_words(ledgers[1])->abort, 0);
	ledger_stop_all(ledgers[0]);
	EQ(ledger_words(ledgers[0])->abort, 1);
	EQ(ledger_words(ledgers[1])->abort, 1);
	close_all();
}

int main(void)
{
	test_calls();
	test_messages();
	test_debts();
	test_stop();
	return 0;
}
