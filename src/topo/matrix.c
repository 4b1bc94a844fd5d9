/* What is where in the tree, and from that the words. Printing is in matrix_print.c. */
#include "topo/matrix.h"

#include <ctype.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>

#include "base/err.h"

enum { SKYLAKE_MODEL = 0x55, NO_DOMAIN = 0xffff, INTEL_FAMILY = 6 };

struct busid {
	unsigned domain, bus, device, function;
};

static bool busid_parse(const char *text, struct busid *id)
{
	char end;

	return text && sscanf(text, "%x:%x:%x.%x%c", &id->domain, &id->bus, &id->device,
			       &id->function, &end) == 4;
}

static bool node_is(const struct xml_node *node, const char *name)
{
	return node && !strcmp(node->name, name);
}

/* The nearest <pci> at or above a node; NULL when it is on no bus. */
static const struct xml_node *pci_above(const struct xml_node *node)
{
	while (node && !node_is(node, "pci"))
		node = node->parent;
	return node;
}

static const struct xml_node *cpu_above(const struct xml_node *node)
{
	while (node && !node_is(node, "cpu"))
		node = node->parent;
	return node;
}

static const struct xml_node *topmost_pci(const struct xml_node *pci)
{
	while (node_is(pci->parent, "pci"))
		pci = pci->parent;
	return pci;
}

static bool is_inside(const struct xml_node *node, const struct xml_node *ancestor)
{
	while (node && node != ancestor)
		node = node->parent;
	return node != NULL;
}

/* The buses a topmost branch takes: a switch has its own and those below. Buses invented
 * for switches that the guest cannot see (domain ffff) do not count. */
struct bus_range {
	unsigned domain, first, last;
	bool known;
};

static void range_add(struct bus_range *range, const struct xml_node *pci)
{
	struct busid id;

	if (!busid_parse(xml_attr(pci, "busid"), &id) || id.domain == NO_DOMAIN)
		return;
	if (!range->known) {
		*range = (struct bus_range){id.domain, id.bus, id.bus, true};
		return;
	}
	if (id.domain != range->domain)
		return;
	range->first = id.bus < range->first ? id.bus : range->first;
	range->last = id.bus > range->last ? id.bus : range->last;
}

static struct bus_range range_of(const struct xml_node *branch)
{
	struct bus_range range = {0};
	struct xml_node *tree = (struct xml_node *)(uintptr_t)branch;

	range_add(&range, branch);
	for (const struct xml_node *pci = NULL; (pci = xml_find(tree, "pci", pci));)
		range_add(&range, pci);
	return range;
}

/* Do two branches of one NUMA node hang on the same host bridge? */
static bool same_bridge(
	const struct xml_node *a, const struct xml_node *b, bool *inferred)
{
	const char *bridge_a = xml_attr(a, "host_bridge");
	const char *bridge_b = xml_attr(b, "host_bridge");
	const struct xml_node *cpu = cpu_above(a);
	const char *vendor = xml_attr(cpu, "vendor");
	struct bus_range x = range_of(a), y = range_of(b);

	if (bridge_a && bridge_b)
		return !strcmp(bridge_a, bridge_b);
	*inferred = true;
	if (!x.known || !y.known || x.domain != y.domain)
		return false;
	if (vendor && !strcmp(vendor, "GenuineIntel") &&
		xml_int(cpu, "familyid", 0) == INTEL_FAMILY &&
		xml_int(cpu, "modelid", INT_MAX) < SKYLAKE_MODEL)
		return true;
	/* No room for another root bus between them, or even the same bus. */
	return x.first <= y.last + 1 && y.first <= x.last + 1;
}

/* Two functions of one card, or one function. */
static bool same_card(const struct xml_node *a, const struct xml_node *b)
{
	struct busid x, y;

	if (a == b)
		return true;
	return busid_parse(xml_attr(a, "busid"), &x) &&
	       busid_parse(xml_attr(b, "busid"), &y) && x.domain == y.domain &&
	       x.bus == y.bus && x.device == y.device;
}

static enum matrix_level pci_level(
	const struct xml_node *a, const struct xml_node *b, bool *inferred)
{
	const struct xml_node *common = a->parent;

	if (same_card(a, b))
		return MATRIX_PIX;
	while (common && !is_inside(b, common))
		common = common->parent;
	if (node_is(common, "pci"))
		return common == a->parent && common == b->parent ? MATRIX_PIX
								  : MATRIX_PXB;
	if (!node_is(common, "cpu"))
		return MATRIX_SYS;
	return same_bridge(topmost_pci(a), topmost_pci(b), inferred) ? MATRIX_PHB
								     : MATRIX_NODE;
}

static bool is_switch_link(const struct xml_node *link)
{
	const char *class = xml_attr(link, "tclass");

	return !class || !strncasecmp(class, "0x068000", 8);
}

/* Links that go straight from one GPU to the other, or all that go to the switches. */
static int64_t link_count(const struct xml_node *gpu, const char *target)
{
	int64_t count = 0;

	for (uint32_t i = 0; i < gpu->sub_count; i++) {
		const struct xml_node *link = gpu->subs[i];
		const char *to = xml_attr(link, "target");

		if (!node_is(link, "nvlink"))
			continue;
		if (target ? to && !is_switch_link(link) && !strcasecmp(to, target)
			   : is_switch_link(link))
			count += xml_int(link, "count", 1);
		if (count < 0 || count > INT_MAX)
			return 0;
	}
	return count;
}

static int nvlink_count(const struct xml_node *a, const struct xml_node *b)
{
	const char *busid_a = xml_attr(pci_above(a), "busid");
	const char *busid_b = xml_attr(pci_above(b), "busid");
	int64_t direct = 0, up, down;

	if (busid_b)
		direct = link_count(a, busid_b);
	if (!direct && busid_a)
		direct = link_count(b, busid_a);
	if (direct)
		return (int)direct;
	up = link_count(a, NULL);
	down = link_count(b, NULL);
	return (int)(up < down ? up : down);
}

static void fill_cell(struct matrix *matrix, uint32_t row, uint32_t column)
{
	const struct xml_node *a = matrix->parts[row].place;
	const struct xml_node *b = matrix->parts[column].place;
	struct matrix_cell cell = {.level = MATRIX_SELF};
	bool inferred = false;

	if (row != column) {
		cell.level = pci_level(pci_above(a), pci_above(b), &inferred);
		if (row < matrix->gpu_count && column < matrix->gpu_count)
			cell.links = nvlink_count(a, b);
		if (cell.links)
			cell.level = MATRIX_NVLINK;
		else if (inferred)
			matrix->inferred++;
	}
	*matrix_at(matrix, row, column) = cell;
	*matrix_at(matrix, column, row) = cell;
}

static int gpu_order(const void *left, const void *right)
{
	const struct matrix_part *a = left, *b = right;

	return (a->number > b->number) - (a->number < b->number);
}

/* As people count: mlx5_2 before mlx5_10. */
static int nic_order(const void *left, const void *right)
{
	const struct matrix_part *a = left, *b = right;

	return strverscmp(a->name, b->name);
}

static void fill_gpu(struct matrix_part *part, const struct xml_node *gpu)
{
	const struct xml_node *cpu = cpu_above(gpu);
	const char *mask = cpu ? xml_attr(cpu, "affinity") : NULL;
	int64_t numa = cpu ? xml_int(cpu, "numaid", -1) : -1;
	const char *busid = xml_attr(pci_above(gpu), "busid");

	part->place = gpu;
	part->number = (int)xml_int(gpu, "dev", 0);
	snprintf(part->name, sizeof(part->name), "%s", busid ? busid : "?");
	snprintf(part->gpu_numa, sizeof(part->gpu_numa), "N/A");
	/* Cores without a NUMA node: a machine of one, whose firmware does not number it.
	 */
	if (numa < 0 && !mask)
		snprintf(part->numa, sizeof(part->numa), "N/A");
	else
		snprintf(part->numa, sizeof(part->numa), "%d", numa < 0 ? 0 : (int)numa);
	part->cpus = mask ? matrix_cpu_list(mask) : NULL;
}

/* Is this <net> a port of a device that an earlier one already stands for? */
static bool is_listed(const struct matrix *matrix, uint32_t count, const char *name,
	const struct xml_node *net)
{
	for (uint32_t i = 0; i < count; i++) {
		const struct matrix_part *nic = &matrix->parts[matrix->gpu_count + i];

		if (!strcmp(nic->name, name) && nic->place->parent == net->parent)
			return true;
	}
	return false;
}

static uint32_t count_nodes(struct xml_node *tree, const char *name)
{
	uint32_t count = 0;

	for (const struct xml_node *at = NULL; (at = xml_find(tree, name, at));)
		count++;
	return count;
}

static void fill_nics(struct matrix *matrix, struct xml_node *tree)
{
	uint32_t count = 0;

	for (const struct xml_node *net = NULL; (net = xml_find(tree, "net", net));) {
		struct matrix_part *part = &matrix->parts[matrix->gpu_count + count];
		const char *name = xml_attr(net, "name");
		char number[24];

		snprintf(number, sizeof(number), "net%d", (int)xml_int(net, "dev", 0));
		name = name ? name : number;
		if (!pci_above(net)) {
			matrix->hidden_nics++;
			continue;
		}
		if (is_listed(matrix, count, name, net))
			continue;
		part->place = net;
		snprintf(part->name, sizeof(part->name), "%.*s", MATRIX_NAME_MAX - 1,
			name);
		count++;
	}
	matrix->nic_count = count;
	if (count)
		qsort(&matrix->parts[matrix->gpu_count], count, sizeof(*matrix->parts),
			nic_order);
	for (uint32_t i = 0; i < count; i++)
		matrix->parts[matrix->gpu_count + i].number = (int)i;
}

static void fill_gpus(struct matrix *matrix, struct xml_node *tree)
{
	uint32_t count = 0;

	for (const struct xml_node *gpu = NULL; (gpu = xml_find(tree, "gpu", gpu));) {
		if (pci_above(gpu))
			fill_gpu(&matrix->parts[count++], gpu);
	}
	matrix->gpu_count = count;
	if (count)
		qsort(matrix->parts, count, sizeof(*matrix->parts), gpu_order);
	for (const struct xml_node *pci = NULL; (pci = xml_find(tree, "pci", pci));) {
		const char *class = xml_attr(pci, "class");

		if (class && !strncmp(class, "0x03", 4) && !xml_sub(pci, "gpu"))
			matrix->bare_gpus++;
	}
}

enum err matrix_create(uint32_t gpu_count, uint32_t nic_count, struct matrix **matrix)
{
	uint64_t count = (uint64_t)gpu_count + nic_count;
	struct matrix *made;

	if (count > MATRIX_PARTS_MAX)
		return err_set(ERR_USAGE,
			"a topology with %u GPUs and %u NICs is too large for a table "
			"(%d at most)",
			gpu_count, nic_count, MATRIX_PARTS_MAX);
	made = calloc(1, sizeof(*made));
	if (!made)
		return err_set(ERR_SYSTEM, "no memory for a topology table");
	made->gpu_count = gpu_count;
	made->nic_count = nic_count;
	made->parts = calloc(count + 1, sizeof(*made->parts));
	made->cells = calloc(count * count + 1, sizeof(*made->cells));
	if (!made->parts || !made->cells) {
		matrix_free(made);
		return err_set(ERR_SYSTEM, "no memory for a topology table of %u parts",
			(unsigned)count);
	}
	*matrix = made;
	return OK;
}

void matrix_free(struct matrix *matrix)
{
	if (!matrix)
		return;
	for (uint32_t i = 0; matrix->parts && i < matrix->gpu_count + matrix->nic_count;
		i++)
		free(matrix->parts[i].cpus);
	free(matrix->parts);
	free(matrix->cells);
	free(matrix);
}

enum err matrix_build(const struct xml_node *tree, struct matrix **matrix)
{
	/* xml_find() does not write; it only hands out what callers may write to. */
	struct xml_node *nodes = (struct xml_node *)(uintptr_t)tree;
	struct matrix *made;
	uint32_t count;
	enum err e;

	e = matrix_create(count_nodes(nodes, "gpu"), count_nodes(nodes, "net"), &made);
	if (e)
		return e;
	fill_gpus(made, nodes);
	fill_nics(made, nodes);
	count = made->gpu_count + made->nic_count;
	for (uint32_t row = 0; row < count; row++)
		for (uint32_t column = row; column < count; column++)
			fill_cell(made, row, column);
	*matrix = made;
	return OK;
}
