#include <inttypes.h>
#include <stdio.h>

#include "graph/print.h"
#include "weft/graph.h"

/* The trees of every rank are shown up to this many. */
enum { RANKS_SHOWN_MAX = 16 };

static void put_line(void *context, const char *line)
{
	(void)context;
	puts(line);
}

static const struct print_sink out = {.line = put_line};

const char *graph_title(enum graph_id id)
{
	static const char *const names[GRAPH_COUNT] = {
		"ring", "tree", "CollNet chain", "NVLS", "CollNet direct"};

	return names[id];
}

void graph_text_names(const struct graph_job *job)
{
	uint32_t shown = job->machines.count < job->args.host_count
				 ? job->machines.count
				 : job->args.host_count;

	for (uint32_t i = 0; i < shown; i++)
		printf("%s%s", i ? ", " : "", job->machines.names[i]);
	printf(" x %" PRIu32 ": ", job->args.host_count);
}

void graph_text_head(const struct graph_job *job)
{
	const struct cluster *cluster = job->decision->cluster;

	graph_text_names(job);
	printf("%d rank%s on %d node%s", cluster->rank_count,
		cluster->rank_count == 1 ? "" : "s", cluster->node_count,
		cluster->node_count == 1 ? "" : "s");
	if (cluster->min_local_ranks == cluster->max_local_ranks)
		printf(" of %d", cluster->max_local_ranks);
	else
		printf(" of %d to %d", cluster->min_local_ranks,
			cluster->max_local_ranks);
	if (job->args.mnnvl_hosts > 1)
		printf(", %" PRIu32 " hosts per NVLink domain", job->args.mnnvl_hosts);
	printf("%s\n", job->args.collnet ? ", with CollNet" : "");
	if (job->net_text[0])
		printf("%s\n", job->net_text);
}

static void print_domain(const struct graph_job *job, uint32_t index)
{
	static const enum graph_id order[GRAPH_COUNT] = {GRAPH_RING, GRAPH_TREE,
		GRAPH_COLLNET_CHAIN, GRAPH_COLLNET_DIRECT, GRAPH_NVLS};
	const struct decision *decision = job->decision;
	const struct domain *domain = decision->domains[index];

	for (int i = 0; i < GRAPH_COUNT; i++) {
		const struct graph *graph = &domain->set.graphs[order[i]];

		if (!graph->channel_count || (graph->collnet && !job->args.collnet))
			continue;
		printf("\n# %s", graph_title(order[i]));
		if (decision->domain_count > 1)
			printf(", kind of node %" PRIu32 " of %" PRIu32, index + 1,
				decision->domain_count);
		printf("\n");
		print_graph(domain->topo, graph, &out);
	}
}

void graph_text(const struct graph_job *job, const struct graph_args *args)
{
	const struct cluster *cluster = job->decision->cluster;
	int first = args->rank < 0 ? 0 : (int)args->rank, last = first;

	if (args->rank < 0 && cluster->rank_count <= RANKS_SHOWN_MAX)
		last = cluster->rank_count - 1;
	graph_text_head(job);
	for (uint32_t i = 0; i < job->decision->domain_count; i++)
		print_domain(job, i);
	printf("\n# joined\n");
	print_rings(cluster, &out);
	for (int rank = first; rank <= last; rank++)
		print_trees(cluster, rank, &out);
	if (args->rank >= 0)
		print_links(cluster, first, &out);
	print_nvls(cluster, first, &out);
	print_counts(cluster, &out);
}
