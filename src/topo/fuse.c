#include "topo/fuse.h"

#include <stdlib.h>
#include <string.h>

#include "topo/topo.h"
#include "topo/vnic.h"

/* Depth first: does this GPU exist? The order is the file's. */
struct xml_node *fuse_gpu(const struct xml_node *tree, int dev)
{
	struct xml_node *gpu = NULL;

	while ((gpu = xml_find((struct xml_node *)tree, "gpu", gpu)))
		if (xml_int(gpu, "dev", -1) == dev)
			return gpu;
	return NULL;
}

static int by_value(const void *a, const void *b)
{
	const int *x = a, *y = b;

	return (*x > *y) - (*x < *y);
}

uint32_t fuse_devs(const struct xml_node *tree, int *devs, uint32_t room)
{
	struct xml_node *gpu = NULL;
	uint32_t count = 0;

	while (count < room && (gpu = xml_find((struct xml_node *)tree, "gpu", gpu)))
		if (xml_int(gpu, "dev", -1) >= 0)
			devs[count++] = (int)xml_int(gpu, "dev", -1);
	qsort(devs, count, sizeof(*devs), by_value);
	return count;
}

/* A rank looks at the CPU above its own GPU and fills in what the file does not say. No
 * other CPU is looked at, so one that lacks something stays different from this one. */
static enum err cpu_complete(struct xml_node *gpu)
{
	static const char *const known[] = {"vendor", "familyid", "modelid"};
	struct xml_node *cpu = gpu;

	while (cpu && strcmp(cpu->name, "cpu"))
		cpu = cpu->parent;
	for (int i = 0; cpu && i < 3; i++) {
		enum err e = xml_attr_default(cpu, known[i], "0");

		if (e)
			return e;
	}
	return OK;
}

struct numbered {
	struct xml_node *net;
	int64_t dev;
	uint32_t order;
};

static int by_dev(const void *a, const void *b)
{
	const struct numbered *x = a, *y = b;

	if (x->dev != y->dev)
		return x->dev < y->dev ? -1 : 1;
	return x->order < y->order ? -1 : 1;
}

/* A plugin counts its devices from 0 without gaps; a file need not. */
static enum err nets_number(struct xml_node *tree)
{
	struct numbered *all = calloc(TOPO_NODES_MAX, sizeof(*all));
	struct xml_node *net = NULL;
	uint32_t count = 0;
	enum err e = OK;

	if (!all)
		return err_set(ERR_SYSTEM, "no memory for a topology");
	while (count < TOPO_NODES_MAX && (net = xml_find(tree, "net", net))) {
		int64_t dev = xml_int(net, "dev", -1);

		if (dev >= 0) {
			all[count] = (struct numbered){net, dev, count};
			count++;
		}
	}
	qsort(all, count, sizeof(*all), by_dev);
	for (uint32_t i = 0; i < count && !e; i++)
		if (all[i].dev != i)
			e = xml_attr_setf(all[i].net, "dev", "%u", i);
	free(all);
	return e;
}

static bool is_seen(const struct fuse_host *host, uint32_t place)
{
	for (uint32_t i = 0; i < host->net_count; i++)
		if (host->nets[i] == place)
			return true;
	return !host->nets;
}

/* What a pod was not given it does not see. */
static void nets_hide(struct xml_node *tree, const struct fuse_host *host)
{
	struct xml_node *hidden[TOPO_NODES_MAX], *net = NULL;
	uint32_t count = 0;

	for (uint32_t place = 0; (net = xml_find(tree, "net", net)); place++)
		if (!is_seen(host, place) && count < TOPO_NODES_MAX)
			hidden[count++] = net;
	while (count)
		xml_free(hidden[--count]);
}

/* NICs of equal hosts are not the same NICs. */
static enum err nets_prepare(
	struct xml_node *tree, const struct fuse_args *args, uint32_t host)
{
	struct xml_node *net = NULL;
	enum err e = OK;

	while (!e && (net = xml_find(tree, "net", net))) {
		uint64_t guid = xml_hex(net, "guid", 0);

		net->keep = net->keep || xml_attr(net, "dev");
		if (host && guid)
			e = xml_attr_setf(net, "guid", "0x%lx",
				(unsigned long)(guid + ((uint64_t)host << 40)));
		if (!e && args->collnet)
			e = xml_attr_set(net, "coll", "1");
	}
	return e;
}

/* Keep what is marked, what is above it, and what hangs on it. */
static bool trim(struct xml_node *node)
{
	bool keep = node->keep;

	if (keep)
		return true;
	for (uint32_t i = node->sub_count; i-- > 0;)
		keep = trim(node->subs[i]) || keep;
	if (!keep && (!strcmp(node->name, "pci") || !strcmp(node->name, "cpu") ||
			     !strcmp(node->name, "net")))
		xml_free(node);
	return keep;
}

/* The host's tree as this rank passes it on. */
static enum err rank_tree(const struct fuse_args *args, uint32_t host, int dev, int rank,
	struct xml_node **made)
{
	struct xml_node *tree = xml_copy(NULL, args->hosts[host].tree), *gpu = NULL;
	struct xml_node *mine;
	enum err e = OK;

	if (!tree)
		return ERR_SYSTEM;
	while ((gpu = xml_find(tree, "gpu", gpu)))
		xml_attr_remove(gpu, "rank");
	for (uint32_t i = 0; i < tree->sub_count && !e; i++)
		if (!strcmp(tree->subs[i]->name, "cpu"))
			e = xml_attr_setf(tree->subs[i], "host_hash", "0x%lx",
				(unsigned long)args->hosts[host].host_hash);
	mine = fuse_gpu(tree, dev);
	if (!e && !mine)
		e = err_set(ERR_USAGE, "the topology has no GPU with dev %d", dev);
	if (!e)
		e = xml_attr_setf(mine, "rank", "%d", rank);
	if (!e)
		e = cpu_complete(mine);
	nets_hide(tree, &args->hosts[host]);
	if (!e)
		e = nets_number(tree);
	if (!e && args->merge_nics)
		e = vnic_merge(tree, args->merge_level);
	if (!e)
		e = nets_prepare(tree, args, host);
	if (e) {
		xml_free(tree);
		return e;
	}
	mine->keep = true;
	for (uint32_t i = tree->sub_count; i-- > 0;)
		trim(tree->subs[i]);
	*made = tree;
	return OK;
}

/* Every rank's tree is compared with what was laid before it, child by child: large files
 * would take minutes. NCCL stops at 256. */
enum { ELEMENTS_MAX = 4096 };

static uint32_t count_elements(const struct xml_node *node)
{
	uint32_t count = 1;

	for (uint32_t i = 0; i < node->sub_count; i++)
		count += count_elements(node->subs[i]);
	return count;
}

static enum err check_size(const struct xml_node *tree)
{
	uint32_t count = count_elements(tree);

	if (count <= ELEMENTS_MAX)
		return OK;
	return err_set(ERR_USAGE,
		"a topology of %u elements; at most %d can be described: leave out what "
		"no "
		"GPU or NIC needs",
		count, ELEMENTS_MAX);
}

/* Lay `from` over `onto`: equal nodes become one, the others are added. */
static enum err overlay(struct xml_node *onto, const struct xml_node *from)
{
	for (uint32_t i = 0; i < from->sub_count; i++) {
		const struct xml_node *sub = from->subs[i];
		uint32_t at = 0;
		enum err e = OK;

		while (at < onto->sub_count && !xml_same(onto->subs[at], sub))
			at++;
		if (at < onto->sub_count)
			e = overlay(onto->subs[at], sub);
		else if (!xml_copy(onto, sub))
			e = ERR_SYSTEM;
		if (e)
			return e;
	}
	return OK;
}

enum err fuse_domain(const struct fuse_args *args, struct xml_node **tree)
{
	struct xml_node *fused = NULL;
	int rank = 0;
	enum err e = OK;

	for (uint32_t h = 0; h < args->host_count && !e; h++)
		e = check_size(args->hosts[h].tree);
	for (uint32_t h = 0; h < args->host_count && !e; h++)
		for (uint32_t i = 0; i < args->hosts[h].dev_count && !e; i++) {
			struct xml_node *one;

			e = rank_tree(args, h, args->hosts[h].devs[i], rank++, &one);
			if (e)
				break;
			if (!fused) {
				fused = one;
				continue;
			}
			e = overlay(fused, one);
			xml_free(one);
		}
	if (!e && !fused)
		e = err_set(ERR_USAGE, "no GPU takes part");
	if (e) {
		xml_free(fused);
		return e;
	}
	*tree = fused;
	return OK;
}
