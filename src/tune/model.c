/*
 * model.c - the latency and the bandwidth of every pair of algorithm and protocol.
 *
 * What a call of some size then takes, and which pair it gets, is in model_choose.c.
 * Bandwidths are first counted on the bus, as a link sees them, and turned into what a
 * caller sees (bytes of the call per time) at the end. Arithmetic is in float wherever
 * NCCL's is: two pairs may differ by less than the rounding.
 */
#include "tune/model.h"

#include <float.h>
#include <string.h>

#include "base/log.h"

enum { WARP = 32, SIMPLE_THREADS = 512, LL_THREADS = 512, LL128_THREADS = 640 };
enum { THREADS_MAX = 640, THREADS_SLOW = 256 };
enum { LL_THRESHOLD = 8, SIMPLE_THRESHOLD = 64, COLLNET_THRESHOLD = 512 };
static const float slow_bus = 12.0f; /* GB/s: a PCI 3 slot */

/* How much of an NVLS graph's speed the switches give, by GPU. */
static const float nvls_efficiency[GPU_COUNT] = {0.0f, 0.0f, 0.85f, 0.74f};

/* What all pairs have in common. */
struct scene {
	const struct cluster *cluster;
	const struct model_rules *rules;
	enum model_gpu gpu;
	int scale;
	float ranks_per_node;
	double ll_max;
};

/* One cell of the table. */
struct cell {
	const struct scene *scene;
	enum model_func func;
	enum algo algo;
	enum proto proto;
	const struct graph_info *graph;
};

static enum model_gpu gpu_of(int sm)
{
	return sm >= 100  ? GPU_BLACKWELL
	       : sm >= 90 ? GPU_HOPPER
	       : sm >= 80 ? GPU_AMPERE
			  : GPU_VOLTA;
}

/* LL goes at the speed of the GPUs inside a node, at that of the processors between. */
static int ll_row(const struct cluster *cluster, enum model_gpu gpu)
{
	if (cluster->node_count == 1)
		return (int)gpu;
	return cluster->cpu_vendor == CPU_AMD || cluster->cpu_vendor == CPU_VENDOR_MIXED;
}

static void scene_set(struct scene *scene, const struct cluster *cluster,
	const struct model_rules *rules)
{
	int nodes = cluster->node_count;
	enum model_gpu gpu = gpu_of(cluster->min_sm);
	int scale = nodes <= 2 ? nodes - 1 : 2;

	*scene = (struct scene){.cluster = cluster,
		.rules = rules,
		.gpu = gpu,
		.scale = scale,
		.ranks_per_node = (float)cluster->rank_count / (float)nodes,
		.ll_max = rules->constants.ll_max[ll_row(cluster, gpu)][scale]};
}

static bool is_collnet(enum algo algo)
{
	return algo == ALGO_COLLNET_DIRECT || algo == ALGO_COLLNET_CHAIN;
}

static bool is_nvls(enum algo algo)
{
	return algo == ALGO_NVLS || algo == ALGO_NVLS_TREE;
}

/* Every rank has a block of its own on one side. */
static bool is_blocks(enum model_func func)
{
	return func == MODEL_ALL_GATHER || func == MODEL_REDUCE_SCATTER;
}

static bool pat_is_on(const struct scene *scene)
{
	if (scene->cluster->min_sm < 60)
		return false;
	if (scene->rules->pat_enable != 2)
		return scene->rules->pat_enable;
	return scene->cluster->node_count == scene->cluster->rank_count;
}

/* Is the function written for this algorithm and protocol at all? */
static bool cell_exists(const struct cell *cell)
{
	bool simple = cell->proto == PROTO_SIMPLE;

	switch (cell->algo) {
	case ALGO_RING:
		return true;
	case ALGO_TREE:
	case ALGO_COLLNET_CHAIN:
		return cell->func == MODEL_ALL_REDUCE;
	case ALGO_COLLNET_DIRECT:
		return cell->func == MODEL_ALL_REDUCE || is_blocks(cell->func);
	case ALGO_NVLS:
		return simple && cell->graph->channel_count >= 2 &&
		       cell->scene->rules->nvls_enable &&
		       (cell->func == MODEL_ALL_REDUCE || is_blocks(cell->func));
	case ALGO_NVLS_TREE:
		return simple && cell->graph->channel_count >= 2 &&
		       cell->scene->rules->nvls_enable && cell->func == MODEL_ALL_REDUCE;
	case ALGO_PAT:
		return simple && is_blocks(cell->func) && pat_is_on(cell->scene);
	default:
		return false;
	}
}

static float least(float a, float b)
{
	return a < b ? a : b;
}

/* The lesser of two doubles, kept as a float. */
static float cap(double bandwidth, double limit)
{
	return (float)(bandwidth < limit ? bandwidth : limit);
}

static float ring_bus(const struct cell *cell, float bus)
{
	const struct scene *s = cell->scene;
	double per_channel = s->rules->constants.ring_ll128_max[s->gpu][s->scale];

	if (cell->proto == PROTO_LL)
		return cap(bus * .5, s->ll_max);
	if (cell->proto == PROTO_LL128)
		return cap(bus * .92, cell->graph->channel_count * per_channel);
	return bus;
}

static float tree_bus(const struct cell *cell, float bus)
{
	const struct scene *s = cell->scene;
	const struct model_constants *k = &s->rules->constants;
	int channels = cell->graph->channel_count;

	bus = cap(bus * .92, channels * k->tree_max[s->gpu][s->scale]);
	if (cell->proto == PROTO_LL)
		bus = cap(bus * 1.0 / 3.8, s->ll_max);
	if (cell->proto == PROTO_LL128)
		bus = cap(bus * (s->cluster->node_count == 1 ? 7.0 / 9.0 : 120.0 / 128.0),
			channels * k->tree_ll128_max[s->gpu][s->scale]);
	/* both halves of a plain tree go through the same GPU */
	if (s->cluster->max_tree_pattern == PATTERN_TREE)
		bus = (float)(bus * .85);
	return bus;
}

static float nvls_bus(const struct cell *cell)
{
	const struct scene *s = cell->scene;
	const struct graph_info *graph = cell->graph;
	int channels = graph->channel_count;
	bool tree = cell->algo == ALGO_NVLS_TREE;
	float ppn = s->ranks_per_node;
	float intra = graph->bw_intra * nvls_efficiency[s->gpu] * (float)(channels - 1) /
		      (float)channels;
	float inter = graph->bw_inter;
	float limit = tree ? (float)s->rules->constants.nvls_tree_max[s->gpu][s->scale]
			   : FLT_MAX;

	/* reduce and broadcast overlap; otherwise the own block need not travel */
	intra *= cell->func == MODEL_ALL_REDUCE ? 2.0f : (ppn - 1) / ppn;
	if (tree && s->cluster->node_count <= 2)
		inter *= 2;
	return (float)channels * least(least(intra, inter), limit);
}

/* Heads serve the GPUs that have no NIC of their own. */
static float collnet_direct_bus(const struct cell *cell, float bus)
{
	const struct scene *s = cell->scene;
	const struct graph_info *graph = cell->graph;
	float sharing;

	if (cell->proto != PROTO_SIMPLE)
		return 0;
	if (is_blocks(cell->func))
		return s->ranks_per_node * least(graph->bw_intra, graph->bw_inter * 0.9f);
	sharing = (float)(s->ranks_per_node / (1.0 * graph->channel_count));
	sharing -= (sharing - 1) / 2;
	bus /= sharing;
	return s->cluster->min_sm >= 90 ? (float)(bus * .85) : bus;
}

/* Between nodes, blocks pass through the network's reduction only when every rank of
 * every node is a head. */
static bool blocks_have_heads(const struct cell *cell)
{
	const struct cluster *cluster = cell->scene->cluster;

	if ((cell->algo != ALGO_NVLS && cell->algo != ALGO_COLLNET_DIRECT) ||
		!is_blocks(cell->func) || cluster->node_count == 1)
		return true;
	return cluster->collnet_enable &&
	       cluster->max_local_ranks <= cluster->collnet_heads;
}

static float bus_bandwidth(const struct cell *cell)
{
	const struct graph_info *graph = cell->graph;
	bool inside = cell->scene->cluster->node_count <= 2 || is_collnet(cell->algo);
	float bus = (float)graph->channel_count *
		    (inside ? graph->bw_intra : graph->bw_inter);

	if (!blocks_have_heads(cell))
		return 0;
	switch (cell->algo) {
	case ALGO_RING:
		return ring_bus(cell, bus);
	case ALGO_TREE:
		return tree_bus(cell, bus);
	case ALGO_NVLS:
	case ALGO_NVLS_TREE:
		return nvls_bus(cell);
	case ALGO_COLLNET_DIRECT:
		return collnet_direct_bus(cell, bus);
	case ALGO_COLLNET_CHAIN:
		return cell->proto == PROTO_SIMPLE ? bus : 0;
	case ALGO_PAT:
		return (float)(bus * .75);
	default:
		return 0;
	}
}

/* Hops that a byte makes around the ring. */
static int ring_hops(const struct cell *cell)
{
	int ranks = cell->scene->cluster->rank_count;

	if (cell->func == MODEL_ALL_REDUCE)
		return 2 * (ranks - 1);
	return is_blocks(cell->func) ? ranks - 1 : ranks;
}

static float algo_bandwidth(const struct cell *cell)
{
	float bus = bus_bandwidth(cell);
	int ranks = cell->scene->cluster->rank_count;
	float ratio = .5f;

	if (cell->algo != ALGO_RING && is_blocks(cell->func))
		return bus;
	if (cell->algo == ALGO_RING || is_nvls(cell->algo))
		ratio = (float)((1.0 * ranks) / ring_hops(cell));
	return bus * ratio;
}

static int log2_floor(int n)
{
	int log = -1;

	for (; n > 0; n >>= 1)
		log++;
	return log;
}

static float net_overhead(const struct scene *scene)
{
	const struct cluster *cluster = scene->cluster;

	if (scene->rules->net_overhead_ns != -2)
		return (float)(scene->rules->net_overhead_ns * .001);
	return cluster->cpu_arch == CPU_ARCH_X86 && cluster->cpu_vendor == CPU_AMD ? 2.0f
										   : 1.0f;
}

/* On POWER a tree's hop over PCI costs no more than a ring's. */
static float hop_latency(const struct cell *cell, enum model_wire wire, enum algo algo)
{
	if (cell->scene->cluster->cpu_arch == CPU_ARCH_POWER && wire == WIRE_PCI &&
		algo == ALGO_TREE && cell->proto == PROTO_SIMPLE)
		algo = ALGO_RING;
	return (float)cell->scene->rules->constants.wire_latency[wire][algo][cell->proto];
}

static enum model_wire inner_wire(const struct cell *cell)
{
	return cell->graph->type_intra == PATH_NVL ? WIRE_NVLINK : WIRE_PCI;
}

/* Between nodes; Simple pays the network twice, for the flush. */
static float inter_latency(const struct cell *cell)
{
	enum algo row = cell->scene->ranks_per_node == 1 ? ALGO_TREE : cell->algo;
	float latency = hop_latency(cell, WIRE_NET, row) + cell->graph->latency_inter;

	return cell->proto == PROTO_SIMPLE ? latency + cell->graph->latency_inter
					   : latency;
}

/* A chain from or to the root: a pipeline, which is as long as its first chunk takes
 * unless all channels have the same order. */
static float chain_latency(const struct cell *cell)
{
	enum model_wire wire = cell->scene->cluster->node_count == 1 ? inner_wire(cell)
								     : WIRE_NET;

	if (cell->graph->same_channels)
		return hop_latency(cell, wire, ALGO_RING);
	return (float)ring_hops(cell) *
	       hop_latency(
		       cell, wire, cell->proto == PROTO_SIMPLE ? ALGO_TREE : ALGO_RING);
}

static float ring_latency(const struct cell *cell)
{
	int nodes = cell->scene->cluster->node_count;
	int hops = ring_hops(cell);
	int inter = cell->func == MODEL_ALL_REDUCE ? 2 * (nodes - 1) : nodes - 1;
	float intra = hop_latency(cell, inner_wire(cell), ALGO_RING);
	float overhead = 0;

	if (cell->func == MODEL_BROADCAST || cell->func == MODEL_REDUCE)
		return chain_latency(cell);
	if (nodes > 1) {
		overhead = net_overhead(cell->scene);
		if (cell->proto == PROTO_SIMPLE)
			overhead *= 3;
	}
	if (intra < overhead)
		intra = overhead;
	return (float)(hops - inter) * intra + (float)inter * inter_latency(cell);
}

/* What comes on top of the base latency. */
static double way_latency(const struct cell *cell)
{
	int nodes = cell->scene->cluster->node_count;
	int ranks = cell->scene->cluster->rank_count;
	int others = ranks / nodes - 1; /* in a node */
	float intra = hop_latency(cell, inner_wire(cell), cell->algo);
	float inter = inter_latency(cell);

	switch (cell->algo) {
	case ALGO_RING:
		return ring_latency(cell);
	case ALGO_TREE:
		return 2 * ((float)others * intra + (float)log2_floor(nodes) * inter);
	case ALGO_COLLNET_DIRECT: /* 0.4 us for each that a head hears */
		return 2 * ((float)(others < 1 ? others : 1) * intra + others * 0.4) +
		       inter;
	case ALGO_COLLNET_CHAIN:
		return (float)(2 * others) * intra + inter;
	case ALGO_NVLS:
		return nodes > 1 ? intra + inter : intra;
	case ALGO_NVLS_TREE:
		return intra + (float)(2 * log2_floor(nodes)) * inter;
	case ALGO_PAT: /* a few rounds, and work for each rank */
		return log2_floor(nodes) * (inter / 3.5) + ranks * 2.8;
	default:
		return 0;
	}
}

/* LL128 needs 128-byte stores that arrive whole: NVLink, and a NIC near enough. */
static bool ll128_is_safe(const struct cell *cell)
{
	const struct cluster *cluster = cell->scene->cluster;
	bool far = cell->scene->rules->ll128_c2c && cluster->min_sm >= 90;

	return cell->graph->type_inter <= (far ? PATH_PXN : PATH_PXB) &&
	       cell->graph->type_intra <= PATH_NVB &&
	       (cluster->min_sm == cluster->max_sm || cluster->min_sm >= 90) &&
	       cluster->min_sm >= 70;
}

static bool cell_is_enabled(const struct cell *cell)
{
	const struct cluster *cluster = cell->scene->cluster;
	const struct model_rules *rules = cell->scene->rules;
	int proto = rules->proto[cell->func][cell->proto];

	if (!proto || !rules->algo[cell->func][cell->algo])
		return false;
	if (proto == 2 && cell->proto == PROTO_LL128 && !ll128_is_safe(cell))
		return false;
	switch (cell->algo) {
	case ALGO_NVLS_TREE:
		return cluster->node_count > 1;
	case ALGO_NVLS:
		return cluster->node_count == 1 || cluster->collnet_enable;
	case ALGO_COLLNET_DIRECT:
		return cluster->collnet_enable && cluster->nvs_count > 0;
	case ALGO_COLLNET_CHAIN:
		return cluster->collnet_enable && cluster->collnet_chain;
	default:
		return true;
	}
}

static void cell_fill(const struct cell *cell, struct model *model)
{
	double base = cell->scene->rules->constants.base_latency[cell->algo][cell->proto];
	float *latency = &model->latency[cell->func][cell->algo][cell->proto];

	if (!cell_exists(cell))
		return;
	*latency = cell->algo == ALGO_NVLS ? 0 : (float)base;
	*latency = (float)(*latency + way_latency(cell));
	if (cell_is_enabled(cell))
		model->bandwidth[cell->func][cell->algo][cell->proto] = algo_bandwidth(
			cell);
}

/* A thread count of the user's, brought into range. */
static int threads(const char *name, int asked, int max, int fallback)
{
	int min = max == LL128_THREADS ? LL128_THREADS / 4 : 2 * WARP;

	if (asked <= 0)
		return fallback;
	if (asked % WARP == 0 && asked >= min && asked <= max)
		return asked;
	log_info(LOG_GRAPH | LOG_ENV,
		"%s is %d; it should be a multiple of %d from %d to %d", name, asked,
		WARP, min, max);
	return asked % WARP == 0 && asked < min ? min : max;
}

static void threads_set(const struct cluster *cluster, const struct model_rules *rules,
	struct model *model)
{
	const struct graph_info *ring = &cluster->info[ALGO_RING];
	bool slow = ring->bw_intra * (float)ring->channel_count <= slow_bus;
	int(*max)[PROTO_COUNT] = model->max_threads;

	for (int a = ALGO_COLLNET_DIRECT; a <= ALGO_NVLS_TREE; a++)
		max[a][PROTO_SIMPLE] = THREADS_MAX;
	max[ALGO_RING][PROTO_SIMPLE] = threads("NCCL_NTHREADS", rules->threads,
		SIMPLE_THREADS, slow ? THREADS_SLOW : SIMPLE_THREADS);
	max[ALGO_TREE][PROTO_SIMPLE] = threads(
		"NCCL_NTHREADS", rules->threads, SIMPLE_THREADS, SIMPLE_THREADS);
	max[ALGO_RING][PROTO_LL] = max[ALGO_TREE][PROTO_LL] = threads(
		"NCCL_NTHREADS", rules->threads, LL_THREADS, LL_THREADS);
	max[ALGO_RING][PROTO_LL128] = max[ALGO_TREE][PROTO_LL128] = threads(
		"NCCL_LL128_NTHREADS", rules->ll128_threads, LL128_THREADS,
		LL128_THREADS);
}

/* Bytes per thread that are worth one more channel. */
static void thresholds_set(const struct cluster *cluster, const struct model_rules *rules,
	struct model *model)
{
	int64_t(*t)[PROTO_COUNT] = model->thresholds;

	for (int a = 0; a < ALGO_COUNT; a++) {
		t[a][PROTO_LL] = t[a][PROTO_LL128] = LL_THRESHOLD;
		t[a][PROTO_SIMPLE] = SIMPLE_THRESHOLD;
	}
	t[ALGO_RING][PROTO_LL] *= cluster->rank_count;
	t[ALGO_COLLNET_DIRECT][PROTO_SIMPLE] = COLLNET_THRESHOLD;
	t[ALGO_COLLNET_CHAIN][PROTO_SIMPLE] = COLLNET_THRESHOLD;
	for (int i = 0; i < 2 * PROTO_COUNT; i++)
		if (rules->thresholds[i] >= 0)
			t[i / PROTO_COUNT][i % PROTO_COUNT] = rules->thresholds[i];
}

enum err model_make(const struct cluster *cluster, const struct model_rules *rules,
	struct model *model)
{
	struct scene scene;
	struct cell cell = {.scene = &scene};

	if (cluster->rank_count < 1 || cluster->node_count < 1 ||
		cluster->node_count > cluster->rank_count)
		return err_set(ERR_ARGUMENT,
			"a cluster of %d ranks on %d nodes cannot be modelled",
			cluster->rank_count, cluster->node_count);
	*model = (struct model){.cluster = cluster, .rules = *rules};
	threads_set(cluster, rules, model);
	if (cluster->rank_count == 1)
		return OK;
	thresholds_set(cluster, rules, model);
	scene_set(&scene, cluster, rules);
	for (int i = 0; i < MODEL_FUNCS * ALGO_COUNT * PROTO_COUNT; i++) {
		cell.func = (enum model_func)(i / PROTO_COUNT / ALGO_COUNT);
		cell.algo = (enum algo)(i / PROTO_COUNT % ALGO_COUNT);
		cell.proto = (enum proto)(i % PROTO_COUNT);
		cell.graph = &cluster->info[cell.algo];
		cell_fill(&cell, model);
	}
	return OK;
}
