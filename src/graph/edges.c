/*
 * edges.c - where a ring or tree leaves a node: through which NIC, fed by whose GPU, and
 * by which NIC it comes in.
 */
#include "graph/cluster.h"

/* The NIC a rank uses on a channel: the graph names one for its first GPU and one for
 * whoever else stands at the border. */
static uint64_t border_net(
	const struct cluster *cluster, enum graph_id id, int channel, int rank)
{
	const struct cluster_node *node = &cluster->nodes[cluster->rank_node[rank]];
	const struct graph *graph = &node->domain->set.graphs[id];
	/* all nodes count channels as the one that has fewest */
	int from = channel % cluster->info[ALGO_RING].channel_count;
	bool is_first = graph->intra[from][0] == rank - node->base;

	return graph->inter[from][is_first ? 0 : 1];
}

static int net_dev(const struct cluster *cluster, int rank, uint64_t id)
{
	const struct topo *topo = cluster->nodes[cluster->rank_node[rank]].domain->topo;
	int index = topo_net_of_id(topo, id);

	return index < 0 ? -1 : topo->nodes[TOPO_NET][index]->net.dev;
}

static struct ring_edge border_edge(
	const struct cluster *cluster, enum graph_id id, int channel, int from, int to)
{
	const struct cluster_node *node = &cluster->nodes[cluster->rank_node[from]];
	uint64_t out = border_net(cluster, id, channel, from);
	uint64_t in = border_net(cluster, id, channel, to);
	int relay = from - node->base;

	if (topo_net_of_id(node->domain->topo, out) >= 0)
		relay = topo_proxy_rank(node->domain->topo, relay, out);
	return (struct ring_edge){
		.from = from,
		.to = to,
		.send_net = net_dev(cluster, from, out),
		.send_proxy = node->base + relay,
		.recv_net = net_dev(cluster, to, in),
	};
}

static uint32_t collect(const struct cluster *cluster, enum graph_id id, int channel,
	const int *to, struct ring_edge *edges)
{
	uint32_t count = 0;

	for (int r = 0; r < cluster->rank_count; r++)
		if (to[r] >= 0 && cluster->rank_node[to[r]] != cluster->rank_node[r])
			edges[count++] = border_edge(cluster, id, channel, r, to[r]);
	return count;
}

uint32_t cluster_ring_edges(const struct cluster *cluster, int c, struct ring_edge *edges)
{
	return collect(cluster, GRAPH_RING, c, cluster->channels[c].ring_next, edges);
}

uint32_t cluster_tree_edges(const struct cluster *cluster, int c, struct ring_edge *edges)
{
	return collect(cluster, GRAPH_TREE, c, cluster->channels[c].tree_up, edges);
}
