/* NCCL_ALGO and a tuner plugin choose among the schedules of host memory. */
#include "tune/limits.h"

#include <stdlib.h>

#include "base/param.h"
#include "model_machine.h"
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

static const char *asked(
	struct limits *limits, enum coll coll, uint32_t ranks, size_t bytes)
{
	const struct limits_call call = {coll, DTYPE_FLOAT32, ranks, bytes};
	const char *name = "untouched";

	EQ(limits_schedule(limits, &call, &name), OK);
	return name ? name : "(table)";
}

static void refused(struct limits *limits, enum coll coll)
{
	const struct limits_call call = {coll, DTYPE_FLOAT32, 4, 64};
	const char *name;

	EQ(limits_schedule(limits, &call, &name), ERR_USAGE);
	TRUE(strstr(err_last(), "No algorithm/protocol available for function"));
	TRUE(strstr(err_last(), "NCCL_ALGO is"));
}

static void test_named(void)
{
	struct limits *limits = read_limits("ring", NULL);

	for (enum coll coll = 0; coll <= COLL_REDUCE_SCATTER; coll++)
		EQ_STR(asked(limits, coll, 4, 64), "ring");
	EQ_STR(asked(limits, COLL_ALL_TO_ALL, 4, 64), "(table)");
	EQ_STR(asked(limits, COLL_ALL_REDUCE, 1, 64), "(table)");
	limits_free(limits);
	limits = read_limits("Tree", NULL);
	EQ_STR(asked(limits, COLL_ALL_REDUCE, 4, 64), "tree");
	EQ_STR(asked(limits, COLL_BROADCAST, 4, 64), "tree");
	refused(limits, COLL_ALL_GATHER);
	limits_free(limits);
	limits = read_limits("PAT", NULL);
	EQ_STR(asked(limits, COLL_ALL_GATHER, 4, 64), "bruck");
	EQ_STR(asked(limits, COLL_REDUCE_SCATTER, 4, 64), "halving");
	refused(limits, COLL_BROADCAST);
	limits_free(limits);
	limits = read_limits("NVLS,CollNetDirect", NULL);
	refused(limits, COLL_ALL_REDUCE);
	EQ_STR(asked(limits, COLL_GATHER, 4, 64), "(table)");
	limits_free(limits);
	limits = read_limits("ring,tree", NULL);
	EQ_STR(asked(limits, COLL_ALL_REDUCE, 4, 64), "tree");
	EQ_STR(asked(limits, COLL_ALL_REDUCE, 4, 1 << 20), "ring");
	limits_free(limits);
	limits = read_limits("allreduce:tree;broadcast:ring", NULL);
	EQ_STR(asked(limits, COLL_ALL_REDUCE, 4, 1 << 20), "tree");
	EQ_STR(asked(limits, COLL_BROADCAST, 4, 64), "ring");
	EQ_STR(asked(limits, COLL_ALL_GATHER, 4, 64), "(table)");
	limits_free(limits);
}

static void test_excluded(void)
{
	struct limits *limits = read_limits("^ring", NULL);

	EQ_STR(asked(limits, COLL_ALL_REDUCE, 4, 64), "(table)");
	/* the table has nothing but the ring for so many */
	EQ_STR(asked(limits, COLL_ALL_REDUCE, 300, 64), "tree");
	EQ_STR(asked(limits, COLL_ALL_GATHER, 300, 64), "bruck");
	limits_free(limits);
	limits = read_limits("^tree", NULL);
	EQ_STR(asked(limits, COLL_ALL_REDUCE, 300, 64), "(table)");
	limits_free(limits);
}

static void test_grammar(void)
{
	struct limits *limits = read_limits(NULL, NULL);

	TRUE(!limits);
	EQ_STR(asked(limits, COLL_ALL_REDUCE, 4, 64), "(table)");
	limits = read_limits(NULL, "LL128");
	TRUE(limits);
	EQ_STR(asked(limits, COLL_ALL_REDUCE, 4, 64), "(table)");
	limits_free(limits);
	limits = NULL;
	set(PARAM_PROTO, "LL256");
	EQ(limits_read(&limits), ERR_USAGE);
	TRUE(strstr(err_last(), "LL256") && !limits);
	set(PARAM_PROTO, NULL);
	set(PARAM_ALGO, "rings");
	EQ(limits_read(&limits), ERR_USAGE);
	TRUE(strstr(err_last(), "rings") && !limits);
	set(PARAM_ALGO, NULL);
}

/* The plugins are those of test_tune_plugin.c: 3 wants Ring, 6 wants Tree, 4 leaves
 * all_reduce alone. */
static void test_plugin(const char *file, const char *schedule)
{
	char path[512];
	struct limits *limits = NULL;
	struct cluster cluster;

	machine_fill(&cluster, 1);
	snprintf(path, sizeof(path), "%s/%s.so", WEFT_TUNER_FOLDER, file);
	set(PARAM_TUNER_PLUGIN, path);
	EQ(limits_read(&limits), OK);
	TRUE(limits && !limits_model(limits));
	limits_plug(limits, &cluster, 7);
	EQ_STR(asked(limits, COLL_ALL_REDUCE, 8, 1 << 20), schedule);
	EQ_STR(asked(limits, COLL_ALL_TO_ALL, 8, 1 << 20), "(table)");
	limits_free(limits);
	set(PARAM_TUNER_PLUGIN, NULL);
}

int main(void)
{
	set(PARAM_TUNER_PLUGIN, NULL);
	test_named();
	test_excluded();
	test_grammar();
	test_plugin("tuner_v3", "ring");
	test_plugin("tuner_v6", "tree");
	test_plugin("tuner_deny", "(table)");
	test_plugin("no_such_file", "(table)");
	return 0;
}
