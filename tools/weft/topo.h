/*
 * topo.h - the parts of `weft topo` that print, and what it is asked.
 */
#ifndef TOOLS_WEFT_TOPO_H
#define TOOLS_WEFT_TOPO_H

#include <stdio.h>

#include "weft/topo_view.h"

struct topo_args {
	const char *machine; /* borrowed from argv; NULL: this one */
	const char *explain[2], *svg, *xml;
	bool paths, json, plain, wide, no_nvml_p2p, list;
	uint32_t nodes; /* in the picture; 0: not said */
	enum net_choice net;
};

/* argv[0] is skipped. False with a sentence on stderr. */
bool topo_args_parse(struct topo_args *args, int argc, char **argv);

/* nvidia-smi's table on standard output. Into a pipe its very bytes, up to 200 columns;
 * a table that is wider than that or than the terminal gets one column for NICs that
 * stand alike, and is folded to the terminal. `args` says --wide and --plain. */
enum err topo_matrix(const struct matrix *matrix, const struct topo_args *args);

/* NCCL's path types, bandwidths and hops as tables, then the lines NCCL logs. */
void topo_tables(FILE *file, const struct topo_view *view);

/* Everything there is to know, as one JSON object. */
enum err topo_json(FILE *file, const struct topo_view *view);

#endif
