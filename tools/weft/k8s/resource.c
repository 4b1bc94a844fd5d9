#include "weft/k8s/resource.h"

#include <stdio.h>
#include <string.h>

#include "base/edits.h"

static const char gpu[] = "nvidia.com/gpu", efa[] = "vpc.amazonaws.com/efa";

static bool begins(const char *text, const char *with)
{
	return !strncmp(text, with, strlen(with));
}

/* Names that other device plugins of the same vendors offer; any after nvidia.com/ may be
 * one of the network operator's, which users choose. */
static bool is_other(const char *name)
{
	return begins(name, "nvidia.com/mig-") || begins(name, "nvidia.com/gpu.") ||
	       !strcmp(name, "vpc.amazonaws.com/pod-eni") ||
	       !strcmp(name, "vpc.amazonaws.com/PrivateIPv4Address") ||
	       begins(name, "vpc.amazonaws.com/CIDR");
}

enum resource_kind resource_kind(const char *name, const char **right)
{
	*right = NULL;
	if (!strcmp(name, gpu))
		return RESOURCE_GPU;
	if (!strcmp(name, efa))
		return RESOURCE_EFA;
	if (is_other(name))
		return RESOURCE_OTHER;
	if (!strcasecmp(name, "nvidia.com") || !strcasecmp(name, "nvidia.com/") ||
		!strcmp(name, "nvidia/gpu") || edits_between(name, gpu) <= 2) {
		*right = gpu;
		return RESOURCE_GPU;
	}
	if (begins(name, "vpc.amazonaws.com") || !strcmp(name, "amazonaws.com/efa") ||
		!strcmp(name, "aws.amazon.com/efa") || edits_between(name, efa) <= 2) {
		*right = efa;
		return RESOURCE_EFA;
	}
	if (begins(name, "rdma/") || strstr(name, "rdma") || strstr(name, "hostdev") ||
		strstr(name, "sriov") || strstr(name, "roce") ||
		strstr(name, "infiniband"))
		return RESOURCE_RDMA;
	return RESOURCE_OTHER;
}

static int64_t count_in(const struct node *map, enum resource_kind kind)
{
	int64_t total = 0, value;
	const char *right;

	for (uint32_t i = 0; map && map->kind == NODE_MAP && i < map->count; i++)
		if (map->keys[i]->kind == NODE_SCALAR &&
			resource_kind(map->keys[i]->text, &right) == kind &&
			node_int(map->items[i], &value) && value > 0)
			total += value;
	return total;
}

int64_t resource_count(const struct node *resources, enum resource_kind kind)
{
	int64_t limits = count_in(node_get(resources, "limits"), kind);

	return limits ? limits : count_in(node_get(resources, "requests"), kind);
}
