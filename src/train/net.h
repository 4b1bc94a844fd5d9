/*
 * net.h - how long collectives take on the machines at hand: `weft sim`'s engine asked
 * once for each kind of group, and a curve over size kept of what it says.
 *
 * A group has `per_node` ranks on each of `nodes` nodes; the groups beside it on the same
 * nodes do the same at the same time, so each has its share of the NICs.
 */
#ifndef TRAIN_NET_H
#define TRAIN_NET_H

#include "sim/predict.h"

enum { NET_POINTS = 14, NET_CURVES_MAX = 1024, NET_FIRST_BITS = 10 };

struct net_curve {
	int coll;
	uint32_t per_node, nodes;
	bool is_far;		    /* of two ranks: in different NVLink domains */
	double seconds[NET_POINTS]; /* of 1 KiB, 4 KiB, .. */
};

struct train_net {
	struct sim_site site; /* nodes and gpus as the job has them */
	uint32_t domain;      /* nodes of an NVLink domain; 0, 1: none */
	struct sim_calib calib;
	struct net_curve *curves; /* owned */
	uint32_t curve_count;
	double scale;	   /* of all rates between nodes; 1: as they are */
	uint64_t asked_ns; /* that the engine took */
};

struct net_group {
	uint32_t per_node, nodes;
	bool is_far;
};

/* `gpus` of each of `nodes`; 0: all of the machine's. ERR_USAGE for unknown machines. */
enum err net_make(
	struct train_net *net, const char *machine, uint32_t nodes, uint32_t gpus);
void net_free(struct train_net *net);

/* `bytes` as nccl-tests counts them: of all_gather and reduce_scatter the whole. NULL
 * where the group has one rank. */
enum err net_curve_get(struct train_net *net, int coll, const struct net_group *group,
	const struct net_curve **curve);
double net_curve_time(const struct net_curve *curve, double bytes);

#endif
