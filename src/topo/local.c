/*
 * local.c - who is near to whom: the NICs a GPU uses, the GPU a NIC belongs to.
 */
#include <stdlib.h>

#include "topo/topo.h"

enum { CHANNELS_MAX = 64 };

uint32_t topo_local_nodes(const struct topo *topo, const struct topo_node *from,
	enum topo_kind kind, uint32_t *list)
{
	const struct topo_path *paths = from->paths[kind];
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

/* The NICs near to a GPU, in the order its channels take them: channel c has
 * nets[(start + c % per_gpu) % count]. */
struct near_nets {
	uint32_t nets[TOPO_NODES_MAX];
	uint32_t count, start, per_gpu;
};

static void near_nets_find(const struct topo *topo, uint32_t gpu, struct near_nets *near)
{
	uint32_t gpus[TOPO_NODES_MAX], gpu_count;

	near->count = topo_local_nodes(
		topo, topo_gpu_at(topo, gpu), TOPO_NET, near->nets);
	if (!near->count)
		return;
	gpu_count = topo_local_nodes(
		topo, topo->nodes[TOPO_NET][near->nets[0]], TOPO_GPU, gpus);
	near->per_gpu = nets_per_gpu(topo, near->count, gpu_count);
	if (!near->per_gpu)
		near->per_gpu = 1;
	near->start = (uint32_t)topo_gpu_at(topo, gpu)->gpu.dev;
	near->start %= gpu_count ? gpu_count : 1;
	if (!(near->count & (near->count - 1)))
		near->start = bits_mirror(near->start, near->count);
}

static uint64_t near_nets_id(
	const struct topo *topo, const struct near_nets *near, uint32_t channel)
{
	uint32_t at = (near->start + channel % near->per_gpu) % near->count;

	return topo->nodes[TOPO_NET][near->nets[at]]->id;
}

enum err topo_local_net(const struct topo *topo, int rank, int channel, uint64_t *id)
{
	struct near_nets near = {.count = 0};
	int gpu = topo_gpu_of_rank(topo, rank);

	if (gpu >= 0)
		near_nets_find(topo, (uint32_t)gpu, &near);
	if (!near.count)
		return ERR_INTERNAL;
	*id = near_nets_id(topo, &near, (uint32_t)channel);
	return OK;
}

/* The GPU whose earliest channel takes this NIC; of several the first. */
int topo_local_gpu(const struct topo *topo, uint64_t net_id)
{
	uint32_t gpus[TOPO_NODES_MAX], count, earliest = CHANNELS_MAX;
	int net = topo_net_of_id(topo, net_id), found = -1;

	if (net < 0)
		return -1;
	count = topo_local_nodes(topo, topo->nodes[TOPO_NET][net], TOPO_GPU, gpus);
	for (uint32_t i = 0; i < count && earliest; i++) {
		struct near_nets near;
		uint32_t channel = 0;

		near_nets_find(topo, gpus[i], &near);
		if (!near.count)
			continue;
		/* The channels repeat after per_gpu. */
		while (channel < earliest && channel < near.per_gpu &&
			near_nets_id(topo, &near, channel) != net_id)
			channel++;
		if (channel < earliest && channel < near.per_gpu) {
			earliest = channel;
			found = (int)gpus[i];
		}
	}
	return found;
}
