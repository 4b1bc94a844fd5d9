/*
 * info_json.h - what `weft info` says of this machine, for programs.
 */
#ifndef TOOLS_WEFT_INFO_JSON_H
#define TOOLS_WEFT_INFO_JSON_H

#include <jansson.h>

#include "common/machine.h"

struct hwloc_topology;

/* The caller's reference; NULL without memory. CPUs are lists such as "0-3,8". */
json_t *info_json(const struct machine *machine, struct hwloc_topology *topology);

#endif
