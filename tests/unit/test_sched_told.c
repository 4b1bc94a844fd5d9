/* Who waits for a move, and which chunk its value is of, found by looking at all
 * programs; every wait finds its move, no move is told in vain, and hosts are told
 * nothing. */
#include "sched/told.h"

#include "sched/write.h"
#include "test.h"

enum { RANKS_MAX = 9, DEPTH = 2 };

static void lower(const struct lower_args *args, struct program **programs)
{
	EQ(program_lower_all(NULL, args, programs), OK);
}

static void destroy(struct program **programs, uint32_t n)
{
	for (uint32_t r = 0; r < n; r++)
		program_destroy(programs[r]);
}

/* Staged, the ring's moves are waited for by the next rank, and by the one before once a
 * slot comes round: in the tile, or in the next. */
static void test_ring(void)
{
	struct lower_args args = {.kind = catalog_find(COLL_REDUCE_SCATTER, "ring"),
		.rank_count = 3,
		.depth = DEPTH};
	struct program *programs[3];
	struct told *told;

	lower(&args, programs);
	EQ(told_create(programs, &told), OK);
	for (uint32_t r = 0; r < 3; r++) {
		EQ(told_at(told, r, 0, 0)->what, TOLD_DATA);
		EQ(told_at(told, r, 0, 1)->what, TOLD_DATA | TOLD_ACK_LATER);
		EQ(told_at(told, r, 0, 2)->what, TOLD_ACK_LATER);
		EQ(told_at(told, r, 0, 0)->bound, 0); /* blocks have no chunks */
	}
	told_destroy(told);
	destroy(programs, 3);
}

/* Lanes are told of each other. */
static void test_lanes(void)
{
	struct lower_args args = {.kind = catalog_find(COLL_ALL_REDUCE, "tree"),
		.rank_count = 2,
		.depth = DEPTH};
	struct program *programs[2];
	struct told *told;

	lower(&args, programs);
	EQ(told_create(programs, &told), OK);
	EQ(told_at(told, 0, 0, 0)->what & TOLD_LOCAL, TOLD_LOCAL);
	EQ(told_at(told, 1, 0, 1)->what & TOLD_LOCAL, TOLD_LOCAL);
	told_destroy(told);
	destroy(programs, 2);
}

/* Every rank passes on what it has no buffer for, but the ends. */
static enum err write_relay(struct sched *sched)
{
	struct writer w = write_begin(sched, 3, 1);
	bool first = !sched->rank, last = sched->rank + 1 == sched->rank_count;

	if (!first)
		prog_rx(&sched->lanes[0], sched->rank - 1);
	if (!last)
		prog_tx(&sched->lanes[0], sched->rank + 1);
	write_line(&w, 0,
		&(struct sched_line){
			.op = (first ? IN_SRC : IN_RECV) | (last ? OUT_DST : OUT_SEND),
			.to = SPACE_OUT,
			.src = 2,
			.dst = 2});
	return w.error;
}

static void test_relay(const uint16_t *hosts)
{
	static const struct sched_kind relay = {.coll = COLL_BROADCAST,
		.name = "relay",
		.summary = "",
		.rank_max = 5,
		.write = write_relay};
	struct lower_args args = {
		.kind = &relay, .rank_count = 5, .depth = DEPTH, .hosts = hosts};
	struct program *programs[5];
	struct told *told;

	lower(&args, programs);
	EQ(told_create(programs, &told), OK);
	for (uint32_t r = 0; r < 5; r++)
		EQ(told_at(told, r, 0, 0)->bound, 2);
	if (hosts) {
		/* what rank 1 has read is a free slot of rank 0; what it sends is sent */
		EQ(told_at(told, 1, 0, 0)->what, TOLD_ACK_LATER);
		EQ(told_at(told, 2, 0, 0)->what, 0);
		EQ(told_at(told, 0, 0, 0)->what, TOLD_DATA);
	}
	told_destroy(told);
	destroy(programs, 5);
}

static bool is_waited_for(struct program *const *programs, uint32_t n, uint32_t rank,
	uint32_t lane, uint32_t move)
{
	for (uint32_t r = 0; r < n; r++)
		for (uint32_t i = 0; i < programs[r]->wait_count; i++) {
			const struct wait *wait = &programs[r]->waits[i];
			uint32_t length = programs[rank]->lanes[lane].count;
			uint32_t position = wait->position ? wait->position : length;

			if (wait->kind != WAIT_SENT && wait->rank == rank &&
				wait->lane == lane && position == move + 1)
				return true;
		}
	return false;
}

static void test_kind(const struct sched_kind *kind, uint32_t n, enum lower_mode mode)
{
	struct lower_args args = {.kind = kind,
		.rank_count = n,
		.root = n / 2,
		.mode = mode,
		.depth = DEPTH};
	struct program *programs[RANKS_MAX];
	struct told *told;

	lower(&args, programs);
	EQ(told_create(programs, &told), OK);
	for (uint32_t r = 0; r < n; r++)
		for (uint32_t l = 0; l < programs[r]->lane_count; l++)
			for (uint32_t m = 0; m < programs[r]->lanes[l].count; m++) {
				const struct told_move *move = told_at(told, r, l, m);

				EQ(move->what != 0, is_waited_for(programs, n, r, l, m));
				TRUE(move->bound < programs[r]->chunk_count);
			}
	told_destroy(told);
	destroy(programs, n);
}

int main(void)
{
	static const uint16_t hosts[] = {0, 0, 1, 2, 3};
	const struct sched_kind *kind;

	test_ring();
	test_lanes();
	test_relay(NULL);
	test_relay(hosts);
	for (uint32_t i = 0; (kind = catalog_at(i)); i++)
		for (uint32_t n = 1; n <= RANKS_MAX; n += 2)
			for (int mode = 0; mode < LOWER_MODES; mode++)
				test_kind(kind, n, (enum lower_mode)mode);
	told_destroy(NULL);
	return 0;
}
