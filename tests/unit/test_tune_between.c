/* Choices between hosts: the table is complete, follows latency and bandwidth, has every
 * shape's schedule written, and obeys what it is told. */
#include "tune/between.h"

#include "base/param.h"
#include "plan/plan.h"
#include "settings.h"
#include "test.h"
#include "tune/choose.h"
#include "tune/limits.h"

static struct sched_hosts *shape(const char *text)
{
	struct sched_hosts *hosts;

	EQ(sched_hosts_read(text, &hosts), OK);
	return hosts;
}

static const char *chosen(enum coll coll, const char *text, size_t bytes)
{
	struct sched_hosts *hosts = shape(text);
	const struct between_call call = {.coll = coll, .bytes = bytes, .hosts = hosts};
	const struct sched_kind *kind = between_choose(&call, NULL);

	sched_hosts_destroy(hosts);
	return kind ? kind->name : "none";
}

/* Every kind that knows hosts has a cost, and none costs less for more bytes. */
static void test_table(void)
{
	struct sched_hosts *hosts = shape("3+5");
	const struct sched_kind *kind;

	for (uint32_t i = 0; (kind = catalog_at(i)); i++) {
		struct between_call call = {
			.coll = kind->coll, .bytes = 8, .hosts = hosts};
		double last = 0;

		if (kind->drivers == DRIVERS_NONE)
			continue;
		for (; call.bytes <= 1 << 30; call.bytes *= 2) {
			double cost = between_cost(kind, &call);

			TRUE(cost > last);
			last = cost;
		}
	}
	sched_hosts_destroy(hosts);
}

/* Small: one hop and one message. Large: the least on the wire, by all that can. */
static void test_sizes(void)
{
	EQ_STR(chosen(COLL_ALL_REDUCE, "2x1", 8), "hosts-one-oneshot");
	EQ_STR(chosen(COLL_ALL_REDUCE, "2x4", 8), "hosts-one-oneshot");
	EQ_STR(chosen(COLL_ALL_REDUCE, "2x4", 64 << 20), "hosts-direct");
	EQ_STR(chosen(COLL_ALL_REDUCE, "4x1", 8), "hosts-one-doubling");
	EQ_STR(chosen(COLL_ALL_REDUCE, "4x2", 64 << 20), "hosts-halving");
	/* all at once and twice as much to fold, instead of one after the other */
	EQ_STR(chosen(COLL_ALL_REDUCE, "2x1", 256 << 10), "hosts-one-oneshot");
	EQ_STR(chosen(COLL_ALL_REDUCE, "2x1", 2 << 20), "hosts-direct");
	EQ_STR(chosen(COLL_ALL_REDUCE, "64x8", 8), "hosts-one-doubling");
	EQ_STR(chosen(COLL_BROADCAST, "4x2", 8), "hosts-one-tree");
	/* whoever has a share sends it to all others, too */
	EQ_STR(chosen(COLL_BROADCAST, "4x1", 32 << 10), "hosts-tree");
	EQ_STR(chosen(COLL_ALL_TO_ALL, "4x8", 8), "hosts-one-direct");
	EQ_STR(chosen(COLL_ALL_TO_ALL, "4x8", 16 << 20), "direct");
	EQ_STR(chosen(COLL_GATHER, "4x8", 8), "hosts-one-direct");
	EQ_STR(chosen(COLL_GATHER, "4x8", 16 << 20), "direct");
	/* too many hosts for direct ones */
	EQ_STR(chosen(COLL_ALL_TO_ALL, "300x2", 8), "none");
	TRUE(!strstr(chosen(COLL_ALL_REDUCE, "300x2", 64 << 20), "direct"));
}

/* A slower network turns to fewer bytes earlier, a farther one to fewer rounds. */
static void test_network(void)
{
	size_t turn[3];
	static const char *const latency[] = {"5", "5", "500"};
	static const char *const rate[] = {"4000", "100", "4000"};

	for (int i = 0; i < 3; i++) {
		set(PARAM_NET_LATENCY, latency[i]);
		set(PARAM_NET_MB_PER_SEC, rate[i]);
		for (turn[i] = 8; !strcmp(chosen(COLL_ALL_REDUCE, "3x1", turn[i]),
			     "hosts-one-oneshot");)
			turn[i] *= 2;
	}
	TRUE(turn[1] < turn[0]);
	TRUE(turn[2] > turn[0]);
	set(PARAM_NET_LATENCY, NULL);
	set(PARAM_NET_MB_PER_SEC, NULL);
}

static void choose_ok(const struct sched_hosts *hosts, enum coll coll, size_t bytes,
	struct choice *choice)
{
	struct limits *limits = NULL;
	struct choose_args args = {.coll = coll,
		.type = DTYPE_FLOAT32,
		.rank_count = hosts->rank_count,
		.hosts = hosts,
		.bytes = bytes,
		.eager_bytes = 32 << 10};

	EQ(limits_read(&limits), OK);
	args.limits = limits;
	EQ(choose(&args, choice), OK);
	limits_free(limits);
}

/* NCCL_ALGO leaves the schedules of that name, of any drivers; WEFT_SCHEDULE one. */
static void test_told(void)
{
	struct sched_hosts *hosts = shape("4x2");
	struct choice choice;

	set(PARAM_ALGO, "Ring");
	choose_ok(hosts, COLL_ALL_REDUCE, 64 << 20, &choice);
	EQ_STR(choice.direct->name, "hosts-ring");
	choose_ok(hosts, COLL_ALL_REDUCE, 8, &choice);
	EQ_STR(choice.staged->name, "hosts-one-ring");
	set(PARAM_ALGO, "Tree");
	choose_ok(hosts, COLL_ALL_REDUCE, 64 << 20, &choice);
	EQ_STR(choice.direct->name, "hosts-tree");
	set(PARAM_ALGO, NULL);
	set(PARAM_SCHEDULE, "hosts-halving");
	choose_ok(hosts, COLL_ALL_REDUCE, 1 << 20, &choice);
	EQ_STR(choice.direct->name, "hosts-halving");
	choose_ok(hosts, COLL_BROADCAST, 1 << 20, &choice); /* has none of that name */
	TRUE(choice.direct->drivers != DRIVERS_NONE);
	set(PARAM_SCHEDULE, "ring");
	choose_ok(hosts, COLL_ALL_REDUCE, 1 << 20, &choice);
	EQ_STR(choice.direct->name, "ring");
	set(PARAM_SCHEDULE, NULL);
	sched_hosts_destroy(hosts);
}

static size_t tile_of(enum coll coll, size_t tile_bytes)
{
	struct sched_hosts *hosts = shape("2x2");
	const struct choose_args args = {.coll = coll,
		.rank_count = 4,
		.hosts = hosts,
		.bytes = 64 << 20,
		.tile_bytes = tile_bytes};
	struct choice choice;

	EQ(choose(&args, &choice), OK);
	EQ(choice.direct_tile, choice.staged_tile);
	sched_hosts_destroy(hosts);
	return choice.direct_tile;
}

/* What is copied one way goes in larger messages; what the user says holds for all. */
static void test_tiles(void)
{
	const size_t tile = 512 << 10;

	for (enum coll coll = 0; coll < COLL_COUNT; coll++) {
		bool one_way = coll == COLL_BROADCAST || coll == COLL_GATHER ||
			       coll == COLL_SCATTER;

		EQ(tile_of(coll, tile), one_way ? 2 * tile : tile);
		EQ(tile_of(coll, 0), tile_of(COLL_ALL_REDUCE, 0) << one_way);
		set(PARAM_TILE, "65536");
		EQ(tile_of(coll, tile), 65536);
		set(PARAM_TILE, NULL);
	}
}

/* Whatever is chosen is written for such hosts and fits; both ways are alike. */
static void test_plans(const char *text)
{
	struct sched_hosts *hosts = shape(text);
	struct plan_room room = {.rank_count = hosts->rank_count,
		.inline_bytes = 48,
		.eager_bytes = 32 << 10,
		.bulk_bytes = 256 << 10,
		.inbox_bytes = 256 << 10,
		.hosts = hosts->host};
	struct planner *planner;

	EQ(planner_create(&room, &planner), OK);
	for (enum coll coll = 0; coll < COLL_COUNT; coll++)
		for (size_t count = 1; count <= 16 << 20; count *= 64) {
			struct plan_key key = {
				.coll = coll, .type = DTYPE_UINT8, .count = count};
			const struct plan *plan;

			EQ(plan_get(planner, &key, &plan), OK);
			if (plan->eager)
				continue;
			EQ_STR(plan->shapes[MODE_DIRECT].schedule,
				plan->shapes[MODE_STAGED].schedule);
			EQ(plan->shapes[MODE_DIRECT].tile_bytes,
				plan->shapes[MODE_STAGED].tile_bytes);
		}
	planner_destroy(planner);
	sched_hosts_destroy(hosts);
}

int main(void)
{
	static const char *const shapes[] = {
		"2x1", "2x2", "4x2", "3+5", "1+7", "16x1", "8x8", "0,1,2,0,1,2,0"};

	test_table();
	test_sizes();
	test_network();
	test_told();
	test_tiles();
	for (size_t i = 0; i < sizeof(shapes) / sizeof(*shapes); i++)
		test_plans(shapes[i]);
	return 0;
}
