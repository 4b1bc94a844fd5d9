/* A cluster against a recorded decision, number by number. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "decisions.h"

static void count_number(const char *name, const char *key, double ours, double theirs,
	struct tally *tally)
{
	if (ours == theirs) {
		tally->equal++;
		return;
	}
	tally->different++;
	printf("%s: %s is %g, NCCL has %g\n", name, key, ours, theirs);
}

static void print_list(const char *who, const int *list, size_t count)
{
	printf(" %s", who);
	for (size_t i = 0; i < count && i < 32; i++)
		printf(" %d", list[i]);
	printf(count > 32 ? " ..." : "");
}

/* Lists of numbers, or of lists of numbers, flattened row by row: the length first. */
static size_t flatten(json_t *array, int **list)
{
	size_t room = 1, count = 0, i, j;
	json_t *row, *item;

	json_array_foreach(array, i, row) room += 1 + json_array_size(row);
	*list = malloc(room * sizeof(int));
	json_array_foreach(array, i, row)
	{
		if (!json_is_array(row)) {
			(*list)[count++] = (int)json_integer_value(row);
			continue;
		}
		(*list)[count++] = (int)json_array_size(row);
		json_array_foreach(row, j, item)(
			*list)[count++] = (int)json_integer_value(item);
	}
	return count;
}

static void count_list(const char *where, json_t *array, const int *ours, size_t count,
	struct tally *tally)
{
	int *theirs;
	size_t their_count = flatten(array, &theirs);

	if (count == their_count && !memcmp(ours, theirs, count * sizeof(int))) {
		tally->equal++;
	} else {
		tally->different++;
		printf("%s:", where);
		print_list("ours", ours, count);
		print_list("NCCL's", theirs, their_count);
		printf("\n");
	}
	free(theirs);
}

void decisions_compare_comm(const char *name, json_t *root, const struct cluster *cluster,
	struct tally *tally)
{
	const struct {
		const char *key;
		double ours;
	} numbers[] = {
		{"nRanks", cluster->rank_count},
		{"nNodes", cluster->node_count},
		{"localRanks", cluster->local_ranks},
		{"nChannels", cluster->channel_count},
		{"collChannels", cluster->coll_channels},
		{"nvlsChannels", cluster->nvls_channels},
		{"nvlsSupport", cluster->nvls_support},
		{"collnetEnable", cluster->collnet_enable},
		{"p2pnChannels", cluster->p2p_channels},
		{"p2pnChannelsPerPeer", cluster->p2p_channels_per_peer},
		{"minCompCap", cluster->min_sm},
		{"maxCompCap", cluster->max_sm},
		{"isAllNvlink", cluster->is_all_nvlink},
		{"minNetCount", cluster->min_net_count},
		{"maxTreePattern", cluster->max_tree_pattern},
		{"cpuArch", cluster->cpu_arch},
		{"cpuVendor", cluster->cpu_vendor},
		{"nvlsChunkSize", cluster->nvls_chunk_bytes},
		{"nvlsTreeMaxChunkSize", cluster->nvls_tree_chunk_bytes},
	};
	json_t *comm = json_object_get(root, "comm");
	float theirs = (float)decisions_real(comm, "minNetBw");

	for (size_t i = 0; i < sizeof(numbers) / sizeof(*numbers); i++)
		count_number(name, numbers[i].key, numbers[i].ours,
			(double)decisions_int(comm, numbers[i].key), tally);
	count_number(
		name, "minNetBw", (double)cluster->min_net_bw, (double)theirs, tally);
	count_list(name, json_object_get(comm, "rankToNode"), cluster->rank_node,
		(size_t)cluster->rank_count, tally);
}

/* Rows of up to three, -1 filling up, as flatten() lays them out. */
static size_t flatten_down(int (*const down)[3], int ranks, int *list)
{
	size_t count = 0;

	for (int r = 0; r < ranks; r++) {
		size_t length = count++;
		list[length] = 0;
		for (int i = 0; i < 3; i++) {
			if (down[r][i] < 0)
				continue;
			list[length]++;
			list[count++] = down[r][i];
		}
	}
	return count;
}

static size_t flatten_edges(const struct ring_edge *edges, uint32_t edge_count, int *list)
{
	size_t count = 0;

	for (uint32_t i = 0; i < edge_count; i++) {
		const struct ring_edge *edge = &edges[i];
		const int row[6] = {5, edge->from, edge->to, edge->send_net,
			edge->send_proxy, edge->recv_net};
		memcpy(list + count, row, sizeof(row));
		count += 6;
	}
	return count;
}

static void compare_channel(const char *name, json_t *theirs,
	const struct cluster *cluster, int c, struct tally *tally)
{
	const struct channel *channel = &cluster->channels[c];
	size_t ranks = (size_t)cluster->rank_count, count;
	struct ring_edge *edges = malloc(ranks * sizeof(*edges));
	int *list = malloc(ranks * 6 * sizeof(int));
	const struct {
		const char *key;
		const int *ours;
	} lists[] = {
		{"ringOrder", channel->ring_order},
		{"ringPrev", channel->ring_prev},
		{"ringNext", channel->ring_next},
		{"treeUp", channel->tree_up},
	};
	char where[256];

	for (size_t i = 0; i < sizeof(lists) / sizeof(*lists); i++) {
		snprintf(
			where, sizeof(where), "%s: channel %d %s", name, c, lists[i].key);
		count_list(where, json_object_get(theirs, lists[i].key), lists[i].ours,
			ranks, tally);
	}
	snprintf(where, sizeof(where), "%s: channel %d treeDown", name, c);
	count = flatten_down(channel->tree_down, cluster->rank_count, list);
	count_list(where, json_object_get(theirs, "treeDown"), list, count, tally);
	snprintf(where, sizeof(where), "%s: channel %d ringNetEdges", name, c);
	count = flatten_edges(edges, cluster_ring_edges(cluster, c, edges), list);
	count_list(where, json_object_get(theirs, "ringNetEdges"), list, count, tally);
	snprintf(where, sizeof(where), "%s: channel %d treeNetEdgesUp", name, c);
	count = flatten_edges(edges, cluster_tree_edges(cluster, c, edges), list);
	count_list(where, json_object_get(theirs, "treeNetEdgesUp"), list, count, tally);
	free(edges);
	free(list);
}

void decisions_compare_channels(const char *name, json_t *root,
	const struct cluster *cluster, struct tally *tally)
{
	size_t c;
	json_t *theirs, *channels = json_object_get(root, "channels");

	count_number(name, "channels", cluster->channel_count,
		(double)json_array_size(channels), tally);
	json_array_foreach(channels, c, theirs) if ((int)c < cluster->channel_count)
		compare_channel(name, theirs, cluster, (int)c, tally);
}

void decisions_compare_nvls(const char *name, json_t *root, const struct cluster *cluster,
	struct tally *tally)
{
	json_t *nvls = json_object_get(root, "nvls");
	size_t ranks = (size_t)cluster->rank_count;
	int *list = malloc(ranks * 4 * sizeof(int));
	char where[256];

	count_number(name, "nvls heads", cluster->nvls_head_count,
		nvls ? (double)decisions_int(nvls, "nHeads") : 0, tally);
	for (int t = 0; nvls && t < 2; t++) {
		json_t *tree = json_object_get(nvls, t ? "tree1" : "tree0");
		size_t count;
		if (!tree)
			continue;
		snprintf(where, sizeof(where), "%s: nvls tree%d up", name, t);
		count_list(where, json_object_get(tree, "up"), cluster->nvls_tree[t].up,
			ranks, tally);
		snprintf(where, sizeof(where), "%s: nvls tree%d down", name, t);
		count = flatten_down(
			cluster->nvls_tree[t].down, cluster->rank_count, list);
		count_list(where, json_object_get(tree, "down"), list, count, tally);
	}
	if (nvls) {
		snprintf(where, sizeof(where), "%s: nvls headRank", name);
		count_list(where, json_object_get(nvls, "headRank"),
			cluster->nvls_head_rank, ranks, tally);
	}
	free(list);
}
