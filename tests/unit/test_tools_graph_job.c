/* What the machines, the environment and the options make of a job. */
#include "weft/graph_job.h"

#include "base/dtype.h"
#include "base/param.h"
#include "test.h"
#include "weft/graph_json.h"
#include "weft/machine_args.h"

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

/* Two H100 machines with these variables set, "NAME=VALUE" each, and none after. */
static void job_with(struct graph_job *job, const char *const *settings)
{
	enum param ids[4];
	int count = 0;

	for (; settings[count]; count++) {
		char name[64];
		size_t length = strcspn(settings[count], "=");

		snprintf(name, sizeof(name), "%.*s", (int)length, settings[count]);
		TRUE(param_find(name, &ids[count]));
		EQ(setenv(name, settings[count] + length + 1, 1), 0);
		param_forget(ids[count]);
	}
	graph_job_init(job);
	job->args.host_count = 2;
	EQ(graph_job_environment(job), OK);
	EQ(graph_job_load(job, 1, (char *[]){"dgx-h100"}), OK);
	EQ(graph_job_run(job), OK);
	while (count--) {
		unsetenv(param_info(ids[count])->name);
		param_forget(ids[count]);
	}
}

/* What one question about such a job answers. */
static int ask(const char *const *settings, int (*answer)(const struct graph_job *))
{
	struct graph_job job;
	int value;

	job_with(&job, settings);
	value = answer(&job);
	graph_job_fini(&job);
	return value;
}
#define ASK(answer, ...) ask((const char *const[]){__VA_ARGS__, NULL}, answer)

static int channels(const struct graph_job *job)
{
	return job->decision->cluster->channel_count;
}

static int nvls_channels(const struct graph_job *job)
{
	return job->decision->cluster->nvls_channels;
}

static int p2p_channels(const struct graph_job *job)
{
	return job->decision->cluster->p2p_channels;
}

static int per_peer(const struct graph_job *job)
{
	return job->decision->cluster->p2p_channels_per_peer;
}

static int nvls_chunk(const struct graph_job *job)
{
	return job->decision->cluster->nvls_chunk_bytes;
}

static int nvls_tree_chunk(const struct graph_job *job)
{
	return job->decision->cluster->nvls_tree_chunk_bytes;
}

/* Channels of the largest all-reduce by ring. */
static int used_channels(const struct graph_job *job)
{
	struct model_call call = {.func = MODEL_ALL_REDUCE,
		.bytes = (uint64_t)1 << 30,
		.pipe_ops = 1,
		.type = DTYPE_FLOAT32};
	struct model_choice choice;

	EQ(model_choose(&job->model, &call, &choice), OK);
	EQ(choice.algo, ALGO_RING);
	return choice.channels;
}

static void environment_of_channels(void)
{
	EQ(ASK(channels, "NCCL_DEBUG=VERSION"), 16);
	EQ(ASK(channels, "NCCL_MAX_CTAS=4"), 4);
	EQ(ASK(channels, "NCCL_MIN_CTAS=20"), 20);
	EQ(ASK(channels, "NCCL_MAX_NCHANNELS=6"), 6);
	EQ(ASK(channels, "NCCL_MIN_NCHANNELS=24"), 24);
	EQ(ASK(channels, "NCCL_MAX_NRINGS=3"), 3);
	EQ(ASK(channels, "NCCL_MIN_NRINGS=33"), 33);
	EQ(ASK(channels, "NCCL_MAX_NCHANNELS=6", "NCCL_MAX_NRINGS=3"), 6);
	EQ(ASK(channels, "NCCL_MAX_NCHANNELS=6", "NCCL_MAX_CTAS=4"), 4);
	EQ(ASK(channels, "NCCL_MAX_NCHANNELS=2", "NCCL_MAX_CTAS=4"), 2);
	EQ(ASK(channels, "NCCL_MIN_NCHANNELS=20", "NCCL_MIN_CTAS=30"), 30);
	EQ(ASK(channels, "NCCL_MIN_NCHANNELS=1000"), 64);
	EQ(ASK(channels, "NCCL_MAX_CTAS=65"), 16); /* no such value: as if unset */
	EQ(ASK(used_channels, "NCCL_ALGO=Ring", "NCCL_MAX_CTAS=5"), 5);
}

static void environment_of_nvls(void)
{
	EQ(ASK(nvls_channels, "NCCL_DEBUG=VERSION"), 16);
	EQ(ASK(nvls_channels, "NCCL_MAX_CTAS=4"), 4);
	EQ(ASK(nvls_channels, "NCCL_MAX_NCHANNELS=4"), 16);
	EQ(ASK(nvls_channels, "NCCL_NVLS_NCHANNELS=8"), 8);
	EQ(ASK(nvls_channels, "NCCL_NVLS_ENABLE=0"), 0);
	EQ(ASK(nvls_chunk, "NCCL_NVLS_CHUNKSIZE=65536"), 65536);
	EQ(ASK(nvls_tree_chunk, "NCCL_NVLS_CHUNKSIZE=65536"), 65536);
	EQ(ASK(nvls_tree_chunk, "NCCL_NVLSTREE_MAX_CHUNKSIZE=32768"), 32768);
}

static void environment_of_sends(void)
{
	EQ(ASK(p2p_channels, "NCCL_DEBUG=VERSION"), 16);
	EQ(ASK(p2p_channels, "NCCL_MAX_P2P_NCHANNELS=5"), 8);
	EQ(ASK(p2p_channels, "NCCL_MIN_P2P_NCHANNELS=33"), 64);
	EQ(ASK(per_peer, "NCCL_DEBUG=VERSION"), 4);
	EQ(ASK(per_peer, "NCCL_NCHANNELS_PER_NET_PEER=1"), 1);
	EQ(ASK(per_peer, "NCCL_P2P_PER_CHANNEL_NET_BW=50"), 1);
	EQ(ASK(per_peer, "NCCL_P2P_MAX_PEERS=128"), 1);
}

static int nodes(const struct graph_job *job)
{
	return job->decision->cluster->node_count;
}

static int collnet(const struct graph_job *job)
{
	struct graph_job *again = (struct graph_job *)job;

	again->args.collnet = true;
	EQ(graph_job_run(again), OK);
	return again->decision->cluster->collnet_enable;
}

static void environment_of_the_rest(void)
{
	EQ(ASK(collnet, "NCCL_DEBUG=VERSION"), 1);
	EQ(ASK(collnet, "NCCL_COLLNET_NODE_THRESHOLD=3"), 0);
	EQ(ASK(nodes, "NCCL_DEBUG=VERSION"), 2);
	EQ(setenv("NCCL_GRAPH_FILE", "/nowhere/graph.xml", 1), 0);
	param_forget(PARAM_GRAPH_FILE);
	{
		struct graph_job job;

		graph_job_init(&job);
		EQ(graph_job_environment(&job), OK);
		EQ(graph_job_load(&job, 1, (char *[]){"dgx-h100"}), OK);
		EQ(graph_job_run(&job), ERR_SYSTEM);
		graph_job_fini(&job);
	}
	unsetenv("NCCL_GRAPH_FILE");
	param_forget(PARAM_GRAPH_FILE);
}

/* An option goes before a variable, and NCCL_MNNVL_ENABLE before an option. */
static void options_and_variables(void)
{
	struct machine_args args = {.hosts = 2, .min_ctas = 1, .max_ctas = 3};
	struct graph_job job;

	EQ(setenv("NCCL_MAX_CTAS", "8", 1), 0);
	param_forget(PARAM_MAX_CTAS);
	graph_job_init(&job);
	EQ(graph_job_environment(&job), OK);
	machine_args_apply(&args, &job);
	EQ(job.args.channels.max_ctas, 3);
	unsetenv("NCCL_MAX_CTAS");
	param_forget(PARAM_MAX_CTAS);
	args.mnnvl_hosts = 2;
	machine_args_apply(&args, &job);
	EQ(job.args.mnnvl_hosts, 2);
	EQ(setenv("NCCL_MNNVL_ENABLE", "0", 1), 0);
	param_forget(PARAM_MNNVL_ENABLE);
	machine_args_apply(&args, &job);
	EQ(job.args.mnnvl_hosts, 0);
	unsetenv("NCCL_MNNVL_ENABLE");
	param_forget(PARAM_MNNVL_ENABLE);
	graph_job_fini(&job);
}

int main(void)
{
	nvls_without_channels();
	collnet_heads_of_all();
	environment_of_channels();
	environment_of_nvls();
	environment_of_sends();
	environment_of_the_rest();
	options_and_variables();
	return 0;
}
