#include "weft/doctor/expect.h"

#include <stdio.h>
#include <string.h>

#include "common/units.h"
#include "weft/doctor/gain.h"
#include "weft/graph_job.h"

enum {
	TYPE_FLOAT = 7,
	OP_SUM = 0,
	FEW_BYTES = 1 << 20,
	SIZES_SAID = 3,
	SIZES_APART = 16
};

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

/* How fast a size should be: by the engine of weft sim for machines it knows, else by
 * NCCL's own cost model. `low`: what nine of ten measurements are above. */
struct speed {
	double busbw, low;
};

static bool speed_of(const struct log_facts *facts, const struct graph_job *job,
	const struct sim_site *site, uint64_t bytes, struct speed *speed)
{
	struct sim_answer answer;

	if (site) {
		if (gain_ask(facts, site, bytes, &answer))
			return false;
		*speed = (struct speed){answer.busbw, answer.low};
		return true;
	}
	speed->busbw = expected_busbw(
		&job->model, facts, bytes, job->decision->cluster->rank_count);
	speed->low = enough * speed->busbw;
	return speed->busbw > 0;
}

/* The sizes that are slower than they should be, the largest of each factor of 16. */
static void compare_speed(const struct log_facts *facts, const struct graph_job *job,
	const struct sim_site *site, struct finding *finding)
{
	uint64_t before = UINT64_MAX;

	for (int said = 0; said < SIZES_SAID; said++) {
		const struct fact_row *row = NULL;
		struct speed speed;
		char text[160], size[32];

		for (uint32_t i = 0; i < facts->row_count; i++)
			if (facts->rows[i].bytes < before &&
				(!row || facts->rows[i].bytes > row->bytes))
				row = &facts->rows[i];
		if (!row || row->bytes < FEW_BYTES)
			return;
		before = row->bytes / SIZES_APART + 1;
		if (!speed_of(facts, job, site, row->bytes, &speed) ||
			row->busbw >= speed.low)
			continue;
		units_print_size(row->bytes, size, sizeof(size));
		snprintf(text, sizeof(text),
			"%.1f GB/s at %s, expected %.1f (%.1f at least)", row->busbw,
			size, speed.busbw, speed.low);
		say(finding, text);
		if (!finding->gain[0])
			snprintf(finding->gain, sizeof(finding->gain),
				"%.1f against %.1f GB/s of bus bandwidth at %s by %s",
				row->busbw, speed.busbw, size,
				site ? "weft sim" : "NCCL's own cost model");
	}
}

/* Between hosts: the network that was taken, and whether it reaches GPU memory. */
static void compare_network(const struct log_facts *facts, const struct sim_site *site,
	struct finding *finding)
{
	char text[160];
	uint64_t lines = 0, direct = 0;

	if (!site || site->nodes < 2 || site->outer == SIM_TCP || site->outer == SIM_ENA)
		return;
	for (uint32_t i = 0; i < facts->networks.count; i++)
		if (!strcmp(facts->networks.words[i].text, "Socket")) {
			snprintf(text, sizeof(text), "TCP between hosts, expected %s",
				sim_wire_name(site->outer));
			say(finding, text);
			return;
		}
	for (uint32_t i = 0; i < facts->net_count; i++) {
		lines += facts->nets[i].lines;
		direct += facts->nets[i].gdr_lines;
	}
	if (site->outer == SIM_STAGED || !lines || direct)
		return;
	say(finding, "no GPUDirect between hosts, expected it");
}

enum err expect_add(const struct log_facts *facts, const char *machine, uint32_t nodes,
	struct diagnosis *diagnosis)
{
	char *names[] = {(char *)machine};
	struct graph_job job;
	struct finding *finding;
	struct sim_site site, *known = NULL;
	enum err e;

	graph_job_init(&job);
	job.args.host_count = nodes		      ? nodes
			      : facts->node_count > 0 ? (uint32_t)facts->node_count
						      : 1;
	e = graph_job_load(&job, 1, names);
	if (!e)
		e = graph_job_run(&job);
	if (!e) {
		if (!gain_site(facts, machine, job.args.host_count, &site))
			known = &site;
		finding = diagnosis_add(diagnosis, FIND_BELOW_EXPECTATION, NULL);
		compare_shape(facts, job.decision->cluster, finding);
		compare_network(facts, known, finding);
		compare_speed(facts, &job, known, finding);
		if (!finding->detail[0])
			diagnosis->count--;
		diagnosis_sort(diagnosis);
	}
	graph_job_fini(&job);
	return e;
}
