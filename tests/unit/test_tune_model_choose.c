/* What limits a choice: types, operators, the user's lists; and what it becomes. */
#include "base/dtype.h"
#include "base/err.h"
#include "model_machine.h"
#include "test.h"

static struct cluster cluster;
static struct model_rules rules;
static struct model model;

static void make(int nodes)
{
	machine_fill(&cluster, nodes);
	model_rules_default(&rules);
	EQ(model_make(&cluster, &rules, &model), OK);
}

static struct model_choice choose(enum model_func func, uint64_t bytes, int type, int op)
{
	struct model_call call = {
		.func = func, .bytes = bytes, .pipe_ops = 1, .type = type, .op = op};
	struct model_choice choice;

	EQ(model_choose(&model, &call, &choice), OK);
	return choice;
}

/* The switches do not multiply, and add small types only as something else. */
static void nvls_types(void)
{
	const uint64_t big = 1 << 28;

	make(1);
	EQ(choose(MODEL_ALL_REDUCE, big, DTYPE_FLOAT32, REDOP_SUM).algo, ALGO_NVLS);
	EQ(choose(MODEL_ALL_REDUCE, big, DTYPE_FLOAT32, REDOP_MAX).algo, ALGO_RING);
	EQ(choose(MODEL_ALL_REDUCE, big, DTYPE_BFLOAT16, REDOP_MAX).algo, ALGO_NVLS);
	EQ(choose(MODEL_ALL_REDUCE, big, DTYPE_FLOAT16, REDOP_AVG).algo, ALGO_RING);
	EQ(choose(MODEL_ALL_REDUCE, big, DTYPE_INT32, REDOP_PROD).algo, ALGO_RING);
	EQ(choose(MODEL_ALL_REDUCE, big, DTYPE_INT8, REDOP_SUM).algo, ALGO_RING);
	EQ(choose(MODEL_ALL_REDUCE, big, DTYPE_UINT64, REDOP_MIN).algo, ALGO_NVLS);
	rules.nvls_enable = 0;
	EQ(model_make(&cluster, &rules, &model), OK);
	EQ(choose(MODEL_ALL_REDUCE, big, DTYPE_FLOAT32, REDOP_SUM).algo, ALGO_RING);
}

/* Eight roundings are few enough, sixteen are not; copies do not round. */
static void fp8(void)
{
	make(1);
	EQ(choose(MODEL_ALL_REDUCE, 1 << 28, DTYPE_FLOAT8E4M3, REDOP_SUM).algo,
		ALGO_RING);
	make(2);
	EQ(choose(MODEL_ALL_REDUCE, 1 << 28, DTYPE_INT8, REDOP_SUM).algo, ALGO_RING);
	EQ(choose(MODEL_ALL_REDUCE, 1 << 28, DTYPE_FLOAT8E5M2, REDOP_SUM).algo,
		ALGO_TREE);
	TRUE(choose(MODEL_ALL_GATHER, 1 << 28, DTYPE_FLOAT8E5M2, REDOP_SUM).time_us <
		10000);
	TRUE(choose(MODEL_REDUCE_SCATTER, 1 << 28, DTYPE_FLOAT8E5M2, REDOP_SUM).time_us >
		100000);
}

/* One GPU per node: PAT, but not with a scale. */
static void pat(void)
{
	make(2);
	cluster.rank_count = 16;
	cluster.node_count = 16;
	cluster.local_ranks = cluster.min_local_ranks = cluster.max_local_ranks = 1;
	cluster.nvls_support = false;
	EQ(model_make(&cluster, &rules, &model), OK);
	EQ(choose(MODEL_REDUCE_SCATTER, 1 << 20, DTYPE_FLOAT32, REDOP_SUM).algo,
		ALGO_PAT);
	EQ(choose(MODEL_REDUCE_SCATTER, 1 << 20, DTYPE_FLOAT32, REDOP_AVG).algo,
		ALGO_RING);
	EQ(choose(MODEL_ALL_GATHER, 1 << 20, DTYPE_FLOAT32, REDOP_AVG).algo, ALGO_PAT);
	rules.pat_enable = 0;
	EQ(model_make(&cluster, &rules, &model), OK);
	EQ(choose(MODEL_ALL_GATHER, 1 << 20, DTYPE_FLOAT32, REDOP_SUM).algo, ALGO_RING);
}

static void user(void)
{
	struct model_call call = {
		.func = MODEL_BROADCAST, .bytes = 64, .pipe_ops = 1, .type = DTYPE_INT8};
	struct model_choice choice = {.channels = 77};

	make(1);
	EQ(model_algo_parse("tree", &rules), OK);
	EQ(model_make(&cluster, &rules, &model), OK);
	EQ(choose(MODEL_ALL_REDUCE, 1 << 28, DTYPE_FLOAT32, REDOP_SUM).algo, ALGO_TREE);
	EQ(model_choose(&model, &call, &choice), ERR_USAGE);
	TRUE(strstr(err_last(), "Broadcast"));
	EQ(choice.channels, 77);
	model_rules_default(&rules);
	rules.threads = 96;
	rules.ll128_threads = 4000;
	rules.thresholds[PROTO_COUNT + PROTO_LL] = 0;
	EQ(model_make(&cluster, &rules, &model), OK);
	EQ(model.max_threads[ALGO_RING][PROTO_SIMPLE], 96);
	EQ(model.max_threads[ALGO_RING][PROTO_LL128], 640);
	EQ(choose(MODEL_ALL_REDUCE, 8, DTYPE_FLOAT32, REDOP_SUM).channels, 16);
	EQ(choose(MODEL_ALL_REDUCE, 8, DTYPE_FLOAT32, REDOP_SUM).channels_used, 1);
}

/* What is too small for everyone to have an element, and one rank alone. */
static void odd_sizes(void)
{
	struct model_call call = {
		.func = MODEL_REDUCE_SCATTER, .bytes = 31, .type = DTYPE_FLOAT32};

	make(1);
	EQ(model_round(&model, &call), 0);
	call.bytes = 100;
	EQ(model_round(&model, &call), 96);
	call.func = MODEL_ALL_GATHER;
	EQ(model_round(&model, &call), 96);
	call.func = MODEL_BROADCAST;
	EQ(model_round(&model, &call), 100);
	cluster.rank_count = 1;
	EQ(model_make(&cluster, &rules, &model), OK);
	EQ(model_round(&model, &call), 0);
	EQ(choose(MODEL_ALL_REDUCE, 64, DTYPE_FLOAT32, REDOP_SUM).time_us, 0);
	cluster.node_count = 0;
	EQ(model_make(&cluster, &rules, &model), ERR_ARGUMENT);
}

/* More calls in a group start later on a ring, and eight at a time on a tree. */
static void groups(void)
{
	struct model_call call = {.func = MODEL_ALL_REDUCE,
		.bytes = 8,
		.pipe_ops = 9,
		.type = DTYPE_FLOAT32};

	make(1);
	TRUE(model_time(&model, &call, ALGO_RING, PROTO_LL) > 130);
	TRUE(model_time(&model, &call, ALGO_TREE, PROTO_LL) < 40);
}

int main(void)
{
	nvls_types();
	fp8();
	pat();
	user();
	odd_sizes();
	groups();
	return 0;
}
