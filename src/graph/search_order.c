/*
 * search_order.c - what is tried first: the next GPU of a channel, the NICs of a GPU.
 *
 * The steps are limited, so order decides which of many equal graphs is found, and on
 * large machines whether one is found at all.
 */
#include <stdlib.h>
#include <string.h>

#include "graph/search.h"

/* What speaks for a GPU, the strongest first. NCCL compares whole GB/s. */
struct score {
	int index;
	int net_bw, pci_bw, net_hops;
	int bw, hops;
	int distance; /* in indices, from the GPU before it */
};

static bool is_better(const struct score *a, const struct score *b)
{
	if (a->net_bw != b->net_bw)
		return a->net_bw > b->net_bw;
	if (a->pci_bw != b->pci_bw)
		return a->pci_bw > b->pci_bw;
	if (a->net_hops != b->net_hops)
		return a->net_hops < b->net_hops;
	if (a->bw != b->bw)
		return a->bw > b->bw;
	if (a->hops != b->hops)
		return a->hops < b->hops;
	return a->distance < b->distance;
}

/* Insert into a list that is kept best first. */
static void score_insert(struct score *scores, uint32_t *count, const struct score *score)
{
	uint32_t at = (*count)++;

	for (; at && is_better(score, &scores[at - 1]); at--)
		scores[at] = scores[at - 1];
	scores[at] = *score;
}

/* The PCI speed that is left to a GPU, both ways; -1 when it has no PCI link. */
static int pci_left(const struct topo_node *dev)
{
	for (uint32_t i = 0; dev && i < dev->link_count; i++) {
		const struct topo_link *up = &dev->links[i];

		if (up->type != LINK_PCI)
			continue;
		for (uint32_t j = 0; j < up->to->link_count; j++) {
			const struct topo_link *down = &up->to->links[j];

			if (down->to == dev)
				return (int)(up->bw < down->bw ? up->bw : down->bw);
		}
	}
	return -1;
}

static struct score score_of(const struct topo_node *gpu, int index, int distance)
{
	const struct topo_path *path = topo_path(gpu, TOPO_GPU, (uint32_t)index);

	return (struct score){.index = index,
		.bw = (int)path->bw,
		.hops = (int)path->hop_count,
		.distance = distance};
}

static void near_prepare(struct search *search, int gpu)
{
	const struct topo_node *node = topo_gpu_at(search->topo, (uint32_t)gpu);
	struct score scores[TOPO_GPUS_MAX] = {{0}};
	struct order *near = &search->near[gpu];

	for (int i = 1; i < search->gpu_count; i++) {
		struct score score = score_of(node, (gpu + i) % search->gpu_count, i);

		if (score.hops)
			score_insert(scores, &near->count, &score);
	}
	for (uint32_t i = 0; i < near->count; i++)
		near->list[i] = (uint16_t)scores[i].index;
}

/* The NETs a GPU would use on channel 0, 1, ... until the first comes round again. */
static enum err sequence(const struct search *search, int gpu, struct order *order)
{
	int rank = topo_gpu_at(search->topo, (uint32_t)gpu)->gpu.rank;

	for (int channel = 0; channel < GRAPH_CHANNELS_MAX; channel++) {
		uint64_t id;
		enum err err = topo_local_net(search->topo, rank, channel, &id);
		int net = err ? -1 : topo_net_of_id(search->topo, id);

		if (net < 0)
			return err ? err : ERR_INTERNAL;
		if (channel && net == order->list[0])
			break;
		order->list[order->count++] = (uint16_t)net;
	}
	return OK;
}

static void append(struct order *order, bool *seen, uint32_t index)
{
	if (seen[index])
		return;
	seen[index] = true;
	order->list[order->count++] = (uint16_t)index;
}

/* The list that suits all GPUs. Where several hosts share NVLink, every GPU gives its
 * first before any gives its second, which spreads channels over the hosts. */
static void merge(struct search *search, const struct order *sequences)
{
	struct order *all = &search->wanted[search->gpu_count];
	bool seen[TOPO_NODES_MAX] = {0};
	uint32_t gpus = (uint32_t)search->gpu_count;

	if (search->topo->host_count > 1) {
		for (uint32_t c = 0; c < GRAPH_CHANNELS_MAX; c++)
			for (uint32_t g = 0; g < gpus; g++)
				if (c < sequences[g].count)
					append(all, seen, sequences[g].list[c]);
		return;
	}
	for (uint32_t g = 0; g < gpus; g++)
		for (uint32_t c = 0; c < sequences[g].count; c++)
			append(all, seen, sequences[g].list[c]);
}

static void wanted_prepare(struct search *search)
{
	uint16_t lists[TOPO_GPUS_MAX][GRAPH_CHANNELS_MAX] = {{0}};
	struct order sequences[TOPO_GPUS_MAX] = {{0}};

	search->has_nets = search->topo->counts[TOPO_NET] > 0;
	for (int g = 0; g < search->gpu_count && search->has_nets; g++) {
		bool seen[TOPO_NODES_MAX] = {0};

		sequences[g] = (struct order){0, lists[g]};
		search->has_nets = sequence(search, g, &sequences[g]) == OK;
		for (uint32_t i = 0; i < sequences[g].count; i++)
			append(&search->wanted[g], seen, sequences[g].list[i]);
	}
	if (search->has_nets)
		merge(search, sequences);
}

/* How many NETs NCCL_NETDEVS_POLICY lets a GPU, or all of them, use. */
static uint32_t nets_limit(const struct search *search, int gpu)
{
	const struct topo_rules *rules = &search->topo->rules;
	int64_t limit = rules->netdevs_max;

	if (rules->netdevs != NETDEVS_MAX)
		return TOPO_NODES_MAX;
	if (gpu == search->gpu_count)
		limit *= search->gpu_count;
	return limit < 0 ? 0 : limit > TOPO_NODES_MAX ? TOPO_NODES_MAX : (uint32_t)limit;
}

/* Add the NETs at exactly this distance from one GPU. */
static void nets_at(
	const struct search *search, int gpu, int type, struct order *order, bool *seen)
{
	const struct topo_node *node = topo_gpu_at(search->topo, (uint32_t)gpu);
	uint32_t count = search->topo->counts[TOPO_NET];

	/* NCCL looks at as many NETs as it has channels */
	for (uint32_t n = 0; n < count && n < GRAPH_CHANNELS_MAX; n++)
		if ((int)topo_path(node, TOPO_NET, n)->type == type)
			append(order, seen, n);
}

static void nets_prepare(struct search *search, int gpu, int type)
{
	struct order *order = &search->nets[gpu];
	const struct order *wanted = &search->wanted[gpu];
	uint32_t limit = nets_limit(search, gpu);
	bool is_all = gpu == search->gpu_count;
	bool seen[TOPO_NODES_MAX] = {0};

	order->count = 0;
	for (uint32_t i = 0; i < wanted->count; i++)
		append(order, seen, wanted->list[i]);
	if (order->count >= limit)
		return;
	for (int t = 0; t <= type; t++)
		for (int g = 0; g < search->gpu_count; g++)
			if (is_all || g == gpu)
				nets_at(search, g, t, order, seen);
	if (order->count > limit)
		order->count = limit;
}

const struct order *order_nets(struct search *search, int gpu, int type)
{
	if (search->has_nets && search->nets_type[gpu] != type) {
		search->nets_type[gpu] = type;
		nets_prepare(search, gpu, type);
	}
	return &search->nets[gpu];
}

static void doors_prepare(struct search *search)
{
	uint32_t list[TOPO_NODES_MAX];
	enum path_type type;

	for (uint32_t n = 0; n < search->topo->counts[TOPO_NET]; n++) {
		struct order *door = &search->doors[n];
		uint32_t count = topo_local_nodes(
			search->topo, TOPO_NET, n, TOPO_GPU, list, &type);

		for (uint32_t i = 0; i < count && type != PATH_DIS; i++)
			door->list[door->count++] = (uint16_t)list[i];
	}
}

enum err order_prepare(struct search *search)
{
	size_t gpus = (size_t)search->gpu_count;
	size_t nets = search->topo->counts[TOPO_NET];
	size_t places = gpus * gpus + 2 * (gpus + 1) * nets + gpus * nets;
	size_t channels = (size_t)search->trial.max_channels;
	uint16_t *next = calloc(places, sizeof(*next));

	search->near[0].list = next; /* the one that is freed */
	search->candidates = calloc(channels * gpus, gpus);
	search->doors = calloc(nets + 1, sizeof(*search->doors));
	if (!next || !search->candidates || !search->doors)
		return err_set(ERR_SYSTEM,
			"no memory to search graphs of %zu GPUs; free some and try again",
			gpus);
	for (size_t g = 0; g < gpus; g++, next += gpus)
		search->near[g].list = next;
	for (size_t g = 0; g <= gpus; g++, next += 2 * nets) {
		search->wanted[g].list = next;
		search->nets[g].list = next + nets;
		search->nets_type[g] = -2;
	}
	for (size_t n = 0; n < nets; n++, next += gpus)
		search->doors[n].list = next;
	for (int g = 0; g < search->gpu_count; g++)
		near_prepare(search, g);
	doors_prepare(search);
	wanted_prepare(search);
	return OK;
}

void order_free(struct search *search)
{
	free(search->near[0].list);
	free(search->candidates);
	free(search->doors);
}

static bool is_used(const struct search *search, int gpu)
{
	return topo_gpu_at(search->topo, (uint32_t)gpu)->used >>
		       search->trial.channel_count &
	       1;
}

/* An NVSwitch likes few pairs: only the neighbours in index order are tried. */
static uint32_t neighbours(
	const struct search *search, const struct topo_node *gpu, uint8_t *list)
{
	enum graph_pattern pattern = search->trial.pattern;
	int index = (int)gpu->index, count = search->gpu_count;
	int next = (index + 1) % count, before = (index + count - 1) % count;
	int tries[2] = {next, before};
	uint32_t found = 0;

	if (pattern == PATTERN_RING) {
		tries[0] = before;
		tries[1] = next;
	} else if (pattern != PATTERN_SPLIT_TREE && pattern != PATTERN_BALANCED_TREE) {
		tries[1] = next;
	}
	for (int i = 0; i < 2; i++) {
		const struct topo_path *path = topo_path(
			gpu, TOPO_GPU, (uint32_t)tries[i]);

		if (i && tries[1] == tries[0])
			break;
		if (path->hop_count && !is_used(search, tries[i]))
			list[found++] = (uint8_t)tries[i];
	}
	return found;
}

/* Nearest first, by what does not change. */
static uint32_t nearest(
	const struct search *search, const struct topo_node *gpu, uint8_t *list)
{
	const struct order *near = &search->near[gpu->index];
	uint32_t found = 0;

	for (uint32_t i = 0; i < near->count; i++)
		if (!is_used(search, near->list[i]))
			list[found++] = (uint8_t)near->list[i];
	return found;
}

static bool is_uniform(const struct score *scores, uint32_t count)
{
	for (uint32_t i = 1; i < count; i++)
		if (scores[i].bw != scores[0].bw || scores[i].hops != scores[0].hops)
			return false;
	return true;
}

/* Those that have a good way to the NET first; the other way round where the NET comes
 * later and the GPUs differ in nothing else, to keep the good ones for it. */
static uint32_t by_net(const struct search *search, const struct topo_node *gpu,
	enum net_hint hint, uint8_t *list)
{
	const struct order *near = &search->near[gpu->index];
	uint64_t id = search->trial.inter[search->trial.channel_count][0];
	int net = topo_net_of_id(search->topo, id);
	struct score scores[TOPO_GPUS_MAX];
	uint32_t found = 0;

	for (uint32_t i = 0; i < near->count && net >= 0; i++) {
		int index = near->list[i];
		int distance = (index - (int)gpu->index + search->gpu_count) %
			       search->gpu_count;
		struct score score = score_of(gpu, index, distance);
		const struct topo_path *path = topo_path(
			search->topo->nodes[TOPO_NET][net], TOPO_GPU, (uint32_t)index);

		if (is_used(search, index))
			continue;
		score.net_bw = (int)path->bw;
		score.net_hops = (int)path->hop_count;
		score.pci_bw = pci_left(search->dev[index]);
		score_insert(scores, &found, &score);
	}
	bool is_reverse = hint == NET_FARTHER && is_uniform(scores, found);

	for (uint32_t i = 0; i < found; i++)
		list[i] = (uint8_t)scores[is_reverse ? found - 1 - i : i].index;
	return found;
}

struct order_gpus order_gpus(
	struct search *search, const struct topo_node *gpu, int step, enum net_hint hint)
{
	size_t gpus = (size_t)search->gpu_count;
	size_t seat = (size_t)search->trial.channel_count * gpus + (size_t)step;
	uint8_t *list = search->candidates + seat * gpus;
	uint32_t count;

	if (search->topo->counts[TOPO_NVS])
		count = neighbours(search, gpu, list);
	else if (hint == NET_BEHIND)
		count = nearest(search, gpu, list);
	else
		count = by_net(search, gpu, hint, list);
	return (struct order_gpus){count, list};
}
