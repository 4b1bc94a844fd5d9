/* Selections of algorithms by name: the grammar, what each collective has, and what of it
 * there is here. */
#include "test.h"
#include "tune/select.h"

static char why[160];

static enum err parse(const char *text, enum coll coll, select_set *set)
{
	why[0] = '\0';
	return select_parse(text, coll, set, why, sizeof(why));
}

static select_set set_of(const char *text, enum coll coll)
{
	select_set set = 0;

	EQ(parse(text, coll, &set), OK);
	EQ_STR(why, "");
	return set;
}

static void refused(const char *text, enum coll coll, const char *sentence)
{
	select_set set = 77;

	EQ(parse(text, coll, &set), ERR_ARGUMENT);
	if (!strstr(why, sentence)) {
		printf("'%s': %s\n", text, why);
		TRUE(0);
	}
}

/* Bits of a set. */
static int size(select_set set)
{
	return __builtin_popcountll(set);
}

static void test_grammar(void)
{
	select_set all = select_all(COLL_ALL_REDUCE);

	EQ(size(all), 15);
	EQ(size(select_all(COLL_ALL_GATHER)), 13);
	EQ(size(select_all(COLL_REDUCE_SCATTER)), 12);
	EQ(size(select_all(COLL_BROADCAST)), 3);
	EQ(size(select_all(COLL_REDUCE)), 3);
	EQ(select_all(COLL_ALL_TO_ALL), 0);
	EQ(set_of("", COLL_ALL_REDUCE), 0);
	EQ(set_of("  \t", COLL_ALL_TO_ALL), 0);
	EQ(size(set_of("ring", COLL_ALL_REDUCE)), 3);
	EQ(size(set_of("Ring_LL", COLL_ALL_REDUCE)), 2); /* and LL128 */
	EQ(size(set_of("RING_LL128", COLL_ALL_REDUCE)), 1);
	EQ(size(set_of("nvls", COLL_ALL_REDUCE)), 2);
	EQ(size(set_of("symk", COLL_ALL_REDUCE)), 5);
	EQ(set_of("tree,ring", COLL_ALL_REDUCE),
		set_of(" r i n g , T r e e ", COLL_ALL_REDUCE));
	EQ(size(set_of("ring + ^RING_LL128", COLL_ALL_REDUCE)), 2);
	EQ(set_of("^symk", COLL_ALL_REDUCE), all & ~set_of("symk", COLL_ALL_REDUCE));
	EQ(set_of("^ring,ring", COLL_ALL_REDUCE), all);
	/* and binds closer than or */
	EQ(set_of("tree,ring+^ring_ll", COLL_ALL_REDUCE),
		set_of("tree", COLL_ALL_REDUCE) | set_of("ring_simple", COLL_ALL_REDUCE));
	EQ(size(set_of("symk_ll", COLL_REDUCE_SCATTER)), 1);
}

static void test_refused(void)
{
	refused("rings", COLL_ALL_REDUCE, "'rings'");
	refused("ring,", COLL_ALL_REDUCE, "''");
	refused("^", COLL_ALL_REDUCE, "'^'");
	refused("^^ring", COLL_ALL_REDUCE, "'^^ring'");
	refused("ring++tree", COLL_ALL_REDUCE, "''");
	refused("ring tree", COLL_ALL_REDUCE, "'ringtree'");
	refused("ring+tree", COLL_ALL_REDUCE, "contradicts");
	refused("ring+^ring", COLL_ALL_REDUCE, "contradicts");
	refused("tree", COLL_ALL_GATHER, "has none");
	refused("pat", COLL_ALL_REDUCE, "has none");
	refused("ring", COLL_ALL_TO_ALL, "has none");
	refused("^ring", COLL_SCATTER, "has none");
	refused("aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"
		"aaaa",
		COLL_ALL_REDUCE, "'aaaa");
}

static struct select_choice choice;

static bool choose(const char *text, enum coll coll, size_t bytes, bool can_reach)
{
	const struct limits_call call = {
		.coll = coll, .type = DTYPE_FLOAT32, .rank_count = 4, .bytes = bytes};

	return select_choose(set_of(text, coll), &call, can_reach, &choice);
}

static void test_choice(void)
{
	TRUE(choose("ring", COLL_ALL_REDUCE, 64, true));
	EQ_STR(choice.schedule, "ring");
	EQ(choice.protos, 7);
	TRUE(choose("tree_ll128", COLL_ALL_REDUCE, 1 << 20, true));
	EQ_STR(choice.schedule, "tree");
	EQ(choice.protos, 1 << PROTO_LL128);
	/* of two the better for the size */
	TRUE(choose("ring,tree", COLL_ALL_REDUCE, 64, true));
	EQ_STR(choice.schedule, "tree");
	TRUE(choose("ring,tree", COLL_ALL_REDUCE, 1 << 20, true));
	EQ_STR(choice.schedule, "ring");
	TRUE(choose("pat", COLL_ALL_GATHER, 64, true));
	EQ_STR(choice.schedule, "bruck");
	TRUE(choose("pat", COLL_REDUCE_SCATTER, 64, true));
	EQ_STR(choice.schedule, "halving");
	TRUE(choose("ring", COLL_BROADCAST, 64, true));
	EQ_STR(choice.schedule, "ring");
	/* no switch reduces here, no multicast, no bulk copies */
	TRUE(!choose("nvls", COLL_ALL_REDUCE, 64, true));
	TRUE(!choose("collnet", COLL_ALL_REDUCE, 64, true));
	TRUE(!choose("SYMK_AGxLLMC_R", COLL_ALL_REDUCE, 64, true));
	TRUE(!choose("SYMK_TmaLD", COLL_REDUCE_SCATTER, 64, true));
	/* plain loads and stores are the direct schedule, where memory can be reached */
	TRUE(choose("symk_st+^symk_stmc", COLL_ALL_GATHER, 64, true));
	EQ_STR(choice.schedule, "direct");
	EQ(choice.protos, 0);
	TRUE(choice.is_direct);
	TRUE(!choose("symk_st+^symk_stmc", COLL_ALL_GATHER, 64, false));
	TRUE(choose("symk", COLL_ALL_REDUCE, 64, true));
	EQ_STR(choice.schedule, "direct");
	/* with direct among others nothing is forced; without it something is */
	TRUE(choose("^tree", COLL_ALL_REDUCE, 64, true));
	TRUE(!choice.schedule);
	TRUE(choose("^symk", COLL_ALL_REDUCE, 64, true));
	EQ_STR(choice.schedule, "tree");
	TRUE(choose("^tree", COLL_ALL_REDUCE, 64, false));
	EQ_STR(choice.schedule, "ring");
	TRUE(choose("", COLL_ALL_REDUCE, 64, true));
	TRUE(!choice.schedule && !choice.protos);
}

/* One rank has nobody to use an algorithm with; very many reach no further than a ring.
 */
static void test_ranks(void)
{
	struct limits_call call = {.coll = COLL_ALL_REDUCE,
		.type = DTYPE_FLOAT32,
		.rank_count = 1,
		.bytes = 64};
	select_set nvls = set_of("nvls", COLL_ALL_REDUCE);
	select_set symk = set_of("symk", COLL_ALL_REDUCE);

	TRUE(select_choose(nvls, &call, true, &choice));
	TRUE(!choice.schedule);
	call.rank_count = 500;
	TRUE(!select_choose(symk, &call, true, &choice));
	TRUE(select_choose(set_of("ring,symk", COLL_ALL_REDUCE), &call, true, &choice));
	EQ_STR(choice.schedule, "ring");
}

int main(void)
{
	test_grammar();
	test_refused();
	test_choice();
	test_ranks();
	return 0;
}
