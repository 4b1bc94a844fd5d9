#include "sim/scene.h"

#include <stdlib.h>
#include <string.h>

#include "base/dtype.h"

enum { SM_MULTICAST = 90 };

static const char *const method_names[SIM_METHODS] = {"ring-ll", "ring-ll128",
	"ring-simple", "tree-ll", "tree-ll128", "tree-simple", "nvls", "nvls-tree", "pat",
	"collnet", "p2p"};

const char *sim_method_name(enum sim_method method)
{
	return method_names[method];
}

enum sim_method sim_method_find(const char *name)
{
	int method = 0;

	while (method < SIM_METHODS && strcmp(name, method_names[method]))
		method++;
	return (enum sim_method)method;
}

/* The minor versions of NCCL 2 that brought an algorithm. */
enum { FIRST_NVLS_TREE = 18, FIRST_PAT = 23 };

static void version_obey(const struct sim_site *site, struct model_rules *rules)
{
	if (site->minor && site->minor < FIRST_NVLS_TREE)
		rules->algo[MODEL_ALL_REDUCE][ALGO_NVLS_TREE] = false;
	if (site->minor && site->minor < FIRST_PAT)
		rules->pat_enable = 0;
}

static enum err rules_make(const struct sim_site *site, struct model_rules *rules)
{
	const char *proto = site->proto;
	enum err e = OK;

	if (site->is_environment)
		e = model_rules_read(rules);
	else
		model_rules_default(rules);
	if (!*proto && site->is_aws &&
		(site->outer == SIM_EFA_OLD || site->outer == SIM_STAGED))
		proto = "simple"; /* the plugin sets it there, on one node too */
	if (site->no_nvls)
		rules->nvls_enable = 0;
	if (!e && *site->algo)
		e = model_algo_parse(site->algo, rules);
	if (!e && *proto)
		e = model_proto_parse(proto, rules);
	version_obey(site, rules);
	return e;
}

static bool has_switch(struct xml_node *tree)
{
	struct xml_node *gpu = xml_find(tree, "gpu", NULL);
	struct xml_node *link = gpu ? xml_find(gpu, "nvlink", NULL) : NULL;
	const char *class = link ? xml_attr(link, "tclass") : NULL;

	return class && !strcmp(class, "0x068000") &&
	       xml_int(gpu, "sm", 0) >= SM_MULTICAST;
}

static uint32_t gpus_of(struct xml_node *tree)
{
	uint32_t count = 0;

	for (struct xml_node *gpu = xml_find(tree, "gpu", NULL); gpu;
		gpu = xml_find(tree, "gpu", gpu))
		count++;
	return count;
}

static uint32_t nets_of(struct xml_node *tree)
{
	uint32_t count = 0;

	for (struct xml_node *net = xml_find(tree, "net", NULL); net;
		net = xml_find(tree, "net", net))
		count++;
	return count;
}

/* So many hosts are searched: all, or as many as have the same graphs as all. Whole
 * NVLink domains in any case. */
static uint32_t hosts_searched(const struct sim_site *site)
{
	uint32_t least = site->domain > 1 ? 2 * site->domain : SIM_NODES_SEARCHED;

	return site->nodes < least ? site->nodes : least;
}

static enum err decide_scene(struct sim_scene *scene)
{
	const struct sim_site *site = &scene->site;
	const struct xml_node *trees[1] = {scene->tree};
	uint32_t gpus = gpus_of(scene->tree), nets = nets_of(scene->tree);
	struct decide_args args = {.machines = trees,
		.machine_count = 1,
		.host_count = hosts_searched(site),
		.mnnvl_hosts = site->domain > 1 ? site->domain : 0,
		.has_multicast = !site->no_nvls && has_switch(scene->tree)};

	if (!gpus || site->gpus > gpus)
		return err_set(ERR_USAGE,
			"machine '%s' has %u GPUs, and %u of each are asked for; "
			"take fewer",
			site->machine, gpus, site->gpus);
	topo_rules_default(&args.rules);
	if (site->is_environment) {
		enum err e = topo_rules_read(&args.rules);

		if (e)
			return e;
		channel_rules_read(&args.channels);
	}
	if (site->is_aws && site->one_net) {
		args.rules.netdevs = NETDEVS_MAX;
		args.rules.netdevs_max = 1;
	}
	if (site->gpus < gpus) {
		args.pods = 1;
		args.gpus_per_pod = site->gpus;
		args.nets_per_pod = site->nics && site->nics < nets ? site->nics : nets;
	}
	return decide(&args, &scene->decision);
}

/* Where the graphs of fewer nodes stand for all. */
static void widen(struct sim_scene *scene)
{
	struct cluster *cluster = scene->decision->cluster;
	const struct sim_site *site = &scene->site;
	uint32_t searched = hosts_searched(site);

	if (searched == site->nodes)
		return;
	cluster->node_count =
		(int)((uint64_t)cluster->node_count * site->nodes / searched);
	cluster->rank_count = (int)scene->ranks;
}

/* What a GPU can send to the others of its node: its NVLinks together, or the way over
 * PCI. */
static double gpu_rate(const struct topo *topo)
{
	const struct topo_node *gpu = topo->nodes[TOPO_GPU][0];
	double sum = 0;

	for (uint32_t i = 0; i < gpu->link_count; i++)
		if (gpu->links[i].type == LINK_NVL)
			sum += (double)gpu->links[i].bw;
	if (sum <= 0 && topo->counts[TOPO_GPU] > 1 && gpu->paths[TOPO_GPU])
		sum = (double)gpu->paths[TOPO_GPU][1].bw;
	return sum;
}

static double pci_link(const struct topo_node *node)
{
	for (uint32_t i = 0; i < node->link_count; i++)
		if (node->links[i].type == LINK_PCI)
			return (double)node->links[i].bw;
	return 0;
}

/* A GPU hangs on its PCI device, or straight on what is above. */
static double pci_rate(const struct topo *topo)
{
	const struct topo_node *gpu = topo->nodes[TOPO_GPU][0];
	double rate = pci_link(gpu);

	for (uint32_t i = 0; i < gpu->link_count && !(rate > 0); i++)
		if (gpu->links[i].type == LINK_LOC)
			rate = pci_link(gpu->links[i].to);
	return rate;
}

/* Two GPUs with NVLink between them. */
static bool is_bridged(const struct topo *topo)
{
	const struct topo_path *paths = topo->nodes[TOPO_GPU][0]->paths[TOPO_GPU];

	return topo->counts[TOPO_GPU] == 2 && paths && paths[1].type == PATH_NVL;
}

/* The user may have forbidden it: NCCL_P2P_DISABLE, NCCL_P2P_LEVEL. */
static bool uses_nvlink(const struct topo *topo)
{
	const struct topo_path *paths = topo->nodes[TOPO_GPU][0]->paths[TOPO_GPU];

	return topo->counts[TOPO_GPU] < 2 || !paths || paths[1].type <= PATH_NVB;
}

/* On an NVSwitch and between two GPUs a ring has all NVLinks, whatever the network leaves
 * of it. */
static void speeds_set(struct sim_scene *scene)
{
	const struct cluster *cluster = scene->decision->cluster;
	const struct graph_info *ring = &cluster->info[ALGO_RING];
	bool is_barred = cluster->nvs_count > 0 &&
			 !uses_nvlink(cluster->nodes[0].domain->topo);

	scene->ring_GBps = (double)(ring->bw_intra * (float)ring->channel_count);
	scene->nvlink_GBps = gpu_rate(cluster->nodes[0].domain->topo);
	scene->pcie_GBps = pci_rate(cluster->nodes[0].domain->topo);
	if (scene->nvlink_GBps <= 0 || is_barred)
		scene->nvlink_GBps = scene->ring_GBps;
	if (is_barred)
		scene->site.inner = SIM_PCIE;
	else if (cluster->nvs_count > 0 || is_bridged(cluster->nodes[0].domain->topo))
		scene->ring_GBps = scene->nvlink_GBps;
	scene->nvl_groups = (uint32_t)cluster->node_count;
}

/* The model is asked what a network of no latency would cost, and what one of a
 * microsecond: the plugins tell NCCL a latency that steers its choice, and that is not
 * the one that their network has. */
static enum err waits_measure(const struct model_rules *rules, struct sim_scene *scene)
{
	struct cluster *cluster = scene->decision->cluster;
	struct model *asked = calloc(1, sizeof(*asked));
	float said[ALGO_COUNT];
	enum err e = asked ? OK : err_set(ERR_SYSTEM, "no memory for a model");

	for (int algo = 0; algo < ALGO_COUNT; algo++)
		said[algo] = cluster->info[algo].latency_inter;
	for (int us = 0; !e && us < 2; us++) {
		float *to = us ? &scene->hops[0][0][0] : &scene->bare_us[0][0][0];
		const float *from = &asked->latency[0][0][0];

		for (int algo = 0; algo < ALGO_COUNT; algo++)
			cluster->info[algo].latency_inter = (float)us;
		e = model_make(cluster, rules, asked);
		for (int i = 0; i < MODEL_FUNCS * ALGO_COUNT * PROTO_COUNT; i++)
			to[i] = us ? from[i] - (&scene->bare_us[0][0][0])[i] : from[i];
	}
	for (int algo = 0; algo < ALGO_COUNT; algo++)
		cluster->info[algo].latency_inter = said[algo];
	free(asked);
	return e;
}

enum err sim_scene_make(const struct sim_site *site, struct sim_scene *scene)
{
	struct model_rules rules;
	enum err e;

	*scene = (struct sim_scene){.site = *site, .ranks = site->nodes * site->gpus};
	e = rules_make(site, &rules);
	if (!e)
		e = sim_site_tree(site, &scene->tree);
	if (!e)
		e = decide_scene(scene);
	if (!e) {
		widen(scene);
		speeds_set(scene);
		e = waits_measure(&rules, scene);
	}
	if (!e)
		e = model_make(scene->decision->cluster, &rules, &scene->model);
	if (e)
		sim_scene_free(scene);
	return e;
}

void sim_scene_free(struct sim_scene *scene)
{
	decision_free(scene->decision);
	xml_free(scene->tree);
	scene->decision = NULL;
	scene->tree = NULL;
}

static enum sim_method method_of(enum algo algo, enum proto proto)
{
	switch (algo) {
	case ALGO_RING:
		return (enum sim_method)(SIM_RING_LL + proto);
	case ALGO_TREE:
		return (enum sim_method)(SIM_TREE_LL + proto);
	case ALGO_NVLS:
		return SIM_NVLS_SIMPLE;
	case ALGO_NVLS_TREE:
		return SIM_NVLS_TREE_SIMPLE;
	case ALGO_PAT:
		return SIM_PAT_SIMPLE;
	default:
		return SIM_COLLNET_SIMPLE;
	}
}

/* The model's five; -1: point to point. */
static int func_of(int coll)
{
	switch (coll) {
	case COLL_ALL_REDUCE:
		return MODEL_ALL_REDUCE;
	case COLL_ALL_GATHER:
		return MODEL_ALL_GATHER;
	case COLL_REDUCE_SCATTER:
		return MODEL_REDUCE_SCATTER;
	case COLL_BROADCAST:
		return MODEL_BROADCAST;
	case COLL_REDUCE:
		return MODEL_REDUCE;
	default:
		return -1;
	}
}

/* The plugin's own choice, if it has one for that many nodes and NCCL's lists leave
 * it. */
static bool plugin_region(const struct sim_scene *scene, const struct model_call *call,
	enum sim_method *method)
{
	struct region_question question = {.machine = scene->site.regions,
		.node_count = scene->site.nodes,
		.ranks_per_node = scene->site.gpus,
		.func = call->func,
		.bytes = call->bytes};
	enum proto proto;
	enum algo algo;

	if (!question.machine || !region_choose(&question, &algo, &proto) ||
		!(model_time(&scene->model, call, algo, proto) >= 0))
		return false;
	*method = method_of(algo, proto);
	return true;
}

enum err sim_scene_choose(
	const struct sim_scene *scene, int coll, uint64_t bytes, enum sim_method *method)
{
	struct model_call call = {
		.bytes = bytes, .pipe_ops = 1, .type = DTYPE_FLOAT32, .op = REDOP_SUM};
	struct model_choice choice;
	int func = func_of(coll);
	enum err e;

	if (func < 0 || scene->ranks < 2) {
		*method = SIM_P2P;
		return OK;
	}
	call.func = (enum model_func)func;
	if (plugin_region(scene, &call, method))
		return OK;
	call.bytes = model_round(&scene->model, &call);
	if (!call.bytes)
		call.bytes = bytes;
	e = model_choose(&scene->model, &call, &choice);
	if (!e)
		*method = method_of(choice.algo, choice.proto);
	return e;
}
