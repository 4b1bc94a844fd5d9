/*
 * reach.h - what NCCL will see of the pods that a manifest places: how every pair of
 * ranks reaches each other, and what a cut of machines into pods costs.
 */
#ifndef TOOLS_WEFT_K8S_REACH_H
#define TOOLS_WEFT_K8S_REACH_H

#include <jansson.h>

#include "weft/k8s/check.h"

/* For every job of the file whose machine is known; nothing for others. */
void reach_text(const struct check_options *options, const struct check_result *result);

/* One object for each such job, appended to `list`. */
void reach_json(const struct check_options *options, const struct check_result *result,
	json_t *list);

#endif
