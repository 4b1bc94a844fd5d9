/*
 * print.h - graphs and channels as the lines NCCL logs for them.
 *
 * Every printer hands whole lines, without prefix and line end, to a sink: the library's
 * is its log, the tools' is standard output. The lines are NCCL 2.30's, so what reads its
 * logs reads ours.
 */
#ifndef GRAPH_PRINT_H
#define GRAPH_PRINT_H

#include "graph/cluster.h"

enum {
	PRINT_LINE_MAX = 6144,	  /* bytes of a line, end included */
	PRINT_RING_LINE_MAX = 128 /* of a ring's; a longer one ends in "..." */
};

struct print_sink {
	void (*line)(void *context, const char *line);
	void *context; /* borrowed */
};

/* "Pattern 4, crossNic 0, nChannels 2, ..." and a line per channel. */
void print_graph(const struct topo *topo, const struct graph *graph,
	const struct print_sink *sink);

/* "Channel 00/16 : 0 1 2 ..." for every channel: what rank 0 logs. */
void print_rings(const struct cluster *cluster, const struct print_sink *sink);

/* "Trees [0] 1/-1/-1->0->-1 [1] ..." of one rank. */
void print_trees(const struct cluster *cluster, int rank, const struct print_sink *sink);

/* "Ring 00 : 3 -> 0 -> 1" and "Tree 0 : -1 -> 0 -> 1/8/-1" per channel of one rank. */
void print_links(const struct cluster *cluster, int rank, const struct print_sink *sink);

/* "NVLS Head  0:  0  8 ..." for every head, and the NVLS trees of one rank; nothing
 * without NVLS or on a single node. */
void print_nvls(const struct cluster *cluster, int rank, const struct print_sink *sink);

/* "16 coll channels, 0 collnet channels, ..." */
void print_counts(const struct cluster *cluster, const struct print_sink *sink);

#endif
