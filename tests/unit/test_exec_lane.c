/* The interpreter, under an engine that only writes down what it is told. */
#include "exec/lane.h"

#include "test.h"

enum { TILES = 3, LOG_BYTES = 512 };

/* What the engine was told, and how far the other ranks are. */
struct scribe {
	const struct program *program;
	char log[LOG_BYTES];
	uint64_t have[3]; /* per rank: tile * 100 + moves retired of it */
};

static void note(struct scribe *scribe, const char *what, unsigned a, unsigned b)
{
	size_t used = strlen(scribe->log);

	snprintf(scribe->log + used, LOG_BYTES - used, "%s%u.%u ", what, a, b);
}

static bool scribe_reached(void *engine, const struct wait *wait, uint32_t tile)
{
	struct scribe *scribe = engine;

	note(scribe, "w", wait->rank, tile);
	return scribe->have[wait->rank] >= tile * 100 + wait->position;
}

static void scribe_run(
	void *engine, const struct move *move, uint32_t lane, uint32_t tile)
{
	struct scribe *scribe = engine;

	note(scribe, "r", (unsigned)(move - scribe->program->lanes[lane].moves), tile);
}

static void scribe_publish(
	void *engine, const struct move *move, uint32_t lane, uint64_t retired)
{
	struct scribe *scribe = engine;

	note(scribe, "p", (unsigned)(move - scribe->program->lanes[lane].moves),
		(unsigned)retired);
}

static const struct lane_ops ops = {
	.reached = scribe_reached, .run = scribe_run, .publish = scribe_publish};

/*
 * Lane 1 of the program: move 0 passes, move 1 waits for two ranks and moves bytes but is
 * not announced, move 2 waits for a slot used two tiles ago and is announced.
 */
static struct wait waits[] = {
	{.rank = 1, .position = 1},
	{.rank = 2, .position = 4},
	{.rank = 1, .position = 2, .back = 2},
};
static struct move moves[] = {
	{.publish = true},
	{.wait_count = 2, .output_count = 1},
	{.publish = true, .wait_first = 2, .wait_count = 1, .output_count = 2},
};
static const struct program program = {.rank_count = 3,
	.lane_count = 2,
	.lanes = {{0}, {.moves = moves, .count = 3}},
	.waits = waits,
	.wait_count = 3};
static const struct shape shape = {.program = &program, .tile_count = TILES};

/* Step once and see what the engine was told in that step. */
static void step(
	struct lane *lane, struct scribe *scribe, enum lane_result want, const char *log)
{
	scribe->log[0] = 0;
	EQ(lane_step(&shape, 1, lane, &ops, scribe), want);
	EQ_STR(scribe->log, log);
}

static void test_unhindered(void)
{
	struct scribe scribe = {.program = &program, .have = {1000, 1000, 1000}};
	struct lane lane = {0};

	step(&lane, &scribe, LANE_DONE,
		"p0.1 w1.0 w2.0 r1.0 r2.0 p2.3 "	/* nothing to wait back for */
		"p0.4 w1.1 w2.1 r1.1 r2.1 p2.6 "	/* still nothing */
		"p0.7 w1.2 w2.2 r1.2 w1.0 r2.2 p2.9 "); /* the slot of tile 0 */
	EQ(lane.tile, TILES);
	step(&lane, &scribe, LANE_DONE, ""); /* done stays done */
}

/* A blocked lane says by what, tells nothing twice, and asks only what is still open. */
static void test_blocked(void)
{
	struct scribe scribe = {.program = &program};
	struct lane lane = {0};

	step(&lane, &scribe, LANE_BLOCKED, "p0.1 w1.0 ");
	TRUE(lane.blocked == &waits[0]);
	step(&lane, &scribe, LANE_BLOCKED, "w1.0 ");
	scribe.have[1] = 1;
	step(&lane, &scribe, LANE_BLOCKED, "w1.0 w2.0 ");
	TRUE(lane.blocked == &waits[1]);
	scribe.have[2] = 3;
	step(&lane, &scribe, LANE_BLOCKED, "w2.0 ");
	scribe.have[2] = 4;
	step(&lane, &scribe, LANE_BLOCKED, "w2.0 r1.0 r2.0 p2.3 p0.4 w1.1 ");
	EQ(lane.tile, 1);
	EQ(lane.move, 1);

	scribe.have[1] = scribe.have[2] = 204;
	waits[2].position = 300; /* a slot that stays taken */
	step(&lane, &scribe, LANE_BLOCKED,
		"w1.1 w2.1 r1.1 r2.1 p2.6 p0.7 w1.2 w2.2 r1.2 w1.0 ");
	TRUE(lane.blocked == &waits[2]);
	EQ(lane.tile - lane.blocked->back, 0);
	waits[2].position = 2;
	step(&lane, &scribe, LANE_DONE, "w1.0 r2.2 p2.9 ");
}

static void test_empty(void)
{
	struct scribe scribe = {.program = &program};
	struct shape none = {.program = &program, .tile_count = 0};
	struct lane lane = {0};

	EQ(lane_step(&none, 1, &lane, &ops, &scribe), LANE_DONE);
	EQ(lane_step(&shape, 0, &lane, &ops, &scribe), LANE_DONE); /* a lane of none */
	EQ_STR(scribe.log, "");
}

/* A move that only sends is run, too. */
static void test_sent(void)
{
	struct move sends[] = {{.sent_count = 1}, {.publish = true}};
	struct program sender = {.rank_count = 3,
		.lane_count = 1,
		.lanes = {{.moves = sends, .count = 2}}};
	struct shape once = {.program = &sender, .tile_count = 1};
	struct scribe scribe = {.program = &sender};
	struct lane lane = {0};

	EQ(lane_step(&once, 0, &lane, &ops, &scribe), LANE_DONE);
	EQ_STR(scribe.log, "r0.0 p1.2 ");
}

int main(void)
{
	test_sent();
	test_unhindered();
	test_blocked();
	test_empty();
	return 0;
}
