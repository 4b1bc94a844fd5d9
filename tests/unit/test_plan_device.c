/* Plans of calls on device memory: the choice is tune's, what is kept is the planner's,
 * and the programs are what lowering the schedule for every rank gives. */
#include "plan/device.h"

#include <string.h>

#include "base/param.h"
#include "device_lists.h"
#include "settings.h"
#include "test.h"

static struct planner *planner_of(uint32_t rank_count, struct limits *limits)
{
	const struct plan_room room = {.rank_count = rank_count, .limits = limits};
	struct planner *planner;

	EQ(planner_create(&room, &planner), OK);
	return planner;
}

static struct device_ask ask_of(enum coll coll, size_t count, uint32_t root)
{
	return (struct device_ask){.key = {.coll = coll,
					   .type = DTYPE_FLOAT32,
					   .root = root,
					   .count = count}};
}

static struct device_plan got(struct planner *planner, const struct device_ask *ask)
{
	struct device_plan plan;

	EQ(plan_get_device(planner, ask, &plan), OK);
	return plan;
}

/* Sizes share a program, roots and schedules do not; numbers count programs. */
static void test_kept(void)
{
	struct planner *planner = planner_of(4, NULL);
	struct device_ask ask = ask_of(COLL_REDUCE, 100, 0);
	const struct device_program *first = got(planner, &ask).program;

	EQ(first->number, 0);
	EQ(first->mode, MODE_DIRECT);
	EQ_STR(first->kind->name, "direct");
	for (ask.key.count = 1; ask.key.count < 1000; ask.key.count++)
		TRUE(got(planner, &ask).program == first);
	ask.key.root = 3;
	EQ(got(planner, &ask).program->number, 1);
	EQ(got(planner, &ask).program->root, 3);
	ask.key.root = 0;
	TRUE(got(planner, &ask).program == first);
	ask = ask_of(COLL_ALL_REDUCE, 100, 0);
	EQ(got(planner, &ask).program->number, 2);
	planner_destroy(planner);
}

/* Slots that come later change what the same call gets. */
static void test_slots(void)
{
	struct planner *planner = planner_of(4, NULL);
	struct device_ask ask = ask_of(COLL_ALL_REDUCE, 100, 0);
	struct device_plan plan = got(planner, &ask);

	TRUE(!plan.is_staged);
	ask.has_slots = true;
	TRUE(!got(planner, &ask).is_staged);
	ask.is_apart = true;
	plan = got(planner, &ask);
	TRUE(plan.is_staged);
	EQ(plan.proto, PROTO_LL);
	EQ(plan.program->mode, MODE_STAGED);
	EQ(plan.program->depth, 4);
	EQ_STR(plan.program->kind->name, "ring");
	ask.key.schedule = "tree";
	ask.protos = 1u << PROTO_SIMPLE;
	plan = got(planner, &ask);
	EQ_STR(plan.program->kind->name, "tree");
	EQ(plan.proto, PROTO_SIMPLE);
	planner_destroy(planner);
}

static void test_refused(void)
{
	struct limits *limits = NULL;
	struct planner *planner;
	struct device_ask ask = ask_of(COLL_ALL_GATHER, 100, 0);
	struct device_plan plan;

	set(PARAM_ALGO, "tree");
	EQ(limits_read(&limits), OK);
	planner = planner_of(4, limits);
	ask.has_slots = true;
	EQ(plan_get_device(planner, &ask, &plan), ERR_USAGE);
	ask.has_slots = false; /* nobody is asked what cannot be done */
	EQ(plan_get_device(planner, &ask, &plan), OK);
	planner_destroy(planner);
	limits_free(limits);
	set(PARAM_ALGO, NULL);
}

/* The proof of the lists (test_exec_cuda_proof) is of what the planner hands out. */
static void test_lists(enum coll coll, uint32_t n, uint32_t root)
{
	struct planner *planner = planner_of(n, NULL);
	struct device_ask ask = ask_of(coll, 1000, root);
	struct move_pages pages, wanted;

	EQ(moves_flatten(got(planner, &ask).program->ranks, &pages), OK);
	EQ(lists_moves(coll, n, root, &wanted), OK);
	EQ(pages.bytes, wanted.bytes);
	TRUE(!memcmp(pages.data, wanted.data, wanted.bytes));
	free(pages.data);
	free(wanted.data);
	planner_destroy(planner);
}

static void test_steps(enum coll coll, uint32_t n, uint32_t root)
{
	struct planner *planner = planner_of(n, NULL);
	struct device_ask ask = ask_of(coll, 1000, root);
	struct dev_steps *steps, *wanted;
	const struct device_program *program;
	struct steps_key key;
	size_t bytes, wanted_bytes;

	ask.has_slots = ask.is_apart = true;
	program = got(planner, &ask).program;
	key = (struct steps_key){program->kind, n, root, 4};
	EQ(steps_flatten(program->ranks, &steps, &bytes), OK);
	EQ(lists_steps(&key, &wanted, &wanted_bytes), OK);
	EQ(bytes, wanted_bytes);
	TRUE(!memcmp(steps, wanted, bytes));
	free(steps);
	free(wanted);
	planner_destroy(planner);
}

int main(void)
{
	test_kept();
	test_slots();
	test_refused();
	for (int coll = 0; coll < COLL_COUNT; coll++)
		for (uint32_t n = 2; n <= 8; n++) {
			test_lists((enum coll)coll, n, n - 1);
			test_steps((enum coll)coll, n, n - 1);
		}
	return 0;
}
