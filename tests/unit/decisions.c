/* Reading the recorded decisions; the comparison is in decisions_compare.c. */
#include "decisions.h"

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { PATH_BYTES = 1024, NAMES_MAX = 1024 };

const char *decisions_folder(void)
{
	static char folder[PATH_BYTES];
	const char *data = getenv("WEFT_DATA");
	DIR *dir;

	snprintf(folder, sizeof(folder), "%s/nccl-decisions",
		data && *data ? data : WEFT_SHARED_DATA);
	dir = opendir(folder);
	if (!dir)
		return "";
	closedir(dir);
	return folder;
}

static int by_name(const void *a, const void *b)
{
	return strcmp(*(char *const *)a, *(char *const *)b);
}

void decisions_each(
	void (*visit)(const char *name, json_t *root, void *context), void *context)
{
	DIR *dir = opendir(decisions_folder());
	char *names[NAMES_MAX];
	size_t count = 0;
	struct dirent *entry;

	while (dir && count < NAMES_MAX && (entry = readdir(dir)))
		if (strstr(entry->d_name, ".json"))
			names[count++] = strdup(entry->d_name);
	qsort(names, count, sizeof(*names), by_name);
	for (size_t i = 0; i < count; i++) {
		char path[2 * PATH_BYTES];
		json_error_t error;
		json_t *root;
		snprintf(path, sizeof(path), "%s/%s", decisions_folder(), names[i]);
		root = json_load_file(path, 0, &error);
		if (!root) {
			fprintf(stderr, "%s: %s\n", path, error.text);
			exit(1);
		}
		*strstr(names[i], ".json") = 0;
		visit(names[i], root, context);
		json_decref(root);
		free(names[i]);
	}
	if (dir)
		closedir(dir);
}

static json_t *member(json_t *object, const char *key)
{
	json_t *value = json_object_get(object, key);

	if (!value) {
		fprintf(stderr, "no \"%s\" in a decision\n", key);
		exit(1);
	}
	return value;
}

long decisions_int(json_t *object, const char *key)
{
	json_t *value = member(object, key);

	return (long)(json_is_boolean(value) ? json_is_true(value)
					     : json_integer_value(value));
}

double decisions_real(json_t *object, const char *key)
{
	return json_number_value(member(object, key));
}

static const char *text(json_t *object, const char *key)
{
	return json_string_value(member(object, key));
}

/* "GPU/0-14000" */
static enum topo_kind label_kind(const char *label)
{
	for (int kind = 0; kind < TOPO_KINDS; kind++) {
		const char *name = topo_kind_name((enum topo_kind)kind);
		size_t length = strlen(name);
		if (!strncmp(label, name, length) && label[length] == '/')
			return (enum topo_kind)kind;
	}
	fprintf(stderr, "no node is called %s\n", label);
	exit(1);
}

static uint64_t label_id(const char *label)
{
	unsigned long long system = 0, local = 0;

	sscanf(strchr(label, '/') + 1, "%llx-%llx", &system, &local);
	return (uint64_t)system << 56 | local;
}

static struct topo_node *add_node(struct topo *topo, const char *label)
{
	enum topo_kind kind = label_kind(label);
	struct topo_node *node = calloc(1, sizeof(*node));

	node->kind = kind;
	node->id = label_id(label);
	node->index = topo->counts[kind];
	topo->nodes[kind][topo->counts[kind]++] = node;
	return node;
}

/* Two nodes may carry the same label, as in a file with two NICs of one number; like
 * NCCL, the first is meant. */
static struct topo_node *node_of(struct topo *topo, const char *label)
{
	enum topo_kind kind = label_kind(label);

	for (uint32_t i = 0; i < topo->counts[kind]; i++)
		if (topo->nodes[kind][i]->id == label_id(label))
			return topo->nodes[kind][i];
	return add_node(topo, label);
}

static void load_nodes(struct topo *topo, json_t *system)
{
	size_t i;
	json_t *item;

	json_array_foreach(member(system, "gpus"), i, item)
	{
		struct topo_gpu *gpu = &add_node(topo, text(item, "name"))->gpu;
		gpu->dev = (int)decisions_int(item, "dev");
		gpu->rank = (int)decisions_int(item, "rank");
		gpu->sm = (int)decisions_int(item, "sm");
		gpu->gdr = decisions_int(item, "gdr") != 0;
	}
	json_array_foreach(member(system, "nets"), i, item)
	{
		struct topo_net *net = &add_node(topo, text(item, "name"))->net;
		net->dev = (int)decisions_int(item, "dev");
		net->asic = strtoull(text(item, "asic"), NULL, 16);
		net->port = (int)decisions_int(item, "port");
		net->bw = (float)decisions_real(item, "bw");
		net->latency = (float)decisions_real(item, "latency");
		net->gdr = decisions_int(item, "gdr") != 0;
		net->coll = decisions_int(item, "coll") != 0;
		net->max_channels = (int)decisions_int(item, "maxChannels");
		net->local_gpu = (int)decisions_int(item, "localGpuIndex");
		net->rail = (int)decisions_int(item, "rail");
		net->plane = (int)decisions_int(item, "plane");
	}
	json_array_foreach(member(system, "cpus"), i, item)
	{
		struct topo_cpu *cpu = &add_node(topo, text(item, "name"))->cpu;
		cpu->arch = (int)decisions_int(item, "arch");
		cpu->vendor = (int)decisions_int(item, "vendor");
		cpu->model = (int)decisions_int(item, "model");
	}
}

/* Nobody asks a recorded path for its links' bandwidth: each hop has one of its own. */
static void load_path(struct topo *topo, json_t *item, struct topo_path *path)
{
	json_t *via = json_object_get(item, "via");
	struct topo_link *links;

	if (!path_named(text(item, "type"), &path->type))
		exit(1);
	path->bw = (float)decisions_real(item, "bw");
	path->hop_count = (uint32_t)decisions_int(item, "hops");
	if (json_array_size(via) == 0)
		return;
	path->hops = calloc(
		json_array_size(via), sizeof(*path->hops) + sizeof(struct topo_link));
	links = (struct topo_link *)(void *)(path->hops + json_array_size(via));
	for (size_t h = 0; h < json_array_size(via); h++) {
		links[h].to = node_of(topo, json_string_value(json_array_get(via, h)));
		path->hops[h] = &links[h];
	}
}

static void load_paths(struct topo *topo, json_t *paths, const char *key)
{
	enum topo_kind from = !strncmp(key, "NET", 3) ? TOPO_NET : TOPO_GPU;
	const char *end = strrchr(key, '-') + 1;
	enum topo_kind to = !strcmp(end, "GPU")	  ? TOPO_GPU
			    : !strcmp(end, "NET") ? TOPO_NET
						  : TOPO_CPU;
	size_t i, j;
	json_t *row, *item;

	json_array_foreach(json_object_get(paths, key), i, row)
	{
		struct topo_node *node = topo->nodes[from][i];
		node->paths[to] = calloc(
			json_array_size(row) + 1, sizeof(struct topo_path));
		json_array_foreach(row, j, item)
			load_path(topo, item, &node->paths[to][j]);
	}
}

static void load_graph(const struct topo *topo, json_t *from, struct graph *graph)
{
	size_t c, i;
	json_t *channel, *item;

	graph->id = (enum graph_id)decisions_int(from, "id");
	graph->pattern = (enum graph_pattern)decisions_int(from, "pattern");
	graph->collnet = decisions_int(from, "collNet") != 0;
	graph->cross_nic = (int)decisions_int(from, "crossNic");
	graph->channel_count = (int)decisions_int(from, "nChannels");
	graph->bw_intra = (float)decisions_real(from, "speedIntra");
	graph->bw_inter = (float)decisions_real(from, "speedInter");
	graph->latency_inter = (float)decisions_real(from, "latencyInter");
	graph->same_channels = decisions_int(from, "sameChannels") != 0;
	if (!path_named(text(from, "typeIntra"), &graph->type_intra) ||
		!path_named(text(from, "typeInter"), &graph->type_inter))
		exit(1);
	json_array_foreach(json_object_get(from, "channels"), c, channel)
	{
		json_array_foreach(member(channel, "gpus"), i, item)
		{
			graph->intra[c][i] = (int)json_integer_value(item);
			graph->gpu_count = (int)i + 1;
		}
		json_array_foreach(json_object_get(channel, "netIndex"), i, item)
		{
			long index = (long)json_integer_value(item);
			if (i < 2 && index >= 0)
				graph->inter[c][i] = topo->nodes[TOPO_NET][index]->id;
		}
	}
}

static int by_value(const void *a, const void *b)
{
	return *(const int *)a - *(const int *)b;
}

struct domain *decisions_domain(json_t *root)
{
	static const char *const paths[] = {"GPU-GPU", "GPU-NET", "NET-GPU", "GPU-CPU"};
	static const char *const graphs[GRAPH_COUNT] = {[GRAPH_RING] = "ring",
		[GRAPH_TREE] = "tree",
		[GRAPH_COLLNET_CHAIN] = "collnetChain",
		[GRAPH_NVLS] = "nvls",
		[GRAPH_COLLNET_DIRECT] = "collnetDirect"};
	static const enum graph_pattern patterns[GRAPH_COUNT] = {PATTERN_RING,
		PATTERN_TREE, PATTERN_TREE, PATTERN_NVLS, PATTERN_COLLNET_DIRECT};
	struct domain *domain = calloc(1, sizeof(*domain));
	json_t *system = member(root, "system");

	domain->topo = calloc(1, sizeof(*domain->topo));
	topo_rules_default(&domain->topo->rules);
	domain->topo->rules.nccl = NCCL_RULES_2_30;
	domain->topo->host_count = (uint32_t)decisions_int(system, "nHosts");
	domain->topo->is_inter = decisions_int(system, "inter") != 0;
	load_nodes(domain->topo, system);
	for (size_t i = 0; i < sizeof(paths) / sizeof(*paths); i++)
		load_paths(domain->topo, member(root, "paths"), paths[i]);
	for (int id = 0; id < GRAPH_COUNT; id++) {
		json_t *graph = json_object_get(member(root, "graphs"), graphs[id]);
		domain->set.graphs[id].pattern = patterns[id];
		if (graph)
			load_graph(domain->topo, graph, &domain->set.graphs[id]);
	}
	domain->rank_count = domain->topo->counts[TOPO_GPU];
	for (uint32_t g = 0; g < domain->rank_count; g++)
		domain->ranks[g] = domain->topo->nodes[TOPO_GPU][g]->gpu.rank;
	qsort(domain->ranks, domain->rank_count, sizeof(int), by_value);
	return domain;
}

void decisions_domain_free(struct domain *domain)
{
	topo_free(domain->topo);
	free(domain);
}
