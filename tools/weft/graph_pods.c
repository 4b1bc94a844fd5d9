/* What it costs to run a machine's GPUs in several pods: the same machine both ways. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/dtype.h"
#include "weft/graph_json.h"
#include "weft/graph_pods.h"

enum { CELL_BYTES = 48, LABEL_WIDTH = 24, CELL_WIDTH = 34 };

static const uint64_t small_bytes = 8, large_bytes = (uint64_t)1 << 30;

static int index_in_domain(const struct cluster *cluster, int rank)
{
	const struct cluster_node *node = &cluster->nodes[cluster->rank_node[rank]];

	return topo_gpu_of_rank(node->domain->topo, rank - node->base);
}

/* Two ranks of one node. */
static enum pods_way way_inside(
	const struct cluster *cluster, int from, int to, enum path_type *type)
{
	const struct cluster_node *node = &cluster->nodes[cluster->rank_node[from]];
	int a = index_in_domain(cluster, from), b = index_in_domain(cluster, to);
	struct topo_p2p verdict = {0};

	if (a >= 0 && b >= 0)
		topo_p2p(node->domain->topo, (uint32_t)a, (uint32_t)b, &verdict);
	if (!verdict.ok)
		return PODS_SHM;
	*type = verdict.type;
	return PODS_P2P;
}

enum pods_way pods_way(
	const struct cluster *cluster, int from, int to, enum path_type *type)
{
	const struct cluster_node *node = &cluster->nodes[cluster->rank_node[from]];
	struct topo_gdr verdict = {0};
	uint64_t net;

	if (cluster->rank_node[from] == cluster->rank_node[to])
		return way_inside(cluster, from, to, type);
	if (topo_local_net(node->domain->topo, from - node->base, 0, &net))
		return PODS_NET;
	topo_gdr(node->domain->topo, from - node->base, net, true, &verdict);
	return verdict.mode == GDR_OFF ? PODS_NET : PODS_NET_GDR;
}

static void count_inside(
	const struct cluster *cluster, int from, int to, struct pods_reach *reach)
{
	enum path_type type;

	if (way_inside(cluster, from, to, &type) == PODS_SHM) {
		reach->shm++;
		return;
	}
	reach->p2p++;
	if (type > reach->worst)
		reach->worst = type;
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

/* A port of a card, whoever sees it: pods count their devices anew, each from 0. */
struct port {
	uint64_t card;
	int port;
	float load, gbps;
};

static uint64_t card_of(const struct topo_node *net)
{
	for (uint32_t i = 0; i < net->link_count; i++)
		if (net->links[i].to->kind == TOPO_NIC)
			return topo_local(net->links[i].to->id);
	return topo_local(net->id);
}

static struct port *port_of(
	struct port *ports, uint32_t *count, const struct topo_node *net)
{
	uint64_t card = card_of(net);
	uint32_t i = 0;

	while (i < *count && (ports[i].card != card || ports[i].port != net->net.port))
		i++;
	if (i == *count && i < TOPO_NODES_MAX) {
		ports[i] = (struct port){.card = card, .port = net->net.port};
		++*count;
	}
	return i < TOPO_NODES_MAX ? &ports[i] : NULL;
}

/* What the rings of ranks 0 to `ranks` - 1, one machine, send by its busiest NIC. Each
 * pod plans as if its NICs were its own; here those that share one meet. */
static double busiest_nic(const struct cluster *cluster, int ranks, float ring_gbps,
	struct ring_edge *edges)
{
	float share = ring_gbps / (float)cluster->channel_count, gbps;
	struct port ports[TOPO_NODES_MAX];
	uint32_t port_count = 0;
	double busiest = 0;

	for (int c = 0; c < cluster->channel_count; c++) {
		uint32_t count = cluster_ring_edges(cluster, c, edges);

		for (uint32_t i = 0; i < count; i++) {
			const struct topo_node *net = sending_net(cluster, &edges[i]);
			struct port *port;

			if (edges[i].from >= ranks || !net || net->net.bw <= 0)
				continue;
			port = port_of(ports, &port_count, net);
			if (!port)
				continue;
			gbps = net_gbps(topo_of(cluster, edges[i].from), net);
			port->load += share;
			port->gbps = gbps > port->gbps ? gbps : port->gbps;
		}
	}
	for (uint32_t i = 0; i < port_count; i++)
		if (ports[i].gbps > 0 &&
			(double)(ports[i].load / ports[i].gbps) > busiest)
			busiest = (double)(ports[i].load / ports[i].gbps);
	return busiest;
}

/* Along the ring of channel 0. */
static void count_reach(
	const struct cluster *cluster, struct ring_edge *edges, struct pods_reach *reach)
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

static enum err look(struct graph_job *job, struct pods_side *side)
{
	const struct cluster *cluster;
	const struct graph_info *ring;
	struct ring_edge *edges;
	enum err e = graph_job_run(job);

	if (e)
		return e;
	cluster = job->decision->cluster;
	ring = &cluster->info[ALGO_RING];
	*side = (struct pods_side){.pods = job->args.pods,
		.gpus = job->args.gpus_per_pod,
		.nics = job->decision->nets_per_pod,
		.nodes = cluster->node_count,
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

static void reach_text(const struct pods_reach *reach, char text[CELL_BYTES])
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

static void rate_text(const struct pods_side *side, char text[CELL_BYTES])
{
	float rate = side->ring_intra;

	if (side->nodes > 1 && side->ring_inter < rate)
		rate = side->ring_inter;
	snprintf(text, CELL_BYTES, "%.1f GB/s", (double)rate);
}

static void load_text(const struct pods_side *side, char text[CELL_BYTES])
{
	if (side->nic_load > 0)
		snprintf(text, CELL_BYTES, "%.0f %%", 100 * side->nic_load);
	else
		snprintf(text, CELL_BYTES, "-");
}

double pods_real_gbps(const struct pods_side *side)
{
	return side->bus_gbps / (side->nic_load > 1 ? side->nic_load : 1);
}

static void choice_text(const struct model_choice *choice, char text[CELL_BYTES])
{
	snprintf(text, CELL_BYTES, "%.1f us (%s/%s)", (double)choice->time_us,
		algo_name(choice->algo), proto_name(choice->proto));
}

static void print_both(const struct pods_side *whole, const struct pods_side *split)
{
	char a[CELL_BYTES], b[CELL_BYTES];

	number_row("nodes", whole->nodes, split->nodes);
	number_row("ranks per node", whole->local_ranks, split->local_ranks);
	number_row("NICs of a pod", (int)whole->nics, (int)split->nics);
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
	snprintf(a, sizeof(a), "%.1f GB/s", pods_real_gbps(whole));
	snprintf(b, sizeof(b), "%.1f GB/s", pods_real_gbps(split));
	row("  with the NICs shared", a, b);
}

static void title(const struct pods_side *side, char text[CELL_BYTES])
{
	snprintf(text, CELL_BYTES, "%" PRIu32 " pod%s x %" PRIu32 " GPU%s", side->pods,
		side->pods == 1 ? "" : "s", side->gpus, side->gpus == 1 ? "" : "s");
}

void pods_assumed(const struct pods_answer *answer, char text[PODS_TEXT_BYTES])
{
	uint32_t nics = answer->split.nics;
	int used;

	if (!answer->nics) {
		snprintf(text, PODS_TEXT_BYTES, "the machine has no NIC");
		return;
	}
	used = snprintf(text, PODS_TEXT_BYTES,
		"each pod has %" PRIu32 " of the machine's %" PRIu32 " NIC%s (%s), the "
		"nearest that %s free",
		nics, answer->nics, answer->nics == 1 ? "" : "s",
		answer->is_said ? "as asked for" : "an equal share",
		nics == 1 ? "is" : "are");
	if (answer->pods_per_nic > 1)
		snprintf(text + used, (size_t)(PODS_TEXT_BYTES - used),
			"; up to %" PRIu32 " pods share a NIC", answer->pods_per_nic);
}

static void print_text(const struct graph_job *job, const struct pods_answer *answer)
{
	char a[CELL_BYTES], b[CELL_BYTES], assumed[PODS_TEXT_BYTES];
	double factor = answer->slowdown;

	graph_text_head(job);
	title(&answer->whole, a);
	title(&answer->split, b);
	row("", a, b);
	print_both(&answer->whole, &answer->split);
	pods_assumed(answer, assumed);
	printf("\nAssumed: %s.%s\n", assumed,
		answer->is_said || !answer->nics ? ""
						 : " --nics-per-pod says otherwise.");
	if (factor > 1.05)
		printf("In pods, large all-reduces are %.1f times slower.\n", factor);
	else if (factor > 0.95)
		printf("In pods, large all-reduces are as fast.\n");
	else if (factor > 0)
		printf("In pods, large all-reduces are %.1f times faster.\n", 1 / factor);
}

enum err pods_compare(
	struct graph_job *job, const struct graph_args *args, struct pods_answer *answer)
{
	enum err e;

	*answer = (struct pods_answer){.is_said = args->nics_per_pod != 0};
	job->args.pods = args->pods;
	job->args.gpus_per_pod = args->gpus_per_pod;
	job->args.nets_per_pod = args->nics_per_pod;
	e = look(job, &answer->split);
	if (e)
		return e;
	answer->nics = job->decision->net_count;
	answer->pods_per_nic = job->decision->pods_per_net;
	/* The same GPUs the other way: the whole machine is one pod with all of them, and
	 * with every NIC. */
	job->args.pods = 1;
	job->args.gpus_per_pod = args->pods * args->gpus_per_pod;
	job->args.nets_per_pod = 0;
	e = look(job, &answer->whole);
	if (e)
		return e;
	if (answer->split.bus_gbps > 0)
		answer->slowdown = pods_real_gbps(&answer->whole) /
				   pods_real_gbps(&answer->split);
	return OK;
}

enum err graph_pods(struct graph_job *job, const struct graph_args *args)
{
	struct pods_answer answer;
	enum err e = pods_compare(job, args, &answer);

	if (e)
		return e;
	if (args->json)
		return graph_json_print(graph_pods_json(job, &answer));
	print_text(job, &answer);
	return OK;
}
