/*
 * cluster.h - many domains: node graphs joined into rings and trees over all ranks, and
 * how many channels that makes.
 *
 * Equal hosts share one domain, so a thousand hosts cost one search.
 */
#ifndef GRAPH_CLUSTER_H
#define GRAPH_CLUSTER_H

#include "graph/channel_rules.h"
#include "graph/graph.h"

/* One topology with its graphs; borrowed by every node that looks like it. */
struct domain {
	struct topo *topo; /* owned, trimmed to this domain */
	struct graph_set set;
	uint32_t rank_count;
	int ranks[TOPO_GPUS_MAX]; /* ranks of the machine in this domain, ascending; they
				   * are what graphs and topo_gpu.rank speak of */
};

struct cluster_node {
	const struct domain *domain;
	int base; /* rank in the cluster = base + rank in the machine */
};

/* NCCL's algorithms; the graph each is run on is algo_graph(). */
enum algo {
	ALGO_TREE,
	ALGO_RING,
	ALGO_COLLNET_DIRECT,
	ALGO_COLLNET_CHAIN,
	ALGO_NVLS,
	ALGO_NVLS_TREE,
	ALGO_PAT,
	ALGO_COUNT
};
enum graph_id algo_graph(enum algo algo);

/* What all ranks agree on for one graph: the least of everything. */
struct graph_info {
	enum graph_pattern pattern;
	int channel_count, cross_nic;
	bool same_channels;
	float bw_intra, bw_inter;
	enum path_type type_intra, type_inter;
	float latency_inter; /* rank 0's own */
};

struct ring_edge {
	int from, to, send_net, send_proxy, recv_net;
};

struct channel {
	int *ring_prev, *ring_next; /* by rank */
	int *ring_order;	    /* from rank 0 on */
	int *tree_up;		    /* by rank; -1 none */
	int (*tree_down)[3];	    /* by rank; -1 fills up */
};

struct cluster_args {
	const struct cluster_node *nodes; /* in rank order of their first rank */
	uint32_t node_count;
	bool collnet;	    /* a CollNet plugin is on every NIC */
	bool has_multicast; /* NVLS may be used where the GPUs can */
	struct channel_rules channels;
};

struct cluster {
	enum nccl_rules nccl;			 /* whose rules decided */
	int rank_count, node_count, local_ranks; /* of rank 0's node */
	int min_local_ranks, max_local_ranks;
	int channel_count; /* channels that exist */
	int coll_channels; /* that rings and trees use */
	int nvls_channels;
	bool nvls_support, collnet_enable;
	int p2p_channels, p2p_channels_per_peer;
	int min_sm, max_sm;
	bool is_all_nvlink;
	float min_net_bw;
	int min_net_count;
	int max_tree_pattern;
	int cpu_arch, cpu_vendor;
	int nvls_chunk_bytes, nvls_tree_chunk_bytes;
	int mnnvl;     /* the communicator spans hosts by NVLink */
	int nvs_count; /* NVSwitch nodes in the topology of rank 0's node */
	/* CollNet. Heads are the ranks of rank 0's node that talk to the network: the
	 * NVLS heads where NVLS is in use, else the distinct first GPUs of the CollNet
	 * direct graph. direct_heads counts the latter in any case. The chain can be used
	 * when every first GPU of its graph is a head. */
	int collnet_heads, collnet_direct_heads;
	bool collnet_chain;
	struct graph_info info[ALGO_COUNT];
	int *rank_node;		    /* owned; by rank */
	struct cluster_node *nodes; /* owned, in node order */
	struct channel *channels;   /* owned */
	/* NVLS: heads of rank 0's node, and the tree over nodes per parity; -1 none */
	int nvls_head_count;
	int *nvls_head_rank; /* owned; by rank: the head it is, -1 */
	struct {
		int *up; /* owned; by rank */
		int (*down)[3];
	} nvls_tree[2];
};

/* Join. The domains must outlive the cluster. */
enum err cluster_join(const struct cluster_args *args, struct cluster **cluster);
void cluster_free(struct cluster *cluster);

/* The network edges of channel `c`'s ring, and of its tree in the reduce direction;
 * `edges` has room for rank_count. Returns how many. */
uint32_t cluster_ring_edges(
	const struct cluster *cluster, int c, struct ring_edge *edges);
uint32_t cluster_tree_edges(
	const struct cluster *cluster, int c, struct ring_edge *edges);

/* NCCL's double binary tree over `count` nodes: tree 0 and tree 1; -1 none. */
struct binary_tree {
	int up, down[2];
	int child_type; /* which child of its parent it is: 0 or 1 */
};
void binary_tree(int node, int count, struct binary_tree tree[2]);

#endif
