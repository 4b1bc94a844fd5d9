#include "weft/graph_json.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { TEXT_BYTES = 64 };

json_t *graph_json_float(float value)
{
	char text[TEXT_BYTES];

	snprintf(text, sizeof(text), "%.9g", (double)value);
	if (strspn(text, "-0123456789") == strlen(text))
		return json_integer(strtoll(text, NULL, 10));
	return json_real(strtod(text, NULL));
}

json_t *graph_json_ints(const int *values, int count)
{
	json_t *list = json_array();

	for (int i = 0; i < count; i++)
		json_array_append_new(list, json_integer(values[i]));
	return list;
}

/* The same without those that say "none". */
static json_t *present(const int values[3])
{
	json_t *list = json_array();

	for (int i = 0; i < 3; i++)
		if (values[i] >= 0)
			json_array_append_new(list, json_integer(values[i]));
	return list;
}

/* The last NIC with this id: a file may give one number to two. */
static int net_index(const struct topo *topo, uint64_t id)
{
	uint32_t at = topo->counts[TOPO_NET];

	while (at && topo->nodes[TOPO_NET][at - 1]->id != id)
		at--;
	return (int)at - 1;
}

static json_t *graph_channel(const struct topo *topo, const struct graph *graph, int c)
{
	int gpus = graph->id == GRAPH_NVLS ? 1 : graph->gpu_count;
	json_t *channel = json_object();
	json_t *nets = json_array(), *indices = json_array();

	json_object_set_new(channel, "gpus", graph_json_ints(graph->intra[c], gpus));
	for (int i = 0; i < 2; i++) {
		uint64_t id = graph->inter[c][i];
		char text[TEXT_BYTES];

		snprintf(text, sizeof(text), "%x-%llx", topo_system(id),
			(unsigned long long)topo_local(id));
		json_array_append_new(nets, json_string(text));
		json_array_append_new(indices, json_integer(net_index(topo, id)));
	}
	if (topo->is_inter) {
		json_object_set(channel, "nets", nets);
		json_object_set(channel, "netIndex", indices);
	}
	json_decref(nets);
	json_decref(indices);
	return channel;
}

static json_t *graph_object(
	const struct topo *topo, const struct graph *graph, const char *note)
{
	json_t *object = json_object(), *channels = json_array();
	const struct {
		const char *name;
		int value;
	} numbers[] = {{"crossNic", graph->cross_nic}, {"collNet", graph->collnet},
		{"minChannels", graph->min_channels},
		{"maxChannels", graph->max_channels},
		{"nChannels", graph->channel_count}};

	json_object_set_new(object, "id", json_integer(graph->id));
	json_object_set_new(object, "pattern", json_integer(graph->pattern));
	json_object_set_new(
		object, "patternName", json_string(pattern_name(graph->pattern)));
	for (size_t i = 0; i < sizeof(numbers) / sizeof(numbers[0]); i++)
		json_object_set_new(
			object, numbers[i].name, json_integer(numbers[i].value));
	json_object_set_new(object, "speedIntra", graph_json_float(graph->bw_intra));
	json_object_set_new(object, "speedInter", graph_json_float(graph->bw_inter));
	json_object_set_new(
		object, "latencyInter", graph_json_float(graph->latency_inter));
	json_object_set_new(
		object, "typeIntra", json_string(path_name(graph->type_intra)));
	json_object_set_new(
		object, "typeInter", json_string(path_name(graph->type_inter)));
	json_object_set_new(object, "sameChannels", json_integer(graph->same_channels));
	json_object_set_new(object, "nHops", json_integer(graph->hop_count));
	if (note)
		json_object_set_new(object, "note", json_string(note));
	for (int c = 0; c < graph->channel_count; c++)
		json_array_append_new(channels, graph_channel(topo, graph, c));
	json_object_set_new(object, "channels", channels);
	return object;
}

/* A CollNet graph as it is before any search: only what is asked for. */
static void blank(struct graph *graph, enum graph_id id, int ring_channels)
{
	*graph = (struct graph){.id = id, .min_channels = 1, .max_channels = 64};
	graph->collnet = true;
	graph->pattern = PATTERN_COLLNET_DIRECT;
	if (id == GRAPH_COLLNET_CHAIN) {
		graph->pattern = PATTERN_TREE;
		graph->min_channels = graph->max_channels = ring_channels;
	}
}

static json_t *blank_json(const struct domain *home, enum graph_id id, const char *note)
{
	struct graph *graph = malloc(sizeof(*graph));
	json_t *object;

	if (!graph)
		return NULL;
	blank(graph, id, home->set.graphs[GRAPH_RING].channel_count);
	object = graph_object(home->topo, graph, note);
	free(graph);
	return object;
}

/* Without CollNet the search still tells what its graphs would be. */
static json_t *collnet_json(
	const struct graph_job *job, const struct domain *home, enum graph_id id)
{
	const struct graph *found = &home->set.graphs[id];

	if (job->args.collnet)
		return graph_object(home->topo, found, NULL);
	if (home->topo->is_inter)
		return graph_object(home->topo, found,
			"informative: computed as if every NET had coll=1; not used by "
			"channels/tuning below");
	return blank_json(home, id, "not searched (collnet disabled)");
}

/* Without channels it still tells what was looked for. */
static json_t *nvls_graph_json(const struct domain *home)
{
	const struct graph *found = &home->set.graphs[GRAPH_NVLS];

	return graph_object(home->topo, found,
		found->channel_count ? NULL : "NVLS not supported or no channel found");
}

json_t *graph_json_graphs(const struct graph_job *job)
{
	const struct domain *home = graph_job_home(job);
	json_t *graphs = json_object();

	json_object_set_new(graphs, "ring",
		graph_object(home->topo, &home->set.graphs[GRAPH_RING], NULL));
	json_object_set_new(graphs, "tree",
		graph_object(home->topo, &home->set.graphs[GRAPH_TREE], NULL));
	json_object_set_new(
		graphs, "collnetChain", collnet_json(job, home, GRAPH_COLLNET_CHAIN));
	json_object_set_new(
		graphs, "collnetDirect", collnet_json(job, home, GRAPH_COLLNET_DIRECT));
	json_object_set_new(graphs, "nvls", nvls_graph_json(home));
	return graphs;
}

json_t *graph_json_comm(const struct cluster *cluster)
{
	const struct {
		const char *name;
		int value;
	} before[] = {{"nRanks", cluster->rank_count}, {"nNodes", cluster->node_count},
		{"localRanks", cluster->local_ranks},
		{"nChannels", cluster->channel_count},
		{"collChannels", cluster->coll_channels},
		{"nvlsChannels", cluster->nvls_channels},
		{"nvlsSupport", cluster->nvls_support},
		{"collnetEnable", cluster->collnet_enable},
		{"p2pnChannels", cluster->p2p_channels},
		{"p2pnChannelsPerPeer", cluster->p2p_channels_per_peer},
		{"minCompCap", cluster->min_sm}, {"maxCompCap", cluster->max_sm},
		{"isAllNvlink", cluster->is_all_nvlink}},
	  after[] = {{"minNetCount", cluster->min_net_count},
		  {"maxTreePattern", cluster->max_tree_pattern},
		  {"cpuArch", cluster->cpu_arch}, {"cpuVendor", cluster->cpu_vendor},
		  {"nvlsChunkSize", cluster->nvls_chunk_bytes},
		  {"nvlsTreeMaxChunkSize", cluster->nvls_tree_chunk_bytes}};
	json_t *comm = json_object();

	for (size_t i = 0; i < sizeof(before) / sizeof(before[0]); i++)
		json_object_set_new(comm, before[i].name, json_integer(before[i].value));
	json_object_set_new(comm, "minNetBw", graph_json_float(cluster->min_net_bw));
	for (size_t i = 0; i < sizeof(after) / sizeof(after[0]); i++)
		json_object_set_new(comm, after[i].name, json_integer(after[i].value));
	json_object_set_new(comm, "rankToNode",
		graph_json_ints(cluster->rank_node, cluster->rank_count));
	return comm;
}

static json_t *edges_json(const struct ring_edge *edges, uint32_t count)
{
	json_t *rows = json_array();

	for (uint32_t i = 0; i < count; i++) {
		const int row[] = {edges[i].from, edges[i].to, edges[i].send_net,
			edges[i].send_proxy, edges[i].recv_net};

		json_array_append_new(rows, graph_json_ints(row, 5));
	}
	return rows;
}

static json_t *downs_json(int (*down)[3], int count)
{
	json_t *rows = json_array();

	for (int r = 0; r < count; r++)
		json_array_append_new(rows, present(down[r]));
	return rows;
}

static json_t *channel_json(const struct cluster *cluster, int c, struct ring_edge *edges)
{
	const struct channel *channel = &cluster->channels[c];
	int ranks = cluster->rank_count;
	json_t *object = json_object();

	json_object_set_new(object, "channel", json_integer(c));
	json_object_set_new(
		object, "ringOrder", graph_json_ints(channel->ring_order, ranks));
	json_object_set_new(
		object, "ringPrev", graph_json_ints(channel->ring_prev, ranks));
	json_object_set_new(
		object, "ringNext", graph_json_ints(channel->ring_next, ranks));
	json_object_set_new(object, "treeUp", graph_json_ints(channel->tree_up, ranks));
	json_object_set_new(object, "treeDown", downs_json(channel->tree_down, ranks));
	if (cluster->node_count < 2)
		return object;
	json_object_set_new(object, "ringNetEdges",
		edges_json(edges, cluster_ring_edges(cluster, c, edges)));
	json_object_set_new(object, "treeNetEdgesUp",
		edges_json(edges, cluster_tree_edges(cluster, c, edges)));
	return object;
}

json_t *graph_json_channels(const struct cluster *cluster)
{
	struct ring_edge *edges = calloc((size_t)cluster->rank_count, sizeof(*edges));
	json_t *channels;

	if (!edges)
		return NULL;
	channels = json_array();
	for (int c = 0; c < cluster->channel_count; c++)
		json_array_append_new(channels, channel_json(cluster, c, edges));
	free(edges);
	return channels;
}

json_t *graph_json_nvls(const struct cluster *cluster)
{
	static const char *const names[] = {"tree0", "tree1"};
	json_t *nvls = json_object();

	json_object_set_new(nvls, "nHeads", json_integer(cluster->nvls_head_count));
	json_object_set_new(nvls, "headRank",
		graph_json_ints(cluster->nvls_head_rank, cluster->rank_count));
	for (int t = 0; t < 2 && cluster->node_count > 1; t++) {
		json_t *tree = json_object();

		json_object_set_new(tree, "up",
			graph_json_ints(cluster->nvls_tree[t].up, cluster->rank_count));
		json_object_set_new(tree, "down",
			downs_json(cluster->nvls_tree[t].down, cluster->rank_count));
		json_object_set_new(nvls, names[t], tree);
	}
	return nvls;
}

json_t *graph_json_run(const struct graph_job *job)
{
	const struct decide_args *args = &job->args;
	json_t *run = json_object();
	const struct {
		const char *name;
		int64_t value;
	} numbers[] = {{"machines", args->host_count},
		{"gpusPerMachine", job->decision->gpus_per_machine},
		{"mnnvlHostsPerDomain", args->mnnvl_hosts}, {"collnet", args->collnet},
		{"vnicMerge", args->rules.merge_nics}, {"multicast", args->has_multicast},
		{"nvmlP2p", args->rules.nvml_p2p_ok}};

	json_object_set_new(
		run, "nccl", json_string(nccl_rules_version(args->rules.nccl)));
	json_object_set_new(run, "name", json_string(job->machines.names[0]));
	json_object_set_new(run, "xml", json_string(job->xml));
	if (job->net_text[0])
		json_object_set_new(run, "net", json_string(job->net_text));
	for (size_t i = 0; i < sizeof(numbers) / sizeof(numbers[0]); i++)
		json_object_set_new(run, numbers[i].name, json_integer(numbers[i].value));
	json_object_set_new(run, "rankMapping",
		json_string("rank = machine*gpusPerMachine + index of GPU sorted by "
			    "dev"));
	/* Ranks that would decide otherwise than rank 0: we decide once for all. */
	json_object_set_new(run, "inconsistentRanks", json_integer(0));
	return run;
}

json_t *graph_json(const struct graph_job *job)
{
	const struct cluster *cluster = job->decision->cluster;
	const struct topo *topo = graph_job_home(job)->topo;
	json_t *top = json_object();
	int bad = 0;

	bad |= json_object_set_new(
		top, "system", graph_json_system(topo, job->args.collnet));
	bad |= json_object_set_new(top, "paths", graph_json_paths(topo));
	bad |= json_object_set_new(top, "graphs", graph_json_graphs(job));
	bad |= json_object_set_new(top, "comm", graph_json_comm(cluster));
	bad |= json_object_set_new(top, "channels", graph_json_channels(cluster));
	bad |= json_object_set_new(top, "channelsNote",
		json_string("NetEdges rows are "
			    "[fromRank,toRank,sendNetDev,sendProxyRank,recvNetDev]; tree "
			    "listed in reduce (up) direction"));
	if (cluster->nvls_support)
		bad |= json_object_set_new(top, "nvls", graph_json_nvls(cluster));
	bad |= json_object_set_new(top, "tuning", graph_json_tuning(&job->model));
	bad |= json_object_set_new(top, "choices", graph_json_choices(&job->model));
	bad |= json_object_set_new(top, "run", graph_json_run(job));
	if (!bad)
		return top;
	json_decref(top);
	err_set(ERR_SYSTEM, "no memory for the decision as JSON");
	return NULL;
}

enum err graph_json_print(json_t *top)
{
	int bad;

	if (!top)
		return ERR_SYSTEM;
	bad = json_dumpf(top, stdout, GRAPH_JSON_FLAGS);
	json_decref(top);
	if (bad || putchar('\n') == EOF || fflush(stdout))
		return err_set(ERR_SYSTEM, "cannot write the JSON: %m");
	return OK;
}
