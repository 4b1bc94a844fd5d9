#include "topo/vnic.h"

#include <stdlib.h>
#include <string.h>

#include "topo/topo.h"

/* As many physical devices as a plugin may put into one. */
enum { MEMBERS_MAX = 8 };
/* Mb/s; more is a mistake. */
enum { SPEED_MAX = 1 << 30 };

struct physical {
	struct xml_node *net;
	int dev;
	bool placed;
};

static int by_dev(const void *a, const void *b)
{
	const struct physical *x = a, *y = b;

	return (x->dev > y->dev) - (x->dev < y->dev);
}

static bool is_mlx5(const struct xml_node *net)
{
	const char *name = xml_attr(net, "name");

	return name && !strncmp(name, "mlx5", 4);
}

/* Are two NETs ports of one NIC: of one PCI function, or of functions that differ only in
 * their last digit? */
static bool is_one_nic(const struct xml_node *a, const struct xml_node *b)
{
	const struct xml_node *pci_a, *pci_b;
	const char *bus_a, *bus_b;

	if (a->parent == b->parent)
		return true;
	pci_a = a->parent ? a->parent->parent : NULL;
	pci_b = b->parent ? b->parent->parent : NULL;
	bus_a = pci_a ? xml_attr(pci_a, "busid") : NULL;
	bus_b = pci_b ? xml_attr(pci_b, "busid") : NULL;
	return bus_a && bus_b &&
	       topo_busid_parse(bus_a) >> 4 == topo_busid_parse(bus_b) >> 4;
}

/* A port that was joined is no NET any more; GPU-initiated traffic still uses it alone.
 */
static enum err retire(struct xml_node *net)
{
	if (xml_int(net, "gin", 0))
		return xml_attr_set(net, "net", "0");
	xml_free(net);
	return OK;
}

/* One device instead of `count`, where the first of them is. */
static enum err join(struct physical **members, uint32_t count, int dev)
{
	struct xml_node *first = members[0]->net;
	struct xml_node *net = xml_copy(first->parent, first);
	char name[XML_VALUE_MAX] = "";
	size_t used = 0;
	int64_t speed = 0, one_speed;
	enum err e;

	if (!net)
		return ERR_SYSTEM;
	for (uint32_t i = 0; i < count; i++) {
		const char *one = xml_attr(members[i]->net, "name");
		int n = snprintf(name + used, sizeof(name) - used, "%s%s", i ? "+" : "",
			one ? one : "");

		if (n > 0 && used + (size_t)n < sizeof(name))
			used += (size_t)n;
		one_speed = xml_int(members[i]->net, "speed", 0);
		if (one_speed > 0 && one_speed < SPEED_MAX)
			speed += one_speed;
	}
	e = xml_attr_set(net, "name", name);
	if (!e)
		e = xml_attr_setf(net, "dev", "%d", dev);
	if (!e)
		e = xml_attr_setf(net, "speed", "%ld", (long)speed);
	xml_attr_remove(net, "gin");
	for (uint32_t i = 0; i < count && !e; i++)
		e = retire(members[i]->net);
	return e;
}

static enum err merge_all(struct physical *all, uint32_t count)
{
	int next = (int)count;

	for (uint32_t i = 0; i < count; i++) {
		struct physical *members[MEMBERS_MAX] = {&all[i]};
		uint32_t member_count = 1;
		enum err e;

		if (all[i].placed || !is_mlx5(all[i].net))
			continue;
		for (uint32_t j = i + 1; j < count && member_count < MEMBERS_MAX; j++)
			if (!all[j].placed && is_mlx5(all[j].net) &&
				is_one_nic(all[i].net, all[j].net))
				members[member_count++] = &all[j];
		if (member_count < 2)
			continue;
		for (uint32_t j = 0; j < member_count; j++)
			members[j]->placed = true;
		e = join(members, member_count, next++);
		if (e)
			return e;
	}
	return OK;
}

enum err vnic_merge(struct xml_node *tree, int level)
{
	struct physical *all;
	struct xml_node *net = NULL;
	uint32_t count = 0;
	enum err e;

	if (level < PATH_PORT)
		return OK;
	all = calloc(TOPO_NODES_MAX, sizeof(*all));
	if (!all)
		return err_set(ERR_SYSTEM, "no memory to join NICs");
	while (count < TOPO_NODES_MAX && (net = xml_find(tree, "net", net)))
		if (xml_int(net, "dev", -1) >= 0)
			all[count++] = (struct physical){
				.net = net, .dev = (int)xml_int(net, "dev", -1)};
	qsort(all, count, sizeof(*all), by_dev);
	e = merge_all(all, count);
	free(all);
	return e;
}
