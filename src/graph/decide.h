/*
 * decide.h - from machine files to a joined cluster: what NCCL's ranks would decide
 * together, computed once per distinct machine.
 */
#ifndef GRAPH_DECIDE_H
#define GRAPH_DECIDE_H

#include "graph/cluster.h"

struct decide_args {
	const struct xml_node *const
		*machines; /* host h is machines[h % machine_count] */
	uint32_t machine_count;
	uint32_t host_count;
	uint32_t mnnvl_hosts;	     /* hosts per NVLink domain; 0, 1: none */
	uint32_t pods, gpus_per_pod; /* split each host; 0: one pod with all GPUs */
	uint32_t nets_per_pod;	     /* NICs each is given; 0: an equal share */
	bool collnet, has_multicast;
	struct topo_rules rules;
	struct channel_rules channels;
	bool unbounded;		/* search without NCCL's step budgets */
	const char *graph_file; /* NCCL_GRAPH_FILE; NULL none */
};

struct decision {
	struct domain **domains; /* owned; distinct ones only */
	uint32_t domain_count;
	struct cluster *cluster;   /* owned */
	uint32_t gpus_per_machine; /* of the first */
	/* Of the first machine, in pods: its NICs, those of each pod, and how many pods
	 * one of them was given to. */
	uint32_t net_count, nets_per_pod, pods_per_net;
};

enum err decide(const struct decide_args *args, struct decision **decision);
void decision_free(struct decision *decision);

#endif
