/*
 * graph.h - which way to go inside one domain: rings, trees, NVLS and CollNet graphs.
 *
 * A graph is a few channels; each lists the domain's GPUs (as ranks) in order and, where
 * other domains take part, the NICs by which data comes in and goes out.
 */
#ifndef GRAPH_GRAPH_H
#define GRAPH_GRAPH_H

#include "topo/topo.h"

enum { GRAPH_CHANNELS_MAX = 64 };

/* The numbers are NCCL's ids and pattern codes. */
enum graph_id {
	GRAPH_RING,
	GRAPH_TREE,
	GRAPH_COLLNET_CHAIN,
	GRAPH_NVLS,
	GRAPH_COLLNET_DIRECT,
	GRAPH_COUNT
};

enum graph_pattern {
	PATTERN_BALANCED_TREE = 1,
	PATTERN_SPLIT_TREE = 2,
	PATTERN_TREE = 3,
	PATTERN_RING = 4,
	PATTERN_NVLS = 5,
	PATTERN_COLLNET_DIRECT = 6
};

struct graph {
	enum graph_id id;
	enum graph_pattern pattern;
	bool collnet;
	int cross_nic;
	int min_channels, max_channels;
	int channel_count;
	float bw_intra, bw_inter, latency_inter;
	enum path_type type_intra, type_inter;
	bool same_channels;
	int hop_count;
	int gpu_count; /* per channel; NVLS uses only the first, the head */
	int intra[GRAPH_CHANNELS_MAX][TOPO_GPUS_MAX]; /* ranks of the domain */
	uint64_t inter[GRAPH_CHANNELS_MAX][2];	      /* NET ids: in, out */
};

struct search_options {
	bool unbounded;	   /* no step budget: what `weft graph --better` asks for */
	bool no_multicast; /* no GPU does it: the NVLS graph stays as it is asked for */
};

/* Search one graph. `graph` carries id, pattern, collnet, cross_nic and the channel
 * bounds in, the result out. Always finds something: in the worst case one channel in
 * rank order, at 0.1 GB/s. */
enum err graph_search(
	struct topo *topo, const struct search_options *options, struct graph *graph);

/* All graphs of a domain in NCCL's order, each with its bounds taken from the ones
 * before it. */
struct graph_set {
	struct graph graphs[GRAPH_COUNT];
};
enum err graph_set_search(
	struct topo *topo, const struct search_options *options, struct graph_set *set);

const char *pattern_name(enum graph_pattern pattern);

/* file.c: NCCL_GRAPH_FILE and NCCL_GRAPH_DUMP_FILE. A graph that the file has with one
 * channel or more replaces the search for it; `has` tells which, and only those of `set`
 * are written to. ERR_USAGE, naming file and line, when a graph does not fit the topology
 * (which is the trimmed one, as for the search). */
enum err graph_file_read(const char *path, const struct topo *topo, struct graph_set *set,
	bool has[GRAPH_COUNT]);
enum err graph_file_parse(const struct xml_node *tree, const struct topo *topo,
	struct graph_set *set, bool has[GRAPH_COUNT]);
enum err graph_file_write(
	const char *path, const struct topo *topo, const struct graph_set *set);

#endif
