/*
 * tuner.c - the tuner that NCCL finds in the same file: ncclTunerPlugin_v2 to _v6, on
 * AWS's instances whose best choices are known (regions.h).
 */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <strings.h>

#include "platform.h"
#include "say.h"
#include "setting.h"
#include "tune/plugin_abi.h"
#include "tune/regions.h"

#define EXPORT __attribute__((visibility("default")))

struct tuning {
	struct region_question question; /* all but func and bytes */
	bool is_off_for_old;		 /* version 2 leaves the user's choice alone */
};

static const char tuner_name[] = "nccl_ofi_tuner";

static int tuner_init(size_t ranks, size_t nodes, plugin_log *log, void **context)
{
	struct tuning *tuning = calloc(1, sizeof(*tuning));
	char type[PLATFORM_TYPE_BYTES] = "";

	say_open(log);
	if (!tuning)
		return say_wrong(OFI_SYSTEM, "no memory for the tuner");
	*context = tuning;
	if (settings_read()) {
		free(tuning);
		return OFI_ARGUMENT;
	}
	platform_type(type);
	if (nodes && !(ranks % nodes) &&
		strcasecmp(setting_text(SET_TUNER_TYPE), "INTERNAL"))
		tuning->question = (struct region_question){
			.machine = region_machine(type),
			.node_count = (uint32_t)nodes,
			.ranks_per_node = (uint32_t)(ranks / nodes)};
	tuning->is_off_for_old = getenv("NCCL_ALGO") || getenv("NCCL_PROTO");
	say_info("Tuner: %s, %zu nodes, %s", type[0] ? type : "no instance of AWS", nodes,
		tuning->question.machine ? "tables of its own" : "NCCL chooses");
	return OFI_OK;
}

static int tuner_end(void *context)
{
	free(context);
	return OFI_OK;
}

static bool tuner_choose(const struct tuning *tuning, int func, size_t bytes,
	enum algo *algo, enum proto *proto)
{
	struct region_question question = tuning->question;

	if (func < 0 || func >= MODEL_FUNCS || !question.machine)
		return false;
	question.func = (enum model_func)func;
	question.bytes = bytes;
	return region_choose(&question, algo, proto);
}

/* PAT for short messages of one rank a node is better with few channels. */
static void channels_choose(
	const struct tuning *tuning, enum algo algo, size_t bytes, int *channels)
{
	const struct region_question *q = &tuning->question;
	size_t nodes = q->node_count;

	if (algo != ALGO_PAT || q->ranks_per_node != 1 || bytes > (32u << 20))
		return;
	if (bytes <= nodes << 16)
		*channels = 1;
	else if (bytes <= nodes << 17)
		*channels = 2;
}

static int ask_v2(void *context, int func, size_t bytes, int collnet, int nvls,
	int pipe_ops, int *algo, int *proto, int *channels)
{
	const struct tuning *tuning = context;
	enum algo a;
	enum proto p;

	(void)collnet;
	(void)pipe_ops;
	if (tuning->is_off_for_old || !tuner_choose(tuning, func, bytes, &a, &p) ||
		(a == ALGO_NVLS_TREE && !nvls))
		return OFI_OK;
	*algo = (int)a;
	*proto = (int)p;
	channels_choose(tuning, a, bytes, channels);
	return OFI_OK;
}

/* What NCCL has ruled out, or does not know, stays so. */
static int ask_v3(void *context, int func, size_t bytes, int pipe_ops, float **costs,
	int algos, int protos, int *channels)
{
	float *table = (float *)costs;
	enum algo a;
	enum proto p;
	float *cost;

	(void)pipe_ops;
	if (!tuner_choose(context, func, bytes, &a, &p) || (int)a >= algos ||
		(int)p >= protos)
		return OFI_OK;
	cost = &table[(int)a * protos + (int)p];
	if (*cost < 0)
		return OFI_OK;
	*cost = 0;
	channels_choose(context, a, bytes, channels);
	return OFI_OK;
}

static int ask_v4(void *context, int func, size_t bytes, int pipe_ops, float **costs,
	int algos, int protos, int registered, int *channels)
{
	(void)registered;
	return ask_v3(context, func, bytes, pipe_ops, costs, algos, protos, channels);
}

static int init_v5(void **context, uint64_t comm, size_t ranks, size_t nodes,
	plugin_log *log, struct plugin_domains *domains,
	struct model_constants *constants)
{
	(void)comm;
	(void)domains;
	(void)constants;
	return tuner_init(ranks, nodes, log, context);
}

EXPORT const struct plugin_v2 ncclTunerPlugin_v2 = {
	tuner_name, tuner_init, ask_v2, tuner_end};
EXPORT const struct plugin_v3 ncclTunerPlugin_v3 = {
	tuner_name, tuner_init, ask_v3, tuner_end};
EXPORT const struct plugin_v4 ncclTunerPlugin_v4 = {
	tuner_name, tuner_init, ask_v4, tuner_end};
EXPORT const struct plugin_v5 ncclTunerPlugin_v5 = {
	tuner_name, init_v5, ask_v4, tuner_end};
EXPORT const struct plugin_v6 ncclTunerPlugin_v6 = {
	{tuner_name, init_v5, ask_v4, tuner_end}, NULL};
