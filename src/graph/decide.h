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
	bool collnet, has_multicast;
	struct topo_rules rules;
	struct search_options search;
	const char *graph_file; /* NCCL_GRAPH_FILE; NULL none */
};

struct decision {
	struct domain **domains; /* owned; distinct ones only */
	uint32_t domain_count;
	struct cluster *cluster;   /* owned */
	uint32_t gpus_per_machine; /* of the first */
};

enum err decide(const struct decide_args *args, struct decision **decision);
void decision_free(struct decision *decision);

#endif
