/*
 * search.h - what the files of the search share: one search in progress.
 *
 * The answers must be NCCL's to the last bit, so all bandwidths are float and are taken
 * and given back in the order NCCL does, and steps are counted where NCCL counts them.
 */
#ifndef GRAPH_SEARCH_H
#define GRAPH_SEARCH_H

#include "graph/graph.h"

/* `steps` once a graph with all channels asked for is found: look no further. */
enum { STEPS_PERFECT = -1 };

/* The nodes of one kind in the order in which they are tried. */
struct order {
	uint32_t count;
	uint16_t *list; /* indices */
};

struct search {
	struct topo *topo;
	const struct search_options *options;
	int gpu_count;
	int sm;				      /* of the oldest GPU */
	struct topo_node *dev[TOPO_GPUS_MAX]; /* the device of each GPU; NULL none */
	bool is_old[TOPO_NODES_MAX];	      /* by device: before sm 80 */
	bool has_reverse; /* some link costs its reverse: old GPUs, POWER CPUs */
	struct graph *best, trial;
	int *steps; /* left to the current try; 0 or less: none */
	/* The GPUs of the trial's channels by index, as trial.intra has them by rank. */
	uint8_t seat[GRAPH_CHANNELS_MAX][TOPO_GPUS_MAX];
	uint8_t *candidates; /* a list for each channel and seat; see candidates_at() */
	struct order near[TOPO_GPUS_MAX]; /* other GPUs seen from one, nearest first */
	struct order wanted[TOPO_GPUS_MAX + 1]; /* NETs each GPU prefers; last: of all */
	struct order nets[TOPO_GPUS_MAX + 1];	/* those, then others up to nets_type */
	int nets_type[TOPO_GPUS_MAX + 1]; /* what `nets` was made for; -2: not yet */
	bool has_nets;	     /* false: some GPU has no NET, and no way out can be found */
	struct order *doors; /* by NET: the GPUs nearest to it */
};

/* search_order.c: everything about order that does not change while searching. */
enum err order_prepare(struct search *search);
void order_free(struct search *search);

/* The NETs to try for a way in (`gpu` is gpu_count) or out of a GPU, best first. */
const struct order *order_nets(struct search *search, int gpu, int type);

/* What is known of the NET when a next GPU is chosen. */
enum net_hint {
	NET_BEHIND,  /* none, or it was passed already */
	NET_NEXT,    /* the next GPU sends to it */
	NET_FARTHER, /* a later GPU does */
};

/* GPUs to try after `gpu`, which sits at `step` of the channel in work. The list stays
 * valid until the same step is asked for again. */
struct order_gpus {
	uint32_t count;
	const uint8_t *list;
};
struct order_gpus order_gpus(
	struct search *search, const struct topo_node *gpu, int step, enum net_hint hint);

/* search_path.c: take `share` of the trial's speed from every link between two nodes, or
 * give it back when `share` is negative. Nothing is taken when the path is of a worse
 * type than the trial allows, or when a link has too little left: `fits` says so. */
enum err path_take(struct search *search, const struct topo_node *from,
	const struct topo_node *to, float share, bool *fits);
enum err path_give(struct search *search, const struct topo_node *from,
	const struct topo_node *to, float share);

/* The bandwidth a NET has left, pooled by card and port. */
void pool_take(struct topo *topo, const struct topo_node *net, int bw);

/* search_walk.c: try all ways with the trial's speeds and types until the steps are used
 * up; what is better than `best` is kept there. */
enum err walk(struct search *search);

#endif
