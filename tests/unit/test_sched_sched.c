/* Names come back, and every buffer has the chunks sched.h's table gives it. */
#include "sched/sched.h"
#include "test.h"

static void chunks(enum coll coll, bool at_root, uint32_t in, uint32_t out)
{
	struct sched sched = {.coll = coll,
		.rank_count = 5,
		.rank = at_root ? 2 : 3,
		.root = 2,
		.chunk_count = coll_is_vector(coll) ? 7 : 5,
		.tmp_count = 4};

	EQ(sched_chunks(&sched, SPACE_IN), in);
	EQ(sched_chunks(&sched, SPACE_OUT), out);
	EQ(sched_chunks(&sched, SPACE_TMP), 4);
}

int main(void)
{
	for (int coll = 0; coll < COLL_COUNT; coll++)
		EQ(coll_find(coll_name((enum coll)coll)), coll);
	EQ(coll_find("all_dance"), COLL_COUNT);
	EQ_STR(coll_name(COLL_COUNT), "unknown");
	for (int at_root = 0; at_root < 2; at_root++) {
		chunks(COLL_ALL_REDUCE, at_root, 7, 7);
		chunks(COLL_BROADCAST, at_root, at_root ? 7 : 0, 7);
		chunks(COLL_REDUCE, at_root, 7, at_root ? 7 : 0);
		chunks(COLL_ALL_GATHER, at_root, 1, 5);
		chunks(COLL_REDUCE_SCATTER, at_root, 5, 1);
		chunks(COLL_ALL_TO_ALL, at_root, 5, 5);
		chunks(COLL_GATHER, at_root, 1, at_root ? 5 : 0);
		chunks(COLL_SCATTER, at_root, at_root ? 5 : 0, 1);
	}
	return 0;
}
