/*
 * local.c - who is near to whom: the NICs a GPU uses, the GPU a NIC belongs to.
 */
#include <stdlib.h>

#include "topo/topo.h"

enum { CHANNELS_MAX = 64 };

uint32_t topo_local_nodes(const struct topo *topo, enum topo_kind from, uint32_t index,
	enum topo_kind kind, uint32_t *list, enum path_type *type)
{
	const struct topo_path *paths = topo->nodes[from][index]->paths[kind];
	enum path_type nearest = PATH_DIS;
	float bw = 0;
	uint32_t count = 0;

	for (uint32_t i = 0; paths && i < topo->counts[kind]; i++) {
		if (paths[i].bw > bw || (paths[i].bw == bw && paths[i].type < nearest)) {
			bw = paths[i].bw;
			nearest = paths[i].type;
			count = 0;
		}
		if (paths[i].bw == bw && paths[i].type == nearest)
			list[count++] = i;
	}
	if (type)
		*type = nearest;
	return count;
}

/* The low bits of `value`, as many as `count` (a power of two) has, in reverse. */
static uint32_t bits_mirror(uint32_t value, uint32_t count)
{
	uint32_t mirror = 0;

	for (uint32_t bit = 1, back = count >> 1; back; bit <<= 1, back >>= 1)
		if (value & bit)
			mirror |= back;
	return mirror;
}

static bool is_before(const struct topo_net *a, const struct topo_net *b)
{
	return a->rail != b->rail ? a->rail < b->rail : a->plane < b->plane;
}

/* Where rails are known, NICs of one GPU are taken in their order. */
static void nets_sort(const struct topo *topo, uint32_t *list, uint32_t count)
{
	for (uint32_t i = 1; i < count; i++) {
		uint32_t moved = list[i], at = i;
		const struct topo_net *net = &topo->nodes[TOPO_NET][moved]->net;

		for (; at > 0 &&
			is_before(net, &topo->nodes[TOPO_NET][list[at - 1]]->net);
			at--)
			list[at] = list[at - 1];
		list[at] = moved;
	}
}

static uint32_t nets_per_gpu(const struct topo *topo, uint32_t nets, uint32_t gpus)
{
	uint32_t most = (uint32_t)topo->rules.netdevs_max;

	switch (topo->rules.netdevs) {
	case NETDEVS_ALL:
		return nets;
	case NETDEVS_MAX:
		return most < nets ? most : nets;
	case NETDEVS_AUTO:
		break;
	}
	return gpus ? (nets + gpus - 1) / gpus : nets;
}

enum err topo_local_net(const struct topo *topo, int rank, int channel, uint64_t *id)
{
	uint32_t nets[TOPO_NODES_MAX], gpus[TOPO_NODES_MAX], net_count, gpu_count,
		per_gpu, start;
	int gpu = topo_gpu_of_rank(topo, rank);

	net_count = gpu < 0 ? 0
			    : topo_local_nodes(topo, TOPO_GPU, (uint32_t)gpu, TOPO_NET,
				      nets, NULL);
	if (!net_count)
		return ERR_INTERNAL;
	nets_sort(topo, nets, net_count);
	gpu_count = topo_local_nodes(topo, TOPO_NET, nets[0], TOPO_GPU, gpus, NULL);
	per_gpu = nets_per_gpu(topo, net_count, gpu_count);
	start = (uint32_t)topo_gpu_at(topo, (uint32_t)gpu)->gpu.dev;
	start %= gpu_count ? gpu_count : 1;
	if (!(net_count & (net_count - 1)))
		start = bits_mirror(start, net_count);
	start += (uint32_t)channel % (per_gpu ? per_gpu : 1);
	*id = topo->nodes[TOPO_NET][nets[start % net_count]]->id;
	return OK;
}

int topo_local_gpu(const struct topo *topo, uint64_t net_id)
{
	uint32_t gpus[TOPO_NODES_MAX], count;
	int net = topo_net_of_id(topo, net_id);

	if (net < 0)
		return -1;
	count = topo_local_nodes(topo, TOPO_NET, (uint32_t)net, TOPO_GPU, gpus, NULL);
	for (int channel = 0; channel < CHANNELS_MAX; channel++)
		for (uint32_t i = 0; i < count; i++) {
			int rank = topo_gpu_at(topo, gpus[i])->gpu.rank;
			uint64_t id;

			if (!topo_local_net(topo, rank, channel, &id) && id == net_id)
				return (int)gpus[i];
		}
	return -1;
}
