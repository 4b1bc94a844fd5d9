#include "tune/limits.h"

#include <stdlib.h>
#include <strings.h>

#include "base/log.h"
#include "base/param.h"
#include "tune/plugin.h"

/* Beyond it the ring's least traffic counts for more than the tree's few hops. */
enum { FEW_BYTES = 64 << 10 };

struct limits {
	struct model_rules rules;
	struct model model;
	struct tuner *tuner; /* owned; NULL none */
};

/* The counterpart of an algorithm; NULL where there is none. */
static const char *const schedules[COLL_COUNT][ALGO_COUNT] = {
	[COLL_ALL_REDUCE] =
		{[ALGO_RING] = "ring", [ALGO_TREE] = "tree", [ALGO_PAT] = "halving"},
	[COLL_BROADCAST] = {[ALGO_RING] = "ring", [ALGO_TREE] = "tree"},
	[COLL_REDUCE] = {[ALGO_RING] = "ring", [ALGO_TREE] = "tree"},
	[COLL_ALL_GATHER] = {[ALGO_RING] = "ring", [ALGO_PAT] = "bruck"},
	[COLL_REDUCE_SCATTER] = {[ALGO_RING] = "ring", [ALGO_PAT] = "halving"},
};

const char *limits_counterpart(enum coll coll, enum algo algo)
{
	return schedules[coll][algo];
}

/* Few hops for a small call, little traffic for a large one. */
const enum algo *limits_order(size_t bytes)
{
	static const enum algo orders[2][LIMITS_ALGOS] = {
		{ALGO_TREE, ALGO_PAT, ALGO_RING}, {ALGO_RING, ALGO_PAT, ALGO_TREE}};

	return orders[bytes > FEW_BYTES];
}

bool limits_func(enum coll coll, enum model_func *func)
{
	static const enum model_func funcs[] = {
		[COLL_ALL_REDUCE] = MODEL_ALL_REDUCE,
		[COLL_BROADCAST] = MODEL_BROADCAST,
		[COLL_REDUCE] = MODEL_REDUCE,
		[COLL_ALL_GATHER] = MODEL_ALL_GATHER,
		[COLL_REDUCE_SCATTER] = MODEL_REDUCE_SCATTER,
	};

	if (coll >= sizeof(funcs) / sizeof(funcs[0]))
		return false;
	*func = funcs[coll];
	return true;
}

enum err limits_read(struct limits **limits)
{
	const char *plugin = param_text(PARAM_TUNER_PLUGIN);
	struct limits *made;
	enum err e;

	if (!param_text(PARAM_ALGO) && !param_text(PARAM_PROTO) &&
		(!plugin || !strcasecmp(plugin, "none")))
		return OK;
	made = calloc(1, sizeof(*made));
	if (!made)
		return err_set(ERR_SYSTEM, "no memory for the limits of NCCL_ALGO");
	e = model_rules_read(&made->rules);
	if (e) {
		free(made);
		return e;
	}
	*limits = made;
	return OK;
}

void limits_plug(struct limits *limits, const struct cluster *cluster, uint64_t comm)
{
	const char *plugin = param_text(PARAM_TUNER_PLUGIN);

	/* Unset, NCCL looks for a plugin of the usual name; we load what is asked for. */
	if (!plugin || !strcasecmp(plugin, "none"))
		return;
	limits->tuner = tuner_open(cluster, comm, &limits->rules);
	if (limits->tuner && model_make(cluster, &limits->rules, &limits->model)) {
		tuner_close(limits->tuner);
		limits->tuner = NULL;
	}
}

static enum err plugin_schedule(
	struct limits *limits, const struct limits_call *call, const char **name)
{
	bool blocks = call->coll == COLL_ALL_GATHER || call->coll == COLL_REDUCE_SCATTER;
	struct model_call ask = {.bytes = call->bytes * (blocks ? call->rank_count : 1),
		.pipe_ops = 1,
		.type = (int)call->type};
	struct model_choice choice = {0};
	bool forced = false;
	enum err e = OK;

	if (limits->tuner && limits_func(call->coll, &ask.func))
		e = tuner_force(limits->tuner, &limits->model, &ask, &choice, &forced);
	if (!e && forced)
		*name = schedules[call->coll][choice.algo];
	return e;
}

static enum err none_left(enum model_func func, enum dtype type)
{
	return err_set(ERR_USAGE,
		"No algorithm/protocol available for function %s with datatype %s: "
		"NCCL_ALGO is %s, of which host memory has nothing; allow Ring",
		model_func_name(func), dtype_name(type), param_text(PARAM_ALGO));
}

/* The best of those that are allowed. */
static const char *preferred(
	const struct limits *limits, enum model_func func, const struct limits_call *call)
{
	const enum algo *order = limits_order(call->bytes);

	for (int i = 0; i < LIMITS_ALGOS; i++)
		if (limits->rules.algo[func][order[i]] && schedules[call->coll][order[i]])
			return schedules[call->coll][order[i]];
	return NULL;
}

enum err limits_schedule(
	struct limits *limits, const struct limits_call *call, const char **name)
{
	bool is_far = call->rank_count > PROG_PEERS_MAX;
	enum model_func func;
	enum err e;

	*name = NULL;
	if (!limits || call->rank_count == 1 || !limits_func(call->coll, &func))
		return OK;
	e = plugin_schedule(limits, call, name);
	if (e || *name || !limits->rules.algo_set)
		return e;
	/* for very many ranks the table has the ring, which may be excluded */
	if (!limits->rules.algo_listed[func] &&
		(!is_far || limits->rules.algo[func][ALGO_RING]))
		return OK;
	*name = preferred(limits, func, call);
	return *name ? OK : none_left(func, call->type);
}

const struct model *limits_model(const struct limits *limits)
{
	return limits && limits->tuner ? &limits->model : NULL;
}

const struct model_rules *limits_rules(const struct limits *limits)
{
	return &limits->rules;
}

void limits_free(struct limits *limits)
{
	if (!limits)
		return;
	tuner_close(limits->tuner);
	free(limits);
}
