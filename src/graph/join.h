/*
 * join.h - the steps of cluster_join(), one function each; nobody else includes this.
 */
#ifndef GRAPH_JOIN_H
#define GRAPH_JOIN_H

#include "graph/facts.h"

/* Where channel `c` comes from, after all the copying: which channel of the graphs, and
 * which of the two trees. */
struct channel_source {
	int graph_channel;
	int tree;
};

struct join {
	const struct cluster_args *args;
	struct cluster *cluster;
	struct domain_facts *facts; /* owned; one per distinct domain */
	uint32_t fact_count;
	uint32_t *kinds;	/* owned; by node: which of the facts are its own */
	int graph_channels;	/* channels all nodes have */
	int min_ctas, max_ctas; /* what was asked for, within bounds */
	int min_channels, max_channels; /* the same of rings and trees */
	struct channel_source sources[GRAPH_CHANNELS_MAX];
	int head_count; /* NVLS heads every node has */
};

const struct domain_facts *join_facts(const struct join *join, int node);

/* join_channels.c: rings and trees of every channel. The arrays are there. */
enum err join_channels(struct join *join);

/* join_nvls.c: how many NVLS channels, of which size; then the heads and their trees. */
void join_nvls_tune(struct join *join);
void join_nvls(struct join *join);

#endif
