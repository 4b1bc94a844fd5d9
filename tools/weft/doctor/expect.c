#include "weft/doctor/expect.h"

#include <stdio.h>
#include <string.h>

#include "weft/graph_job.h"

enum { TYPE_FLOAT = 7, OP_SUM = 0, FEW_BYTES = 1 << 20 };

/* Less than so much of what the model says is worth a word. */
static const double enough = 0.6;

static enum model_func function_of(const struct log_facts *facts)
{
	static const struct {
		const char *name;
		enum model_func func;
	} tests[] = {{"all_gather", MODEL_ALL_GATHER},
		{"reduce_scatter", MODEL_REDUCE_SCATTER}, {"broadcast", MODEL_BROADCAST},
		{"reduce_perf", MODEL_REDUCE}};
	const char *test = facts->tests.count ? facts->tests.words[0].text : "";

	for (size_t i = 0; i < sizeof(tests) / sizeof(tests[0]); i++)
		if (!strncmp(test, tests[i].name, strlen(tests[i].name)))
			return tests[i].func;
	return MODEL_ALL_REDUCE;
}

static double bus_factor(enum model_func func, int ranks)
{
	double n = ranks;

	if (func == MODEL_ALL_REDUCE)
		return 2 * (n - 1) / n;
	return func == MODEL_BROADCAST || func == MODEL_REDUCE ? 1 : (n - 1) / n;
}

/* What the model expects of a size, as bus bandwidth in GB/s; 0: it cannot say. */
static double expected_busbw(const struct model *model, const struct log_facts *facts,
	uint64_t bytes, int ranks)
{
	struct model_call call = {.func = function_of(facts),
		.bytes = bytes,
		.pipe_ops = 1,
		.type = TYPE_FLOAT,
		.op = OP_SUM};
	struct model_choice choice;
	float time;

	if (model_choose(model, &call, &choice))
		return 0;
	time = model_time(model, &call, choice.algo, choice.proto);
	return time > 0
		       ? (double)bytes / (double)time / 1e3 * bus_factor(call.func, ranks)
		       : 0;
}

static void say(struct finding *finding, const char *text)
{
	size_t used = strlen(finding->detail);

	snprintf(finding->detail + used, sizeof(finding->detail) - used, "%s%s",
		used ? "; " : "", text);
}

static void compare_shape(const struct log_facts *facts, const struct cluster *cluster,
	struct finding *finding)
{
	char text[160];

	if (facts->rank_count && facts->rank_count != cluster->rank_count) {
		snprintf(text, sizeof(text), "%d ranks, expected %d", facts->rank_count,
			cluster->rank_count);
		say(finding, text);
	}
	if (facts->local_max && facts->local_max != cluster->max_local_ranks) {
		snprintf(text, sizeof(text), "%d ranks on a node, expected %d",
			facts->local_max, cluster->max_local_ranks);
		say(finding, text);
	}
	if (facts->coll_channels_max &&
		facts->coll_channels_max < cluster->coll_channels) {
		snprintf(text, sizeof(text), "%d channels, expected %d",
			facts->coll_channels_max, cluster->coll_channels);
		say(finding, text);
	}
	if (cluster->is_all_nvlink && facts->via_lines[VIA_SHM]) {
		snprintf(text, sizeof(text),
			"%llu connections through host memory, expected NVLink",
			(unsigned long long)facts->via_lines[VIA_SHM]);
		say(finding, text);
	}
}

static void compare_speed(const struct log_facts *facts, const struct graph_job *job,
	struct finding *finding)
{
	int ranks = job->decision->cluster->rank_count;
	const struct fact_row *last = NULL;
	char text[160];
	double expected;

	for (uint32_t i = 0; i < facts->row_count; i++)
		if (!last || facts->rows[i].bytes > last->bytes)
			last = &facts->rows[i];
	if (!last || last->bytes < FEW_BYTES)
		return;
	expected = expected_busbw(&job->model, facts, last->bytes, ranks);
	if (expected <= 0 || last->busbw >= enough * expected)
		return;
	snprintf(text, sizeof(text), "%.1f GB/s at %llu bytes, expected %.1f",
		last->busbw, (unsigned long long)last->bytes, expected);
	say(finding, text);
	snprintf(finding->gain, sizeof(finding->gain),
		"%.1f GB/s bus bandwidth here, %.1f by NCCL's own cost model of the "
		"machine",
		last->busbw, expected);
}

enum err expect_add(const struct log_facts *facts, const char *machine, uint32_t nodes,
	struct diagnosis *diagnosis)
{
	char *names[] = {(char *)machine};
	struct graph_job job;
	struct finding *finding;
	enum err e;

	graph_job_init(&job);
	job.args.host_count = nodes		      ? nodes
			      : facts->node_count > 0 ? (uint32_t)facts->node_count
						      : 1;
	e = graph_job_load(&job, 1, names);
	if (!e)
		e = graph_job_run(&job);
	if (!e) {
		finding = diagnosis_add(diagnosis, FIND_BELOW_EXPECTATION, NULL);
		compare_shape(facts, job.decision->cluster, finding);
		compare_speed(facts, &job, finding);
		if (!finding->detail[0])
			diagnosis->count--;
		diagnosis_sort(diagnosis);
	}
	graph_job_fini(&job);
	return e;
}
