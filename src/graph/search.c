/*
 * search.c - what to ask of a graph, and what to give up when there is none.
 *
 * First pass: begin with the best of everything and give up one thing after the other, a
 * lower speed last. Then channels are doubled where they are fast. Second pass: keep what
 * was found and ask for more speed.
 */
#include <stdlib.h>

#include "graph/search.h"

/* Speeds to ask for, GB/s of one channel. */
struct ladder {
	const float *speeds;
	int count;
};

static const float inside_old[] = {40, 30, 20, 18, 15, 12, 10, 9, 7, 6, 5, 4, 3};
static const float inside_sm90[] = {60, 50, 40, 30, 24, 20, 15, 12, 11, 6, 3};
static const float inside_sm100[] = {90, 80, 70, 60, 50, 45, 40, 30, 24, 20, 19, 18};
static const float outside_old[] = {
	48, 30, 28, 24, 20, 18, 15, 12, 10, 9, 7, 6, 5, 4, 3, 2.4f, 1.2f, 0.24f, 0.12f};
static const float outside_sm90[] = {
	48, 45, 42, 40, 30, 24, 22, 20, 17.5f, 15, 12, 6, 3, 2.4f, 1.2f, 0.24f, 0.12f};
static const float outside_sm100[] = {96, 90.2f, 86, 80, 48, 45.1f, 42, 40, 30, 24, 22,
	20, 17.5f, 15, 12, 6, 3, 2.4f, 1.2f, 0.24f, 0.12f};
/* The same before 2.31. */
static const float outside_sm100_2_30[] = {96, 86, 80, 48, 45.1f, 42, 40, 30, 24, 22, 20,
	17.5f, 15, 12, 6, 3, 2.4f, 1.2f, 0.24f, 0.12f};

#define LADDER(speeds)                                                                   \
	{                                                                                \
		speeds, sizeof(speeds) / sizeof((speeds)[0])                             \
	}
/* [outside][before sm 90, sm 90, sm 100 and later] */
static const struct ladder ladders[2][3] = {
	{LADDER(inside_old), LADDER(inside_sm90), LADDER(inside_sm100)},
	{LADDER(outside_old), LADDER(outside_sm90), LADDER(outside_sm100)},
};
static const struct ladder ladder_2_30 = LADDER(outside_sm100_2_30);

/* Steps of a try, with and without equal channels, and of a whole search; an unbounded
 * search has more, and goes on with NCCL's once those are used up. */
enum {
	TRY_STEPS = 1 << 14,
	TRY_STEPS_SAME = 1 << 8,
	ALL_STEPS = 1 << 19,
	TRY_STEPS_UNBOUNDED = 1 << 20,
	ALL_STEPS_UNBOUNDED = 1 << 26
};

enum { NVLS_HEADS_MAX = 32, DIRECT_HEADS_MAX = 8 };

/* How far a search has come. */
struct descent {
	struct search *search;
	struct ladder ladder;
	int rung;
	int cross_nic; /* what may be tried in the end */
	bool tries_same;
	bool is_amd;
	int type_intra_min, type_intra_max, type_inter_min, type_inter_max;
	int64_t steps_all; /* left to the search */
	int steps;	   /* left to the last try */
};

static void set_speed(struct graph *trial, float speed)
{
	trial->bw_intra = speed;
	trial->bw_inter = speed;
}

/* The best and the worst type among the paths from GPUs to others of a kind. */
static void type_range(
	const struct topo *topo, enum topo_kind kind, int *least, int *greatest)
{
	*least = PATH_SYS;
	*greatest = PATH_LOC;
	for (uint32_t g = 0; g < topo->counts[TOPO_GPU]; g++) {
		const struct topo_node *gpu = topo_gpu_at(topo, g);

		for (uint32_t i = 0; i < topo->counts[kind] && gpu->paths[kind]; i++) {
			int type = (int)topo_path(gpu, kind, i)->type;

			if (kind == TOPO_GPU && i == g)
				continue;
			*least = type < *least ? type : *least;
			*greatest = type > *greatest ? type : *greatest;
		}
	}
}

static void types_prepare(struct descent *descent)
{
	const struct topo *topo = descent->search->topo;

	descent->type_intra_min = PATH_LOC;
	descent->type_inter_min = PATH_PIX;
	descent->type_intra_max = descent->type_inter_max = PATH_SYS;
	if (topo->counts[TOPO_GPU] > 1)
		type_range(topo, TOPO_GPU, &descent->type_intra_min,
			&descent->type_intra_max);
	if (topo->is_inter) {
		type_range(topo, TOPO_NET, &descent->type_inter_min,
			&descent->type_inter_max);
		descent->type_intra_max = descent->type_inter_max;
	}
	/* a balanced tree may have to come back over the CPUs */
	if (descent->search->sm < 90)
		descent->type_inter_max = PATH_SYS;
}

/* Two groups of GPUs with NVLink inside and something slower between them. */
static bool is_split(const struct topo *topo)
{
	uint32_t count = topo->counts[TOPO_GPU];
	uint32_t group[TOPO_GPUS_MAX], size[TOPO_GPUS_MAX] = {0}, groups = 0;

	for (uint32_t g = 0; g < count; g++)
		group[g] = g;
	for (uint32_t g = 0; g < count; g++)
		for (uint32_t peer = g + 1; peer < count; peer++)
			if (topo_path(topo_gpu_at(topo, g), TOPO_GPU, peer)->type ==
				PATH_NVL)
				group[peer] = group[g];
	for (uint32_t g = 0; g < count; g++)
		if (++size[group[g]] == 2)
			groups++;
	return groups == 2;
}

/* Bounds and pattern that hold whatever is asked for. */
static void bounds_prepare(const struct topo *topo, struct graph *graph)
{
	int gpus = (int)topo->counts[TOPO_GPU];

	if (graph->pattern == PATTERN_NVLS)
		graph->max_channels = gpus < NVLS_HEADS_MAX ? gpus : NVLS_HEADS_MAX;
	if (graph->pattern == PATTERN_COLLNET_DIRECT)
		graph->max_channels = gpus < DIRECT_HEADS_MAX ? gpus : DIRECT_HEADS_MAX;
	if (gpus == 1 && graph->pattern != PATTERN_RING)
		graph->pattern = PATTERN_TREE;
	/* inside a domain multicast must pull from all GPUs alike */
	if (!topo->is_inter && graph->pattern == PATTERN_NVLS)
		graph->min_channels = graph->max_channels;
	/* two islands: trees do better with two channels, and have as many as rings */
	if (graph->pattern == PATTERN_RING && graph->max_channels >= 2 &&
		graph->min_channels == 1 && is_split(topo))
		graph->min_channels = 2;
}

/* The first speed that one path carries, and all channels asked for on one GPU. */
static int first_rung(const struct descent *descent)
{
	const struct topo *topo = descent->search->topo;
	const struct graph *graph = descent->search->best;
	uint32_t devs = topo->counts[TOPO_DEV];
	float total = topo->total_bw;
	int rung = 0;

	/* what is no ring does not use every link */
	if (devs > 1 && graph->pattern != PATTERN_RING)
		total = (float)(total * (devs * 1.0 / (devs - 1)));
	while (rung < descent->ladder.count - 1 &&
		(descent->ladder.speeds[rung] > topo->max_bw ||
			descent->ladder.speeds[rung] * (float)graph->min_channels >
				total))
		rung++;
	return rung;
}

static int try_steps(const struct descent *descent)
{
	int steps = descent->search->trial.same_channels ? TRY_STEPS_SAME : TRY_STEPS;

	if (!descent->search->options->unbounded)
		return steps;
	return descent->steps_all > TRY_STEPS_UNBOUNDED ? TRY_STEPS_UNBOUNDED : steps;
}

/* Search with what the trial asks for. */
static enum err attempt(struct descent *descent)
{
	struct search *search = descent->search;
	enum err err;

	descent->steps = try_steps(descent);
	descent->steps_all -= descent->steps;
	search->trial.channel_count = 0;
	search->steps = &descent->steps;
	if (memo_knows(search))
		return OK;
	err = walk(search);
	memo_keep(search);
	return err;
}

/* Nothing better can come: all channels were found, or all a GPU can carry. */
static bool is_enough(const struct descent *descent)
{
	const struct graph *best = descent->search->best;

	return descent->steps == STEPS_PERFECT ||
	       (float)best->channel_count * best->bw_inter >=
		       descent->search->topo->total_bw;
}

/* Let channels differ, unless they go through AMD CPUs. */
static bool relax_same(struct descent *descent)
{
	struct graph *trial = &descent->search->trial;

	if (trial->same_channels && !(descent->is_amd && trial->type_intra == PATH_SYS)) {
		trial->same_channels = false;
		return true;
	}
	trial->same_channels = descent->tries_same;
	return false;
}

static bool relax_pattern(struct descent *descent)
{
	struct graph *trial = &descent->search->trial;

	if (descent->search->sm >= 90 && trial->pattern == PATTERN_BALANCED_TREE) {
		trial->pattern = PATTERN_TREE;
		return true;
	}
	trial->pattern = descent->search->best->pattern;
	return false;
}

static bool relax_intra(struct descent *descent)
{
	struct graph *trial = &descent->search->trial;
	const struct graph *best = descent->search->best;
	int limit = descent->search->topo->is_inter ? (int)trial->type_inter
						    : descent->type_intra_max;

	if ((int)trial->type_intra < limit &&
		(!best->channel_count || trial->type_intra < best->type_intra)) {
		trial->type_intra++;
		if (trial->type_intra < PATH_DIS)
			return true;
	}
	trial->type_intra = (enum path_type)descent->type_intra_min;
	return false;
}

static bool relax_inter(struct descent *descent)
{
	struct graph *trial = &descent->search->trial;
	const struct graph *best = descent->search->best;

	if (descent->search->topo->is_inter &&
		(int)trial->type_inter < descent->type_inter_max &&
		(!best->channel_count || trial->type_inter < best->type_inter ||
			trial->type_inter < PATH_PXN)) {
		trial->type_inter++;
		if (trial->type_inter < PATH_DIS)
			return true;
	}
	trial->type_inter = (enum path_type)descent->type_inter_min;
	return false;
}

static bool relax_cross(struct descent *descent)
{
	struct graph *trial = &descent->search->trial;
	enum graph_pattern pattern = descent->search->best->pattern;

	if (descent->cross_nic == 2 && !trial->cross_nic &&
		(pattern == PATTERN_RING || pattern == PATTERN_BALANCED_TREE)) {
		trial->cross_nic = 2;
		return true;
	}
	trial->cross_nic = descent->cross_nic == 1;
	return false;
}

/* A lower speed, as long as it is not under half of what was found. */
static bool relax_speed(struct descent *descent)
{
	const struct graph *best = descent->search->best;
	const float *speeds = descent->ladder.speeds;

	if (descent->rung >= descent->ladder.count - 1)
		return false;
	if (best->channel_count && speeds[descent->rung + 1] / best->bw_inter <= .49)
		return false;
	set_speed(&descent->search->trial, speeds[++descent->rung]);
	return true;
}

/* Give up one thing; false when there is nothing left to try. */
static bool relax(struct descent *descent)
{
	if (relax_same(descent))
		return true;
	descent->steps_all += descent->steps;
	if (descent->steps_all < 0 && descent->search->best->channel_count)
		return false;
	return relax_pattern(descent) || relax_intra(descent) || relax_inter(descent) ||
	       relax_cross(descent) || relax_speed(descent);
}

/* Two channels of half the speed use more of a GPU than one. */
static void duplicate(struct graph *graph, int sm)
{
	int count = graph->channel_count, twice = 2 * count, parts;

	if (!count || graph->pattern == PATTERN_NVLS || graph->bw_intra < 25)
		return;
	if (sm > 80 && graph->bw_intra < 50 && count > 4)
		return;
	twice = twice < graph->max_channels ? twice : graph->max_channels;
	parts = (twice + count - 1) / count;
	for (int c = count; c < twice; c++) {
		for (int i = 0; i < graph->gpu_count; i++)
			graph->intra[c][i] = graph->intra[c - count][i];
		for (int i = 0; i < 2; i++)
			graph->inter[c][i] = graph->inter[c - count][i];
	}
	graph->bw_intra /= (float)parts;
	graph->bw_inter /= (float)parts;
	graph->channel_count = twice;
}

/* Ask for the next higher speed; false when there is none to ask for. */
static bool raise(struct descent *descent)
{
	struct graph *trial = &descent->search->trial;
	const struct graph *best = descent->search->best;
	bool is_kept_inter = trial->bw_inter == best->bw_inter;
	bool is_kept_intra = trial->bw_intra == best->bw_intra;
	float speed;

	if (!descent->steps || !descent->rung)
		return false;
	speed = descent->ladder.speeds[descent->rung - 1];
	if (best->pattern == PATTERN_RING) {
		set_speed(trial, speed);
	} else if (best->pattern == PATTERN_NVLS && is_kept_inter &&
		   trial->bw_inter < trial->bw_intra * 2) {
		trial->min_channels = trial->max_channels = best->channel_count;
		trial->bw_inter = speed;
	} else if (is_kept_intra && trial->bw_intra < trial->bw_inter * 2) {
		trial->bw_intra = speed;
	} else {
		return false;
	}
	descent->rung--;
	return true;
}

/* Start the second pass from what the first found. */
static void restart(struct descent *descent)
{
	struct search *search = descent->search;
	int rung = 0;

	duplicate(search->best, search->sm);
	search->trial = *search->best;
	while (rung < descent->ladder.count - 1 &&
		descent->ladder.speeds[rung] > search->best->bw_inter)
		rung++;
	descent->rung = rung;
	descent->steps = STEPS_PERFECT;
	set_speed(&search->trial, descent->ladder.speeds[rung]);
	search->trial.min_channels = search->best->channel_count;
}

/* One channel in index order, when nothing was found. */
static void fall_back(struct search *search)
{
	struct graph *graph = search->best;
	const struct order *nets;

	for (int g = 0; g < search->gpu_count; g++)
		graph->intra[0][g] = topo_gpu_at(search->topo, (uint32_t)g)->gpu.rank;
	graph->channel_count = 1;
	graph->bw_intra = 0.1f;
	graph->type_intra = PATH_SYS;
	graph->bw_inter = search->has_nets ? 0.1f : 0;
	graph->type_inter = search->has_nets ? PATH_SYS : PATH_DIS;
	for (int i = 0; i < 2; i++) {
		nets = order_nets(search, i ? search->gpu_count - 1 : 0, -1);
		graph->inter[0][i] =
			nets->count ? search->topo->nodes[TOPO_NET][nets->list[0]]->id
				    : UINT64_MAX;
	}
}

static struct ladder choose_ladder(const struct topo *topo, int sm)
{
	int age = sm >= 100 ? 2 : sm >= 90 ? 1 : 0;

	if (age == 2 && topo->is_inter && topo->rules.nccl == NCCL_RULES_2_30)
		return ladder_2_30;
	return ladders[topo->is_inter][age];
}

static void descent_begin(struct descent *descent)
{
	struct search *search = descent->search;
	const struct topo *topo = search->topo;
	const struct topo_node *cpu = topo->counts[TOPO_CPU] ? topo->nodes[TOPO_CPU][0]
							     : NULL;

	descent->ladder = choose_ladder(topo, search->sm);
	descent->steps_all = search->options->unbounded ? ALL_STEPS_UNBOUNDED : ALL_STEPS;
	descent->is_amd = cpu && cpu->cpu.arch == CPU_ARCH_X86 &&
			  cpu->cpu.vendor == CPU_AMD;
	descent->rung = first_rung(descent);
	search->trial = *search->best;
	set_speed(&search->trial, descent->ladder.speeds[descent->rung]);
}

static enum err descend(struct descent *descent)
{
	enum err err;

	descent_begin(descent);
	do
		err = attempt(descent);
	while (!err && !is_enough(descent) && relax(descent));
	if (err)
		return err;
	restart(descent);
	while (!err && raise(descent))
		err = attempt(descent);
	return err;
}

static void devices_prepare(struct search *search)
{
	const struct topo *topo = search->topo;

	search->gpu_count = (int)topo->counts[TOPO_GPU];
	search->sm = topo_gpu_at(topo, 0)->gpu.sm;
	/* those whose ranks were trimmed count too */
	for (uint32_t d = 0; d < topo->counts[TOPO_DEV]; d++) {
		int sm = topo->nodes[TOPO_DEV][d]->gpu.sm;

		search->is_old[d] = sm < 80;
		search->sm = sm < search->sm ? sm : search->sm;
	}
	for (int g = 0; g < search->gpu_count; g++) {
		struct topo_node *gpu = topo_gpu_at(topo, (uint32_t)g);

		gpu->used = 0;
		for (uint32_t i = 0; i < gpu->link_count; i++)
			if (gpu->links[i].to->kind == TOPO_DEV)
				search->dev[g] = gpu->links[i].to;
	}
	search->has_reverse = search->sm < 80;
	for (uint32_t i = 0; i < topo->counts[TOPO_CPU]; i++)
		if (topo->nodes[TOPO_CPU][i]->cpu.arch == CPU_ARCH_POWER)
			search->has_reverse = true;
}

/* What a graph is before anything is found. */
static void graph_reset(const struct descent *descent, struct graph *graph)
{
	graph->cross_nic = descent->cross_nic == 1;
	graph->bw_intra = graph->bw_inter = graph->latency_inter = 0;
	graph->type_intra = (enum path_type)descent->type_intra_min;
	graph->type_inter = (enum path_type)descent->type_inter_min;
	graph->channel_count = graph->hop_count = 0;
	graph->same_channels = descent->tries_same;
	graph->gpu_count = descent->search->gpu_count;
}

static enum err search_run(struct search *search)
{
	struct graph *graph = search->best;
	const struct topo *topo = search->topo;
	bool can_cross = topo->counts[TOPO_NET] > 1 &&
			 (graph->pattern == PATTERN_RING ||
				 graph->pattern == PATTERN_BALANCED_TREE ||
				 graph->pattern == PATTERN_SPLIT_TREE);
	struct descent descent = {.search = search,
		.cross_nic = can_cross ? graph->cross_nic : 0,
		.tries_same = graph->pattern != PATTERN_NVLS};
	enum err err;

	devices_prepare(search);
	types_prepare(&descent);
	graph_reset(&descent, graph);
	if (graph->pattern == PATTERN_NVLS &&
		(!topo->counts[TOPO_NVS] || search->sm < 90))
		return OK;
	bounds_prepare(topo, graph);
	search->trial.max_channels = graph->max_channels;
	err = order_prepare(search);
	if (!err)
		err = memo_prepare(search);
	if (!err)
		err = descend(&descent);
	if (!err && !graph->channel_count && !graph->collnet &&
		graph->pattern != PATTERN_NVLS)
		fall_back(search);
	return err;
}

enum err graph_search(
	struct topo *topo, const struct search_options *options, struct graph *graph)
{
	struct search *search;
	enum err err;

	if (!topo->counts[TOPO_GPU] || topo->counts[TOPO_GPU] > TOPO_GPUS_MAX)
		return err_set(ERR_USAGE,
			"a graph needs 1 to %d GPUs and the topology has %u; give it a "
			"part of them",
			TOPO_GPUS_MAX, topo->counts[TOPO_GPU]);
	if (graph->min_channels < 0 || graph->max_channels < 1 ||
		graph->max_channels > GRAPH_CHANNELS_MAX)
		return err_set(ERR_ARGUMENT,
			"a graph has 1 to %d channels, not %d to %d; change the bounds",
			GRAPH_CHANNELS_MAX, graph->min_channels, graph->max_channels);
	search = calloc(1, sizeof(*search));
	if (!search)
		return err_set(ERR_SYSTEM, "no memory to search a graph; free some");
	search->topo = topo;
	search->options = options;
	search->best = graph;
	err = search_run(search);
	order_free(search);
	memo_free(search);
	free(search);
	return err;
}
