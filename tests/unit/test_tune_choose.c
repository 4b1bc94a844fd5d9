/* Choices: every call gets a schedule that is written for it and fits the board. */
#include "tune/choose.h"

#include "base/param.h"
#include "plan/plan.h"
#include "settings.h"
#include "test.h"

static const size_t bulk_bytes = 256 << 10; /* the least a board has */

static size_t eager_room(uint32_t n)
{
	return n <= 16 ? 32 << 10 : 16 << 10;
}

static struct choose_args args_of(enum coll coll, uint32_t n, size_t bytes)
{
	return (struct choose_args){.coll = coll,
		.type = DTYPE_FLOAT32,
		.rank_count = n,
		.bytes = bytes,
		.eager_bytes = eager_room(n)};
}

/* Beyond the peers a lane can have, these three have no schedule. */
static bool is_out_of_reach(enum coll coll, uint32_t n)
{
	return n > PROG_PEERS_MAX &&
	       (coll == COLL_ALL_TO_ALL || coll == COLL_GATHER || coll == COLL_SCATTER);
}

static void check_kind(const struct sched_kind *kind, const struct choose_args *args)
{
	struct sched sched;

	TRUE(kind);
	EQ(kind->coll, args->coll);
	if (!is_out_of_reach(args->coll, args->rank_count)) {
		TRUE(args->rank_count <= kind->rank_max);
		return;
	}
	EQ(catalog_write(kind, args->rank_count, 0, 0, &sched), ERR_ARGUMENT);
	TRUE(strstr(err_last(), "is for 1 to 256 ranks, not "));
}

/* The slots of the staged schedule fit; an eager call goes in one tile where its own
 * schedule is used. */
static void check_fits(const struct choose_args *args, const struct choice *choice,
	const struct program *program)
{
	struct plan_key key = {
		.coll = args->coll, .type = DTYPE_UINT8, .count = args->bytes};
	size_t stage = choice->eager ? args->eager_bytes : bulk_bytes;
	struct shape shape;

	EQ(shape_make(program, &key,
		   &(struct shape_room){.tile = choice->staged_tile, .stage = stage},
		   &shape),
		OK);
	TRUE(program->slot_count_max * shape.slot_bytes <= stage);
	if (choice->eager && choice->depth == 1)
		EQ(shape.tile_count, 1);
}

/* .. and so do those that the direct one has to stage. */
static void check_direct_fits(const struct choose_args *args, const struct choice *choice)
{
	struct lower_args lower = {.kind = choice->direct,
		.rank_count = args->rank_count,
		.mode = MODE_DIRECT,
		.depth = choice->depth};
	struct plan_key key = {
		.coll = args->coll, .type = DTYPE_UINT8, .count = args->bytes};
	struct program *program;
	struct shape shape;

	EQ(program_lower(&lower, &program), OK);
	EQ(shape_make(program, &key,
		   &(struct shape_room){.tile = choice->direct_tile, .stage = bulk_bytes},
		   &shape),
		OK);
	program_destroy(program);
}

static void check_choice(const struct choose_args *args, const struct choice *choice)
{
	TRUE(choice->depth >= 1);
	check_kind(choice->staged, args);
	if (choice->eager) {
		TRUE(!choice->direct);
		return;
	}
	check_kind(choice->direct, args);
	EQ(choice->staged_tile, CHOOSE_STAGED_TILE);
	/* only what goes directly to all needs no pipeline */
	if (strcmp(choice->direct->name, "ring") && strcmp(choice->direct->name, "tree"))
		EQ(choice->direct_tile, 0);
	else
		TRUE(choice->direct_tile > 0);
}

static void test_all(enum coll coll, uint32_t n)
{
	struct choose_args args = {
		.coll = coll, .rank_count = n, .eager_bytes = eager_room(n)};
	struct lower_args lower = {.rank_count = n, .mode = MODE_STAGED};
	struct program *program = NULL;
	struct choice choice;
	bool was_eager = true;

	for (args.bytes = 8; args.bytes <= 1 << 30; args.bytes *= 2) {
		EQ(choose(&args, &choice), OK);
		check_choice(&args, &choice);
		TRUE(was_eager || !choice.eager); /* once large, always large */
		was_eager = choice.eager;
		if (is_out_of_reach(coll, n))
			continue;
		if (lower.kind != choice.staged || lower.depth != choice.depth) {
			program_destroy(program);
			lower.kind = choice.staged;
			lower.depth = choice.depth;
			EQ(program_lower(&lower, &program), OK);
		}
		check_fits(&args, &choice, program);
		if (!choice.eager && args.bytes <= 128 << 10)
			check_direct_fits(&args, &choice);
	}
	TRUE(!choice.eager);
	program_destroy(program);
}

static void test_forced(void)
{
	struct choose_args args = {.coll = COLL_ALL_REDUCE,
		.rank_count = 8,
		.bytes = 1 << 20,
		.eager_bytes = eager_room(8)};
	struct choice choice;

	set(PARAM_SCHEDULE, "tree");
	EQ(choose(&args, &choice), OK);
	EQ_STR(choice.direct->name, "tree");
	EQ_STR(choice.staged->name, "tree");
	TRUE(choice.direct_tile > 0);
	args.bytes = 64;
	EQ(choose(&args, &choice), OK);
	TRUE(choice.eager);
	EQ_STR(choice.staged->name, "tree");
	args.coll = COLL_ALL_TO_ALL; /* has no tree: as if nothing was said */
	EQ(choose(&args, &choice), OK);
	EQ_STR(choice.staged->name, "direct");
	set(PARAM_SCHEDULE, "oneshot");
	args = args_of(COLL_ALL_REDUCE, 300, 1 << 20);
	EQ(choose(&args, &choice), OK); /* not written for so many */
	TRUE(choice.direct->rank_max >= 300);
	args.bytes = 8;
	EQ(choose(&args, &choice), OK);
	TRUE(choice.staged->rank_max >= 300);

	set(PARAM_SCHEDULE, "zigzag");
	for (args.bytes = 8; args.bytes <= 1 << 20; args.bytes <<= 17) {
		EQ(choose(&args, &choice), ERR_USAGE);
		TRUE(strstr(err_last(), "zigzag"));
		TRUE(strstr(err_last(), "WEFT_SCHEDULE"));
	}
	set(PARAM_SCHEDULE, NULL);
	EQ(choose(&args, &choice), OK);
}

static bool is_eager(enum coll coll, uint32_t n, size_t bytes)
{
	struct choose_args args = args_of(coll, n, bytes);
	struct choice choice;

	EQ(choose(&args, &choice), OK);
	return choice.eager;
}

static void test_eager_bytes(void)
{
	TRUE(is_eager(COLL_ALL_REDUCE, 4, 8));
	/* as measured, docs/design/06: blocks that only change hands go further than
	 * blocks that are folded, which are read in place */
	TRUE(is_eager(COLL_ALL_TO_ALL, 16, 128));
	TRUE(!is_eager(COLL_ALL_TO_ALL, 16, 129));
	TRUE(!is_eager(COLL_ALL_TO_ALL, 2, 128));
	TRUE(!is_eager(COLL_REDUCE_SCATTER, 16, 128));
	set(PARAM_EAGER_BYTES, "0");
	TRUE(!is_eager(COLL_ALL_REDUCE, 4, 8));
	TRUE(is_eager(COLL_ALL_REDUCE, 4, 0));
	set(PARAM_EAGER_BYTES, "10000");
	TRUE(is_eager(COLL_ALL_REDUCE, 4, 10000));
	TRUE(!is_eager(COLL_ALL_REDUCE, 4, 10001));
	/* never more than the card has room for: n - 1 blocks at a time here */
	TRUE(is_eager(COLL_ALL_TO_ALL, 4, 10000));
	TRUE(!is_eager(COLL_ALL_TO_ALL, 5, 10000));
	set(PARAM_EAGER_BYTES, "1000000");
	TRUE(is_eager(COLL_ALL_REDUCE, 4, 32 << 10));
	TRUE(!is_eager(COLL_ALL_REDUCE, 4, (32 << 10) + 1));
	for (enum coll coll = 0; coll < COLL_COUNT; coll++)
		for (uint32_t n = 1; n <= 64; n = 3 * n + 1)
			test_all(coll, n);
	set(PARAM_EAGER_BYTES, NULL);
}

static const char *small_name(enum coll coll, uint32_t n)
{
	struct choose_args args = args_of(coll, n, 8);
	struct choice choice;

	EQ(choose(&args, &choice), OK);
	return (choice.eager ? choice.staged : choice.direct)->name;
}

/* Where not all can reach all, a small call takes few hops and not n; where they can, it
 * is as ever. */
static void test_many(void)
{
	static const struct {
		enum coll coll;
		const char *name, *many;
	} calls[] = {
		{COLL_ALL_REDUCE, "oneshot", "doubling"},
		{COLL_BROADCAST, "direct", "tree"},
		{COLL_REDUCE, "direct", "tree"},
		{COLL_ALL_GATHER, "direct", "bruck"},
		{COLL_REDUCE_SCATTER, "direct", "halving"},
	};

	for (size_t i = 0; i < sizeof(calls) / sizeof(*calls); i++) {
		EQ_STR(small_name(calls[i].coll, 2), calls[i].name);
		EQ_STR(small_name(calls[i].coll, PROG_PEERS_MAX), calls[i].name);
		EQ_STR(small_name(calls[i].coll, PROG_PEERS_MAX + 1), calls[i].many);
		EQ_STR(small_name(calls[i].coll, 1024), calls[i].many);
	}
}

static void test_tile(void)
{
	struct choose_args args = args_of(COLL_ALL_REDUCE, 4, 1 << 20);
	struct choice choice;

	set(PARAM_TILE, "4096");
	EQ(choose(&args, &choice), OK);
	EQ(choice.staged_tile, 4096);
	EQ(choice.direct_tile, 0);
	set(PARAM_SCHEDULE, "ring");
	EQ(choose(&args, &choice), OK);
	EQ(choice.direct_tile, 4096);
	set(PARAM_SCHEDULE, NULL);
	set(PARAM_TILE, NULL);
}

int main(void)
{
	static const uint32_t counts[] = {1, 2, 3, 16, 64, 128, 200, 256, 300, 1024};

	set(PARAM_SCHEDULE, NULL);
	set(PARAM_EAGER_BYTES, NULL);
	set(PARAM_TILE, NULL);
	for (enum coll coll = 0; coll < COLL_COUNT; coll++)
		for (size_t i = 0; i < sizeof(counts) / sizeof(*counts); i++)
			test_all(coll, counts[i]);
	test_forced();
	test_eager_bytes();
	test_many();
	test_tile();
	return 0;
}
