/*
 * path.c - the best way from every part to every other, and what the rules make of it.
 */
#include <stdlib.h>
#include <string.h>

#include "topo/decide_path.h"
#include "topo/parts.h"

/* Nodes still to look at while the ways to one base spread out. */
struct front {
	struct topo_node **now, **next; /* owned */
	uint32_t now_count, next_count, room;
	uint32_t slot; /* where the paths to the base are kept */
};

static enum path_type hop_type(const struct topo_node *near, const struct topo_link *link,
	const struct topo_path *so_far)
{
	const struct topo_node *far = link->to;

	if (near->kind == TOPO_PCI && far->kind == TOPO_PCI)
		return PATH_PXB; /* switches that are tied together are still two */
	switch (link->type) {
	case LINK_LOC:
	case LINK_NET:
		return PATH_LOC;
	case LINK_NVL:
		/* A second NVLink, through a GPU that is not ours. */
		return near->kind == TOPO_DEV && so_far->type == PATH_NVL ? PATH_NVB
									  : PATH_NVL;
	case LINK_C2C:
		return PATH_C2C;
	case LINK_PCI:
		if (near->kind == TOPO_CPU || far->kind == TOPO_CPU)
			return PATH_PHB;
		return PATH_PIX;
	case LINK_SYS:
		break;
	}
	return PATH_SYS;
}

/* A GPU forwards nothing for others, except from one NVLink to another. */
static bool may_cross(const struct topo *topo, const struct topo_node *base,
	const struct topo_node *node, const struct topo_link *link,
	const struct topo_path *so_far)
{
	if (node->kind == TOPO_GPU)
		return node == base;
	if (node->kind != TOPO_DEV || node == base || link->type == LINK_LOC)
		return true;
	if (base->kind == TOPO_GPU && so_far->hop_count == 1 && so_far->type == PATH_LOC)
		return true; /* our own device */
	return !topo->rules.nvb_disable && link->type == LINK_NVL &&
	       link->to->kind == TOPO_DEV &&
	       so_far->hop_count <= (base->kind == TOPO_GPU ? 2u : 1u);
}

static bool is_better(
	const struct topo_path *path, enum path_type type, float bw, uint32_t hops)
{
	if (path->type != type)
		return type < path->type;
	return bw != path->bw ? bw > path->bw : hops < path->hop_count;
}

static struct topo_link *link_back(
	struct topo_node *far, const struct topo_node *near, enum link_type type)
{
	for (uint32_t i = 0; i < far->link_count; i++)
		if (far->links[i].to == near && far->links[i].type == type)
			return &far->links[i];
	return NULL;
}

/* The way from `far` to the base: one hop to `near`, then as from there. */
static enum err path_extend(
	struct topo_path *path, struct topo_link *first, const struct topo_path *rest)
{
	struct topo_link **hops;

	if (rest->hop_count >= TOPO_HOPS_MAX)
		return err_set(ERR_USAGE, "a path of more than %d hops in the topology",
			TOPO_HOPS_MAX);
	hops = malloc((rest->hop_count + 1) * sizeof(struct topo_link *));
	if (!hops)
		return err_set(ERR_SYSTEM, "no memory for a path");
	hops[0] = first;
	if (rest->hop_count)
		memcpy(hops + 1, rest->hops,
			rest->hop_count * sizeof(struct topo_link *));
	free(path->hops);
	path->hops = hops;
	path->hop_count = rest->hop_count + 1;
	return OK;
}

static enum err paths_room(struct topo *topo, struct topo_node *node, enum topo_kind kind)
{
	uint32_t count = topo->counts[kind];

	if (node->paths[kind])
		return OK;
	node->paths[kind] = calloc(count, sizeof(struct topo_path));
	if (!node->paths[kind])
		return err_set(ERR_SYSTEM, "no memory for paths");
	for (uint32_t i = 0; i < count; i++)
		node->paths[kind][i].type = PATH_DIS;
	return OK;
}

/* Offer every neighbour of `node` the way to `base` through it. */
static enum err spread(struct topo *topo, struct topo_node *base, struct topo_node *node,
	struct front *front)
{
	const struct topo_path *here = topo_path(node, base->kind, front->slot);

	for (uint32_t i = 0; i < node->link_count; i++) {
		struct topo_link *link = &node->links[i], *back;
		struct topo_node *far = link->to;
		struct topo_path *there;
		float bw = link->bw < here->bw ? link->bw : here->bw;
		enum path_type type;
		enum err e = paths_room(topo, far, base->kind);

		if (e)
			return e;
		there = topo_path(far, base->kind, front->slot);
		type = hop_type(node, link, here);
		type = type > here->type ? type : here->type;
		if (far == base || !may_cross(topo, base, node, link, here) ||
			!is_better(there, type, bw, here->hop_count + 1))
			continue;
		back = link_back(far, node, link->type);
		if (!back)
			continue; /* a file may say so; nobody can send that way */
		e = path_extend(there, back, here);
		if (e)
			return e;
		there->bw = bw;
		there->type = type;
		/* Marked while it waits in the next front. */
		if (far->used)
			continue;
		far->used = 1;
		front->next[front->next_count++] = far;
	}
	return OK;
}

/* Ranks that see a CPU differently make two nodes of it, and of the NICs below. NCCL
 * finds nodes by id, so such twins share the paths of the first. */
static enum err paths_to(struct topo *topo, struct topo_node *base, struct front *front)
{
	enum err e = paths_room(topo, base, base->kind);
	struct topo_path *self;

	if (e)
		return e;
	front->slot = topo_find(topo, base->kind, base->id)->index;
	self = topo_path(base, base->kind, front->slot);
	free(self->hops);
	*self = (struct topo_path){.type = PATH_LOC, .bw = TOPO_LOC_BW};
	front->now[0] = base;
	front->now_count = 1;
	while (front->now_count) {
		struct topo_node **turn = front->now;

		front->next_count = 0;
		for (uint32_t i = 0; i < front->now_count; i++) {
			e = spread(topo, base, front->now[i], front);
			if (e)
				return e;
		}
		for (uint32_t i = 0; i < front->next_count; i++)
			front->next[i]->used = 0;
		front->now = front->next;
		front->next = turn;
		front->now_count = front->next_count;
	}
	return OK;
}

static enum err paths_all(struct topo *topo)
{
	static const enum topo_kind bases[] = {
		TOPO_CPU, TOPO_DEV, TOPO_GPU, TOPO_NET, TOPO_NVS};
	struct front front = {.room = 0};
	enum err e = OK;

	for (int kind = 0; kind < TOPO_KINDS; kind++) {
		front.room += topo->counts[kind];
		for (uint32_t i = 0; i < topo->counts[kind]; i++)
			topo->nodes[kind][i]->used = 0;
	}
	front.now = malloc((front.room + 1) * sizeof(struct topo_node *));
	front.next = malloc((front.room + 1) * sizeof(struct topo_node *));
	if (!front.now || !front.next)
		e = err_set(ERR_SYSTEM, "no memory for paths");
	for (uint32_t b = 0; b < sizeof(bases) / sizeof(*bases); b++)
		for (uint32_t i = 0; i < topo->counts[bases[b]] && !e; i++)
			e = paths_to(topo, topo->nodes[bases[b]][i], &front);
	free(front.now);
	free(front.next);
	return e;
}

/* C2C to the CPU and one host bridge from there to the NIC. */
static enum path_type types_join(enum path_type a, enum path_type b)
{
	if ((a == PATH_PHB && b == PATH_C2C) || (a == PATH_C2C && b == PATH_PHB))
		return PATH_P2C;
	return a > b ? a : b;
}

/* Lead the way from `from` to `to` through `over`. */
static enum err divert(
	struct topo_node *from, const struct topo_node *over, const struct topo_node *to)
{
	const struct topo_path *first = topo_path(from, over->kind, over->index);
	const struct topo_path *second = topo_path(over, to->kind, to->index);
	struct topo_path *path = topo_path(from, to->kind, to->index);
	uint32_t count = first->hop_count + second->hop_count;
	struct topo_link **hops;

	if (!from->paths[to->kind])
		return OK; /* cut off from all of that kind */
	if (count > TOPO_HOPS_MAX)
		return err_set(ERR_USAGE, "a path of more than %d hops in the topology",
			TOPO_HOPS_MAX);
	hops = malloc((count + 1) * sizeof(struct topo_link *));
	if (!hops)
		return err_set(ERR_SYSTEM, "no memory for a path");
	for (uint32_t i = 0; i < count; i++)
		hops[i] = i < first->hop_count ? first->hops[i]
					       : second->hops[i - first->hop_count];
	free(path->hops);
	path->hops = hops;
	path->hop_count = count;
	path->bw = first->bw < second->bw ? first->bw : second->bw;
	path->type = over->kind == TOPO_GPU ? PATH_PXN
					    : types_join(first->type, second->type);
	return OK;
}

int topo_near_cpu(const struct topo *topo, uint32_t gpu)
{
	const struct topo_path *paths = topo_gpu_at(topo, gpu)->paths[TOPO_CPU];
	uint32_t cpus[TOPO_NODES_MAX], nearest = 0;
	uint32_t count = topo_local_nodes(topo, topo_gpu_at(topo, gpu), TOPO_CPU, cpus);

	for (uint32_t i = 1; i < count; i++)
		if (paths[cpus[i]].hop_count < paths[cpus[nearest]].hop_count)
			nearest = i;
	return count ? (int)cpus[nearest] : -1;
}

/* GPU pairs without P2P go through the host; those that cannot share host memory either
 * are as far away as another machine. */
static enum err pairs_settle(struct topo *topo, uint32_t g)
{
	struct topo_node *to = topo_gpu_at(topo, g);
	int cpu = topo_near_cpu(topo, g);

	for (uint32_t p = 0; p < topo->counts[TOPO_GPU]; p++) {
		struct topo_p2p verdict;
		enum err e;

		topo_p2p_raw(topo, p, g, &verdict);
		if (verdict.is_fault)
			return err_set(ERR_USAGE,
				"NVML refuses P2P between GPU %d and GPU %d, which "
				"NVLink joins; NCCL stops there, unless "
				"NCCL_IGNORE_DISABLED_P2P is set: repair the link",
				topo_gpu_at(topo, p)->gpu.dev, to->gpu.dev);
		if (verdict.ok || cpu < 0)
			continue;
		e = divert(topo_gpu_at(topo, p), topo->nodes[TOPO_CPU][cpu], to);
		if (e)
			return e;
	}
	for (uint32_t p = 0; p < topo->counts[TOPO_GPU]; p++)
		if (p != g && !topo_p2p_connects(topo, p, g) &&
			!topo_shm_connects(topo, p, g))
			topo_path(topo_gpu_at(topo, p), TOPO_GPU, g)->type = PATH_NET;
	return OK;
}

/* Only the NICs nearest to a GPU are asked. */
static void c2c_settle(struct topo *topo, uint32_t g)
{
	struct topo_node *gpu = topo_gpu_at(topo, g);
	uint32_t nets[TOPO_NODES_MAX];
	uint32_t count = topo_local_nodes(topo, gpu, TOPO_NET, nets);
	int cpu = topo_near_cpu(topo, g);

	for (uint32_t i = 0; i < count && cpu >= 0; i++) {
		struct topo_node *net = topo->nodes[TOPO_NET][nets[i]];
		struct topo_path *out = topo_path(gpu, TOPO_NET, nets[i]);
		struct topo_path *in = topo_path(net, TOPO_GPU, g);

		if (types_join(topo_path(gpu, TOPO_CPU, (uint32_t)cpu)->type,
			    topo_path(net, TOPO_CPU, (uint32_t)cpu)->type) != PATH_P2C)
			continue;
		out->type = out->type < PATH_P2C ? out->type : PATH_P2C;
		in->type = in->type < PATH_P2C ? in->type : PATH_P2C;
	}
}

/* Is GPU `peer` a good relay from `gpu` to `net`? */
static bool is_relay(const struct topo *topo, const struct topo_node *gpu,
	const struct topo_node *peer, const struct topo_node *net)
{
	const struct topo_path *theirs = topo_path(peer, TOPO_NET, net->index);
	const struct topo_path *ours = topo_path(gpu, TOPO_NET, net->index);
	enum path_type most = topo->rules.pxn_c2c ? PATH_P2C : PATH_PXB;
	struct topo_gdr verdict;

	topo_gdr(topo, peer->gpu.rank, net->id, true, &verdict);
	return verdict.mode != GDR_OFF && theirs->type <= most &&
	       topo_path(peer, TOPO_GPU, gpu->index)->type <= PATH_NVL &&
	       topo_system(peer->id) == topo_system(gpu->id) &&
	       (theirs->bw > ours->bw || ours->type > PATH_PXN);
}

static enum err net_settle(struct topo *topo, struct topo_node *net, uint32_t g)
{
	struct topo_node *gpu = topo_gpu_at(topo, g);
	struct topo_gdr verdict;
	struct topo_node *over;
	int peer = topo->rules.pxn_disable ? -1 : topo_local_gpu(topo, net->id);
	int cpu;
	enum err e = OK;

	if (peer >= 0 && peer != (int)g &&
		is_relay(topo, gpu, topo_gpu_at(topo, (uint32_t)peer), net))
		e = divert(gpu, topo_gpu_at(topo, (uint32_t)peer), net);
	if (e || topo_path(gpu, TOPO_NET, net->index)->type >= PATH_PHB)
		return e;
	topo_gdr(topo, gpu->gpu.rank, net->id, false, &verdict);
	cpu = topo_near_cpu(topo, g);
	if (verdict.mode != GDR_OFF || cpu < 0)
		return OK;
	over = topo->nodes[TOPO_CPU][cpu];
	e = divert(net, over, gpu);
	return e ? e : divert(gpu, over, net);
}

enum err topo_paths(struct topo *topo, const struct topo_rules *rules)
{
	enum err e;

	topo->rules = *rules;
	topo_forget_paths(topo);
	e = paths_all(topo);
	for (uint32_t g = 0; g < topo->counts[TOPO_GPU] && !e; g++)
		e = pairs_settle(topo, g);
	for (uint32_t g = 0; g < topo->counts[TOPO_GPU] && !e; g++)
		c2c_settle(topo, g);
	for (uint32_t n = 0; n < topo->counts[TOPO_NET]; n++)
		for (uint32_t g = 0; g < topo->counts[TOPO_GPU] && !e; g++)
			e = net_settle(topo, topo->nodes[TOPO_NET][n], g);
	for (uint32_t n = 0; n < topo->counts[TOPO_NET] && !e; n++)
		topo->nodes[TOPO_NET][n]->net.local_gpu = topo_local_gpu(
			topo, topo->nodes[TOPO_NET][n]->id);
	return e;
}

enum err topo_trim(struct topo *topo, int rank, int rank_count)
{
	uint32_t domains[TOPO_GPUS_MAX] = {0}, mine = 0, count = topo->counts[TOPO_GPU];
	struct topo_rules rules = topo->rules;

	for (uint32_t g = 0; g < count; g++) {
		const struct topo_node *gpu = topo_gpu_at(topo, g);

		domains[g] = g;
		for (uint32_t p = 0; p < g; p++)
			if (topo_path(gpu, TOPO_GPU, p)->type < PATH_NET &&
				domains[p] < domains[g])
				domains[g] = domains[p];
		if (gpu->gpu.rank == rank)
			mine = domains[g];
	}
	for (uint32_t g = count; g-- > 0;)
		if (domains[g] != mine)
			topo_remove(topo, TOPO_GPU, g);
	topo->is_inter = topo->counts[TOPO_GPU] != (uint32_t)rank_count;
	return topo_paths(topo, &rules);
}

static float device_total(const struct topo_node *dev)
{
	float nvlink = 0, pci = 0;

	for (uint32_t i = 0; i < dev->link_count; i++) {
		if (dev->links[i].type == LINK_NVL)
			nvlink += dev->links[i].bw;
		if (dev->links[i].type == LINK_PCI)
			pci = dev->links[i].bw;
	}
	return nvlink > pci ? nvlink : pci;
}

/* Devices count, not GPUs: their paths are as the machine is, before P2P, GDR and PXN are
 * decided, and those whose ranks were trimmed are still there. */
void topo_bandwidths(struct topo *topo)
{
	enum topo_kind kind = topo->is_inter ? TOPO_NET : TOPO_DEV;

	topo->max_bw = topo->total_bw = 0;
	if (!topo->is_inter && topo->counts[TOPO_GPU] == 1) {
		topo->max_bw = topo->total_bw = TOPO_LOC_BW;
		return;
	}
	for (uint32_t d = 0; d < topo->counts[TOPO_DEV]; d++) {
		const struct topo_node *dev = topo->nodes[TOPO_DEV][d];
		float total = device_total(dev);

		topo->total_bw = total > topo->total_bw ? total : topo->total_bw;
		for (uint32_t i = 0; dev->paths[kind] && i < topo->counts[kind]; i++) {
			const struct topo_path *path = topo_path(dev, kind, i);

			if (path->hop_count && path->bw > topo->max_bw)
				topo->max_bw = path->bw;
		}
	}
}
