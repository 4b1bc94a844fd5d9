/* The table is consistent, refuses what is out of range, and its trees are the golden
 * ones. */
#include "sched/catalog.h"
#include "sched/writers.h"
#include "test.h"

/* Parents of NCCL's double binary tree; a root is its own parent here. */
static const struct {
	uint32_t n;
	const char *parents[2];
} golden[] = {
	{2, {"-1 0", "1 -1"}},
	{3, {"-1 2 0", "1 -1 0"}},
	{4, {"-1 2 0 2", "1 3 1 -1"}},
	{5, {"-1 2 4 2 0", "1 -1 3 0 3"}},
	{6, {"-1 2 4 2 0 4", "1 5 3 1 3 -1"}},
	{7, {"-1 2 4 2 0 6 4", "5 -1 3 5 3 1 0"}},
	{8, {"-1 2 4 2 0 6 4 6", "1 3 1 7 5 3 5 -1"}},
	{9, {"-1 2 4 2 8 6 4 6 0", "1 -1 3 5 3 0 7 5 7"}},
	{12, {"-1 2 4 2 8 6 4 6 0 10 8 10", "1 3 1 11 5 7 5 3 9 7 9 -1"}},
	{16, {"-1 2 4 2 8 6 4 6 0 10 12 10 8 14 12 14",
		     "1 3 1 7 5 3 5 15 9 11 9 7 13 11 13 -1"}},
};

static void test_trees(void)
{
	for (size_t i = 0; i < sizeof(golden) / sizeof(golden[0]); i++)
		for (uint32_t tree = 0; tree < 2; tree++) {
			char text[128] = "";

			for (uint32_t r = 0; r < golden[i].n; r++) {
				uint32_t up = tree_parent(tree, golden[i].n, r);
				size_t used = strlen(text);

				snprintf(text + used, sizeof(text) - used, "%s%d",
					r ? " " : "", up == r ? -1 : (int)up);
			}
			EQ_STR(text, golden[i].parents[tree]);
		}
}

/* The schedule of the tree has the tree's links: up on lane 0, down on lane 1. */
static void test_tree_links(void)
{
	const struct sched_kind *tree = catalog_find(COLL_ALL_REDUCE, "tree");
	struct sched sched;

	EQ(catalog_write(tree, 4, 1, 0, &sched), OK);
	EQ(sched.lanes[0].rx_count, 2);
	EQ(sched.lanes[0].rx_peers[0], 2);
	EQ(sched.lanes[0].rx_peers[1], 0);
	EQ(sched.lanes[0].tx_count, 2);
	EQ(sched.lanes[0].tx_peers[0], 2);
	EQ(sched.lanes[0].tx_peers[1], 3);
	sched_fini(&sched);
}

static void test_table(void)
{
	uint32_t per_coll[COLL_COUNT] = {0};
	const struct sched_kind *kind;

	for (uint32_t i = 0; (kind = catalog_at(i)); i++) {
		TRUE(catalog_find(kind->coll, kind->name) == kind);
		TRUE(kind->summary[0]);
		TRUE(kind->rank_max >= 256);
		per_coll[kind->coll]++;
	}
	for (int coll = 0; coll < COLL_COUNT; coll++)
		TRUE(per_coll[coll] > 0);
	TRUE(!catalog_find(COLL_GATHER, "ring"));
}

static void test_limits(void)
{
	const struct sched_kind *kind;
	struct sched sched;

	for (uint32_t i = 0; (kind = catalog_at(i)); i++) {
		EQ(catalog_write(kind, 0, 0, 0, &sched), ERR_ARGUMENT);
		EQ(catalog_write(kind, 4, 4, 0, &sched), ERR_ARGUMENT);
		EQ(catalog_write(kind, 4, 0, 4, &sched), ERR_ARGUMENT);
		EQ(catalog_write(kind, kind->rank_max + 1, 0, 0, &sched), ERR_ARGUMENT);
		for (uint32_t r = 0; r < kind->rank_max; r += 85) {
			EQ(catalog_write(kind, kind->rank_max, r, 1, &sched), OK);
			sched_fini(&sched);
		}
		EQ(catalog_write(kind, 1, 0, 0, &sched), OK);
		EQ(sched.lanes[0].count, 1);
		EQ(!!(sched.lanes[0].insns[0].op & OP_POST), coll_reduces(kind->coll));
		sched_fini(&sched);
	}
}

/* Five instructions for every n. */
static void test_ring_is_short(void)
{
	const struct sched_kind *ring = catalog_find(COLL_ALL_REDUCE, "ring");
	struct sched sched;

	for (uint32_t n = 3; n <= 1024; n *= 2) {
		EQ(catalog_write(ring, n, n / 2, 0, &sched), OK);
		EQ(sched.lanes[0].count, 5);
		sched_fini(&sched);
	}
}

int main(void)
{
	test_trees();
	test_tree_links();
	test_table();
	test_limits();
	test_ring_is_short();
	return 0;
}
