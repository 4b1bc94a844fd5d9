/*
 * facts.h - what the ranks of one domain tell all others before channels are agreed on.
 *
 * Computed once per domain, however many nodes borrow it.
 */
#ifndef GRAPH_FACTS_H
#define GRAPH_FACTS_H

#include "graph/cluster.h"

struct domain_facts {
	const struct domain *domain; /* borrowed */
	struct graph_info info[GRAPH_COUNT];
	int heads[GRAPH_CHANNELS_MAX]; /* of NVLS: ranks of the domain, each once */
	int head_count;
	int direct_heads; /* distinct first GPUs of the CollNet direct graph */
	/* All first GPUs of the CollNet chain are among those of NVLS, of CollNet direct.
	 */
	bool nvls_has_chain, direct_has_chain;
	int p2p_per_peer; /* channels every peer of every rank can make use of */
	float min_net_bw; /* of the slowest NIC some rank uses; 0 without NICs */
	int min_net_count;
	bool is_all_nvlink;
	int min_sm, max_sm;
	int first_sm; /* of its lowest rank */
	int cpu_arch, cpu_vendor;
};

/* `is_inter`: there are ranks outside the domain. ERR_USAGE when a graph is not one that
 * visits every GPU of the domain once, as can happen with a graph from a file. */
enum err domain_facts(const struct domain *domain, const struct cluster_args *args,
	bool is_inter, struct domain_facts *facts);

#endif
