/*
 * cluster.c - what all ranks agree on: how many nodes, graphs and channels. The rings
 * and trees themselves are in join_channels.c, NVLS in join_nvls.c.
 */
#include "graph/cluster.h"

#include <assert.h>
#include <stdlib.h>

#include "graph/join.h"

enum {
	CHANNELS_ENOUGH = 16,  /* no more doubling for fast GPUs from here on */
	COLLNET_NODES_MIN = 2, /* without NCCL_COLLNET_NODE_THRESHOLD */
	PEERS_PER_ROUND = 8,   /* sends of one kernel */
	RANKS_MAX = 1 << 20,
};

enum graph_id algo_graph(enum algo algo)
{
	static const enum graph_id graphs[ALGO_COUNT] = {
		[ALGO_TREE] = GRAPH_TREE,
		[ALGO_RING] = GRAPH_RING,
		[ALGO_COLLNET_DIRECT] = GRAPH_COLLNET_DIRECT,
		[ALGO_COLLNET_CHAIN] = GRAPH_COLLNET_CHAIN,
		[ALGO_NVLS] = GRAPH_NVLS,
		[ALGO_NVLS_TREE] = GRAPH_NVLS,
		[ALGO_PAT] = GRAPH_TREE,
	};

	assert(algo < ALGO_COUNT);
	return graphs[algo];
}

static int min_int(int a, int b)
{
	return a < b ? a : b;
}

static int pow2_up(int x)
{
	int power = 1;

	while (power < x)
		power *= 2;
	return power;
}

static enum err no_memory(int ranks)
{
	return err_set(ERR_SYSTEM, "no memory to join %d ranks; use fewer", ranks);
}

/* Count ranks and check that the nodes hold each exactly once. */
static enum err place_ranks(struct join *join)
{
	const struct cluster_args *args = join->args;
	struct cluster *cluster = join->cluster;
	size_t ranks = 0;
	int before = -1;

	for (uint32_t n = 0; n < args->node_count; n++)
		ranks += args->nodes[n].domain->rank_count;
	if (!ranks || ranks > RANKS_MAX)
		return err_set(ERR_USAGE, "%zu ranks cannot be joined; use 1 to %d",
			ranks, RANKS_MAX);
	cluster->rank_count = (int)ranks;
	cluster->node_count = (int)args->node_count;
	cluster->rank_node = malloc(ranks * sizeof(int));
	cluster->nodes = malloc(args->node_count * sizeof(*cluster->nodes));
	if (!cluster->rank_node || !cluster->nodes)
		return no_memory(cluster->rank_count);
	for (size_t r = 0; r < ranks; r++)
		cluster->rank_node[r] = -1;
	for (uint32_t n = 0; n < args->node_count; n++) {
		const struct domain *domain = args->nodes[n].domain;
		int base = args->nodes[n].base;
		cluster->nodes[n] = args->nodes[n];
		if (!domain->rank_count || base + domain->ranks[0] <= before)
			return err_set(ERR_INTERNAL, "node %u is out of order", n);
		before = base + domain->ranks[0];
		for (uint32_t i = 0; i < domain->rank_count; i++) {
			int rank = base + domain->ranks[i];
			if (rank < 0 || rank >= cluster->rank_count ||
				cluster->rank_node[rank] >= 0)
				return err_set(ERR_INTERNAL,
					"rank %d does not fit node %u", rank, n);
			cluster->rank_node[rank] = (int)n;
		}
	}
	return OK;
}

const struct domain_facts *join_facts(const struct join *join, int node)
{
	return &join->facts[join->kinds[node]];
}

static enum err add_facts(struct join *join, const struct domain *domain)
{
	size_t bytes = (join->fact_count + 1) * sizeof(*join->facts);
	struct domain_facts *facts = realloc(join->facts, bytes);
	bool is_inter = join->cluster->node_count > 1;

	if (!facts)
		return no_memory(join->cluster->rank_count);
	join->facts = facts;
	return domain_facts(domain, join->args, is_inter, &facts[join->fact_count++]);
}

static enum err collect_facts(struct join *join)
{
	const struct cluster *cluster = join->cluster;

	join->kinds = calloc((size_t)cluster->node_count, sizeof(*join->kinds));
	if (!join->kinds)
		return no_memory(cluster->rank_count);
	for (int n = 0; n < cluster->node_count; n++) {
		const struct domain *domain = cluster->nodes[n].domain;
		uint32_t kind = 0;
		enum err e = OK;
		while (kind < join->fact_count && join->facts[kind].domain != domain)
			kind++;
		if (kind == join->fact_count)
			e = add_facts(join, domain);
		if (e)
			return e;
		join->kinds[n] = kind;
	}
	return OK;
}

/* The least of two nodes' graphs: fewest and slowest, over the worst paths. */
static void align_info(struct graph_info *info, const struct graph_info *other)
{
	info->channel_count = min_int(info->channel_count, other->channel_count);
	info->same_channels = info->same_channels && other->same_channels;
	if (other->bw_intra < info->bw_intra)
		info->bw_intra = other->bw_intra;
	if (other->bw_inter < info->bw_inter)
		info->bw_inter = other->bw_inter;
	if (other->type_intra > info->type_intra)
		info->type_intra = other->type_intra;
	if (other->type_inter > info->type_inter)
		info->type_inter = other->type_inter;
	if (other->cross_nic > info->cross_nic)
		info->cross_nic = other->cross_nic;
}

static void align_facts(struct cluster *cluster, const struct domain_facts *facts)
{
	for (int a = 0; a < ALGO_COUNT; a++)
		align_info(&cluster->info[a], &facts->info[algo_graph((enum algo)a)]);
	if ((int)facts->info[GRAPH_TREE].pattern > cluster->max_tree_pattern)
		cluster->max_tree_pattern = (int)facts->info[GRAPH_TREE].pattern;
	cluster->p2p_channels_per_peer = min_int(
		cluster->p2p_channels_per_peer, facts->p2p_per_peer);
	cluster->min_net_count = min_int(cluster->min_net_count, facts->min_net_count);
	if (facts->min_net_bw < cluster->min_net_bw)
		cluster->min_net_bw = facts->min_net_bw;
	cluster->is_all_nvlink = cluster->is_all_nvlink && facts->is_all_nvlink;
	cluster->min_sm = min_int(cluster->min_sm, facts->min_sm);
	if (facts->max_sm > cluster->max_sm)
		cluster->max_sm = facts->max_sm;
	if (facts->cpu_arch != cluster->cpu_arch)
		cluster->cpu_arch = CPU_ARCH_MIXED;
	if (facts->cpu_vendor != cluster->cpu_vendor)
		cluster->cpu_vendor = CPU_VENDOR_MIXED;
}

static uint32_t collnet_nodes(const struct cluster_args *args)
{
	uint32_t asked = args->channels.collnet_nodes;

	return asked ? asked : COLLNET_NODES_MIN;
}

static void align(struct join *join)
{
	struct cluster *cluster = join->cluster;
	const struct domain_facts *own = join_facts(join, 0);
	const struct domain *domain = own->domain;

	cluster->nccl = domain->topo->rules.nccl;
	cluster->local_ranks = (int)domain->rank_count;
	cluster->min_local_ranks = cluster->max_local_ranks = cluster->local_ranks;
	for (int n = 1; n < cluster->node_count; n++) {
		int ranks = (int)cluster->nodes[n].domain->rank_count;
		cluster->min_local_ranks = min_int(cluster->min_local_ranks, ranks);
		if (ranks > cluster->max_local_ranks)
			cluster->max_local_ranks = ranks;
	}
	for (int a = 0; a < ALGO_COUNT; a++)
		cluster->info[a] = own->info[algo_graph((enum algo)a)];
	cluster->p2p_channels_per_peer = own->p2p_per_peer;
	cluster->min_net_bw = own->min_net_bw;
	cluster->min_net_count = own->min_net_count;
	cluster->is_all_nvlink = own->is_all_nvlink;
	cluster->min_sm = own->min_sm;
	cluster->cpu_arch = own->cpu_arch;
	cluster->cpu_vendor = own->cpu_vendor;
	cluster->mnnvl = domain->topo->host_count > 1;
	cluster->nvs_count = (int)domain->topo->counts[TOPO_NVS];
	cluster->collnet_direct_heads = own->direct_heads;
	for (uint32_t i = 0; i < join->fact_count; i++)
		align_facts(cluster, &join->facts[i]);
	join->graph_channels = min_int(cluster->info[ALGO_TREE].channel_count,
		cluster->info[ALGO_RING].channel_count);
	cluster->info[ALGO_TREE].channel_count = join->graph_channels;
	cluster->info[ALGO_RING].channel_count = join->graph_channels;
	cluster->info[ALGO_PAT].channel_count = join->graph_channels;
	cluster->nvls_support = cluster->info[ALGO_NVLS].channel_count > 0;
	/* one node without NVLS is enough for all to use the other heads */
	cluster->collnet_heads = cluster->nvls_support ? own->head_count
						       : own->direct_heads;
	cluster->collnet_chain = cluster->nvls_support ? own->nvls_has_chain
						       : own->direct_has_chain;
	cluster->collnet_enable = join->args->collnet &&
				  cluster->info[ALGO_COLLNET_CHAIN].channel_count > 0 &&
				  (uint32_t)cluster->node_count >=
					  collnet_nodes(join->args);
}

/* Channels from `start` to `end` repeat those from 0 on. Returns the new count. */
static int repeat(struct join *join, int start, int end)
{
	int c = start;

	for (; c < min_int(end, GRAPH_CHANNELS_MAX); c++)
		join->sources[c] = join->sources[c - start];
	return c;
}

/* Every channel of the graphs twice, once per tree; then more where more is faster. */
static void count_channels(struct join *join)
{
	struct cluster *cluster = join->cluster;
	const struct graph_info *chain = &cluster->info[ALGO_COLLNET_CHAIN];
	int graph = join->graph_channels;
	int count = min_int(GRAPH_CHANNELS_MAX, 2 * graph);

	for (int c = 0; c < count; c++)
		join->sources[c] = (struct channel_source){c % graph, c / graph};
	if (cluster->collnet_enable && chain->bw_intra > chain->bw_inter &&
		cluster->rank_count > cluster->node_count)
		count = repeat(join, count, count + count / 2);
	if (cluster->min_sm >= 90 && cluster->node_count > 1 &&
		cluster->info[ALGO_RING].bw_intra > 45.0f && count < CHANNELS_ENOUGH)
		count = repeat(join, count, 2 * count);
	count = repeat(join, min_int(count, join->max_channels), join->min_channels);
	cluster->channel_count = cluster->coll_channels = count;
}

static int within(uint32_t ctas, int otherwise)
{
	if (!ctas)
		return otherwise;
	return ctas < GRAPH_CHANNELS_MAX ? (int)ctas : GRAPH_CHANNELS_MAX;
}

static int max_int(int a, int b)
{
	return a > b ? a : b;
}

/* Of two bounds of one thing the stricter. */
static void bounds_set(struct join *join)
{
	const struct channel_rules *rules = &join->args->channels;

	join->min_ctas = within(rules->min_ctas, 1);
	join->max_ctas = within(rules->max_ctas, GRAPH_CHANNELS_MAX);
	join->min_channels = max_int(join->min_ctas, within(rules->min_channels, 1));
	join->max_channels = min_int(
		join->max_ctas, within(rules->max_channels, GRAPH_CHANNELS_MAX));
}

/* Sends and receives: powers of two, and on several nodes no more per peer than lets a
 * round of peers run at once. */
static void count_p2p(struct join *join)
{
	struct cluster *cluster = join->cluster;
	const struct channel_rules *rules = &join->args->channels;
	int per_peer = pow2_up(cluster->p2p_channels_per_peer);
	int peers = rules->p2p_peers ? (int)rules->p2p_peers : cluster->rank_count;
	int rounds = peers / PEERS_PER_ROUND + (peers % PEERS_PER_ROUND != 0);
	int count = min_int(
		cluster->channel_count, within(rules->max_p2p, GRAPH_CHANNELS_MAX));

	cluster->p2p_channels = pow2_up(max_int(count, within(rules->min_p2p, 1)));
	if (cluster->node_count > 1) {
		while (per_peer > 1 && rounds > cluster->p2p_channels / per_peer)
			per_peer /= 2;
	} else {
		per_peer = min_int(per_peer, cluster->p2p_channels);
	}
	cluster->p2p_channels_per_peer = per_peer;
}

static enum err allocate(struct cluster *cluster)
{
	size_t ranks = (size_t)cluster->rank_count;
	bool is_whole = true;

	cluster->channels = calloc(
		(size_t)cluster->channel_count, sizeof(*cluster->channels));
	cluster->nvls_head_rank = malloc(ranks * sizeof(int));
	if (!cluster->channels || !cluster->nvls_head_rank)
		return no_memory(cluster->rank_count);
	for (int c = 0; c < cluster->channel_count; c++) {
		struct channel *channel = &cluster->channels[c];
		channel->ring_prev = malloc(ranks * sizeof(int));
		channel->ring_next = malloc(ranks * sizeof(int));
		channel->ring_order = malloc(ranks * sizeof(int));
		channel->tree_up = malloc(ranks * sizeof(int));
		channel->tree_down = malloc(ranks * sizeof(int[3]));
		is_whole = is_whole && channel->ring_prev && channel->ring_next &&
			   channel->ring_order && channel->tree_up && channel->tree_down;
	}
	for (int t = 0; t < 2; t++) {
		cluster->nvls_tree[t].up = malloc(ranks * sizeof(int));
		cluster->nvls_tree[t].down = malloc(ranks * sizeof(int[3]));
		is_whole = is_whole && cluster->nvls_tree[t].up &&
			   cluster->nvls_tree[t].down;
	}
	return is_whole ? OK : no_memory(cluster->rank_count);
}

static enum err join_all(struct join *join)
{
	enum err e = place_ranks(join);

	bounds_set(join);
	if (!e)
		e = collect_facts(join);
	if (e)
		return e;
	align(join);
	join_nvls_tune(join);
	count_channels(join);
	count_p2p(join);
	e = allocate(join->cluster);
	if (!e)
		e = join_channels(join);
	if (!e)
		join_nvls(join);
	return e;
}

enum err cluster_join(const struct cluster_args *args, struct cluster **cluster)
{
	struct join join = {.args = args};
	enum err e;

	if (!args->node_count)
		return err_set(ERR_ARGUMENT, "no nodes to join");
	join.cluster = calloc(1, sizeof(*join.cluster));
	if (!join.cluster)
		return no_memory(0);
	e = join_all(&join);
	free(join.facts);
	free(join.kinds);
	if (e)
		cluster_free(join.cluster);
	else
		*cluster = join.cluster;
	return e;
}

void cluster_free(struct cluster *cluster)
{
	if (!cluster)
		return;
	for (int c = 0; cluster->channels && c < cluster->channel_count; c++) {
		free(cluster->channels[c].ring_prev);
		free(cluster->channels[c].ring_next);
		free(cluster->channels[c].ring_order);
		free(cluster->channels[c].tree_up);
		free(cluster->channels[c].tree_down);
	}
	for (int t = 0; t < 2; t++) {
		free(cluster->nvls_tree[t].up);
		free(cluster->nvls_tree[t].down);
	}
	free(cluster->channels);
	free(cluster->nvls_head_rank);
	free(cluster->rank_node);
	free(cluster->nodes);
	free(cluster);
}
