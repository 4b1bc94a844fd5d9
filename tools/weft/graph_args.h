/*
 * graph_args.h - what `weft graph` is asked: machines, how many, under which rules, and
 * in which form the answer comes.
 */
#ifndef TOOLS_WEFT_GRAPH_ARGS_H
#define TOOLS_WEFT_GRAPH_ARGS_H

#include <stdbool.h>
#include <stdint.h>

enum { GRAPH_HOSTS_MAX = 65536 };

struct graph_args {
	char **names; /* borrowed from argv */
	int name_count;
	uint32_t hosts;	      /* 0: one of each name */
	uint32_t mnnvl_hosts; /* per NVLink domain; 0 none */
	uint32_t pods, gpus_per_pod;
	uint32_t min_ctas, max_ctas; /* 0: NCCL's own */
	int64_t rank; /* whose trees are shown; -1: rank 0's, or all of few */
	bool json, better, collnet, no_nic_fusion, no_nvml_p2p;
	const char *dump, *graph; /* borrowed; NULL none */
};

/* argv[0] is skipped. False with a sentence on stderr. */
bool graph_args_parse(struct graph_args *args, int argc, char **argv);

#endif
