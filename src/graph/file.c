/*
 * file.c - NCCL_GRAPH_FILE and NCCL_GRAPH_DUMP_FILE: graphs from and to XML.
 *
 *   <graphs version="1">
 *     <graph id="0" pattern="4" ... nchannels="2" speedintra="20" typeintra="NVL" ...>
 *       <channel>
 *         <net dev="0"/>                 in; absent inside a single domain
 *         <gpu dev="0" rank="0"/>        one each, in order; NVLS: only the head
 *         <gpu dev="0x1" rank="1"/>
 *         <net dev="0x1"/>               out
 *       </channel>
 *
 * A `dev` is system << 56 | index in hex, with 0x or without. Older NCCL wrote
 * decimals: a number that is nobody's in hex and somebody's in decimal is taken as that.
 * `rank` is what NCCL 2.30 adds, and it is believed before `dev`. graph.h has the rest.
 */
#include "graph/graph.h"

#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>

/* What the reading of one file has in its hands. */
struct source {
	const char *name; /* of the file, for sentences */
	const struct topo *topo;
};

struct field {
	const char *name;
	int low, high;
};

/* GB/s and microseconds; far beyond any machine. */
static const float number_max = 1e6f;

static const unsigned patterns_of[GRAPH_COUNT] = {
	/* A domain of one GPU turns every pattern but the ring into a tree. */
	[GRAPH_RING] = 1u << PATTERN_RING,
	[GRAPH_TREE] = 1u << PATTERN_BALANCED_TREE | 1u << PATTERN_SPLIT_TREE |
		       1u << PATTERN_TREE,
	[GRAPH_COLLNET_CHAIN] = 1u << PATTERN_TREE,
	[GRAPH_NVLS] = 1u << PATTERN_NVLS | 1u << PATTERN_TREE,
	[GRAPH_COLLNET_DIRECT] = 1u << PATTERN_COLLNET_DIRECT | 1u << PATTERN_TREE,
};

static enum err read_int(const struct source *source, const struct xml_node *node,
	const struct field *field, int *number)
{
	int64_t value = xml_int(node, field->name, INT64_MIN);

	if (value == INT64_MIN)
		return err_set(ERR_USAGE, "%.256s:%d: <%.64s> needs a number as %s",
			source->name, node->line, node->name, field->name);
	if (value < field->low || value > field->high)
		return err_set(ERR_USAGE,
			"%.256s:%d: %s of <%.64s> is %lld; it must be %d to %d",
			source->name, node->line, field->name, node->name,
			(long long)value, field->low, field->high);
	*number = (int)value;
	return OK;
}

static enum err read_float(const struct source *source, const struct xml_node *node,
	const char *name, float *number)
{
	float value = xml_float(node, name, -1);

	if (value < 0 || value > number_max)
		return err_set(ERR_USAGE,
			"%.256s:%d: %s of <%.64s> is %.64s; it must be a number, 0 to %g",
			source->name, node->line, name, node->name,
			xml_attr(node, name) ? xml_attr(node, name) : "missing",
			(double)number_max);
	*number = value;
	return OK;
}

static enum err read_type(const struct source *source, const struct xml_node *node,
	const char *name, enum path_type *type)
{
	const char *value = xml_attr(node, name);

	if (value && path_named(value, type))
		return OK;
	return err_set(ERR_USAGE,
		"%.256s:%d: %s of <%.64s> is %.64s; it must be a path type such as NVL "
		"or PIX",
		source->name, node->line, name, node->name, value ? value : "missing");
}

static bool dev_number(const char *text, int base, uint64_t *dev)
{
	char *end;

	errno = 0;
	*dev = strtoull(text, &end, base);
	return end != text && !*end && !errno;
}

static int rank_of_dev(const struct topo *topo, uint64_t dev)
{
	for (uint32_t g = 0; g < topo->counts[TOPO_GPU]; g++) {
		const struct topo_node *gpu = topo_gpu_at(topo, g);

		if (((uint64_t)topo_system(gpu->id) << 56 | (uint32_t)gpu->gpu.dev) ==
			dev)
			return gpu->gpu.rank;
	}
	return -1;
}

static enum err no_such_dev(const struct source *source, const struct xml_node *node)
{
	const char *dev = xml_attr(node, "dev");

	return err_set(ERR_USAGE,
		"%.256s:%d: this machine has no %.16s with dev \"%.64s\"; the graph is "
		"of "
		"another machine",
		source->name, node->line, node->name, dev ? dev : "");
}

static enum err read_gpu(
	const struct source *source, const struct xml_node *node, int *rank)
{
	static const struct field field = {"rank", 0, INT_MAX};
	const char *text = xml_attr(node, "dev");
	int found = -1;
	uint64_t dev;
	enum err e;

	if (text && dev_number(text, 16, &dev))
		found = rank_of_dev(source->topo, dev);
	if (found < 0 && text && dev_number(text, 10, &dev))
		found = rank_of_dev(source->topo, dev);
	if (found < 0)
		return no_such_dev(source, node);
	if (!xml_attr(node, "rank")) {
		*rank = found;
		return OK;
	}
	e = read_int(source, node, &field, &found);
	if (e)
		return e;
	if (topo_gpu_of_rank(source->topo, found) < 0)
		return err_set(ERR_USAGE,
			"%.256s:%d: rank %d is not here; the graph is of another machine",
			source->name, node->line, found);
	*rank = found;
	return OK;
}

/* Without other domains the NICs are gone from the topology, and what a file says of them
 * is of no use. */
static enum err read_net(
	const struct source *source, const struct xml_node *node, uint64_t *id)
{
	const char *text = xml_attr(node, "dev");

	if (text && dev_number(text, 16, id) &&
		(!source->topo->is_inter || topo_net_of_id(source->topo, *id) >= 0))
		return OK;
	if (text && dev_number(text, 10, id) && topo_net_of_id(source->topo, *id) >= 0)
		return OK;
	return no_such_dev(source, node);
}

static enum err check_gpus(const struct source *source, const struct xml_node *node,
	const struct graph *graph, const int *ranks, int count)
{
	bool is_short = graph->id == GRAPH_NVLS && count >= 1;

	if (count != graph->gpu_count && !is_short)
		return err_set(ERR_USAGE,
			"%.256s:%d: a channel of %d GPUs, but %d take part; the graph is "
			"of "
			"another machine",
			source->name, node->line, count, graph->gpu_count);
	for (int a = 0; a < count; a++)
		for (int b = 0; b < a; b++)
			if (ranks[a] == ranks[b])
				return err_set(ERR_USAGE,
					"%.256s:%d: a channel visits rank %d twice; name "
					"every GPU once",
					source->name, node->line, ranks[a]);
	return OK;
}

/* NCCL takes NIC 0 where a file names none: such files are made by hand for one host. */
static enum err check_nets(const struct source *source, const struct xml_node *node,
	const uint64_t nets[2], int count)
{
	if (count == 1)
		return err_set(ERR_USAGE,
			"%.256s:%d: a channel with one <net>; it needs the one it comes "
			"in by "
			"and the one it goes out by",
			source->name, node->line);
	if (source->topo->is_inter && topo_net_of_id(source->topo, nets[0]) < 0)
		return err_set(ERR_USAGE,
			"%.256s:%d: a channel without <net>, but several machines take "
			"part",
			source->name, node->line);
	return OK;
}

static enum err read_channel(const struct source *source, const struct xml_node *node,
	struct graph *graph, int channel)
{
	int *ranks = graph->intra[channel];
	uint64_t *nets = graph->inter[channel];
	int gpu_count = 0, net_count = 0;
	enum err e = OK;

	for (uint32_t s = 0; s < node->sub_count && !e; s++) {
		const struct xml_node *sub = node->subs[s];
		bool is_gpu = !strcmp(sub->name, "gpu");

		if (!is_gpu && strcmp(sub->name, "net") != 0)
			continue;
		if ((is_gpu && gpu_count == graph->gpu_count) ||
			(!is_gpu && net_count == 2))
			return err_set(ERR_USAGE,
				"%.256s:%d: one <%s> too many in this channel; at most "
				"%d",
				source->name, sub->line, sub->name,
				is_gpu ? graph->gpu_count : 2);
		e = is_gpu ? read_gpu(source, sub, &ranks[gpu_count++])
			   : read_net(source, sub, &nets[net_count++]);
	}
	if (!e)
		e = check_gpus(source, node, graph, ranks, gpu_count);
	return e ? e : check_nets(source, node, nets, net_count);
}

static enum err read_head(
	const struct source *source, const struct xml_node *node, struct graph *graph)
{
	static const struct field fields[] = {
		{"pattern", PATTERN_BALANCED_TREE, PATTERN_COLLNET_DIRECT},
		{"crossnic", 0, 2},
		{"nchannels", 0, GRAPH_CHANNELS_MAX},
		{"samechannels", 0, 1},
	};
	int numbers[4] = {0};
	enum err e = OK;

	for (uint32_t f = 0; f < 4 && !e; f++)
		e = read_int(source, node, &fields[f], &numbers[f]);
	if (!e && !(patterns_of[graph->id] >> numbers[0] & 1))
		e = err_set(ERR_USAGE, "%.256s:%d: graph %d cannot have pattern %d",
			source->name, node->line, graph->id, numbers[0]);
	if (!e)
		e = read_float(source, node, "speedintra", &graph->bw_intra);
	if (!e)
		e = read_float(source, node, "speedinter", &graph->bw_inter);
	if (!e && xml_attr(node, "latencyinter"))
		e = read_float(source, node, "latencyinter", &graph->latency_inter);
	if (!e)
		e = read_type(source, node, "typeintra", &graph->type_intra);
	if (!e)
		e = read_type(source, node, "typeinter", &graph->type_inter);
	graph->pattern = (enum graph_pattern)numbers[0];
	graph->cross_nic = numbers[1];
	graph->channel_count = numbers[2];
	graph->same_channels = numbers[3];
	return e;
}

/* Channels beyond `nchannels` are not looked at, as in NCCL. */
static enum err read_graph(
	const struct source *source, const struct xml_node *node, struct graph *graph)
{
	int channel = 0;
	enum err e = read_head(source, node, graph);

	graph->gpu_count = (int)source->topo->counts[TOPO_GPU];
	graph->collnet = graph->id == GRAPH_COLLNET_CHAIN ||
			 graph->id == GRAPH_COLLNET_DIRECT;
	graph->min_channels = 1;
	graph->max_channels = graph->channel_count;
	for (uint32_t s = 0; s < node->sub_count && !e; s++) {
		if (channel == graph->channel_count)
			return OK;
		if (!strcmp(node->subs[s]->name, "channel"))
			e = read_channel(source, node->subs[s], graph, channel++);
	}
	if (!e && channel < graph->channel_count)
		e = err_set(ERR_USAGE,
			"%.256s:%d: nchannels is %d, but there are %d <channel>",
			source->name, node->line, graph->channel_count, channel);
	return e;
}

/* One <graph> of the file; a later one of the same id counts instead. */
static enum err read_one(const struct source *source, const struct xml_node *node,
	struct graph_set *set, bool has[GRAPH_COUNT])
{
	static const struct field field = {"id", 0, INT_MAX};
	struct graph *graph;
	int id = 0;
	enum err e = read_int(source, node, &field, &id);

	if (e)
		return e;
	/* Graphs that we do not know, and those that NCCL_CROSS_NIC=0 forbids. */
	if (id >= GRAPH_COUNT)
		return OK;
	if (!source->topo->rules.cross_nic && xml_int(node, "crossnic", 0) == 1)
		return OK;
	graph = &set->graphs[id];
	memset(graph, 0, sizeof(*graph));
	graph->id = (enum graph_id)id;
	e = read_graph(source, node, graph);
	has[id] = graph->channel_count > 0;
	return e;
}

static enum err check_size(const struct topo *topo)
{
	if (topo->counts[TOPO_GPU] <= TOPO_GPUS_MAX)
		return OK;
	return err_set(ERR_USAGE, "%u GPUs in one domain; a graph has room for %d",
		topo->counts[TOPO_GPU], TOPO_GPUS_MAX);
}

static enum err parse(const struct source *source, const struct xml_node *tree,
	struct graph_set *set, bool has[GRAPH_COUNT])
{
	struct graph_set *read;
	bool found[GRAPH_COUNT] = {false};
	enum err e = check_size(source->topo);

	if (e)
		return e;
	read = calloc(1, sizeof(*read));
	if (!read)
		return err_set(
			ERR_SYSTEM, "no memory for the graphs of %.256s", source->name);
	for (uint32_t s = 0; s < tree->sub_count && !e; s++)
		if (!strcmp(tree->subs[s]->name, "graph"))
			e = read_one(source, tree->subs[s], read, found);
	for (int id = 0; id < GRAPH_COUNT && !e; id++) {
		has[id] = found[id];
		if (found[id])
			set->graphs[id] = read->graphs[id];
	}
	free(read);
	return e;
}

enum err graph_file_parse(const struct xml_node *tree, const struct topo *topo,
	struct graph_set *set, bool has[GRAPH_COUNT])
{
	struct source source = {.name = "graphs", .topo = topo};

	return parse(&source, tree, set, has);
}

enum err graph_file_read(const char *path, const struct topo *topo, struct graph_set *set,
	bool has[GRAPH_COUNT])
{
	struct source source = {.name = path, .topo = topo};
	struct xml_node *tree;
	enum err e = xml_read(path, "graphs", &tree);

	if (e)
		return e;
	e = parse(&source, tree, set, has);
	xml_free(tree);
	return e;
}

static enum err add_net(struct xml_node *channel, uint64_t id)
{
	struct xml_node *node = xml_add(channel, "net");

	return node ? xml_attr_setf(node, "dev", "%#llx", (unsigned long long)id)
		    : ERR_SYSTEM;
}

static enum err add_gpu(struct xml_node *channel, const struct topo *topo, int rank)
{
	int index = topo_gpu_of_rank(topo, rank);
	const struct topo_node *gpu;
	struct xml_node *node;
	unsigned long long dev;
	enum err e;

	if (index < 0)
		return err_set(
			ERR_INTERNAL, "a graph has rank %d, the topology has not", rank);
	gpu = topo_gpu_at(topo, (uint32_t)index);
	dev = (unsigned long long)topo_system(gpu->id) << 56 | (uint32_t)gpu->gpu.dev;
	node = xml_add(channel, "gpu");
	if (!node)
		return ERR_SYSTEM;
	e = xml_attr_setf(node, "dev", "%#llx", dev);
	return e ? e : xml_attr_setf(node, "rank", "%d", rank);
}

static enum err add_channel(struct xml_node *parent, const struct topo *topo,
	const struct graph *graph, int c)
{
	struct xml_node *channel = xml_add(parent, "channel");
	int gpu_count = graph->id == GRAPH_NVLS ? 1 : (int)topo->counts[TOPO_GPU];
	enum err e = channel ? OK : ERR_SYSTEM;

	if (!e && topo->is_inter)
		e = add_net(channel, graph->inter[c][0]);
	for (int g = 0; g < gpu_count && !e; g++)
		e = add_gpu(channel, topo, graph->intra[c][g]);
	if (!e && topo->is_inter)
		e = add_net(channel, graph->inter[c][1]);
	return e;
}

static enum err add_head(struct xml_node *node, const struct graph *graph)
{
	enum err e = xml_attr_setf(node, "id", "%d", graph->id);

	if (!e)
		e = xml_attr_setf(node, "pattern", "%d", graph->pattern);
	if (!e)
		e = xml_attr_setf(node, "crossnic", "%d", graph->cross_nic);
	if (!e)
		e = xml_attr_setf(node, "nchannels", "%d", graph->channel_count);
	if (!e)
		e = xml_attr_setf(node, "speedintra", "%g", (double)graph->bw_intra);
	if (!e)
		e = xml_attr_setf(node, "speedinter", "%g", (double)graph->bw_inter);
	if (!e)
		e = xml_attr_setf(
			node, "latencyinter", "%g", (double)graph->latency_inter);
	if (!e)
		e = xml_attr_set(node, "typeintra", path_name(graph->type_intra));
	if (!e)
		e = xml_attr_set(node, "typeinter", path_name(graph->type_inter));
	return e ? e : xml_attr_setf(node, "samechannels", "%d", graph->same_channels);
}

static enum err add_graph(
	struct xml_node *tree, const struct topo *topo, const struct graph *graph)
{
	struct xml_node *node = xml_add(tree, "graph");
	enum err e = node ? add_head(node, graph) : ERR_SYSTEM;

	for (int c = 0; c < graph->channel_count && !e; c++)
		e = add_channel(node, topo, graph, c);
	return e;
}

enum err graph_file_write(
	const char *path, const struct topo *topo, const struct graph_set *set)
{
	/* The order of NCCL's dumps. */
	static const enum graph_id order[] = {GRAPH_RING, GRAPH_TREE,
		GRAPH_COLLNET_DIRECT, GRAPH_COLLNET_CHAIN, GRAPH_NVLS};
	struct xml_node *tree;
	enum err e = check_size(topo);

	if (e)
		return e;
	tree = xml_add(NULL, "graphs");
	e = tree ? xml_attr_set(tree, "version", "1") : ERR_SYSTEM;
	for (int i = 0; i < GRAPH_COUNT && !e; i++)
		e = add_graph(tree, topo, &set->graphs[order[i]]);
	if (!e)
		e = xml_write(path, tree);
	xml_free(tree);
	return e;
}
