/*
 * info_json.h - what `weft info` says of this machine, for programs.
 */
#ifndef TOOLS_WEFT_INFO_JSON_H
#define TOOLS_WEFT_INFO_JSON_H

#include <hwloc.h>
#include <jansson.h>

#include "common/machine.h"

/* The caller's reference; NULL without memory. CPUs are lists such as "0-3,8". */
json_t *info_json(const struct machine *machine, hwloc_topology_t topology);

#endif
