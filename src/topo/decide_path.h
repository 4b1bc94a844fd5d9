/*
 * decide_path.h - what path.c asks half way: pairs of GPUs, by index.
 */
#ifndef TOPO_DECIDE_PATH_H
#define TOPO_DECIDE_PATH_H

#include "topo/topo.h"

/* The CPU a GPU reaches best: bandwidth, type, then hops; -1 when it reaches none. */
int topo_near_cpu(const struct topo *topo, uint32_t gpu);

/* As topo_p2p(), but only level and NVML are asked. */
void topo_p2p_raw(
	const struct topo *topo, uint32_t a, uint32_t b, struct topo_p2p *verdict);

/* Would NCCL's P2P and SHM transports connect these two? Both refuse when NICs are
 * faster than the way between the GPUs. */
bool topo_p2p_connects(const struct topo *topo, uint32_t a, uint32_t b);
bool topo_shm_connects(const struct topo *topo, uint32_t a, uint32_t b);
bool topo_net_is_faster(const struct topo *topo, uint32_t a, uint32_t b);

#endif
