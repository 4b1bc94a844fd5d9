/*
 * The ring and the tree of one channel, drawn over the machine that rank 0 is in.
 *
 * A hop that NVLink carries runs below the GPUs, where the NVLinks are, and any other one
 * above them, where PCIe is. Where everything stands is the business of drawing.h.
 */
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "weft/drawing.h"
#include "weft/graph.h"
#include "weft/topo_svg.h"

enum { TEXT_BYTES = 1024, RANKS_SHOWN = 10, NETS_MAX = 64, LINES = 3 };

static const char style[] =
	"<style>\n"
	".ring, .tree { fill: none; stroke-width: 3.4; stroke-linecap: round; }\n"
	".ring { stroke: #d4572a; }\n"
	".tree { stroke: #7a3fb8; stroke-dasharray: 9 5; }\n"
	".ring-head { fill: #d4572a; }\n"
	".tree-head { fill: #7a3fb8; }\n"
	"@media (prefers-color-scheme: dark) {\n"
	".ring { stroke: #ff8a5c; }\n"
	".tree { stroke: #c79bf2; }\n"
	".ring-head { fill: #ff8a5c; }\n"
	".tree-head { fill: #c79bf2; }\n"
	"}\n"
	"</style>\n"
	"<defs>\n"
	"<marker id=\"ring-end\" viewBox=\"0 0 10 10\" refX=\"8\" refY=\"5\" "
	"markerWidth=\"4\" markerHeight=\"4\" orient=\"auto-start-reverse\">"
	"<path class=\"ring-head\" d=\"M0 0L10 5L0 10z\"/></marker>\n"
	"<marker id=\"tree-end\" viewBox=\"0 0 10 10\" refX=\"8\" refY=\"5\" "
	"markerWidth=\"4\" markerHeight=\"4\" orient=\"auto-start-reverse\">"
	"<path class=\"tree-head\" d=\"M0 0L10 5L0 10z\"/></marker>\n"
	"</defs>\n";

/* Ring and tree keep to their own half of a box. */
struct way {
	const char *class;
	float shift;
	double bend;
};
static const struct way ring_way = {"ring", -9, 1}, tree_way = {"tree", 9, 0.7};

struct picture {
	const struct cluster *cluster;
	const struct domain *home;
	int node; /* of the cluster: where rank 0 is */
	int channel;
	struct ring_edge *edges; /* owned; room for all ranks */
};

static bool is_home(const struct picture *picture, int rank)
{
	return picture->cluster->rank_node[rank] == picture->node;
}

static const struct topo_node *gpu_of(const struct picture *picture, int rank)
{
	int base = picture->cluster->nodes[picture->node].base;
	int index = topo_gpu_of_rank(picture->home->topo, rank - base);

	return index < 0 ? NULL : topo_gpu_at(picture->home->topo, (uint32_t)index);
}

static const struct topo_node *net_of(const struct picture *picture, int dev)
{
	const struct topo *topo = picture->home->topo;

	for (uint32_t i = 0; i < topo->counts[TOPO_NET]; i++)
		if (topo->nodes[TOPO_NET][i]->net.dev == dev)
			return topo->nodes[TOPO_NET][i];
	return NULL;
}

static bool hangs_on(const struct topo_node *gpu, const struct topo_node *dev)
{
	for (uint32_t i = 0; i < gpu->link_count; i++)
		if (gpu->links[i].to == dev)
			return true;
	return false;
}

static const struct draw_box *gpu_box(
	const struct drawing *drawing, const struct topo_node *gpu)
{
	for (int i = 0; gpu && i < drawing->count; i++)
		if (drawing->boxes[i].kind == DRAW_GPU &&
			hangs_on(gpu, drawing->boxes[i].node))
			return &drawing->boxes[i];
	return NULL;
}

static const struct draw_box *net_box(
	const struct drawing *drawing, const struct topo_node *net)
{
	const struct topo_node *nets[NETS_MAX];

	for (int i = 0; net && i < drawing->count; i++) {
		const struct draw_box *box = &drawing->boxes[i];
		int count = 0;

		if (box->kind == DRAW_NIC && !box->hidden)
			count = drawing_nets(drawing, box, nets, NETS_MAX);
		for (int n = 0; n < count && n < NETS_MAX; n++)
			if (nets[n] == net)
				return box;
	}
	return NULL;
}

static float middle(const struct draw_box *box, const struct way *way)
{
	return box->x + box->width / 2 + way->shift;
}

static void put_curve(FILE *file, const struct way *way, const double from[2],
	const double to[2], double bow)
{
	fprintf(file,
		"<path class=\"%s\" d=\"M%.1f %.1fC%.1f %.1f %.1f %.1f %.1f %.1f\" "
		"marker-end=\"url(#%s-end)\"/>\n",
		way->class, from[0], from[1], from[0], from[1] + bow, to[0],
		to[1] + (from[1] == to[1] ? bow : -bow), to[0], to[1], way->class);
}

/* A bow from one box to another, below or above both, and not into what is written below
 * the machine; a gentle line where one stands above the other. */
static void put_hop(FILE *file, const struct drawing *drawing, const struct way *way,
	const struct draw_box *const boxes[2], bool below)
{
	const struct draw_box *from = boxes[0], *to = boxes[1];
	double a[2], b[2], bow;

	if (!from || !to || from == to)
		return;
	a[0] = (double)middle(from, way);
	b[0] = (double)middle(to, way);
	if (from->y + from->height <= to->y || to->y + to->height <= from->y) {
		bool down = from->y < to->y;

		a[1] = (double)(down ? from->y + from->height : from->y);
		b[1] = (double)(down ? to->y : to->y + to->height);
		put_curve(file, way, a, b, (b[1] - a[1]) / 2);
		return;
	}
	a[1] = below ? fmax((double)(from->y + from->height),
			       (double)(to->y + to->height))
		     : fmin((double)from->y, (double)to->y);
	b[1] = a[1];
	bow = 26 + fabs(b[0] - a[0]) * 0.12;
	if (below) /* a curve comes three quarters as far as its handles */
		bow = fmin(bow, ((double)drawing->foot_y - a[1]) / 0.75);
	put_curve(file, way, a, b, (below ? bow : -bow) * way->bend);
}

static bool is_nvlink(const struct topo_node *from, const struct topo_node *to)
{
	enum path_type type = topo_path(from, TOPO_GPU, to->index)->type;

	return type == PATH_NVL || type == PATH_NVB;
}

static void put_inside(FILE *file, const struct drawing *drawing,
	const struct picture *picture, const struct way *way, const int ranks[2])
{
	const struct topo_node *from = gpu_of(picture, ranks[0]);
	const struct topo_node *to = gpu_of(picture, ranks[1]);

	if (from && to)
		put_hop(file, drawing, way,
			(const struct draw_box *[]){
				gpu_box(drawing, from), gpu_box(drawing, to)},
			is_nvlink(from, to));
}

/* The GPU that hands a message to the NIC. */
static int relay_of(const struct picture *picture, const struct ring_edge *edge)
{
	int proxy = edge->send_proxy;

	return proxy >= 0 && is_home(picture, proxy) ? proxy : edge->from;
}

static void put_leaving(FILE *file, const struct drawing *drawing,
	const struct picture *picture, const struct way *way,
	const struct ring_edge *edge)
{
	int relay = relay_of(picture, edge);
	const struct draw_box *boxes[2] = {gpu_box(drawing, gpu_of(picture, relay)),
		net_box(drawing, net_of(picture, edge->send_net))};

	if (relay != edge->from)
		put_inside(file, drawing, picture, way, (int[]){edge->from, relay});
	put_hop(file, drawing, way, boxes, false);
}

static void put_entering(FILE *file, const struct drawing *drawing,
	const struct picture *picture, const struct way *way,
	const struct ring_edge *edge)
{
	const struct draw_box *boxes[2] = {
		net_box(drawing, net_of(picture, edge->recv_net)),
		gpu_box(drawing, gpu_of(picture, edge->to))};

	put_hop(file, drawing, way, boxes, false);
}

/* What leaves the machine and what comes in. */
static void put_outside(FILE *file, const struct drawing *drawing,
	const struct picture *picture, const struct way *way, uint32_t count)
{
	for (uint32_t i = 0; i < count; i++) {
		const struct ring_edge *edge = &picture->edges[i];

		if (is_home(picture, edge->from))
			put_leaving(file, drawing, picture, way, edge);
		if (is_home(picture, edge->to))
			put_entering(file, drawing, picture, way, edge);
	}
}

static void draw(FILE *file, const struct drawing *drawing, const void *context)
{
	const struct picture *picture = context;
	const struct cluster *cluster = picture->cluster;
	const struct channel *channel = &cluster->channels[picture->channel];

	for (int rank = 0; rank < cluster->rank_count; rank++) {
		int next = channel->ring_next[rank], up = channel->tree_up[rank];

		if (is_home(picture, rank) && is_home(picture, next))
			put_inside(
				file, drawing, picture, &ring_way, (int[]){rank, next});
		if (is_home(picture, rank) && up >= 0 && is_home(picture, up))
			put_inside(file, drawing, picture, &tree_way, (int[]){rank, up});
	}
	if (cluster->node_count < 2)
		return;
	put_outside(file, drawing, picture, &ring_way,
		cluster_ring_edges(cluster, picture->channel, picture->edges));
	put_outside(file, drawing, picture, &tree_way,
		cluster_tree_edges(cluster, picture->channel, picture->edges));
}

/* Channels with another ring than every one before them. */
static int count_rings(const struct cluster *cluster)
{
	size_t bytes = (size_t)cluster->rank_count * sizeof(int);
	int distinct = 0;

	for (int c = 0; c < cluster->channel_count; c++) {
		int before = 0;

		while (before < c && memcmp(cluster->channels[before].ring_next,
					     cluster->channels[c].ring_next, bytes))
			before++;
		distinct += before == c;
	}
	return distinct;
}

/* "; 30 GB/s inside a node, 48 GB/s between nodes" */
static void rates_text(
	const struct picture *picture, enum algo algo, char *text, int room)
{
	const struct graph_info *info = &picture->cluster->info[algo];
	int used = snprintf(text, (size_t)room, "; %g GB/s", (double)info->bw_intra);

	if (picture->cluster->node_count > 1 && used < room)
		snprintf(text + used, (size_t)(room - used),
			" inside a node, %g GB/s between nodes", (double)info->bw_inter);
}

static void ring_text(const struct picture *picture, char text[TEXT_BYTES])
{
	const struct channel *channel = &picture->cluster->channels[picture->channel];
	int used = snprintf(
		text, TEXT_BYTES, "Ring of channel %d: rank 0", picture->channel);
	int rank = 0;

	for (int i = 0; i < picture->cluster->rank_count; i++) {
		rank = channel->ring_next[rank];
		if (i == RANKS_SHOWN)
			used += snprintf(
				text + used, (size_t)(TEXT_BYTES - used), " \u2192 ..");
		if (i < RANKS_SHOWN)
			used += snprintf(text + used, (size_t)(TEXT_BYTES - used),
				" \u2192 %d", rank);
	}
	rates_text(picture, ALGO_RING, text + used, TEXT_BYTES - used);
}

static void tree_text(const struct picture *picture, char text[TEXT_BYTES])
{
	const struct channel *channel = &picture->cluster->channels[picture->channel];
	int root = 0, used;

	while (root < picture->cluster->rank_count - 1 && channel->tree_up[root] >= 0)
		root++;
	used = snprintf(text, TEXT_BYTES, "Tree of channel %d, towards its root, rank %d",
		picture->channel, root);
	rates_text(picture, ALGO_TREE, text + used, TEXT_BYTES - used);
}

static void count_text(const struct picture *picture, char text[TEXT_BYTES])
{
	const struct cluster *cluster = picture->cluster;
	int rings = count_rings(cluster), used;

	used = snprintf(text, TEXT_BYTES, "%d channel%s", cluster->channel_count,
		cluster->channel_count == 1 ? "" : "s");
	if (rings > 1)
		used += snprintf(text + used, (size_t)(TEXT_BYTES - used),
			" on %d different rings", rings);
	else if (cluster->channel_count > 1)
		used += snprintf(
			text + used, (size_t)(TEXT_BYTES - used), ", all on this ring");
	snprintf(text + used, (size_t)(TEXT_BYTES - used), "; %d rank%s on %d node%s",
		cluster->rank_count, cluster->rank_count == 1 ? "" : "s",
		cluster->node_count,
		cluster->node_count == 1 ? "" : "s, of which this is the first");
}

static enum err write_picture(
	FILE *file, const struct graph_job *job, const struct picture *picture)
{
	static const char *const classes[LINES] = {"ring", "tree", "none"};
	char ring[TEXT_BYTES], tree[TEXT_BYTES], counts[TEXT_BYTES];
	const char *const lines[LINES] = {ring, tree, counts};
	const struct topo_svg_over over = {.style = style,
		.draw = draw,
		.context = picture,
		.classes = classes,
		.lines = lines,
		.line_count = LINES};

	ring_text(picture, ring);
	tree_text(picture, tree);
	count_text(picture, counts);
	return topo_svg(file, picture->home->topo,
		&(struct topo_picture){
			.name = job->machines.names[0], .nodes = 1, .over = &over});
}

static enum err to_file(
	const struct graph_job *job, const struct picture *picture, const char *path)
{
	FILE *file = strcmp(path, "-") ? fopen(path, "w") : stdout;
	enum err e;
	bool bad;

	if (!file)
		return err_set(ERR_SYSTEM, "cannot write %s: %s", path, strerror(errno));
	e = write_picture(file, job, picture);
	bad = fflush(file) || ferror(file);
	if (file != stdout)
		bad = fclose(file) || bad;
	if (!e && bad)
		e = err_set(ERR_SYSTEM, "cannot write %s: %s", path, strerror(errno));
	return e;
}

enum err graph_svg(const struct graph_job *job, const struct graph_args *args)
{
	const struct cluster *cluster = job->decision->cluster;
	struct picture picture = {.cluster = cluster,
		.home = graph_job_home(job),
		.node = cluster->rank_node[0],
		.channel = args->channel < 0 ? 0 : (int)args->channel};
	enum err e;

	if (picture.channel >= cluster->channel_count)
		return err_set(ERR_USAGE, "there is no channel %d; the last one is %d",
			picture.channel, cluster->channel_count - 1);
	picture.edges = calloc((size_t)cluster->rank_count, sizeof(*picture.edges));
	if (!picture.edges)
		return err_set(ERR_SYSTEM, "no memory for %d ranks", cluster->rank_count);
	e = to_file(job, &picture, args->svg);
	free(picture.edges);
	return e;
}
