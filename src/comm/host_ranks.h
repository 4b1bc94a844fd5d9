/*
 * host_ranks.h - ranks that work on host memory, as devices of the machine's topology.
 *
 * NCCL's graphs are over GPUs. A rank on host memory has none, so for the graphs each
 * becomes an accelerator of its own: a PCI function of class 0x120000 right below the
 * NUMA node its process may run on, at 12 GB/s (Gen3 x16), about what one core copies.
 * Bus ids are made up, in a PCI domain that machines do not use; the compute capability
 * is 8.0, so that no rule for older GPUs applies. GPUs of the machine, which no rank
 * uses, are left out.
 */
#ifndef COMM_HOST_RANKS_H
#define COMM_HOST_RANKS_H

#include "base/err.h"
#include "topo/xml.h"

/* Processors a rank may run on, as sched_getaffinity() tells: bit c of word c / 64. */
struct host_rank {
	const uint64_t *cpus; /* borrowed */
	uint32_t words;
};

/* Change the tree: out with its GPUs, in with the ranks. A rank that may run on several
 * NUMA nodes is put on one of them by its number. */
enum err host_ranks_place(
	struct xml_node *tree, const struct host_rank *ranks, uint32_t count);

/* The made-up bus id of a rank, as the number NCCL logs. */
uint64_t host_rank_busid(uint32_t rank);

#endif
