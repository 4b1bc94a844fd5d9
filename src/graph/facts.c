#include "graph/facts.h"

#include <float.h>
#include <string.h>

#include "topo/decide_path.h"

enum {
	PER_CHANNEL_NET_BW = 14, /* GB/s a channel of a send carries, NCCL's guess */
	P2P_CHANNELS = 2,	 /* of a peer that is not on NVLink */
};

/* One NVLink's GB/s by generation. */
static float nvlink_bw(int sm)
{
	if (sm >= 100)
		return 40.1f;
	if (sm >= 90)
		return 20.6f;
	if (sm == 86)
		return 12.0f;
	return sm >= 60 && sm < 70 ? 18.0f : 20.0f;
}

static int ceil_div(int a, int b)
{
	return (a + b - 1) / b;
}

static int min_int(int a, int b)
{
	return a < b ? a : b;
}

/* GB/s from a GPU to its own NUMA node; 0 when there is none. */
static float host_bw(const struct topo *topo, const struct topo_node *gpu)
{
	int cpu = topo_near_cpu(topo, gpu->index);

	return cpu < 0 ? 0 : topo_path(gpu, TOPO_CPU, (uint32_t)cpu)->bw;
}

struct gpu_nets {
	int count;     /* as many as the GPU's own link can feed */
	float bw, min; /* of those together; of the slowest of all it uses */
};

static enum err gpu_nets(
	const struct topo *topo, const struct topo_node *gpu, struct gpu_nets *nets)
{
	uint64_t first = 0;
	float limit = host_bw(topo, gpu), min = FLT_MAX;
	bool is_fed = false;

	*nets = (struct gpu_nets){0};
	if (!topo->counts[TOPO_NET] || !gpu->paths[TOPO_NET])
		return OK;
	for (int c = 0; c < GRAPH_CHANNELS_MAX; c++) {
		uint64_t id;
		enum err e = topo_local_net(topo, gpu->gpu.rank, c, &id);
		int index = e ? -1 : topo_net_of_id(topo, id);
		if (e)
			return e;
		if (index < 0)
			return err_set(ERR_INTERNAL, "no NIC has the id %llx",
				(unsigned long long)id);
		if (c == 0)
			first = id;
		else if (id == first)
			break;
		float bw = gpu->paths[TOPO_NET][index].bw;
		min = bw < min ? bw : min;
		if (is_fed)
			continue;
		nets->bw += bw;
		nets->count++;
		is_fed = nets->bw >= limit;
	}
	nets->min = min;
	return OK;
}

/* The same to a peer on another node. */
static int per_net_peer(const struct channel_rules *rules, const struct gpu_nets *nets)
{
	int gbps = rules->net_bw_per_channel ? (int)rules->net_bw_per_channel
					     : PER_CHANNEL_NET_BW;
	int wanted = ceil_div((int)nets->bw, gbps);

	if (rules->per_net_peer)
		return (int)rules->per_net_peer;
	if (!nets->count)
		return P2P_CHANNELS;
	return nets->count > wanted ? nets->count : wanted;
}

/* How many channels a GPU can use to the peer that takes fewest. `rules`: of peers on
 * other nodes; NULL where there are none. */
static int per_peer(const struct topo *topo, const struct topo_node *gpu,
	const struct channel_rules *rules, const struct gpu_nets *nets)
{
	int least = GRAPH_CHANNELS_MAX;

	for (uint32_t p = 0; p < topo->counts[TOPO_GPU]; p++) {
		const struct topo_node *peer = topo_gpu_at(topo, p);
		int channels = P2P_CHANNELS;
		if (p == gpu->index)
			continue;
		const struct topo_path *path = topo_path(peer, TOPO_GPU, gpu->index);
		if (path->type == PATH_NVL || path->type == PATH_NVB) {
			int links = (int)(path->bw / nvlink_bw(gpu->gpu.sm));
			channels *= links > 1 ? links : 1;
		}
		least = min_int(least, channels);
	}
	return rules ? min_int(least, per_net_peer(rules, nets)) : least;
}

static enum err gpu_facts(const struct topo *topo, const struct channel_rules *rules,
	struct domain_facts *facts)
{
	for (uint32_t g = 0; g < topo->counts[TOPO_GPU]; g++) {
		const struct topo_node *gpu = topo_gpu_at(topo, g);
		struct gpu_nets nets;
		enum err e = gpu_nets(topo, gpu, &nets);
		int channels;
		if (e)
			return e;
		channels = per_peer(topo, gpu, rules, &nets);
		facts->p2p_per_peer = min_int(facts->p2p_per_peer, channels);
		facts->min_net_count = min_int(facts->min_net_count, nets.count);
		if (nets.min < facts->min_net_bw)
			facts->min_net_bw = nets.min;
		if (gpu->gpu.sm < facts->min_sm)
			facts->min_sm = gpu->gpu.sm;
		if (gpu->gpu.sm > facts->max_sm)
			facts->max_sm = gpu->gpu.sm;
		for (uint32_t p = 0; p < topo->counts[TOPO_GPU]; p++)
			if (p != g && topo_path(gpu, TOPO_GPU, p)->type >= PATH_PIX)
				facts->is_all_nvlink = false;
	}
	return OK;
}

static bool is_rank_of(const struct domain *domain, int rank)
{
	for (uint32_t i = 0; i < domain->rank_count; i++)
		if (domain->ranks[i] == rank)
			return true;
	return false;
}

static bool is_order_of(const struct domain *domain, const int *order)
{
	for (uint32_t i = 0; i < domain->rank_count; i++) {
		if (!is_rank_of(domain, order[i]))
			return false;
		for (uint32_t k = 0; k < i; k++)
			if (order[k] == order[i])
				return false;
	}
	return true;
}

/* Graphs may come from a file: nothing below must depend on its author's care. */
static enum err check_graph(const struct domain *domain, enum graph_id id)
{
	const struct graph *graph = &domain->set.graphs[id];
	bool is_used = id == GRAPH_RING || id == GRAPH_TREE;

	if (graph->channel_count < (is_used ? 1 : 0) ||
		graph->channel_count > GRAPH_CHANNELS_MAX)
		return err_set(ERR_USAGE,
			"the %s graph has %d channels; give it 1 to %d, or leave it out "
			"of the graph file",
			pattern_name(graph->pattern), graph->channel_count,
			GRAPH_CHANNELS_MAX);
	if (!is_used)
		return OK;
	for (int c = 0; c < graph->channel_count; c++)
		if (!is_order_of(domain, graph->intra[c]))
			return err_set(ERR_USAGE,
				"channel %d of the %s graph does not visit each of the "
				"%u GPUs once; correct the graph file",
				c, pattern_name(graph->pattern), domain->rank_count);
	return OK;
}

static struct graph_info info_of(const struct graph *graph)
{
	return (struct graph_info){
		.pattern = graph->pattern,
		.channel_count = graph->channel_count,
		.cross_nic = graph->cross_nic,
		.same_channels = graph->same_channels,
		.bw_intra = graph->bw_intra,
		.bw_inter = graph->bw_inter,
		.type_intra = graph->type_intra,
		.type_inter = graph->type_inter,
		.latency_inter = graph->latency_inter,
	};
}

/* A graph nobody asked for tells its pattern and zeros. */
static void collect_infos(const struct domain *domain, const struct cluster_args *args,
	struct domain_facts *facts)
{
	for (int id = 0; id < GRAPH_COUNT; id++)
		facts->info[id] = info_of(&domain->set.graphs[id]);
	if (!args->collnet) {
		facts->info[GRAPH_COLLNET_CHAIN] = (struct graph_info){
			.pattern = PATTERN_TREE};
		facts->info[GRAPH_COLLNET_DIRECT] = (struct graph_info){
			.pattern = PATTERN_COLLNET_DIRECT};
	}
	if (!args->has_multicast || domain->rank_count < 2)
		facts->info[GRAPH_NVLS] = (struct graph_info){.pattern = PATTERN_NVLS};
}

/* The first GPUs of a graph's channels, each once. Returns how many. */
static int first_gpus(const struct graph *graph, int channels, int *heads)
{
	int count = 0;

	for (int c = 0; c < channels; c++) {
		int h = 0;
		while (h < count && heads[h] != graph->intra[c][0])
			h++;
		heads[h] = graph->intra[c][0];
		count += h == count;
	}
	return count;
}

static bool has_all(const int *heads, int count, const int *wanted, int wanted_count)
{
	for (int w = 0; w < wanted_count; w++) {
		int h = 0;
		while (h < count && heads[h] != wanted[w])
			h++;
		if (h == count)
			return false;
	}
	return true;
}

static enum err collect_heads(const struct domain *domain, struct domain_facts *facts)
{
	const struct graph *graphs = domain->set.graphs;
	int direct[GRAPH_CHANNELS_MAX], chain[GRAPH_CHANNELS_MAX];
	int chain_count = first_gpus(&graphs[GRAPH_COLLNET_CHAIN],
		graphs[GRAPH_COLLNET_CHAIN].channel_count, chain);

	facts->head_count = first_gpus(
		&graphs[GRAPH_NVLS], facts->info[GRAPH_NVLS].channel_count, facts->heads);
	for (int h = 0; h < facts->head_count; h++)
		if (!is_rank_of(domain, facts->heads[h]))
			return err_set(ERR_USAGE,
				"a channel of the NVLS graph starts at no GPU of its "
				"node; correct the graph file");
	facts->direct_heads = first_gpus(&graphs[GRAPH_COLLNET_DIRECT],
		graphs[GRAPH_COLLNET_DIRECT].channel_count, direct);
	facts->nvls_has_chain = has_all(
		facts->heads, facts->head_count, chain, chain_count);
	facts->direct_has_chain = has_all(
		direct, facts->direct_heads, chain, chain_count);
	return OK;
}

enum err domain_facts(const struct domain *domain, const struct cluster_args *args,
	bool is_inter, struct domain_facts *facts)
{
	const struct topo *topo = domain->topo;
	int first = topo_gpu_of_rank(topo, domain->ranks[0]);
	enum err e = OK;

	for (int id = 0; id < GRAPH_COUNT && !e; id++)
		e = check_graph(domain, (enum graph_id)id);
	if (e)
		return e;
	if (first < 0)
		return err_set(ERR_INTERNAL, "rank %d is not in its own topology",
			domain->ranks[0]);
	memset(facts, 0, sizeof(*facts));
	facts->domain = domain;
	facts->p2p_per_peer = GRAPH_CHANNELS_MAX;
	facts->min_net_bw = FLT_MAX;
	facts->min_net_count = facts->min_sm = INT32_MAX;
	facts->is_all_nvlink = true;
	facts->first_sm = topo_gpu_at(topo, (uint32_t)first)->gpu.sm;
	facts->cpu_arch = facts->cpu_vendor = CPU_UNKNOWN;
	if (topo->counts[TOPO_CPU]) {
		facts->cpu_arch = topo->nodes[TOPO_CPU][0]->cpu.arch;
		facts->cpu_vendor = topo->nodes[TOPO_CPU][0]->cpu.vendor;
	}
	collect_infos(domain, args, facts);
	e = collect_heads(domain, facts);
	return e ? e : gpu_facts(topo, is_inter ? &args->channels : NULL, facts);
}
