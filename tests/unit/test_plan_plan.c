/* Plans: pieces that cover the data, slots that fit the board, and a cache by key. */
#include "plan/plan.h"

#include "base/param.h"
#include "link/board.h"
#include "test.h"

static const enum dtype types[] = {
	DTYPE_INT8, DTYPE_BFLOAT16, DTYPE_FLOAT32, DTYPE_FLOAT64};

enum { INBOX_BYTES = 256 << 10 };

static struct planner *make_planner(uint32_t rank_count, uint32_t rank)
{
	struct plan_room room = {
		.rank_count = rank_count, .rank = rank, .inline_bytes = BOARD_INLINE};
	struct planner *planner;
	struct board *board;

	EQ(board_create(&(struct board_size){rank_count, 1, rank_count, 1}, "", &board),
		OK);
	room.eager_bytes = board->eager_bytes;
	room.bulk_bytes = board->bulk_bytes;
	board_release(board);
	EQ(planner_create(&room, &planner), OK);
	return planner;
}

/* Every byte of the vector, or of each block, is in exactly one piece. */
static void check_cover(const struct shape *shape, const struct plan_key *key)
{
	size_t bytes = key->count * dtype_size(key->type), all = 0;
	uint32_t chunks = shape->program->chunk_count;

	for (uint32_t chunk = 0; chunk < chunks; chunk++) {
		size_t sum = 0;

		for (uint32_t tile = 0; tile < shape->tile_count; tile++) {
			size_t piece = shape_piece(shape, chunk, tile);

			TRUE(piece <= shape->tile_bytes);
			EQ(piece % dtype_size(key->type), 0);
			sum += piece;
		}
		EQ(shape_piece(shape, chunk, shape->tile_count), 0);
		TRUE(sum <= shape->chunk_bytes);
		if (!coll_is_vector(key->coll))
			EQ(sum, bytes);
		all += sum;
	}
	if (coll_is_vector(key->coll))
		EQ(all, bytes);
}

static void check_shape(
	const struct shape *shape, const struct plan_key *key, size_t stage)
{
	const struct program *program = shape->program;

	EQ(program->coll, key->coll);
	check_cover(shape, key);
	TRUE(shape->staged_bytes >= shape->tile_bytes ||
		(shape->tile_count == 1 && shape->staged_bytes >= shape->chunk_bytes));
	/* in whole lines, or so that no chunk lies in two where one is enough */
	TRUE(shape->staged_bytes % 64 == 0 || 64 % shape->staged_bytes == 0);
	EQ(shape->slot_bytes, shape->staged_bytes * program->slot_chunks);
	TRUE(program->slot_count <= program->slot_count_max);
	TRUE(program->slot_count_max * shape->slot_bytes <= stage);
	if (!shape->is_inline)
		return;
	EQ(shape->tile_count, 1);
	TRUE(program->slot_count_max * shape->slot_bytes <= BOARD_INLINE);
}

static void check_plan(const struct plan *plan, const struct plan_key *key, uint32_t n)
{
	struct board *board;

	EQ(board_create(&(struct board_size){n, 1, n, 1}, "", &board), OK);
	EQ(plan->key.coll, key->coll);
	EQ(plan->key.count, key->count);
	EQ(plan->shapes[MODE_STAGED].program->mode, MODE_STAGED);
	if (plan->eager) {
		check_shape(&plan->shapes[MODE_STAGED], key, board->eager_bytes);
		TRUE(!plan->shapes[MODE_DIRECT].program);
	} else {
		check_shape(&plan->shapes[MODE_STAGED], key, board->bulk_bytes);
		check_shape(&plan->shapes[MODE_DIRECT], key, board->bulk_bytes);
		EQ(plan->shapes[MODE_DIRECT].program->mode, MODE_DIRECT);
		TRUE(!plan->shapes[MODE_STAGED].is_inline);
	}
	board_release(board);
}

static void test_shapes(uint32_t n, uint32_t rank)
{
	static const size_t counts[] = {0, 1, 2, 3, 4, 5, 7, 8, 63, 64, 65, 127, 128, 129,
		255, 1000, 1024, 4097, 65536, 65537, 1000003};
	struct planner *planner = make_planner(n, rank);
	struct plan_key key;
	const struct plan *plan;

	for (key.coll = 0; key.coll < COLL_COUNT; key.coll++)
		for (size_t t = 0; t < sizeof(types) / sizeof(*types); t++)
			for (size_t c = 0; c < sizeof(counts) / sizeof(*counts); c++) {
				key.type = types[t];
				key.count = counts[c];
				key.root = coll_has_root(key.coll) ? n / 2 : 0;
				EQ(plan_get(planner, &key, &plan), OK);
				check_plan(plan, &key, n);
			}
	planner_destroy(planner);
}

/* A forced schedule that needs more slots than a card has is not eager, but runs. */
static void test_forced(void)
{
	struct planner *planner = make_planner(64, 5);
	struct plan_key key = {
		.coll = COLL_ALL_REDUCE, .type = DTYPE_FLOAT32, .count = 1};
	const struct plan *plan;

	setenv("WEFT_SCHEDULE", "halving", 1);
	param_forget(PARAM_SCHEDULE);
	for (; key.count < 1 << 20; key.count *= 32) {
		EQ(plan_get(planner, &key, &plan), OK);
		TRUE(!plan->eager);
		check_plan(plan, &key, 64);
	}
	planner_destroy(planner);
	unsetenv("WEFT_SCHEDULE");
	param_forget(PARAM_SCHEDULE);
}

/* More ranks than a lane has connections. */
static void test_many_ranks(void)
{
	struct planner *planner = make_planner(300, 299);
	struct plan_key key = {.type = DTYPE_FLOAT32};
	const struct plan *plan;

	for (key.coll = 0; key.coll <= COLL_REDUCE_SCATTER; key.coll++)
		for (key.count = 1; key.count < 1 << 20; key.count *= 32) {
			EQ(plan_get(planner, &key, &plan), OK);
			check_plan(plan, &key, 300);
		}
	planner_destroy(planner);
}

static void test_cache(void)
{
	struct planner *planner = make_planner(4, 1);
	struct plan_key key = {
		.coll = COLL_ALL_REDUCE, .type = DTYPE_FLOAT32, .count = 1000};
	const struct plan *first, *again;
	const struct program *program;

	EQ(plan_get(planner, &key, &first), OK);
	EQ(plan_get(planner, &key, &again), OK);
	TRUE(first == again);
	program = first->shapes[MODE_DIRECT].program;
	TRUE(program);
	key.count = 2000; /* another size, the same program */
	EQ(plan_get(planner, &key, &again), OK);
	EQ(again->key.count, 2000);
	TRUE(again->shapes[MODE_DIRECT].program == program);
	for (key.count = 1000; key.count < 1200; key.count++) { /* more than it holds */
		EQ(plan_get(planner, &key, &again), OK);
		EQ(again->key.count, key.count);
		EQ(again->in_bytes, key.count * 4);
	}
	planner_destroy(planner);
	planner_destroy(NULL);
}

static uint64_t sign_of(uint32_t rank, struct plan_key key)
{
	struct planner *planner = make_planner(4, rank);
	const struct plan *plan;
	uint64_t sign;

	EQ(plan_get(planner, &key, &plan), OK);
	sign = plan->sign;
	planner_destroy(planner);
	return sign;
}

/* Ranks that call the same thing agree; those that do not, do not. */
static void test_sign(void)
{
	const struct plan_key keys[] = {
		{COLL_BROADCAST, DTYPE_FLOAT32, 0, 16, NULL},
		{COLL_BROADCAST, DTYPE_FLOAT32, 0, 17, NULL},
		{COLL_BROADCAST, DTYPE_FLOAT32, 1, 16, NULL},
		{COLL_BROADCAST, DTYPE_FLOAT32, 3, 16, NULL},
		{COLL_BROADCAST, DTYPE_INT32, 0, 16, NULL},
		{COLL_REDUCE, DTYPE_FLOAT32, 0, 16, NULL},
		{COLL_ALL_REDUCE, DTYPE_FLOAT32, 0, 16, NULL},
		{COLL_ALL_REDUCE, DTYPE_FLOAT32, 0, 1 << 20, NULL},
		{COLL_ALL_REDUCE, DTYPE_FLOAT32, 0, (1 << 20) + 1, NULL},
		{COLL_ALL_GATHER, DTYPE_FLOAT32, 0, 16, NULL},
		/* a schedule that is asked for by name is part of it */
		{COLL_ALL_REDUCE, DTYPE_FLOAT32, 0, 1 << 20, "ring"},
		{COLL_ALL_REDUCE, DTYPE_FLOAT32, 0, 1 << 20, "tree"},
	};
	enum { COUNT = sizeof(keys) / sizeof(*keys) };

	for (size_t a = 0; a < COUNT; a++) {
		for (uint32_t rank = 1; rank < 4; rank++)
			EQ(sign_of(rank, keys[a]), sign_of(0, keys[a]));
		for (size_t b = 0; b < a; b++)
			TRUE(sign_of(0, keys[a]) != sign_of(0, keys[b]));
	}
}

/* Blocks of 16 bytes in the buffers of rank 1 of 4, root 1 and root 2. */
static void test_buffers(void)
{
	static const struct {
		size_t in[2], out[2];
	} want[COLL_COUNT] = {
		[COLL_ALL_REDUCE] = {{1, 1}, {1, 1}},
		[COLL_ALL_GATHER] = {{1, 1}, {4, 4}},
		[COLL_REDUCE_SCATTER] = {{4, 4}, {1, 1}},
		[COLL_ALL_TO_ALL] = {{4, 4}, {4, 4}},
		[COLL_GATHER] = {{1, 1}, {4, 0}},
		[COLL_SCATTER] = {{4, 0}, {1, 1}},
		[COLL_REDUCE] = {{1, 1}, {1, 0}},
		[COLL_BROADCAST] = {{1, 0}, {1, 1}},
	};
	struct planner *planner = make_planner(4, 1);
	struct plan_key key = {.type = DTYPE_FLOAT32, .count = 4};
	const struct plan *plan;

	for (key.coll = 0; key.coll < COLL_COUNT; key.coll++)
		for (uint32_t i = 0; i < 2; i++) {
			key.root = coll_has_root(key.coll) ? 1 + i : 0;
			EQ(plan_get(planner, &key, &plan), OK);
			EQ(plan->in_bytes, 16 * want[key.coll].in[i]);
			EQ(plan->out_bytes, 16 * want[key.coll].out[i]);
		}
	planner_destroy(planner);
}

/* What cannot be planned says so, and leaves the planner usable. */
static void test_refusals(void)
{
	struct planner *planner = make_planner(2, 0);
	struct plan_key key = {
		.coll = COLL_ALL_REDUCE, .type = DTYPE_INT8, .count = (size_t)1 << 45};
	const struct plan *plan;
	struct shape shape = {.tile_count = 77};

	EQ(plan_get(planner, &key, &plan), ERR_ARGUMENT);
	TRUE(strstr(err_last(), "too many tiles"));
	EQ(plan_get(planner, &key, &plan), ERR_ARGUMENT); /* a failure is not cached */
	key.count = 1 << 20;
	EQ(plan_get(planner, &key, &plan), OK);
	EQ(shape_make(plan->shapes[MODE_STAGED].program, &key,
		   &(struct shape_room){.tile = 4096, .stage = 63}, &shape),
		ERR_INTERNAL);
	EQ(shape.tile_count, 77); /* untouched */
	planner_destroy(planner);
}

static void check_hosts(struct planner *planner, enum coll coll, size_t count)
{
	struct plan_key key = {.coll = coll, .type = DTYPE_FLOAT32, .count = count};
	const struct plan *plan;

	EQ(plan_get(planner, &key, &plan), OK);
	for (int mode = 0; mode < (plan->eager ? 1 : LOWER_MODES); mode++) {
		const struct shape *shape = &plan->shapes[mode];

		EQ_STR(shape->schedule, plan->shapes[0].schedule);
		EQ(shape->tile_bytes, plan->shapes[0].tile_bytes);
		EQ(shape->tile_count, plan->shapes[0].tile_count);
		TRUE(shape->program->inbox_chunks > 0);
		EQ(shape->inbox_bytes,
			shape->staged_bytes * shape->program->inbox_chunks);
		TRUE(shape->inbox_bytes <= INBOX_BYTES);
		TRUE(shape->tile_bytes * shape->program->inbox_chunks <= INBOX_BYTES);
	}
}

/* Between hosts tiles are cut to the inbox, and are alike in all modes, as is the
 * schedule: each host takes a mode for itself. */
static void test_hosts(void)
{
	static const uint16_t hosts[] = {0, 0, 1, 2, 2};
	struct plan_room room = {.rank_count = 5,
		.rank = 2,
		.inline_bytes = BOARD_INLINE,
		.eager_bytes = 16 << 10,
		.bulk_bytes = 8 << 20,
		.inbox_bytes = INBOX_BYTES,
		.hosts = hosts};
	struct planner *planner;

	EQ(planner_create(&room, &planner), OK);
	for (size_t count = 1; count < 1 << 24; count *= 7) {
		check_hosts(planner, COLL_ALL_REDUCE, count);
		check_hosts(planner, COLL_ALL_GATHER, count);
		check_hosts(planner, COLL_REDUCE_SCATTER, count);
		check_hosts(planner, COLL_ALL_TO_ALL, count);
		check_hosts(planner, COLL_BROADCAST, count);
	}
	planner_destroy(planner);
}

/* Small blocks to every rank: beside the position while they fit, else close together;
 * from a line on each has its own. */
static void check_packed(uint32_t n, size_t bytes, size_t staged, bool is_inline)
{
	struct planner *planner = make_planner(n, 1);
	struct plan_key key = {
		.coll = COLL_ALL_TO_ALL, .type = DTYPE_INT8, .count = bytes};
	const struct plan *plan;

	EQ(plan_get(planner, &key, &plan), OK);
	TRUE(plan->eager);
	EQ(plan->shapes[MODE_STAGED].staged_bytes, staged);
	EQ(plan->shapes[MODE_STAGED].is_inline, is_inline);
	planner_destroy(planner);
}

static void test_packed(void)
{
	check_packed(2, 1, 8, true);
	check_packed(16, 4, 8, true);
	check_packed(16, 8, 8, true);
	check_packed(16, 9, 16, false);
	check_packed(16, 17, 32, false);
	check_packed(16, 33, 64, false);
	check_packed(64, 8, 8, false);
}

/* Whoever moves little announces only before it waits. */
static void test_terse(void)
{
	struct planner *planner = make_planner(16, 1);
	struct plan_key key = {.coll = COLL_ALL_TO_ALL, .type = DTYPE_INT8, .count = 1};
	const struct plan *plan;

	for (; key.count <= 2 << 10; key.count *= 2) {
		EQ(plan_get(planner, &key, &plan), OK);
		TRUE(plan->terse);
	}
	key.count = 1 << 20;
	EQ(plan_get(planner, &key, &plan), OK);
	TRUE(!plan->terse);
	planner_destroy(planner);
}

/* What a rank lends to all others goes with its arrival, also of an alltoall. */
static void test_lead(void)
{
	struct planner *planner = make_planner(16, 1);
	struct plan_key key = {
		.coll = COLL_ALL_TO_ALL, .type = DTYPE_INT8, .count = 4096};
	const struct plan *plan;

	EQ(plan_get(planner, &key, &plan), OK);
	EQ(plan->lead, 15);
	key.coll = COLL_REDUCE_SCATTER;
	EQ(plan_get(planner, &key, &plan), OK);
	EQ(plan->lead, 15);
	key.coll = COLL_ALL_GATHER; /* each writes into everybody's buffer first */
	EQ(plan_get(planner, &key, &plan), OK);
	EQ(plan->lead, 0);
	planner_destroy(planner);
}

int main(void)
{
	test_shapes(1, 0);
	test_shapes(2, 1);
	test_shapes(3, 0);
	test_shapes(7, 3);
	test_shapes(16, 15);
	test_shapes(64, 0);
	test_packed();
	test_terse();
	test_lead();
	test_forced();
	test_many_ranks();
	test_cache();
	test_sign();
	test_buffers();
	test_refusals();
	test_hosts();
	return 0;
}
