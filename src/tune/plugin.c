#include "tune/plugin.h"

#include <float.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "base/param.h"
#include "base/plugin_file.h"
#include "base/plugin_log.h"
#include "tune/plugin_abi.h"

/* A plugin may be built for constants that have grown since. */
enum { CONSTANTS_SPARE = 256, DID_BYTES = 128 };

struct tuner {
	struct plugin_library library; /* its symbol is a struct plugin_vN */
	const struct adapter *adapter;
	void *context;
	bool failed;
};

struct question {
	const struct model_call *call;
	float (*costs)[PROTO_COUNT];
	int channels;
};

/* How to speak one version. Results are the plugin's: 0 is success. */
struct adapter {
	bool (*is_whole)(const void *symbol);
	int (*init)(struct tuner *tuner, const struct cluster *cluster, uint64_t comm,
		struct model_constants *constants);
	int (*ask)(struct tuner *tuner, struct question *question);
	int (*end)(struct tuner *tuner);
};

/* Versions 2 to 4 begin alike, and so do 5 and 6. */
static bool old_is_whole(const void *symbol)
{
	const struct plugin_v4 *plugin = symbol;

	return plugin->init && plugin->ask && plugin->end;
}

static bool new_is_whole(const void *symbol)
{
	const struct plugin_v5 *plugin = symbol;

	return plugin->init && plugin->ask && plugin->end;
}

static int old_init(struct tuner *tuner, const struct cluster *cluster, uint64_t comm,
	struct model_constants *constants)
{
	const struct plugin_v4 *plugin = tuner->library.symbol;

	(void)comm;
	(void)constants;
	return plugin->init((size_t)cluster->rank_count, (size_t)cluster->node_count,
		plugin_says, &tuner->context);
}

static int new_init(struct tuner *tuner, const struct cluster *cluster, uint64_t comm,
	struct model_constants *constants)
{
	const struct plugin_v5 *plugin = tuner->library.symbol;
	struct plugin_domains domains = {
		cluster->node_count, cluster->min_local_ranks, cluster->max_local_ranks};

	return plugin->init(&tuner->context, comm, (size_t)cluster->rank_count,
		(size_t)cluster->node_count, plugin_says, &domains, constants);
}

static bool costs_have(float (*costs)[PROTO_COUNT], enum algo a, enum algo b)
{
	return costs[a][PROTO_SIMPLE] >= 0 || costs[b][PROTO_SIMPLE] >= 0;
}

static int ask_v2(struct tuner *tuner, struct question *q)
{
	const struct plugin_v2 *plugin = tuner->library.symbol;
	int algo = -1, proto = -1;
	int collnet = costs_have(q->costs, ALGO_COLLNET_DIRECT, ALGO_COLLNET_CHAIN);
	int nvls = costs_have(q->costs, ALGO_NVLS, ALGO_NVLS_TREE);
	int e = plugin->ask(tuner->context, (int)q->call->func, q->call->bytes, collnet,
		nvls, q->call->pipe_ops, &algo, &proto, &q->channels);

	if (!e && algo >= 0 && algo < ALGO_COUNT && proto >= 0 && proto < PROTO_COUNT &&
		q->costs[algo][proto] != MODEL_IGNORE)
		q->costs[algo][proto] = 0;
	return e;
}

static int ask_v3(struct tuner *tuner, struct question *q)
{
	const struct plugin_v3 *plugin = tuner->library.symbol;

	return plugin->ask(tuner->context, (int)q->call->func, q->call->bytes,
		q->call->pipe_ops, (float **)q->costs, ALGO_COUNT, PROTO_COUNT,
		&q->channels);
}

static int ask_with(plugin_ask *ask, struct tuner *tuner, struct question *q)
{
	return ask(tuner->context, (int)q->call->func, q->call->bytes, q->call->pipe_ops,
		(float **)q->costs, ALGO_COUNT, PROTO_COUNT, q->call->registered,
		&q->channels);
}

static int ask_v4(struct tuner *tuner, struct question *q)
{
	return ask_with(((const struct plugin_v4 *)tuner->library.symbol)->ask, tuner, q);
}

static int ask_new(struct tuner *tuner, struct question *q)
{
	return ask_with(((const struct plugin_v5 *)tuner->library.symbol)->ask, tuner, q);
}

static int old_end(struct tuner *tuner)
{
	return ((const struct plugin_v4 *)tuner->library.symbol)->end(tuner->context);
}

static int new_end(struct tuner *tuner)
{
	return ((const struct plugin_v5 *)tuner->library.symbol)->end(tuner->context);
}

enum { VERSION_OLDEST = 2, VERSION_NEWEST = 6 };

static const struct adapter adapters[VERSION_NEWEST + 1] = {
	[6] = {new_is_whole, new_init, ask_new, new_end},
	[5] = {new_is_whole, new_init, ask_new, new_end},
	[4] = {old_is_whole, old_init, ask_v4, old_end},
	[3] = {old_is_whole, old_init, ask_v3, old_end},
	[2] = {old_is_whole, old_init, ask_v2, old_end},
};

static const struct plugin_kind tuner_kind = {.file = "tuner",
	.title = "TUNER",
	.called = "tuner plugin",
	.symbol = "ncclTunerPlugin_v",
	.newest = VERSION_NEWEST,
	.oldest = VERSION_OLDEST,
	.param = PARAM_TUNER_PLUGIN,
	.subsystem = LOG_TUNING,
	.otherwise = "the library chooses"};

/* One sentence, and no more of it. */
static void plugin_drop(struct tuner *tuner, const char *what, int result)
{
	char did[DID_BYTES];

	snprintf(did, sizeof(did), "%s (result %d) and is not asked again", what, result);
	plugin_file_refuse(&tuner_kind, &tuner->library, did);
	tuner->failed = true;
}

static bool plugin_start(struct tuner *tuner, const struct cluster *cluster,
	uint64_t comm, struct model_rules *rules)
{
	struct {
		struct model_constants constants;
		double spare[CONSTANTS_SPARE];
	} shown = {.constants = rules->constants};
	int result;

	if (!tuner->adapter->is_whole(tuner->library.symbol)) {
		plugin_drop(tuner, "lacks a function", 0);
		return false;
	}
	result = tuner->adapter->init(tuner, cluster, comm, &shown.constants);
	if (result) {
		plugin_drop(tuner, "could not start", result);
		return false;
	}
	rules->constants = shown.constants;
	log_info(LOG_INIT | LOG_TUNING, "TUNER/Plugin: Using %s (v%d)",
		tuner->library.name, tuner->library.version);
	return true;
}

struct tuner *tuner_open(
	const struct cluster *cluster, uint64_t comm, struct model_rules *rules)
{
	struct tuner *tuner = calloc(1, sizeof(*tuner));

	if (!tuner) {
		log_warn("no memory for a tuner plugin; the library chooses");
		return NULL;
	}
	if (plugin_file_find(&tuner_kind, &tuner->library)) {
		tuner->adapter = &adapters[tuner->library.version];
		if (plugin_start(tuner, cluster, comm, rules))
			return tuner;
	}
	plugin_file_unload(&tuner->library);
	free(tuner);
	return NULL;
}

/* What the model ruled out stays out; false when nothing is left to choose. */
static bool costs_check(model_costs costs, model_costs before)
{
	bool any = false;

	for (int a = 0; a < ALGO_COUNT; a++)
		for (int p = 0; p < PROTO_COUNT; p++) {
			if (!(before[a][p] >= 0))
				costs[a][p] = MODEL_IGNORE;
			any = any || (costs[a][p] >= 0 && costs[a][p] < FLT_MAX);
		}
	return any;
}

static bool costs_differ(float (*a)[PROTO_COUNT], float (*b)[PROTO_COUNT])
{
	for (int i = 0; i < ALGO_COUNT * PROTO_COUNT; i++)
		if (a[i / PROTO_COUNT][i % PROTO_COUNT] !=
			b[i / PROTO_COUNT][i % PROTO_COUNT])
			return true;
	return false;
}

/* The plugin's costs and, in `changed`, whether they are still the model's; false when it
 * has no say. */
static bool plugin_ask_costs(struct tuner *tuner, const struct model *model,
	struct question *question, bool *changed)
{
	model_costs before;
	int result;

	if (!tuner || tuner->failed)
		return false;
	model_costs_fill(model, question->call, question->costs);
	memcpy(before, question->costs, sizeof(before));
	result = tuner->adapter->ask(tuner, question);
	if (result)
		plugin_drop(tuner, "gave no answer", result);
	else if (!costs_check(question->costs, before))
		plugin_drop(tuner, "left nothing to choose", 0);
	*changed = costs_differ(before, question->costs);
	return !tuner->failed;
}

enum err tuner_choose(struct tuner *tuner, const struct model *model,
	const struct model_call *call, struct model_choice *choice)
{
	model_costs costs;
	struct question question = {call, costs, 0};
	bool changed;

	if (!plugin_ask_costs(tuner, model, &question, &changed))
		return model_choose(model, call, choice);
	return model_costs_pick(model, call, costs, question.channels, choice);
}

enum err tuner_force(struct tuner *tuner, const struct model *model,
	const struct model_call *call, struct model_choice *choice, bool *forced)
{
	model_costs costs;
	struct question question = {call, costs, 0};

	*forced = false;
	if (!plugin_ask_costs(tuner, model, &question, forced))
		*forced = false;
	if (!*forced)
		return OK;
	return model_costs_pick(model, call, costs, question.channels, choice);
}

void tuner_close(struct tuner *tuner)
{
	int result;

	if (!tuner)
		return;
	log_info(LOG_INIT | LOG_TUNING, "TUNER/Plugin: Closing tuner: '%s'",
		tuner->library.name);
	result = tuner->adapter->end(tuner);
	if (result)
		log_warn("the tuner plugin %s (v%d) could not end (result %d)",
			tuner->library.name, tuner->library.version, result);
	plugin_file_unload(&tuner->library);
	free(tuner);
}

const char *tuner_name(const struct tuner *tuner)
{
	return tuner->library.name;
}

int tuner_version(const struct tuner *tuner)
{
	return tuner->library.version;
}
