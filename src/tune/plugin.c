#include "tune/plugin.h"

#include <dlfcn.h>
#include <float.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/file.h"
#include "base/log.h"
#include "base/param.h"
#include "base/plugin_log.h"
#include "tune/plugin_abi.h"

enum { NAME_BYTES = 64, FILE_BYTES = 1024 };
/* A plugin may be built for constants that have grown since. */
enum { CONSTANTS_SPARE = 256 };

struct tuner {
	void *library;
	const struct adapter *adapter;
	const void *symbol; /* struct plugin_vN, in the library */
	void *context;
	bool failed;
	char name[NAME_BYTES];
};

struct question {
	const struct model_call *call;
	float (*costs)[PROTO_COUNT];
	int channels;
};

/* How to speak one version. Results are the plugin's: 0 is success. */
struct adapter {
	int version;
	const char *symbol;
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
	const struct plugin_v4 *plugin = tuner->symbol;

	(void)comm;
	(void)constants;
	return plugin->init((size_t)cluster->rank_count, (size_t)cluster->node_count,
		plugin_says, &tuner->context);
}

static int new_init(struct tuner *tuner, const struct cluster *cluster, uint64_t comm,
	struct model_constants *constants)
{
	const struct plugin_v5 *plugin = tuner->symbol;
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
	const struct plugin_v2 *plugin = tuner->symbol;
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
	const struct plugin_v3 *plugin = tuner->symbol;

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
	return ask_with(((const struct plugin_v4 *)tuner->symbol)->ask, tuner, q);
}

static int ask_new(struct tuner *tuner, struct question *q)
{
	return ask_with(((const struct plugin_v5 *)tuner->symbol)->ask, tuner, q);
}

static int old_end(struct tuner *tuner)
{
	return ((const struct plugin_v4 *)tuner->symbol)->end(tuner->context);
}

static int new_end(struct tuner *tuner)
{
	return ((const struct plugin_v5 *)tuner->symbol)->end(tuner->context);
}

static const struct adapter adapters[] = {
	{6, "ncclTunerPlugin_v6", new_is_whole, new_init, ask_new, new_end},
	{5, "ncclTunerPlugin_v5", new_is_whole, new_init, ask_new, new_end},
	{4, "ncclTunerPlugin_v4", old_is_whole, old_init, ask_v4, old_end},
	{3, "ncclTunerPlugin_v3", old_is_whole, old_init, ask_v3, old_end},
	{2, "ncclTunerPlugin_v2", old_is_whole, old_init, ask_v2, old_end},
};
enum { ADAPTER_COUNT = sizeof(adapters) / sizeof(adapters[0]) };

/* The file the user names, or one called after it, or the usual one. */
static void *library_open(const char *asked)
{
	char file[FILE_BYTES];
	void *library;

	if (!asked)
		return dlopen("libnccl-tuner.so", RTLD_NOW | RTLD_LOCAL);
	log_info(LOG_ENV | LOG_TUNING, "TUNER/Plugin: Plugin name set by env to %s",
		asked);
	if (!strcasecmp(asked, "STATIC_PLUGIN"))
		return dlopen(NULL, RTLD_NOW | RTLD_LOCAL);
	if (strchr(asked, '/') && file_is_special(asked)) {
		log_warn("no tuner plugin: NCCL_TUNER_PLUGIN is %s, which is no regular "
			 "file; the library chooses",
			asked);
		return NULL;
	}
	library = dlopen(asked, RTLD_NOW | RTLD_LOCAL);
	if (!library && !file_is_library(asked)) {
		snprintf(file, sizeof(file), "libnccl-tuner-%s.so", asked);
		library = dlopen(file, RTLD_NOW | RTLD_LOCAL);
	}
	if (!library)
		log_warn("no tuner plugin: NCCL_TUNER_PLUGIN is %s, and %s; the library "
			 "chooses",
			asked, dlerror());
	return library;
}

/* The newest version the library speaks; false when it speaks none. */
static bool symbol_find(struct tuner *tuner)
{
	for (int i = 0; i < ADAPTER_COUNT; i++) {
		const void *symbol = dlsym(tuner->library, adapters[i].symbol);

		if (symbol) {
			tuner->adapter = &adapters[i];
			tuner->symbol = symbol;
			return true;
		}
	}
	return false;
}

/* The name is the first member in every version. */
static void name_keep(struct tuner *tuner)
{
	const char *name = *(const char *const *)tuner->symbol;

	snprintf(tuner->name, sizeof(tuner->name), "%s", name ? name : "without a name");
}

/* One sentence, and no more of it. */
static void plugin_drop(struct tuner *tuner, const char *what, int result)
{
	log_warn("the tuner plugin %s (v%d) %s (result %d) and is not asked again; the "
		 "library chooses",
		tuner->name, tuner->adapter->version, what, result);
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

	name_keep(tuner);
	if (!tuner->adapter->is_whole(tuner->symbol)) {
		plugin_drop(tuner, "lacks a function", 0);
		return false;
	}
	result = tuner->adapter->init(tuner, cluster, comm, &shown.constants);
	if (result) {
		plugin_drop(tuner, "could not start", result);
		return false;
	}
	rules->constants = shown.constants;
	log_info(LOG_INIT | LOG_TUNING, "TUNER/Plugin: Using %s (v%d)", tuner->name,
		tuner->adapter->version);
	return true;
}

struct tuner *tuner_open(
	const struct cluster *cluster, uint64_t comm, struct model_rules *rules)
{
	const char *asked = param_text(PARAM_TUNER_PLUGIN);
	struct tuner *tuner;

	if (asked && !strcasecmp(asked, "none"))
		return NULL;
	tuner = calloc(1, sizeof(*tuner));
	if (!tuner) {
		log_warn("no memory for a tuner plugin; the library chooses");
		return NULL;
	}
	tuner->library = library_open(asked);
	if (!tuner->library)
		goto err_free;
	if (!symbol_find(tuner)) {
		log_warn("the tuner plugin %s exports no ncclTunerPlugin_v2 to _v6; the "
			 "library chooses",
			asked ? asked : "libnccl-tuner.so");
		goto err_close;
	}
	if (!plugin_start(tuner, cluster, comm, rules))
		goto err_close;
	return tuner;
err_close:
	dlclose(tuner->library);
err_free:
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
	log_info(LOG_INIT | LOG_TUNING, "TUNER/Plugin: Closing tuner: '%s'", tuner->name);
	result = tuner->adapter->end(tuner);
	if (result)
		log_warn("the tuner plugin %s (v%d) could not end (result %d)",
			tuner->name, tuner->adapter->version, result);
	dlclose(tuner->library);
	free(tuner);
}

const char *tuner_name(const struct tuner *tuner)
{
	return tuner->name;
}

int tuner_version(const struct tuner *tuner)
{
	return tuner->adapter->version;
}
