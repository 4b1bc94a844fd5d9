/* Recorded graphs of one node, joined: every ring, tree and count is NCCL's. The trees
 * over nodes are the golden ones, and a big cluster is joined as well as a small one. */
#include "graph/cluster.h"

#include "decisions.h"
#include "test.h"

struct totals {
	struct tally comm, channels, nvls;
	int files, skipped;
};

/* Parents for 7 and 12 nodes, from a table worked out by hand. */
static void trees_are_golden(void)
{
	static const int odd[2][7] = {{-1, 2, 4, 2, 0, 6, 4}, {5, -1, 3, 5, 3, 1, 0}};
	static const int even[2][12] = {{-1, 2, 4, 2, 8, 6, 4, 6, 0, 10, 8, 10},
		{1, 3, 1, 11, 5, 7, 5, 3, 9, 7, 9, -1}};
	struct binary_tree trees[2];

	for (int t = 0; t < 2; t++) {
		for (int n = 0; n < 7; n++) {
			binary_tree(n, 7, trees);
			EQ(trees[t].up, odd[t][n]);
		}
		for (int n = 0; n < 12; n++) {
			binary_tree(n, 12, trees);
			EQ(trees[t].up, even[t][n]);
		}
	}
}

/* Whoever has a parent is that parent's child, on the side it believes to be. */
static void trees_agree(void)
{
	for (int count = 1; count <= 300; count++) {
		int roots[2] = {0, 0};
		for (int n = 0; n < count; n++) {
			struct binary_tree trees[2], above[2];
			binary_tree(n, count, trees);
			for (int t = 0; t < 2; t++) {
				if (trees[t].up < 0) {
					roots[t]++;
					continue;
				}
				binary_tree(trees[t].up, count, above);
				EQ(above[t].down[trees[t].child_type], n);
			}
		}
		EQ(roots[0], 1);
		EQ(roots[1], 1);
	}
}

/* Two GPUs on PCIe without a NIC; ring and tree go 0, 1. */
static struct domain *small_domain(int channels)
{
	struct domain *domain = calloc(1, sizeof(*domain));

	domain->topo = calloc(1, sizeof(*domain->topo));
	domain->topo->counts[TOPO_GPU] = domain->rank_count = 2;
	for (uint32_t g = 0; g < 2; g++) {
		struct topo_node *gpu = calloc(1, sizeof(*gpu));
		gpu->index = g;
		gpu->gpu = (struct topo_gpu){.dev = (int)g, .rank = (int)g, .sm = 80};
		gpu->paths[TOPO_GPU] = calloc(2, sizeof(struct topo_path));
		gpu->paths[TOPO_GPU][1 - g].type = PATH_PHB;
		domain->topo->nodes[TOPO_GPU][g] = gpu;
		domain->ranks[g] = (int)g;
	}
	for (int id = GRAPH_RING; id <= GRAPH_TREE; id++) {
		struct graph *graph = &domain->set.graphs[id];
		graph->pattern = id == GRAPH_RING ? PATTERN_RING : PATTERN_TREE;
		graph->channel_count = channels;
		for (int c = 0; c < channels; c++)
			graph->intra[c][1] = 1;
	}
	return domain;
}

static void users_bound_channels(void)
{
	struct domain *domain = small_domain(3);
	struct cluster_node nodes[2] = {{domain, 0}, {domain, 2}};
	struct cluster_args args = {.nodes = nodes, .node_count = 2};
	struct cluster *cluster;

	EQ(cluster_join(&args, &cluster), OK);
	EQ(cluster->channel_count, 6); /* each for two trees */
	EQ(cluster->channels[0].tree_up[2], 0);
	EQ(cluster->channels[3].tree_up[0], 2);
	EQ(cluster->p2p_channels, 8);
	cluster_free(cluster);
	args.channels.max_ctas = 4;
	args.channels.min_ctas = 9; /* first cut, then repeated */
	EQ(cluster_join(&args, &cluster), OK);
	EQ(cluster->channel_count, 9);
	EQ(cluster->channels[3].tree_up[0], 2);
	EQ(cluster->channels[4].tree_up[0], -1); /* the first again */
	EQ(cluster->channels[7].tree_up[0], 2);
	cluster_free(cluster);
	args.channels.min_ctas = UINT32_MAX;
	EQ(cluster_join(&args, &cluster), OK);
	EQ(cluster->channel_count, GRAPH_CHANNELS_MAX);
	cluster_free(cluster);
	decisions_domain_free(domain);
}

/* One machine, two nodes, every other GPU each. */
static void nodes_may_interleave(void)
{
	struct domain *even = small_domain(1), *odd = small_domain(1);
	struct cluster_node nodes[2] = {{even, 0}, {odd, 0}};
	struct cluster_args args = {.nodes = nodes, .node_count = 2};
	static const int order[4] = {0, 2, 1, 3};
	struct ring_edge edges[4];
	struct cluster *cluster;

	for (int i = 0; i < 2; i++) {
		even->ranks[i] = even->topo->nodes[TOPO_GPU][i]->gpu.rank = 2 * i;
		odd->ranks[i] = odd->topo->nodes[TOPO_GPU][i]->gpu.rank = 2 * i + 1;
		for (int id = GRAPH_RING; id <= GRAPH_TREE; id++) {
			even->set.graphs[id].intra[0][i] = 2 * i;
			odd->set.graphs[id].intra[0][i] = 2 * i + 1;
		}
	}
	EQ(cluster_join(&args, &cluster), OK);
	for (int i = 0; i < 4; i++) {
		EQ(cluster->rank_node[i], i % 2);
		EQ(cluster->channels[0].ring_order[i], order[i]);
	}
	EQ(cluster_ring_edges(cluster, 0, edges), 2);
	EQ(edges[0].from, 2);
	EQ(edges[0].to, 1);
	EQ(edges[0].send_net, -1); /* there is none */
	EQ(edges[0].send_proxy, 2);
	EQ(cluster_tree_edges(cluster, 1, edges), 1);
	EQ(edges[0].from, 0);
	cluster_free(cluster);
	decisions_domain_free(even);
	decisions_domain_free(odd);
}

static void bad_graphs_are_refused(void)
{
	struct domain *domain = small_domain(2);
	struct cluster_node nodes[2] = {{domain, 0}, {domain, 1}};
	struct cluster_args args = {
		.nodes = nodes, .node_count = 1, .has_multicast = true};
	struct graph *graphs = domain->set.graphs;
	struct cluster *cluster;

	graphs[GRAPH_RING].intra[1][0] = 1; /* twice the same */
	EQ(cluster_join(&args, &cluster), ERR_USAGE);
	graphs[GRAPH_RING].intra[1][0] = -7;
	EQ(cluster_join(&args, &cluster), ERR_USAGE);
	graphs[GRAPH_RING].intra[1][0] = 0;
	graphs[GRAPH_TREE].channel_count = 65;
	EQ(cluster_join(&args, &cluster), ERR_USAGE);
	graphs[GRAPH_TREE].channel_count = 2;
	graphs[GRAPH_NVLS].channel_count = 1;
	graphs[GRAPH_NVLS].intra[0][0] = 1000;
	EQ(cluster_join(&args, &cluster), ERR_USAGE);
	graphs[GRAPH_NVLS].channel_count = 0;
	args.node_count = 2; /* they share rank 1 */
	EQ(cluster_join(&args, &cluster), ERR_INTERNAL);
	args.node_count = 0;
	EQ(cluster_join(&args, &cluster), ERR_ARGUMENT);
	decisions_domain_free(domain);
}

/* Only rank 0's node is recorded: good for clusters of nodes that are all like it. */
static bool is_one_kind(json_t *root, const struct domain *domain)
{
	json_t *run = json_object_get(root, "run"), *comm = json_object_get(root, "comm");
	long per_machine = decisions_int(run, "gpusPerMachine");
	long ranks = decisions_int(comm, "nRanks");

	return domain->rank_count % (uint32_t)per_machine == 0 &&
	       json_is_string(json_object_get(run, "xml")) &&
	       decisions_int(comm, "nNodes") * (long)domain->rank_count == ranks;
}

static void check_file(const char *name, json_t *root, void *context)
{
	struct totals *totals = context;
	struct domain *domain = decisions_domain(root);
	json_t *run = json_object_get(root, "run"), *comm = json_object_get(root, "comm");
	uint32_t count = (uint32_t)decisions_int(comm, "nNodes");
	struct cluster_node *nodes = calloc(count, sizeof(*nodes));
	struct cluster_args args = {.nodes = nodes,
		.node_count = count,
		.collnet = decisions_int(run, "collnet") != 0,
		.has_multicast = decisions_int(run, "multicast") != 0};
	struct tally t_comm = {0}, channels = {0}, nvls = {0};
	struct cluster *cluster;

	for (uint32_t n = 0; n < count; n++)
		nodes[n] = (struct cluster_node){
			domain, (int)n * (int)domain->rank_count};
	if (!is_one_kind(root, domain)) {
		totals->skipped++;
		printf("%s: several kinds of nodes, not checked here\n", name);
	} else {
		EQ(cluster_join(&args, &cluster), OK);
		decisions_compare_comm(name, root, cluster, &t_comm);
		decisions_compare_channels(name, root, cluster, &channels);
		decisions_compare_nvls(name, root, cluster, &nvls);
		printf("%s: comm %d/%d channels %d/%d nvls %d/%d\n", name, t_comm.equal,
			t_comm.equal + t_comm.different, channels.equal,
			channels.equal + channels.different, nvls.equal,
			nvls.equal + nvls.different);
		totals->files++;
		totals->comm.equal += t_comm.equal;
		totals->comm.different += t_comm.different;
		totals->channels.equal += channels.equal;
		totals->channels.different += channels.different;
		totals->nvls.equal += nvls.equal;
		totals->nvls.different += nvls.different;
		cluster_free(cluster);
	}
	free(nodes);
	decisions_domain_free(domain);
}

int main(void)
{
	struct totals totals = {0};

	trees_are_golden();
	trees_agree();
	users_bound_channels();
	nodes_may_interleave();
	bad_graphs_are_refused();
	if (!*decisions_folder())
		return TEST_SKIP;
	decisions_each(check_file, &totals);
	printf("%d files, %d skipped; equal/different: comm %d/%d channels %d/%d nvls "
	       "%d/%d\n",
		totals.files, totals.skipped, totals.comm.equal, totals.comm.different,
		totals.channels.equal, totals.channels.different, totals.nvls.equal,
		totals.nvls.different);
	EQ(totals.comm.different + totals.channels.different + totals.nvls.different, 0);
	return 0;
}
