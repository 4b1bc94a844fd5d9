/*
 * k8s_args.h - the command line of `weft k8s`.
 */
#ifndef TOOLS_WEFT_K8S_K8S_ARGS_H
#define TOOLS_WEFT_K8S_K8S_ARGS_H

#include <stdio.h>

#include "weft/k8s/check.h"
#include "weft/k8s/write.h"

enum k8s_verb { K8S_CHECK, K8S_NEW, K8S_RULES };

struct k8s_args {
	enum k8s_verb verb;
	struct check_options check;
	struct write_args write;
	bool fix, diff, in_place, json, sarif, quiet;
	char **names; /* borrowed from argv */
	int name_count;
};

/* False after a sentence on stderr. */
bool k8s_args_parse(struct k8s_args *args, int argc, char **argv);

void k8s_args_usage(FILE *file);

#endif
