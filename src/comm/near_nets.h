/*
 * near_nets.h - which device of a network plugin is the nearest to a GPU of this machine,
 * and how far they are apart.
 *
 * Asked before the ranks of several hosts listen, where there is something to choose, and
 * before messages go straight between a device and a GPU. Every GPU of the machine
 * counts, also those of other jobs, so that two ranks never disagree on who has which
 * device.
 */
#ifndef COMM_NEAR_NETS_H
#define COMM_NEAR_NETS_H

#include <stdbool.h>
#include <stdint.h>

#include "exec/cuda/engine.h"

struct comm;
struct net_plugin;

/* "" where a rank shows no GPU. */
struct gpu_place {
	char busid[CUDA_BUSID_BYTES];
};

/* Let the plugin use the device of this rank: the nearest to its GPU, as NCCL counts it,
 * where the topology knows both; else its number on the host, counted round. `places` has
 * every rank's. *sharing: how many ranks of this host take that one. */
void near_nets_choose(const struct comm *comm, struct net_plugin *plugin,
	const struct gpu_place *places, uint32_t *sharing);

/* Why messages do not go straight between a GPU and the device that the plugin is used
 * by, in words that stay good until the thread's next call; NULL: NCCL_NET_GDR_LEVEL
 * allows it. */
const char *near_nets_refusal(
	const struct net_plugin *plugin, const struct gpu_place *place);

#endif
