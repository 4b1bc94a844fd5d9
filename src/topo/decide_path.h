/*
 * decide_path.h - the P2P and GDR questions as path.c asks them half way, by index.
 */
#ifndef TOPO_DECIDE_PATH_H
#define TOPO_DECIDE_PATH_H

#include "topo/topo.h"

/* The CPU with the fewest hops from a GPU; -1 when none is reached. */
int topo_near_cpu(const struct topo *topo, uint32_t gpu);

/* As topo_p2p(), but only level and NVML are asked. */
void topo_p2p_raw(
	const struct topo *topo, uint32_t a, uint32_t b, struct topo_p2p *verdict);

/* Would NCCL's P2P and SHM transports connect these two? Both refuse when NICs are
 * faster than the way between the GPUs. */
bool topo_p2p_connects(const struct topo *topo, uint32_t a, uint32_t b);
bool topo_shm_connects(const struct topo *topo, uint32_t a, uint32_t b);
bool topo_net_is_faster(const struct topo *topo, uint32_t a, uint32_t b);

/* As topo_gdr(), by indices of GPU and NET. */
void topo_gdr_at(const struct topo *topo, uint32_t gpu, uint32_t net, bool is_send,
	struct topo_gdr *verdict);

#endif
