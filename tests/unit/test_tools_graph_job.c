/* What the machines, the environment and the options make of a job. */
#include "weft/graph_job.h"

#include "test.h"
#include "weft/graph_json.h"

enum { TRAYS_MAX = 4 };

/* A job over trays: 'a' is whole, in 'd' one GPU has no NVLink. */
static void trays(struct graph_job *job, const char *letters, uint32_t per_domain)
{
	char *paths[TRAYS_MAX];
	int count = (int)strlen(letters);

	for (int i = 0; i < count; i++)
		paths[i] = letters[i] == 'a' ? WEFT_TEST_TOPO "/tray.xml"
					     : WEFT_TEST_TOPO "/tray-dark.xml";
	graph_job_init(job);
	job->args.host_count = (uint32_t)count;
	job->args.mnnvl_hosts = per_domain;
	EQ(graph_job_load(job, count, paths), OK);
}

static json_t *nvls_graph(struct graph_job *job)
{
	json_t *graphs, *nvls;

	EQ(graph_job_run(job), OK);
	graphs = graph_json_graphs(job);
	nvls = json_deep_copy(json_object_get(graphs, "nvls"));
	json_decref(graphs);
	return nvls;
}

static void graph_is(json_t *graph, int channels, const int bounds[2], const char *intra,
	const char *inter)
{
	EQ(json_integer_value(json_object_get(graph, "nChannels")), channels);
	EQ(json_integer_value(json_object_get(graph, "minChannels")), bounds[0]);
	EQ(json_integer_value(json_object_get(graph, "maxChannels")), bounds[1]);
	EQ_STR(json_string_value(json_object_get(graph, "typeIntra")), intra);
	EQ_STR(json_string_value(json_object_get(graph, "typeInter")), inter);
	json_decref(graph);
}

/* An NVLS graph that was looked for and not found keeps what was looked for. */
static void nvls_without_channels(void)
{
	struct graph_job job;

	trays(&job, "ad", 2);
	TRUE(job.args.has_multicast);
	graph_is(nvls_graph(&job), 0, (int[]){8, 8}, "NVL", "PIX");
	EQ(job.decision->cluster->nvls_support, false);
	graph_job_fini(&job);
	trays(&job, "dada", 2); /* with a network bounds are open */
	graph_is(nvls_graph(&job), 0, (int[]){1, 8}, "NVL", "PIX");
	graph_job_fini(&job);
	trays(&job, "aa", 2);
	graph_is(nvls_graph(&job), 8, (int[]){8, 8}, "NVL", "PIX");
	graph_job_fini(&job);
	trays(&job, "ad", 2); /* not looked for: nothing but the question */
	job.args.has_multicast = false;
	graph_is(nvls_graph(&job), 0, (int[]){1, 64}, "LOC", "LOC");
	graph_job_fini(&job);
}

static float simple(const struct model *model, enum model_func func, enum algo algo)
{
	return model->bandwidth[func][algo][PROTO_SIMPLE];
}

/* One node without NVLS: on every node the CollNet heads are those of the direct graph,
 * and three values of the model follow from them. */
static void collnet_heads_of_all(void)
{
	struct graph_job job;
	struct cluster_args again = {.collnet = true, .has_multicast = true};
	struct cluster *cluster;
	struct model model;

	trays(&job, "aaad", 2);
	job.args.collnet = true;
	EQ(graph_job_run(&job), OK);
	EQ(job.decision->domains[0]->set.graphs[GRAPH_NVLS].channel_count, 8);
	EQ(job.decision->cluster->nvls_support, false);
	job.decision->domains[0]->set.graphs[GRAPH_COLLNET_DIRECT].channel_count = 3;
	again.nodes = job.decision->cluster->nodes;
	again.node_count = (uint32_t)job.decision->cluster->node_count;
	EQ(cluster_join(&again, &cluster), OK);
	EQ(cluster->collnet_heads, 3);
	EQ(cluster->collnet_chain, false);
	EQ(model_make(cluster, &job.rules, &model), OK);
	TRUE(simple(&job.model, MODEL_ALL_GATHER, ALGO_COLLNET_DIRECT) > 0);
	TRUE(simple(&job.model, MODEL_REDUCE_SCATTER, ALGO_COLLNET_DIRECT) > 0);
	TRUE(simple(&job.model, MODEL_ALL_REDUCE, ALGO_COLLNET_CHAIN) > 0);
	TRUE(simple(&model, MODEL_ALL_GATHER, ALGO_COLLNET_DIRECT) == 0);
	TRUE(simple(&model, MODEL_REDUCE_SCATTER, ALGO_COLLNET_DIRECT) == 0);
	TRUE(simple(&model, MODEL_ALL_REDUCE, ALGO_COLLNET_CHAIN) == 0);
	cluster_free(cluster);
	graph_job_fini(&job);
}

int main(void)
{
	nvls_without_channels();
	collnet_heads_of_all();
	return 0;
}
