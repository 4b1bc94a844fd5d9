/* How collectives on device memory are run: directly, unless somebody wants otherwise or
 * memory is out of reach. */
#include "tune/device.h"

#include <stdlib.h>

#include "base/param.h"
#include "settings.h"
#include "test.h"

static struct limits *read_limits(const char *algo, const char *proto)
{
	struct limits *limits = NULL;

	set(PARAM_ALGO, algo);
	set(PARAM_PROTO, proto);
	EQ(limits_read(&limits), OK);
	return limits;
}

static struct device_question question_of(
	struct limits *limits, enum coll coll, size_t bytes)
{
	return (struct device_question){.limits = limits,
		.has_slots = true,
		.call = {.coll = coll,
			.type = DTYPE_FLOAT32,
			.rank_count = 4,
			.bytes = bytes}};
}

static struct device_choice chosen(const struct device_question *question)
{
	struct device_choice choice;

	EQ(device_choose(question, &choice), OK);
	return choice;
}

static void test_nothing_asked(void)
{
	struct device_question question = question_of(NULL, COLL_ALL_REDUCE, 64);

	TRUE(!chosen(&question).is_staged);
	EQ_STR(chosen(&question).kind->name, "direct");
	question.call.bytes = 1 << 30;
	TRUE(!chosen(&question).is_staged);
}

/* The protocol goes with the size; lines of 128 bytes do not go through host memory. */
static void test_apart(void)
{
	struct device_question question = question_of(NULL, COLL_ALL_REDUCE, 64);

	question.is_apart = true;
	EQ_STR(chosen(&question).kind->name, "ring");
	EQ(chosen(&question).proto, PROTO_LL);
	question.call.bytes = 1 << 20;
	EQ(chosen(&question).proto, PROTO_SIMPLE);
	question.call.coll = COLL_ALL_TO_ALL;
	EQ_STR(chosen(&question).kind->name, "direct");
}

static void test_user(void)
{
	struct limits *limits = read_limits("tree", NULL);
	struct device_question question = question_of(limits, COLL_ALL_REDUCE, 1 << 20);

	EQ_STR(chosen(&question).kind->name, "tree");
	EQ(chosen(&question).proto, PROTO_LL128);
	limits_free(limits);
	/* without Simple it cannot be run directly */
	limits = read_limits(NULL, "LL");
	question = question_of(limits, COLL_ALL_REDUCE, 64 << 20);
	EQ_STR(chosen(&question).kind->name, "ring");
	EQ(chosen(&question).proto, PROTO_LL);
	limits_free(limits);
	set(PARAM_PROTO, NULL);
}

/* What a call names by itself. */
static void test_selection(void)
{
	struct device_question question = question_of(NULL, COLL_ALL_REDUCE, 64);

	question.schedule = "tree";
	TRUE(!chosen(&question).is_staged);
	question.protos = 1u << PROTO_SIMPLE | 1u << PROTO_LL128;
	TRUE(chosen(&question).is_staged);
	EQ_STR(chosen(&question).kind->name, "tree");
	EQ(chosen(&question).proto, PROTO_LL128);
	question.has_slots = false;
	TRUE(!chosen(&question).is_staged);
}

static void test_refused(void)
{
	struct limits *limits = read_limits("tree", NULL);
	struct device_question question = question_of(limits, COLL_ALL_GATHER, 64);
	struct device_choice choice;

	EQ(device_choose(&question, &choice), ERR_USAGE);
	limits_free(limits);
	set(PARAM_ALGO, NULL);
}

/* Between hosts: whole tiles, more of them the larger a call is, and fewer the more
 * chunks have to be copied each time. */
static void test_parts(void)
{
	struct device_copy copy = {.bytes = 64 << 10,
		.chunk_bytes = 32 << 10,
		.tile_bytes = 4 << 10,
		.chunks = 2};
	size_t part, few;

	EQ(device_part(&copy), copy.chunk_bytes);
	copy.bytes = 16 << 20;
	copy.chunk_bytes = 8 << 20;
	part = device_part(&copy);
	TRUE(part < copy.chunk_bytes / 4 && part >= copy.tile_bytes);
	EQ(part % copy.tile_bytes, 0);
	copy.chunks = 16;
	copy.chunk_bytes = 1 << 20;
	few = device_part(&copy);
	TRUE(copy.chunk_bytes / few < (8 << 20) / part);
	copy.tile_bytes = 2 << 20;
	EQ(device_part(&copy), copy.chunk_bytes);
	copy.tile_bytes = 4 << 10;
	set(PARAM_GPU_PART, "10000");
	EQ(device_part(&copy), 12 << 10);
	set(PARAM_GPU_PART, NULL);
}

int main(void)
{
	test_nothing_asked();
	test_apart();
	test_user();
	test_selection();
	test_refused();
	test_parts();
	return 0;
}
