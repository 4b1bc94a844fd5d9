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
	bool paths, json, plain, no_nvml_p2p, list;
};

/* argv[0] is skipped. False with a sentence on stderr. */
bool topo_args_parse(struct topo_args *args, int argc, char **argv);

/* NCCL's path types, bandwidths and hops as tables, then the lines NCCL logs. */
void topo_tables(FILE *file, const struct topo_view *view);

/* Everything there is to know, as one JSON object. */
enum err topo_json(FILE *file, const struct topo_view *view);

#endif
