/* Is there a better graph than the one NCCL's step budgets let it find? */
#include <stdio.h>
#include <stdlib.h>

#include "weft/graph.h"
#include "weft/graph_json.h"

static float total_inter(const struct graph *graph)
{
	return (float)graph->channel_count * graph->bw_inter;
}

static float total_intra(const struct graph *graph)
{
	return (float)graph->channel_count * graph->bw_intra;
}

static bool is_better(const struct graph *was, const struct graph *is)
{
	return total_inter(is) > total_inter(was) || total_intra(is) > total_intra(was);
}

static void tell(uint32_t domain, const struct graph *was, const struct graph *is)
{
	printf("kind of node %u, %s: %d x %g/%g GB/s (inside/between nodes) becomes "
	       "%d x %g/%g\n",
		domain + 1, graph_title(was->id), was->channel_count,
		(double)was->bw_intra, (double)was->bw_inter, is->channel_count,
		(double)is->bw_intra, (double)is->bw_inter);
}

static json_t *speeds_json(const struct graph *graph)
{
	json_t *object = json_object();

	json_object_set_new(object, "nChannels", json_integer(graph->channel_count));
	json_object_set_new(object, "speedIntra", graph_json_float(graph->bw_intra));
	json_object_set_new(object, "speedInter", graph_json_float(graph->bw_inter));
	return object;
}

static void list(
	json_t *list, uint32_t domain, const struct graph *was, const struct graph *is)
{
	json_t *object = json_object();

	json_object_set_new(object, "kindOfNode", json_integer(domain + 1));
	json_object_set_new(object, "graph", json_string(graph_title(was->id)));
	json_object_set_new(object, "nccl", speeds_json(was));
	json_object_set_new(object, "better", speeds_json(is));
	json_array_append_new(list, object);
}

/* Every graph that is better, on standard output or into `found`. Returns how many. */
static int compare(
	const struct decision *bounded, const struct decision *free, json_t *found)
{
	int better = 0;

	for (uint32_t d = 0; d < bounded->domain_count && d < free->domain_count; d++)
		for (int g = 0; g < GRAPH_COUNT; g++) {
			const struct graph *was = &bounded->domains[d]->set.graphs[g];
			const struct graph *is = &free->domains[d]->set.graphs[g];

			if (!is_better(was, is))
				continue;
			better++;
			if (found)
				list(found, d, was, is);
			else
				tell(d, was, is);
		}
	return better;
}

json_t *graph_better_json(const struct graph_job *job, const struct decision *bounded)
{
	json_t *top = json_object(), *found = json_array();

	compare(bounded, job->decision, found);
	if (!json_object_set_new(top, "run", graph_json_run(job)) &&
		!json_object_set_new(top, "better", found))
		return top;
	json_decref(top);
	err_set(ERR_SYSTEM, "no memory for the comparison as JSON");
	return NULL;
}

static enum err answer(const struct graph_job *job, const struct decision *bounded,
	const struct graph_args *args)
{
	if (args->json)
		return graph_json_print(graph_better_json(job, bounded));
	graph_text_head(job);
	if (!compare(bounded, job->decision, NULL))
		printf("no better graph: a search with a far larger budget finds none\n");
	return OK;
}

enum err graph_better(struct graph_job *job, const struct graph_args *args)
{
	struct decision *bounded;
	enum err e;

	e = graph_job_run(job);
	if (e)
		return e;
	bounded = job->decision;
	job->decision = NULL;
	job->args.unbounded = true;
	e = graph_job_run(job);
	job->args.unbounded = false;
	if (!e)
		e = answer(job, bounded, args);
	decision_free(bounded);
	return e;
}
