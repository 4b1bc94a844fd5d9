/* Ranks that came together on one core: who goes where, and what a move leaves behind. */
#include "exec/host/seat.h"
#include "test.h"

static cpu_set_t cores_of(uint64_t bits)
{
	cpu_set_t set;

	CPU_ZERO(&set);
	for (uint32_t i = 0; i < 64; i++)
		if (bits >> i & 1)
			CPU_SET(i, &set);
	return set;
}

static void test_choose(void)
{
	const uint32_t stacked[] = {2, 2, 0}; /* two on core 1, one nobody knows where */
	const uint32_t spread[] = {1, 2};
	cpu_set_t two = cores_of(3), high = cores_of(1 << 1 | 1 << 5), one = cores_of(2);

	EQ(seat_choose(stacked, 3, &two, 1), 0);
	EQ(seat_choose(stacked, 3, &high, 1), 5); /* not where it may not run */
	EQ(seat_choose(stacked, 3, &one, 1), 1);
	EQ(seat_choose(spread, 2, &two, 1), 1); /* no core has fewer: stay */
	EQ(seat_choose(stacked, 0, &two, 1), 1);
	EQ(seat_choose(stacked, 2, &two, 0), 0);
}

static void test_move(void)
{
	cpu_set_t before, after;

	EQ(sched_getaffinity(0, sizeof(before), &before), 0);
	for (uint32_t core = 0; core < 64; core++) {
		if (!CPU_ISSET(core, &before))
			continue;
		seat_move(core, &before);
		EQ(sched_getaffinity(0, sizeof(after), &after), 0);
		TRUE(CPU_EQUAL(&before, &after));
	}
	seat_move(CPU_SETSIZE - 1, &before); /* there is none: nothing happens */
	EQ(sched_getaffinity(0, sizeof(after), &after), 0);
	TRUE(CPU_EQUAL(&before, &after));
}

int main(void)
{
	test_choose();
	test_move();
	return 0;
}
