#include "graph/print.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

enum { TREES_LINE_MAX = 1024, NVLS_NODES_SHOWN = 20 };

struct line {
	char text[PRINT_LINE_MAX];
	size_t length, room; /* room: bytes with the end; what is over is cut */
	bool is_cut;
};

static void line_start(struct line *line, size_t room)
{
	line->text[0] = 0;
	line->length = 0;
	line->room = room;
	line->is_cut = false;
}

__attribute__((format(printf, 2, 3))) static void line_add(
	struct line *line, const char *format, ...)
{
	size_t left = line->room - line->length;
	va_list list;
	int wanted;

	va_start(list, format);
	wanted = vsnprintf(line->text + line->length, left, format, list);
	va_end(list);
	if (wanted < 0)
		return;
	if ((size_t)wanted >= left) {
		line->is_cut = true;
		line->length = line->room - 1;
	} else {
		line->length += (size_t)wanted;
	}
}

static void line_send(struct line *line, const struct print_sink *sink)
{
	sink->line(sink->context, line->text);
}

static void add_net(struct line *line, uint64_t id)
{
	line_add(line, " NET/%x-%llx", topo_system(id),
		(unsigned long long)topo_local(id));
}

void print_graph(
	const struct topo *topo, const struct graph *graph, const struct print_sink *sink)
{
	int gpus = graph->id == GRAPH_NVLS ? 1 : graph->gpu_count;
	char label[TOPO_LABEL_MAX];
	struct line line;

	line_start(&line, sizeof(line.text));
	line_add(&line,
		"Pattern %d, crossNic %d, nChannels %d, bw %f/%f, type %s/%s, "
		"sameChannels %d",
		graph->pattern, graph->cross_nic, graph->channel_count,
		(double)graph->bw_intra, (double)graph->bw_inter,
		path_name(graph->type_intra), path_name(graph->type_inter),
		graph->same_channels);
	line_send(&line, sink);
	for (int c = 0; c < graph->channel_count; c++) {
		line_start(&line, sizeof(line.text));
		line_add(&line, "%2d :", c);
		if (topo->is_inter)
			add_net(&line, graph->inter[c][0]);
		for (int i = 0; i < gpus; i++) {
			int index = topo_gpu_of_rank(topo, graph->intra[c][i]);

			if (index < 0)
				continue;
			topo_label(topo_gpu_at(topo, (uint32_t)index), label);
			line_add(&line, " %s", label);
		}
		if (topo->is_inter)
			add_net(&line, graph->inter[c][1]);
		line_send(&line, sink);
	}
}

void print_rings(const struct cluster *cluster, const struct print_sink *sink)
{
	int width = snprintf(NULL, 0, "%d", cluster->rank_count - 1);
	struct line line;

	for (int c = 0; c < cluster->channel_count; c++) {
		const int *order = cluster->channels[c].ring_order;

		line_start(&line, PRINT_RING_LINE_MAX);
		line_add(&line, "Channel %02d/%02d :", c, cluster->channel_count);
		for (int i = 0; i < cluster->rank_count && !line.is_cut; i++)
			line_add(&line, " %*d", width, order[i]);
		if (line.is_cut)
			memcpy(line.text + PRINT_RING_LINE_MAX - 4, "...", 4);
		line_send(&line, sink);
	}
}

void print_trees(const struct cluster *cluster, int rank, const struct print_sink *sink)
{
	struct line line;

	line_start(&line, TREES_LINE_MAX);
	line_add(&line, "Trees");
	for (int c = 0; c < cluster->channel_count && !line.is_cut; c++) {
		const int *down = cluster->channels[c].tree_down[rank];

		line_add(&line, " [%d] %d/%d/%d->%d->%d", c, down[0], down[1], down[2],
			rank, cluster->channels[c].tree_up[rank]);
	}
	line_send(&line, sink);
}

void print_links(const struct cluster *cluster, int rank, const struct print_sink *sink)
{
	struct line line;

	for (int c = 0; c < cluster->channel_count; c++) {
		const struct channel *channel = &cluster->channels[c];

		line_start(&line, sizeof(line.text));
		line_add(&line, "Ring %02d : %d -> %d -> %d", c, channel->ring_prev[rank],
			rank, channel->ring_next[rank]);
		line_send(&line, sink);
	}
	for (int c = 0; c < cluster->channel_count; c++) {
		const struct channel *channel = &cluster->channels[c];
		const int *down = channel->tree_down[rank];

		line_start(&line, sizeof(line.text));
		line_add(&line, "Tree %d : %d -> %d -> %d/%d/%d", c,
			channel->tree_up[rank], rank, down[0], down[1], down[2]);
		line_send(&line, sink);
	}
}

/* The rank that is head `head` on each node, in node order. */
static void print_head(
	const struct cluster *cluster, int head, const struct print_sink *sink)
{
	int shown = 0;
	struct line line;

	line_start(&line, sizeof(line.text));
	line_add(&line, "NVLS Head %2d:", head);
	for (int r = 0; r < cluster->rank_count && shown < NVLS_NODES_SHOWN; r++) {
		if (cluster->nvls_head_rank[r] != head)
			continue;
		line_add(&line, " %2d", r);
		shown++;
	}
	line_send(&line, sink);
}

void print_nvls(const struct cluster *cluster, int rank, const struct print_sink *sink)
{
	struct line line;

	if (!cluster->nvls_support || !cluster->nvls_head_rank || cluster->node_count < 2)
		return;
	if (!rank)
		for (int h = 0; h < cluster->nvls_head_count; h++)
			print_head(cluster, h, sink);
	if (!cluster->nvls_tree[0].up)
		return;
	line_start(&line, sizeof(line.text));
	line_add(&line, "NVLS Trees :");
	/* The first one down is the node's own multicast group, which NCCL numbers after
	 * the ranks. */
	for (int t = 0; t < 2; t++) {
		const int *down = cluster->nvls_tree[t].down[rank];

		line_add(&line, " %d/%d/%d->%d->%d",
			cluster->rank_count + 1 + cluster->nvls_head_rank[rank], down[0],
			down[1], rank, cluster->nvls_tree[t].up[rank]);
	}
	line_send(&line, sink);
}

void print_counts(const struct cluster *cluster, const struct print_sink *sink)
{
	struct line line;

	line_start(&line, sizeof(line.text));
	line_add(&line,
		"%d coll channels, %d collnet channels, %d nvls channels, "
		"%d p2p channels, %d p2p channels per peer",
		cluster->coll_channels, cluster->channel_count, cluster->nvls_channels,
		cluster->p2p_channels, cluster->p2p_channels_per_peer);
	line_send(&line, sink);
}
