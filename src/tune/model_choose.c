/*
 * model_choose.c - the time of a call, the pair with the least, and how much of the GPU
 * it gets: channels and threads.
 */
#include <assert.h>
#include <float.h>

#include "base/dtype.h"
#include "base/param.h"
#include "tune/model.h"

enum { WARP = 32, WARPS_MIN = 3, THREADS_MAX = 640, HALVED_THREADS = 128 };
enum { COLLS_PER_BATCH = 8 };	     /* that share the start of a tree */
enum { DIRECT_RANKS_MAX = 8 };	     /* of a node, for CollNet */
enum { NVLS_RANKS_MAX = 32 };	     /* of a node, when each has its block */
enum { CHANNEL_TRAFFIC = 32 << 10 }; /* bytes: least that is worth a channel */
enum { CELL_ALIGN = 16, LL_TRAFFIC = 4 };
enum { FP8_RANKS = 8 };
static const float fp8_penalty = 1024;

/* Trees do not keep to the model at middle sizes; what part of their bandwidth they
 * reach, at 64 B and every doubling. */
enum { TREE_SIZES = 24 };
static const float tree_part[PROTO_COUNT][TREE_SIZES] = {
	[PROTO_LL] = {1, 1, 1, 1, .9f, .8f, .7f, .7f, .7f, .7f, .6f, .5f, .4f, .4f, .5f,
		.6f, .7f, .8f, .9f, 1, 1, 1, 1, 1},
	[PROTO_LL128] = {1, 1, 1, 1, 1, .9f, .8f, .8f, .8f, .7f, .6f, .6f, .6f, .6f, .6f,
		.6f, .8f, .9f, .9f, .9f, .9f, 1, 1, 1},
	[PROTO_SIMPLE] = {.9f, .9f, .9f, .9f, .9f, .9f, .9f, .8f, .7f, .6f, .6f, .5f, .5f,
		.5f, .5f, .6f, .7f, .8f, .7f, .7f, .8f, .9f, .9f, .9f},
};

static bool is_blocks(enum model_func func)
{
	return func == MODEL_ALL_GATHER || func == MODEL_REDUCE_SCATTER;
}

static bool is_reducing(enum model_func func)
{
	return func == MODEL_ALL_REDUCE || func == MODEL_REDUCE ||
	       func == MODEL_REDUCE_SCATTER;
}

static bool is_nvls(enum algo algo)
{
	return algo == ALGO_NVLS || algo == ALGO_NVLS_TREE;
}

/* What only copies is cut in bytes. */
static uint64_t element_bytes(const struct model_call *call)
{
	return is_reducing(call->func) ? dtype_size((enum dtype)call->type) : 1;
}

/* How many blocks `bytes` counts. */
static uint64_t block_count(const struct model *model, const struct model_call *call)
{
	return is_blocks(call->func) ? (uint64_t)model->cluster->rank_count : 1;
}

uint64_t model_round(const struct model *model, const struct model_call *call)
{
	uint64_t grain = element_bytes(call) * block_count(model, call);

	return model->cluster->rank_count == 1 ? 0 : call->bytes / grain * grain;
}

static int log2_size(uint64_t n)
{
	int log = -1;

	for (; n; n >>= 1)
		log++;
	return log;
}

/* Do NVLS trees fall short like plain ones? Only where that was measured. */
static bool nvls_tree_falls_short(const struct cluster *cluster, int size)
{
	if (cluster->min_sm < 100)
		return false;
	if (cluster->cpu_arch == CPU_ARCH_X86)
		return true;
	return cluster->cpu_arch == CPU_ARCH_ARM && cluster->nccl >= NCCL_RULES_2_32 &&
	       cluster->min_net_bw >= 96.0f && cluster->min_local_ranks == 4 &&
	       cluster->max_local_ranks == 4 &&
	       (size < TREE_SIZES - 1 || cluster->node_count > 2);
}

/* The part of its bandwidth that a tree of this size reaches; 1 for all others. */
static float size_part(const struct model *model, const struct model_call *call,
	enum algo algo, enum proto proto)
{
	const struct cluster *cluster = model->cluster;
	int size = log2_size(call->bytes >> 6);
	int sizes = 0;

	if (algo == ALGO_TREE)
		sizes = TREE_SIZES - 1;
	if (algo == ALGO_NVLS_TREE && nvls_tree_falls_short(cluster, size))
		sizes = TREE_SIZES;
	return size >= 0 && size < sizes ? tree_part[proto][size] : 1;
}

/* A ring across nodes stalls on larger calls. */
static bool ring_stalls(const struct model *model, const struct model_call *call,
	enum algo a, enum proto p)
{
	const struct cluster *cluster = model->cluster;
	uint64_t lanes = (uint64_t)cluster->channel_count * (uint64_t)cluster->rank_count;

	return a == ALGO_RING && p == PROTO_SIMPLE && cluster->node_count > 1 &&
	       call->func == MODEL_ALL_REDUCE && lanes && call->bytes / lanes >= 64;
}

float model_time(const struct model *model, const struct model_call *call, enum algo algo,
	enum proto proto)
{
	float bandwidth = model->bandwidth[call->func][algo][proto];
	float latency = model->latency[call->func][algo][proto];
	int starts = call->pipe_ops;

	if (bandwidth == 0)
		return MODEL_IGNORE;
	if (call->func == MODEL_ALL_REDUCE)
		bandwidth *= size_part(model, call, algo, proto);
	if (ring_stalls(model, call, algo, proto))
		latency = (float)(latency * (model->cluster->min_sm < 80 ? 1.9 : 1.4));
	if (algo != ALGO_RING)
		starts = (starts + COLLS_PER_BATCH - 1) / COLLS_PER_BATCH;
	return latency * (float)starts + (float)call->bytes / (1000 * bandwidth);
}

/* The switches reduce these types, and not every operator of them. */
static bool nvls_reduces(const struct model_call *call)
{
	switch (call->type) {
	case DTYPE_INT32:
	case DTYPE_UINT32:
	case DTYPE_INT64:
	case DTYPE_UINT64:
	case DTYPE_FLOAT16:
	case DTYPE_BFLOAT16:
		return call->op == REDOP_SUM || call->op == REDOP_MAX ||
		       call->op == REDOP_MIN;
	case DTYPE_FLOAT32:
	case DTYPE_FLOAT64:
		return call->op == REDOP_SUM;
	default:
		return false;
	}
}

static bool nvls_takes(const struct cluster *cluster, const struct model_call *call)
{
	return cluster->nvls_support &&
	       (call->func == MODEL_ALL_GATHER || nvls_reduces(call)) &&
	       (call->func == MODEL_ALL_REDUCE || cluster->local_ranks <= NVLS_RANKS_MAX);
}

/* May this call, of this type and operator, use the algorithm? */
static bool algo_takes(
	const struct model *model, const struct model_call *call, enum algo algo)
{
	const struct cluster *cluster = model->cluster;

	switch (algo) {
	case ALGO_COLLNET_DIRECT:
	case ALGO_COLLNET_CHAIN:
		return cluster->collnet_enable &&
		       cluster->max_local_ranks <= DIRECT_RANKS_MAX;
	case ALGO_NVLS:
		return nvls_takes(cluster, call) &&
		       (cluster->collnet_enable || cluster->node_count == 1);
	case ALGO_NVLS_TREE:
		return nvls_takes(cluster, call);
	case ALGO_PAT: /* has no place to scale in */
		return call->func != MODEL_REDUCE_SCATTER || call->op < REDOP_AVG;
	default:
		return true;
	}
}

/* A long ring rounds fp8 once per hop: last resort. */
static bool is_lossy(
	const struct model *model, const struct model_call *call, enum algo algo)
{
	return algo == ALGO_RING && is_reducing(call->func) &&
	       (call->type == DTYPE_FLOAT8E4M3 || call->type == DTYPE_FLOAT8E5M2) &&
	       model->cluster->rank_count > FP8_RANKS;
}

void model_costs_fill(
	const struct model *model, const struct model_call *call, model_costs costs)
{
	for (int a = 0; a < ALGO_COUNT; a++)
		for (int p = 0; p < PROTO_COUNT; p++) {
			bool takes = algo_takes(model, call, (enum algo)a);
			bool lossy = is_lossy(model, call, (enum algo)a);

			costs[a][p] = takes ? model_time(model, call, (enum algo)a,
						      (enum proto)p)
					    : MODEL_IGNORE;
			if (lossy)
				costs[a][p] *= fp8_penalty;
		}
	if (model->cluster->rank_count == 1)
		costs[ALGO_RING][PROTO_SIMPLE] = 0;
}

/* CollNet: down in halves, and easier on the threads half way between two. */
static int direct_channels(const struct model *model, uint64_t bytes, int64_t threads)
{
	int64_t threshold = model->thresholds[ALGO_COLLNET_DIRECT][PROTO_SIMPLE];
	int64_t heads = model->cluster->collnet_direct_heads;
	int64_t channels = model->cluster->channel_count;

	for (int floor = 16; floor >= 1; floor /= 2) {
		while (channels > floor &&
			bytes < (uint64_t)(channels * threads * heads * threshold)) {
			if (channels == floor + floor / 2)
				threshold /= 2;
			channels--;
		}
		if (bytes >= (uint64_t)(channels * threads * heads * threshold))
			break;
	}
	return (int)channels;
}

static int nvls_channels(const struct cluster *cluster, enum algo algo)
{
	if (cluster->node_count > 1 && algo == ALGO_NVLS &&
		cluster->channel_count < cluster->nvls_channels)
		return cluster->channel_count;
	return cluster->nvls_channels;
}

/* Channels and threads for the pair that was chosen: fewer, while each thread would have
 * less than its threshold. */
static void size_parts(const struct model *model, const struct model_call *call,
	struct model_choice *choice)
{
	enum algo algo = choice->algo;
	int64_t threshold = model->thresholds[algo][choice->proto];
	int64_t threads = model->max_threads[algo][choice->proto];
	int64_t channels = model->cluster->channel_count;

	if (algo == ALGO_COLLNET_DIRECT) {
		channels = direct_channels(model, call->bytes, threads);
	} else if (is_nvls(algo)) {
		channels = nvls_channels(model->cluster, algo);
	} else {
		while (channels >= 2 &&
			call->bytes < (uint64_t)(channels * threads * threshold))
			channels--;
		while (threads && threads % HALVED_THREADS == 0 &&
			call->bytes < (uint64_t)(channels * threads * threshold))
			threads /= 2;
	}
	if (choice->proto == PROTO_SIMPLE && algo == ALGO_RING)
		threads += WARP; /* one warp keeps the others in step */
	if (threads < WARPS_MIN * WARP)
		threads = WARPS_MIN * WARP;
	if (algo == ALGO_TREE || algo == ALGO_PAT)
		threads = THREADS_MAX;
	choice->channels = (int)channels;
	choice->threads = (int)(threads / WARP * WARP);
}

static uint64_t up(uint64_t a, uint64_t b)
{
	return (a + b - 1) / b;
}

/* Bytes that travel for each byte of a rank's own block. */
static uint64_t traffic_factor(const struct model *model, const struct model_call *call)
{
	if (call->func == MODEL_ALL_REDUCE)
		return 2;
	return block_count(model, call);
}

/* Channels that exist for what this algorithm needs of them. */
static int channels_of_kind(const struct cluster *cluster, enum algo algo)
{
	if (is_nvls(algo))
		return nvls_channels(cluster, algo);
	return cluster->channel_count;
}

/* A lone call is cut into cells of 32 KiB of traffic, and whole cells are dealt to the
 * channels one after the other until none is left. */
static int channels_used(const struct model *model, const struct model_call *call,
	const struct model_choice *choice)
{
	const struct cluster *cluster = model->cluster;
	uint64_t own = call->bytes / block_count(model, call);
	uint64_t factor = traffic_factor(model, call) *
			  (choice->proto == PROTO_LL ? LL_TRAFFIC : 1);
	uint64_t cell = up(up(CHANNEL_TRAFFIC, factor), CELL_ALIGN) * CELL_ALIGN;
	uint64_t cells = up(own, cell);
	int limit = channels_of_kind(cluster, choice->algo);
	int wanted = choice->channels < limit ? choice->channels : limit;
	uint64_t traffic = own * factor > CHANNEL_TRAFFIC ? own * factor
							  : CHANNEL_TRAFFIC;
	uint64_t share, used;

	if (choice->algo == ALGO_COLLNET_DIRECT || choice->algo == ALGO_COLLNET_CHAIN ||
		(choice->algo == ALGO_NVLS && cluster->node_count > 1))
		return choice->channels;
	if (!cells || wanted < 1)
		return 0;
	share = up(
		up(traffic / (uint64_t)wanted, CELL_ALIGN) * CELL_ALIGN, cell * factor);
	used = limit == 1 ? 1 : up(cells, share);
	return used > (uint64_t)limit ? limit : (int)used;
}

/* The user's lists, as the end of a sentence. */
static const char *set_text(bool set, enum param id)
{
	const char *text = set ? param_text(id) : NULL;

	return text ? text : set ? "given by an option" : "not set";
}

static enum err none_left(const struct model *model, const struct model_call *call)
{
	bool asked = model->rules.algo_set || model->rules.proto_set;

	if (!asked)
		return err_set(ERR_INTERNAL,
			"No algorithm/protocol available for function %s with datatype "
			"%s",
			model_func_name(call->func), dtype_name((enum dtype)call->type));
	return err_set(ERR_USAGE,
		"No algorithm/protocol available for function %s with datatype %s: "
		"NCCL_ALGO is %s, NCCL_PROTO is %s; allow one more",
		model_func_name(call->func), dtype_name((enum dtype)call->type),
		set_text(model->rules.algo_set, PARAM_ALGO),
		set_text(model->rules.proto_set, PARAM_PROTO));
}

enum err model_costs_pick(const struct model *model, const struct model_call *call,
	model_costs costs, int channels, struct model_choice *choice)
{
	struct model_choice best = {.time_us = FLT_MAX};
	bool any = false;

	for (int a = 0; a < ALGO_COUNT; a++)
		for (int p = 0; p < PROTO_COUNT; p++) {
			if (!(costs[a][p] >= 0 && costs[a][p] < best.time_us))
				continue;
			any = true;
			best.algo = (enum algo)a;
			best.proto = (enum proto)p;
			best.time_us = costs[a][p];
		}
	if (!any)
		return none_left(model, call);
	size_parts(model, call, &best);
	if (channels > 0) {
		int limit = channels_of_kind(model->cluster, best.algo);

		best.channels = channels < limit ? channels : limit;
	}
	best.channels_used = channels_used(model, call, &best);
	*choice = best;
	return OK;
}

enum err model_choose(const struct model *model, const struct model_call *call,
	struct model_choice *choice)
{
	model_costs costs;

	assert(call->func < MODEL_FUNCS && call->type >= 0 && call->type < DTYPE_COUNT);
	model_costs_fill(model, call, costs);
	return model_costs_pick(model, call, costs, 0, choice);
}
