/*
 * search_path.c - bandwidth on links: taken while a channel passes, given back after.
 */
#include <math.h>

#include "graph/search.h"

/* What roundf() does, without a call: a search comes here millions of times. From 2^23 on
 * a float has no fraction; below, the sum is exact in double. */
static float round_away(float value)
{
	if (!(fabsf(value) < 8388608.0f))
		return value;
	return (float)(int32_t)((double)value + (value < 0 ? -0.5 : 0.5));
}

/* To a thousandth, so that taking and giving back leave (almost) nothing behind. */
static void subtract(float *bw, float amount)
{
	*bw = round_away((*bw - amount) * 1000.0f) / 1000.0f;
}

/* A GPU that sends through the root complex of an Intel CPU gets 5/6 of the PCI speed. */
static float pci_cost(
	const struct topo_path *path, const struct topo_node *start, float bw)
{
	if (path->type != PATH_PHB || start->kind != TOPO_GPU)
		return bw;
	for (uint32_t i = 0; i < path->hop_count; i++) {
		const struct topo_node *node = path->hops[i]->to;

		if (node->kind == TOPO_CPU && node->cpu.arch == CPU_ARCH_X86 &&
			node->cpu.vendor == CPU_INTEL)
			return bw * 6.0f / 5.0f;
	}
	return bw;
}

/* What a hop costs the link in the other direction: requests of old GPUs that read from
 * a NIC, and all traffic on POWER's NVLinks to the CPU. */
static float reverse_cost(const struct search *search, const struct topo_node *start,
	const struct topo_link *link, float bw)
{
	const struct topo_node *to = link->to;
	float cost = 0;

	if (!search->has_reverse)
		return 0;
	if (to->kind == TOPO_DEV && search->is_old[to->index] && start->kind != TOPO_GPU)
		cost += bw / 8.0f;
	if (to->kind == TOPO_CPU && to->cpu.arch == CPU_ARCH_POWER &&
		link->type == LINK_NVL)
		cost += bw;
	return cost;
}

static enum err reverse_link(const struct topo_node *node, const struct topo_link *link,
	struct topo_link **back)
{
	for (uint32_t i = 0; i < link->to->link_count; i++) {
		struct topo_link *candidate = &link->to->links[i];

		if (candidate->to == node && candidate->type == link->type) {
			*back = candidate;
			return OK;
		}
	}
	return err_set(ERR_INTERNAL,
		"a %s link of the topology has no link back; this is a bug, please "
		"report "
		"it with the topology file",
		link_name(link->type));
}

/* Take `bw` from the first `hops` links, until one has too little; tell how many. */
static enum err links_take(const struct search *search, const struct topo_path *path,
	const struct topo_node *start, float bw, uint32_t *hops)
{
	float pci = pci_cost(path, start, bw);
	const struct topo_node *node = start;

	for (uint32_t i = 0; i < *hops; i++) {
		struct topo_link *link = path->hops[i], *back = NULL;
		float cost = link->type == LINK_PCI ? pci : bw;
		float back_cost = reverse_cost(search, start, link, cost);

		if (back_cost != 0) {
			enum err err = reverse_link(node, link, &back);

			if (err)
				return err;
		}
		if (link->bw < cost || (back && back->bw < back_cost)) {
			*hops = i;
			return OK;
		}
		subtract(&link->bw, cost);
		if (back)
			subtract(&back->bw, back_cost);
		node = link->to;
	}
	return OK;
}

static bool is_inside(const struct topo_node *node)
{
	return node->kind == TOPO_GPU || node->kind == TOPO_NVS;
}

static bool is_tree(enum graph_pattern pattern)
{
	return pattern == PATTERN_BALANCED_TREE || pattern == PATTERN_SPLIT_TREE ||
	       pattern == PATTERN_TREE;
}

/* Only a whole share is held to the type: parts of one are spread on purpose. */
static bool is_allowed(const struct graph *trial, const struct topo_path *path,
	const struct topo_path *back, enum path_type limit)
{
	if (path->type > limit)
		return false;
	return !is_tree(trial->pattern) || back->type <= limit;
}

static enum err take(struct search *search, const struct topo_node *from,
	const struct topo_node *to, float share, bool *fits)
{
	const struct topo_path *path = topo_path(from, to->kind, to->index);
	struct graph *trial = &search->trial;
	bool inside = is_inside(from) && is_inside(to);
	float bw = (inside ? trial->bw_intra : trial->bw_inter) * share;
	uint32_t hops = path->hop_count;
	enum err err = links_take(search, path, from, bw, &hops);

	*fits = hops == path->hop_count;
	if (err)
		return err;
	if (!*fits)
		return links_take(search, path, from, -bw, &hops);
	/* NCCL counts hops in whole numbers: a part of a hop is lost, or one too many */
	trial->hop_count =
		(int)((float)trial->hop_count + share * (float)path->hop_count);
	return OK;
}

enum err path_take(struct search *search, const struct topo_node *from,
	const struct topo_node *to, float share, bool *fits)
{
	const struct graph *trial = &search->trial;
	bool inside = is_inside(from) && is_inside(to);
	enum path_type limit = inside ? trial->type_intra : trial->type_inter;
	const struct topo_path *path, *back;

	*fits = false;
	if (!from->paths[to->kind] || !to->paths[from->kind])
		return OK;
	path = topo_path(from, to->kind, to->index);
	back = topo_path(to, from->kind, from->index);
	if (path->type >= PATH_DIS)
		return OK;
	if (share == 1.0f && !is_allowed(trial, path, back, limit))
		return OK;
	return take(search, from, to, share, fits);
}

enum err path_give(struct search *search, const struct topo_node *from,
	const struct topo_node *to, float share)
{
	bool fits;

	return take(search, from, to, -share, &fits);
}

void pool_take(struct topo *topo, const struct topo_node *net, int bw)
{
	for (uint32_t i = 0; i < topo->counts[TOPO_NET]; i++) {
		struct topo_net *other = &topo->nodes[TOPO_NET][i]->net;

		if (other->asic == net->net.asic && other->port == net->net.port)
			other->bw -= (float)bw;
	}
}
