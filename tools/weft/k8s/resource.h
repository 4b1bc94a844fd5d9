/*
 * resource.h - the devices a container asks for, by the names of their resources, also by
 * names that are nearly right: the rules need to know what was meant.
 */
#ifndef TOOLS_WEFT_K8S_RESOURCE_H
#define TOOLS_WEFT_K8S_RESOURCE_H

#include "weft/k8s/doc.h"

enum resource_kind { RESOURCE_OTHER, RESOURCE_GPU, RESOURCE_EFA, RESOURCE_RDMA };

/* What a name means, and the name it should have: `right` is NULL where it has it. */
enum resource_kind resource_kind(const char *name, const char **right);

/* Of one kind, from limits, else requests; 0 for none or no whole number. */
int64_t resource_count(const struct node *resources, enum resource_kind kind);

#endif
