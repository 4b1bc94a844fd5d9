/* What it costs to run a machine's GPUs in several pods: the same machine both ways. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/dtype.h"
#include "weft/graph.h"

enum { CELL_BYTES = 48, LABEL_WIDTH = 24, CELL_WIDTH = 34 };

/* How a ring's neighbours reach each other. */
struct reach {
	int p2p, shm, net, net_gdr;
	enum path_type worst; /* of P2P */
};

struct side {
	int nodes, local_ranks, channels;
	float ring_intra, ring_inter; /* all channels together, GB/s */
	struct reach reach;
	struct model_choice small, large;
	double bus_gbps; /* of the large one, as the model sees it */
	double nic_load; /* of the first machine's busiest NIC; 1 is all it can */
};

static const uint64_t small_bytes = 8, large_bytes = (uint64_t)1 << 30;

static int index_in_domain(const struct cluster *cluster, int rank)
{
	const struct cluster_node *node = &cluster->nodes[cluster->rank_node[rank]];

	return topo_gpu_of_rank(node->domain->topo, rank - node->base);
}

static void count_inside(
	const struct cluster *cluster, int from, int to, struct reach *reach)
{
	const struct cluster_node *node = &cluster->nodes[cluster->rank_node[from]];
	int a = index_in_domain(cluster, from), b = index_in_domain(cluster, to);
	struct topo_p2p verdict = {0};

	if (a >= 0 && b >= 0)
		topo_p2p(node->domain->topo, (uint32_t)a, (uint32_t)b, &verdict);
	if (!verdict.ok) {
		reach->shm++;
		return;
	}
	reach->p2p++;
	if (verdict.type > reach->worst)
		reach->worst = verdict.type;
}

static const struct topo *topo_of(const struct cluster *cluster, int rank)
{
	return cluster->nodes[cluster->rank_node[rank]].domain->topo;
}

/* The NIC an edge leaves by; NULL when the topology has none of that number. */
static const struct topo_node *sending_net(
	const struct cluster *cluster, const struct ring_edge *edge)
{
	const struct topo *topo = topo_of(cluster, edge->from);

	for (uint32_t i = 0; i < topo->counts[TOPO_NET]; i++)
		if (topo->nodes[TOPO_NET][i]->net.dev == edge->send_net)
			return topo->nodes[TOPO_NET][i];
	return NULL;
}

static bool sends_gdr(const struct cluster *cluster, const struct ring_edge *edge)
{
	const struct cluster_node *node = &cluster->nodes[cluster->rank_node[edge->from]];
	const struct topo_node *net = sending_net(cluster, edge);
	struct topo_gdr verdict = {0};

	if (net)
		topo_gdr(node->domain->topo, edge->from - node->base, net->id, true,
			&verdict);
	return verdict.mode != GDR_OFF;
}

/* What a NIC can send: its port's rate, or that of the PCI link behind it. */
static float net_gbps(const struct topo *topo, const struct topo_node *net)
{
	float best = 0;

	for (uint32_t i = 0; net->paths[TOPO_GPU] && i < topo->counts[TOPO_GPU]; i++)
		if (net->paths[TOPO_GPU][i].bw > best)
			best = net->paths[TOPO_GPU][i].bw;
	return best > 0 && best < net->net.bw ? best : net->net.bw;
}

/* What the rings of ranks 0 to `ranks` - 1, one machine, send by its busiest NIC. Each
 * pod plans as if the NICs were its own; here they meet. */
static double busiest_nic(const struct cluster *cluster, int ranks, float ring_gbps,
	struct ring_edge *edges)
{
	float share = ring_gbps / (float)cluster->channel_count;
	float loads[TOPO_NODES_MAX] = {0}, rates[TOPO_NODES_MAX] = {0}, gbps;
	double busiest = 0;

	for (int c = 0; c < cluster->channel_count; c++) {
		uint32_t count = cluster_ring_edges(cluster, c, edges);

		for (uint32_t i = 0; i < count; i++) {
			const struct topo_node *net = sending_net(cluster, &edges[i]);

			if (edges[i].from >= ranks || !net || net->net.bw <= 0 ||
				net->net.dev < 0 || net->net.dev >= TOPO_NODES_MAX)
				continue;
			gbps = net_gbps(topo_of(cluster, edges[i].from), net);
			loads[net->net.dev] += share;
			if (gbps > rates[net->net.dev])
				rates[net->net.dev] = gbps;
		}
	}
	for (int i = 0; i < TOPO_NODES_MAX; i++)
		if (rates[i] > 0 && (double)(loads[i] / rates[i]) > busiest)
			busiest = (double)(loads[i] / rates[i]);
	return busiest;
}

/* Along the ring of channel 0. */
static void count_reach(
	const struct cluster *cluster, struct ring_edge *edges, struct reach *reach)
{
	uint32_t count;

	for (int r = 0; cluster->channel_count && r < cluster->rank_count; r++) {
		int next = cluster->channels[0].ring_next[r];

		if (next != r && cluster->rank_node[next] == cluster->rank_node[r])
			count_inside(cluster, r, next, reach);
	}
	count = cluster->channel_count ? cluster_ring_edges(cluster, 0, edges) : 0;
	for (uint32_t i = 0; i < count; i++) {
		reach->net++;
		reach->net_gdr += sends_gdr(cluster, &edges[i]);
	}
}

static enum err choose(
	const struct model *model, uint64_t bytes, struct model_choice *choice)
{
	struct model_call call = {.func = MODEL_ALL_REDUCE,
		.bytes = bytes,
		.pipe_ops = 1,
		.type = DTYPE_FLOAT32};

	return model_choose(model, &call, choice);
}

static enum err look(struct graph_job *job, struct side *side)
{
	const struct cluster *cluster;
	const struct graph_info *ring;
	struct ring_edge *edges;
	enum err e = graph_job_run(job);

	if (e)
		return e;
	cluster = job->decision->cluster;
	ring = &cluster->info[ALGO_RING];
	*side = (struct side){.nodes = cluster->node_count,
		.local_ranks = cluster->local_ranks,
		.channels = cluster->channel_count,
		.ring_intra = (float)ring->channel_count * ring->bw_intra,
		.ring_inter = (float)ring->channel_count * ring->bw_inter};
	edges = calloc((size_t)cluster->rank_count, sizeof(*edges));
	if (!edges)
		return err_set(ERR_SYSTEM, "no memory for %d ranks", cluster->rank_count);
	count_reach(cluster, edges, &side->reach);
	side->nic_load = busiest_nic(cluster,
		(int)(job->args.pods * job->args.gpus_per_pod), side->ring_inter, edges);
	free(edges);
	if (cluster->rank_count < 2)
		return OK;
	e = choose(&job->model, small_bytes, &side->small);
	if (!e)
		e = choose(&job->model, large_bytes, &side->large);
	side->bus_gbps = (double)large_bytes / (double)side->large.time_us / 1e3 * 2 *
			 (cluster->rank_count - 1) / cluster->rank_count;
	return e;
}

static void row(const char *label, const char *a, const char *b)
{
	printf("%-*s %*s %*s\n", LABEL_WIDTH, label, CELL_WIDTH, a, CELL_WIDTH, b);
}

static void number_row(const char *label, int a, int b)
{
	char x[CELL_BYTES], y[CELL_BYTES];

	snprintf(x, sizeof(x), "%d", a);
	snprintf(y, sizeof(y), "%d", b);
	row(label, x, y);
}

static void reach_text(const struct reach *reach, char text[CELL_BYTES])
{
	int used = 0;

	text[0] = 0;
	if (reach->p2p)
		used += snprintf(text, CELL_BYTES, "%d P2P (%s)", reach->p2p,
			path_name(reach->worst));
	if (reach->shm)
		used += snprintf(text + used, (size_t)(CELL_BYTES - used), "%s%d SHM",
			used ? ", " : "", reach->shm);
	if (reach->net)
		used += snprintf(text + used, (size_t)(CELL_BYTES - used), "%s%d NET%s",
			used ? ", " : "", reach->net,
			reach->net_gdr == reach->net ? "/GDRDMA" : "");
	if (!used)
		snprintf(text, CELL_BYTES, "none");
}

static void rate_text(const struct side *side, char text[CELL_BYTES])
{
	float rate = side->ring_intra;

	if (side->nodes > 1 && side->ring_inter < rate)
		rate = side->ring_inter;
	snprintf(text, CELL_BYTES, "%.1f GB/s", (double)rate);
}

static void load_text(const struct side *side, char text[CELL_BYTES])
{
	if (side->nic_load > 0)
		snprintf(text, CELL_BYTES, "%.0f %%", 100 * side->nic_load);
	else
		snprintf(text, CELL_BYTES, "-");
}

/* NICs that are asked for more than they can give slow everything down alike. */
static double real_gbps(const struct side *side)
{
	return side->bus_gbps / (side->nic_load > 1 ? side->nic_load : 1);
}

static void choice_text(const struct model_choice *choice, char text[CELL_BYTES])
{
	snprintf(text, CELL_BYTES, "%.1f us (%s/%s)", (double)choice->time_us,
		algo_name(choice->algo), proto_name(choice->proto));
}

static void print_both(const struct side *whole, const struct side *split)
{
	char a[CELL_BYTES], b[CELL_BYTES];

	number_row("nodes", whole->nodes, split->nodes);
	number_row("ranks per node", whole->local_ranks, split->local_ranks);
	number_row("channels", whole->channels, split->channels);
	reach_text(&whole->reach, a);
	reach_text(&split->reach, b);
	row("ring neighbours", a, b);
	rate_text(whole, a);
	rate_text(split, b);
	row("rings, all channels", a, b);
	load_text(whole, a);
	load_text(split, b);
	row("busiest NIC is asked for", a, b);
	choice_text(&whole->small, a);
	choice_text(&split->small, b);
	row("all-reduce of 8 B", a, b);
	choice_text(&whole->large, a);
	choice_text(&split->large, b);
	row("all-reduce of 1 GiB", a, b);
	snprintf(a, sizeof(a), "%.1f GB/s", whole->bus_gbps);
	snprintf(b, sizeof(b), "%.1f GB/s", split->bus_gbps);
	row("  its bus bandwidth", a, b);
	if (whole->nic_load <= 1.01 && split->nic_load <= 1.01)
		return;
	snprintf(a, sizeof(a), "%.1f GB/s", real_gbps(whole));
	snprintf(b, sizeof(b), "%.1f GB/s", real_gbps(split));
	row("  with the NICs shared", a, b);
}

static void title(const struct graph_args *args, bool split, char text[CELL_BYTES])
{
	uint32_t pods = split ? args->pods : 1;
	uint32_t gpus = split ? args->gpus_per_pod : args->pods * args->gpus_per_pod;

	snprintf(text, CELL_BYTES, "%" PRIu32 " pod%s x %" PRIu32 " GPU%s", pods,
		pods == 1 ? "" : "s", gpus, gpus == 1 ? "" : "s");
}

enum err graph_pods(struct graph_job *job, const struct graph_args *args)
{
	char a[CELL_BYTES], b[CELL_BYTES];
	struct side whole, split;
	double factor;
	enum err e;

	job->args.pods = args->pods;
	job->args.gpus_per_pod = args->gpus_per_pod;
	e = look(job, &split);
	if (e)
		return e;
	/* The same GPUs the other way: the whole machine is one pod with all of them. */
	job->args.pods = 1;
	job->args.gpus_per_pod = args->pods * args->gpus_per_pod;
	e = look(job, &whole);
	if (e)
		return e;
	graph_text_head(job);
	title(args, false, a);
	title(args, true, b);
	row("", a, b);
	print_both(&whole, &split);
	factor = split.bus_gbps > 0 ? real_gbps(&whole) / real_gbps(&split) : 0;
	if (factor > 1.05)
		printf("\nIn pods, large all-reduces are %.1f times slower.\n", factor);
	else if (factor > 0.95)
		printf("\nIn pods, large all-reduces are as fast.\n");
	else if (factor > 0)
		printf("\nIn pods, large all-reduces are %.1f times faster.\n",
			1 / factor);
	return OK;
}
