/*
 * fuse.h - from one file per rank to one tree per domain, as NCCL's ranks do it.
 *
 * Each rank keeps of its host's tree what it uses: its own GPU and every NIC. The trees
 * of the ranks of a domain are then laid over each other in rank order; equal nodes
 * become one. That order decides which index a GPU gets, and with it every graph.
 */
#ifndef TOPO_FUSE_H
#define TOPO_FUSE_H

#include "topo/rules.h"
#include "topo/xml.h"

/* A host of the domain: its tree (borrowed) and which of its GPUs take part. */
struct fuse_host {
	const struct xml_node *tree;
	uint64_t host_hash; /* differs between hosts and between pods */
	const int *devs;    /* `dev` of the GPUs that take part, in rank order */
	uint32_t dev_count;
	/* The NICs that can be seen: their places among the tree's <net>s; NULL: all. */
	const uint16_t *nets;
	uint32_t net_count;
};

struct fuse_args {
	const struct fuse_host *hosts;
	uint32_t host_count;
	bool collnet;	 /* every NET also does collectives */
	bool merge_nics; /* ports of one NIC become one device, as NCCL's IB does */
	int merge_level; /* enum path_type; PATH_PORT is NCCL's default */
};

/* Rank r of the domain is GPU devs[...] in host order. The tree is the caller's. */
enum err fuse_domain(const struct fuse_args *args, struct xml_node **tree);

/* The GPU of a tree with this dev; NULL when there is none. */
struct xml_node *fuse_gpu(const struct xml_node *tree, int dev);

/* The devs of a tree's GPUs in ascending order; `devs` has room for `room`. */
uint32_t fuse_devs(const struct xml_node *tree, int *devs, uint32_t room);

#endif
