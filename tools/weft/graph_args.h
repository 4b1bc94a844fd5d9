/*
 * graph_args.h - what `weft graph` is asked: machines, and in which form the answer
 * comes.
 */
#ifndef TOOLS_WEFT_GRAPH_ARGS_H
#define TOOLS_WEFT_GRAPH_ARGS_H

#include "weft/machine_args.h"

struct graph_args {
	struct machine_args machines;
	uint32_t pods, gpus_per_pod;
	uint32_t nics_per_pod; /* 0: an equal share */
	int64_t rank;	       /* whose trees are shown; -1: rank 0's, or all of few */
	int64_t channel;       /* the one that is drawn; -1: a few */
	bool json, better;
	const char *dump, *graph, *svg; /* borrowed; NULL none */
};

/* argv[0] is skipped. False with a sentence on stderr. */
bool graph_args_parse(struct graph_args *args, int argc, char **argv);

#endif
