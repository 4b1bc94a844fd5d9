#include "topo/vnic.h"

#include <stdlib.h>
#include <string.h>

#include "topo/topo.h"

/* As many physical devices as a plugin may put into one. */
enum { MEMBERS_MAX = 8 };
/* Mb/s and PCI lanes; more is a mistake. */
enum { SPEED_MAX = 1 << 30, LANES_MAX = 1024 };

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

/* The NETs that become one, in the order of the plugin. */
struct group {
	struct xml_node *nets[MEMBERS_MAX];
	uint32_t count;
};

static uint32_t depth_of(const struct xml_node *node)
{
	uint32_t depth = 0;

	for (; node->parent; node = node->parent)
		depth++;
	return depth;
}

/* What is above a NET at this depth, itself included; NULL below it. */
static struct xml_node *above(struct xml_node *net, uint32_t depth)
{
	uint32_t own = depth_of(net);

	if (depth > own)
		return NULL;
	for (; own > depth; own--)
		net = net->parent;
	return net;
}

/* The PCI function of a NET, NULL when it hangs on a CPU. */
static struct xml_node *function_of(const struct xml_node *net)
{
	struct xml_node *pci = net->parent ? net->parent->parent : NULL;

	return pci && !strcmp(pci->name, "pci") ? pci : NULL;
}

/* Functions of one device have bus ids that differ in the last digit only. NCCL asks
 * this of what stands where the ways part, be it a switch. */
static bool is_one_device(const struct xml_node *a, const struct xml_node *b)
{
	const char *x = xml_attr(a, "busid"), *y = b ? xml_attr(b, "busid") : NULL;

	return x && y && x[0] && strlen(x) == strlen(y) && !strncmp(x, y, strlen(x) - 1);
}

static bool are_one_device(const struct group *group, uint32_t depth)
{
	const struct xml_node *first = above(group->nets[0], depth);

	for (uint32_t i = 1; first && i < group->count; i++)
		if (!is_one_device(first, above(group->nets[i], depth)))
			return false;
	return first;
}

/* The lowest that all members hang on. */
static struct xml_node *common_of(const struct group *group)
{
	struct xml_node *common = group->nets[0];

	for (uint32_t i = 1; i < group->count; i++) {
		struct xml_node *other = group->nets[i];
		uint32_t a = depth_of(common), b = depth_of(other);

		for (; a > b; a--)
			common = common->parent;
		for (; b > a; b--)
			other = other->parent;
		while (common != other) {
			common = common->parent;
			other = other->parent;
		}
	}
	return common;
}

static bool is_switch_of(const struct xml_node *common, const struct group *group)
{
	for (uint32_t i = 0; i < group->count; i++) {
		const struct xml_node *pci = function_of(group->nets[i]);

		if (pci && pci->parent != common)
			return false;
	}
	return xml_attr(common, "busid") != NULL;
}

/* How far NETs are apart in the tree, and what they all hang on. */
static enum path_type distance(const struct group *group, struct xml_node **common)
{
	*common = common_of(group);
	if (are_one_device(group, depth_of(*common) + 1))
		return (enum path_type)PATH_PORT;
	if (!strcmp((*common)->name, "system"))
		return PATH_SYS;
	if (!strcmp((*common)->name, "cpu"))
		return PATH_PHB;
	if (!strcmp((*common)->name, "nic") || !strcmp((*common)->name, "net"))
		return (enum path_type)PATH_PORT;
	return is_switch_of(*common, group) ? PATH_PIX : PATH_PXB;
}

static bool is_member(const struct group *group, const struct xml_node *node)
{
	for (uint32_t i = 0; i < group->count; i++)
		if (group->nets[i] == node)
			return true;
	return false;
}

/* The lanes that lead from here down to the members; -1 when none is below. */
static int64_t lanes_below(const struct xml_node *node, const struct group *group)
{
	int64_t own = strcmp(node->name, "pci") ? 0 : xml_int(node, "link_width", 0);
	int64_t sum = 0;
	bool found = is_member(group, node);

	for (uint32_t i = 0; i < node->sub_count; i++) {
		int64_t lanes = lanes_below(node->subs[i], group);

		if (lanes < 0)
			continue;
		found = true;
		if (lanes <= LANES_MAX)
			sum += lanes;
	}
	if (!found)
		return -1;
	if (!sum)
		return own > 0 ? own : 0;
	return own > 0 && own < sum ? own : sum;
}

static bool has_busid(struct xml_node *tree, const char *busid)
{
	struct xml_node *pci = NULL;

	while ((pci = xml_find(tree, "pci", pci))) {
		const char *has = xml_attr(pci, "busid");

		if (has && !strcmp(has, busid))
			return true;
	}
	return false;
}

/* A function that does not exist, beside the first member's and like it. */
static enum err function_make(
	struct xml_node *tree, const struct xml_node *like, struct xml_node **parent)
{
	const char *old = xml_attr(like, "busid");
	uint64_t id = old ? topo_busid_parse(old) : 0;
	struct xml_node *made = xml_add(*parent, "pci");
	char busid[20];
	enum err e = OK;

	if (!made)
		return ERR_SYSTEM;
	do
		topo_busid_print(++id, busid);
	while (has_busid(tree, busid));
	for (uint32_t i = 0; i < like->attr_count && !e; i++)
		e = xml_attr_set(made, like->attrs[i].name, like->attrs[i].value);
	*parent = made;
	return e ? e : xml_attr_set(made, "busid", busid);
}

/* What the joined NIC hangs on: the common function, or a made one below the common
 * switch or CPU. There the lanes of all members count together. */
static enum err place_find(
	struct xml_node *tree, const struct group *group, struct xml_node **place)
{
	struct xml_node *common, *top;
	const struct xml_node *first = function_of(group->nets[0]);
	enum path_type type = distance(group, &common);
	const char *class;
	int64_t lanes = 0;
	enum err e = OK;

	for (top = common; top->parent && strcmp(top->name, "pci");)
		top = top->parent;
	top = top->parent ? top : common; /* no switch above */
	*place = top;
	if (type == PATH_SYS)
		return err_set(ERR_USAGE,
			"NCCL_NET_MERGE_LEVEL joins NICs of different NUMA nodes, which "
			"NCCL refuses; use PHB or less");
	if (type == PATH_PIX || type == PATH_PXB || type == PATH_PHB)
		for (uint32_t i = 0; i < top->sub_count; i++) {
			int64_t more = lanes_below(top->subs[i], group);

			lanes += more > 0 && more <= LANES_MAX ? more : 0;
		}
	class = xml_attr(top, "class");
	if (!strcmp(top->name, "cpu") || (class && !strcmp(class, "0x060400"))) {
		if (!first)
			return err_set(ERR_USAGE,
				"NCCL_NET_MERGE_LEVEL joins NICs that have no PCI "
				"function, which NCCL refuses; use PORT");
		e = function_make(tree, first, place);
	}
	for (struct xml_node *node = *place; lanes && !e; node = node->parent) {
		if (!strcmp(node->name, "pci"))
			e = xml_attr_setf(node, "link_width", "%ld", (long)lanes);
		if (node == top)
			break;
	}
	return e;
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

/* The members' names and speeds together; the rest is the first one's. */
static enum err describe(const struct group *group, int dev, struct xml_node *net)
{
	char name[XML_VALUE_MAX] = "";
	size_t used = 0;
	int64_t speed = 0;
	enum err e;

	for (uint32_t i = 0; i < group->count; i++) {
		const char *one = xml_attr(group->nets[i], "name");
		int64_t one_speed = xml_int(group->nets[i], "speed", 0);
		int n = snprintf(name + used, sizeof(name) - used, "%s%s", i ? "+" : "",
			one ? one : "");

		if (n > 0 && used + (size_t)n < sizeof(name))
			used += (size_t)n;
		if (one_speed > 0 && one_speed < SPEED_MAX)
			speed += one_speed;
	}
	e = xml_attr_set(net, "name", name);
	if (!e)
		e = xml_attr_setf(net, "dev", "%d", dev);
	if (!e)
		e = xml_attr_setf(net, "speed", "%ld", (long)speed);
	xml_attr_remove(net, "gin");
	return e;
}

/* One device instead of several. */
static enum err join(struct xml_node *tree, const struct group *group, int dev)
{
	struct xml_node *place, *nic, *net;
	enum err e = place_find(tree, group, &place);

	if (e)
		return e;
	nic = xml_sub(place, "nic");
	if (!nic)
		nic = xml_add(place, "nic");
	net = nic ? xml_copy(nic, group->nets[0]) : NULL;
	if (!net)
		return ERR_SYSTEM;
	e = describe(group, dev, net);
	for (uint32_t i = 0; i < group->count && !e; i++)
		e = retire(group->nets[i]);
	return e;
}

/* May these two be one device? */
static bool is_near(struct xml_node *a, struct xml_node *b, int level)
{
	struct group pair = {{a, b}, 2};
	struct xml_node *common;

	return is_mlx5(b) && (int)distance(&pair, &common) <= level;
}

/* Groups are found before any is made: making one moves the tree under the others. */
static uint32_t groups_find(
	struct physical *all, uint32_t count, int level, struct group *groups)
{
	uint32_t found = 0;

	for (uint32_t i = 0; i < count; i++) {
		struct group *group = &groups[found];

		if (all[i].placed || !is_mlx5(all[i].net))
			continue;
		*group = (struct group){{all[i].net}, 1};
		for (uint32_t j = i + 1; j < count && group->count < MEMBERS_MAX; j++) {
			if (all[j].placed || !is_near(all[i].net, all[j].net, level))
				continue;
			all[j].placed = true;
			group->nets[group->count++] = all[j].net;
		}
		found += group->count > 1;
	}
	return found;
}

static enum err merge_all(
	struct xml_node *tree, struct physical *all, uint32_t count, int level)
{
	struct group *groups = calloc(count + 1, sizeof(*groups));
	uint32_t group_count;
	enum err e = OK;

	if (!groups)
		return err_set(ERR_SYSTEM, "no memory to join NICs");
	group_count = groups_find(all, count, level, groups);
	for (uint32_t i = 0; i < group_count && !e; i++)
		e = join(tree, &groups[i], (int)(count + i));
	free(groups);
	return e;
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
	e = merge_all(tree, all, count, level);
	free(all);
	return e;
}
