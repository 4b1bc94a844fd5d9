/* Is there a better graph than the one NCCL's step budgets let it find? */
#include <stdio.h>
#include <stdlib.h>

#include "weft/graph.h"

static float total_inter(const struct graph *graph)
{
	return (float)graph->channel_count * graph->bw_inter;
}

static float total_intra(const struct graph *graph)
{
	return (float)graph->channel_count * graph->bw_intra;
}

/* One line when the second is better; returns whether it is. */
static bool tell(uint32_t domain, const struct graph *was, const struct graph *is)
{
	bool more = total_inter(is) > total_inter(was) ||
		    total_intra(is) > total_intra(was);

	if (!more)
		return false;
	printf("kind of node %u, %s: %d x %g/%g GB/s (inside/between nodes) becomes "
	       "%d x %g/%g\n",
		domain + 1, graph_title(was->id), was->channel_count,
		(double)was->bw_intra, (double)was->bw_inter, is->channel_count,
		(double)is->bw_intra, (double)is->bw_inter);
	return true;
}

enum err graph_better(struct graph_job *job)
{
	struct decision *bounded;
	int better = 0;
	enum err e;

	e = graph_job_run(job);
	if (e)
		return e;
	bounded = job->decision;
	job->decision = NULL;
	job->args.search.unbounded = true;
	e = graph_job_run(job);
	job->args.search.unbounded = false;
	if (e) {
		decision_free(bounded);
		return e;
	}
	graph_text_head(job);
	for (uint32_t d = 0; d < bounded->domain_count && d < job->decision->domain_count;
		d++)
		for (int g = 0; g < GRAPH_COUNT; g++)
			better += tell(d, &bounded->domains[d]->set.graphs[g],
				&job->decision->domains[d]->set.graphs[g]);
	if (!better)
		printf("no better graph: a search with a far larger budget finds none\n");
	decision_free(bounded);
	return OK;
}
