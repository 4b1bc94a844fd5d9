#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "topo/instance_table.h"

enum { BUSID_BYTES = 24, GPUS_MAX = 16, WORDS_MAX = 16 };

struct builder {
	const struct instance_row *row;
	struct xml_node *tree;
	uint32_t gpu_count, net_count;
	struct xml_node *gpus[GPUS_MAX];
	char busids[GPUS_MAX][BUSID_BYTES];
	enum err error; /* the first; later steps do nothing */
};

static void attr(
	struct builder *b, struct xml_node *node, const char *name, const char *value)
{
	if (!b->error && value)
		b->error = xml_attr_set(node, name, value);
}

static void attr_int(
	struct builder *b, struct xml_node *node, const char *name, int value)
{
	if (!b->error)
		b->error = xml_attr_setf(node, name, "%d", value);
}

static struct xml_node *element(
	struct builder *b, struct xml_node *parent, const char *name)
{
	struct xml_node *node = b->error ? NULL : xml_add(parent, name);

	if (!node && !b->error)
		b->error = ERR_SYSTEM;
	return node;
}

/* "53" to "0000:53:00.0"; see instance_table.h. */
static void busid_expand(const char *text, size_t bytes, char busid[BUSID_BYTES])
{
	int colons = 0;

	for (size_t i = 0; i < bytes; i++)
		colons += text[i] == ':';
	snprintf(busid, BUSID_BYTES, "%s%.*s%s", colons < 2 ? "0000:" : "", (int)bytes,
		text, colons ? ".0" : ":00.0");
}

/* The guest numbers one thread of every core first, then the second ones; each half is
 * dealt out to the NUMA nodes in order. */
static void affinity(struct builder *b, struct xml_node *cpu, int numa)
{
	uint32_t words[WORDS_MAX] = {0};
	const struct instance_row *row = b->row;
	int halves = row->numa_count > 1 && row->cpu->has_threads ? 2 : 1;
	int half = row->core_count / halves, share = half / row->numa_count;
	int word_count = (row->core_count + 31) / 32;
	char text[WORDS_MAX * 9 + 1] = "";
	size_t used = 0;

	for (int core = 0; core < row->core_count && core < WORDS_MAX * 32; core++)
		if (core % half / share == numa)
			words[core / 32] |= 1u << core % 32;
	for (int i = word_count - 1; i >= 0 && i < WORDS_MAX; i--)
		used += (size_t)snprintf(text + used, sizeof(text) - used, "%08x%s",
			words[i], i ? "," : "");
	attr(b, cpu, "affinity", text);
}

static struct xml_node *cpu_of(struct builder *b, int numa)
{
	const struct part_cpu *part = b->row->cpu;
	struct xml_node *cpu;
	char text[12];

	snprintf(text, sizeof(text), "%d", numa);
	cpu = xml_sub_with(b->tree, "cpu", "numaid", text);
	if (cpu || b->error)
		return cpu;
	cpu = element(b, b->tree, "cpu");
	attr(b, cpu, "numaid", text);
	affinity(b, cpu, numa);
	attr(b, cpu, "arch", part->arch);
	attr(b, cpu, "vendor", part->vendor);
	attr_int(b, cpu, "familyid", part->family);
	attr_int(b, cpu, "modelid", part->model);
	return cpu;
}

static struct xml_node *pci_add(struct builder *b, struct xml_node *parent,
	const char *busid, const char *class_id)
{
	struct xml_node *pci = element(b, parent, "pci");

	attr(b, pci, "busid", busid);
	attr(b, pci, "class", class_id);
	return pci;
}

static void link_set(
	struct builder *b, struct xml_node *pci, const char *speed, int width)
{
	attr(b, pci, "link_speed", speed);
	attr_int(b, pci, "link_width", width);
}

static void gpu_add(struct builder *b, struct xml_node *parent, const char *busid)
{
	const struct part_gpu *part = b->row->gpu;
	struct xml_node *pci = pci_add(b, parent, busid, "0x030200"), *gpu;
	uint32_t index = b->gpu_count;

	if (b->error || index == GPUS_MAX)
		return;
	attr(b, pci, "vendor", "0x10de");
	attr(b, pci, "device", part->device);
	attr(b, pci, "subsystem_vendor", "0x10de");
	attr(b, pci, "subsystem_device", part->subsystem);
	link_set(b, pci, part->link_speed, part->link_width);
	gpu = element(b, pci, "gpu");
	attr_int(b, gpu, "dev", (int)index);
	attr_int(b, gpu, "sm", part->sm);
	attr_int(b, gpu, "rank", (int)index);
	attr_int(b, gpu, "gdr", part->gdr);
	b->gpus[index] = gpu;
	memcpy(b->busids[index], busid, BUSID_BYTES);
	b->gpu_count++;
}

/* EFA devices are named after their place: rdmap<bus>s<slot>, rdmaP<domain>p<bus>s<slot>.
 */
static void net_name(const struct builder *b, const char *busid, char name[24])
{
	unsigned domain, bus, slot;

	snprintf(name, 24, "eth%u", b->net_count);
	if (b->row->net->naming == NET_ENA ||
		sscanf(busid, "%x:%x:%x", &domain, &bus, &slot) != 3)
		return;
	if (domain)
		snprintf(name, 24, "rdmaP%up%us%u", domain & 0xffff, bus & 0xff,
			slot & 0x1f);
	else
		snprintf(name, 24, "rdmap%us%u", bus & 0xff, slot & 0x1f);
}

static void net_add(struct builder *b, struct xml_node *parent, const char *busid)
{
	const struct part_net *part = b->row->net;
	struct xml_node *pci = pci_add(b, parent, busid, "0x020000"), *net;
	bool is_efa = part->naming != NET_ENA;
	char text[24];

	attr(b, pci, "vendor", "0x1d0f");
	attr(b, pci, "device", part->device);
	attr(b, pci, "subsystem_vendor", "0x1d0f");
	attr(b, pci, "subsystem_device", part->device);
	link_set(b, pci, part->link_speed, part->link_width);
	net = element(b, element(b, pci, "nic"), "net");
	net_name(b, busid, text);
	attr(b, net, "name", text);
	attr_int(b, net, "dev", (int)b->net_count);
	attr_int(b, net, "latency", part->latency_us);
	attr_int(b, net, "speed", b->row->net_mbps);
	attr_int(b, net, "port", is_efa);
	snprintf(text, sizeof(text), "0x%x", (is_efa ? 0xa000 : 0) + b->net_count);
	attr(b, net, "guid", text);
	attr_int(b, net, "maxconn", is_efa ? 262144 : 65536);
	attr_int(b, net, "gdr", part->gdr);
	b->net_count++;
}

static struct xml_node *switch_add(
	struct builder *b, struct xml_node *cpu, const char *text, size_t bytes)
{
	const struct part_switch *part = b->row->pci_switch;
	char busid[BUSID_BYTES];
	struct xml_node *pci;

	if (bytes == 1 && *text == '-')
		return cpu;
	busid_expand(text, bytes, busid);
	pci = pci_add(b, cpu, busid, "0x060400");
	attr(b, pci, "vendor", part->vendor);
	attr(b, pci, "device", part->device);
	attr(b, pci, "subsystem_vendor", part->vendor);
	attr(b, pci, "subsystem_device", part->device);
	link_set(b, pci, part->link_speed, part->link_width);
	return pci;
}

/* One group of the layout, up to `end`. */
static void group_add(struct builder *b, const char *text, const char *end)
{
	struct xml_node *parent = NULL;

	while (text < end && !b->error) {
		size_t bytes = strcspn(text, " ;");
		char busid[BUSID_BYTES];

		if (!parent) {
			parent = cpu_of(b, *text - '0');
			parent = switch_add(b, parent, text + 2, bytes - 2);
		} else {
			busid_expand(text + 1, bytes - 1, busid);
			if (*text == 'g')
				gpu_add(b, parent, busid);
			else
				net_add(b, parent, busid);
		}
		text += bytes;
		text += strspn(text, " ");
	}
}

static void nvlink_add(struct builder *b, struct xml_node *gpu, const char *target,
	int count, const char *class_id)
{
	struct xml_node *link = element(b, gpu, "nvlink");

	attr(b, link, "target", target);
	attr_int(b, link, "count", count);
	attr(b, link, "tclass", class_id);
}

/* Links from each of 8 V100 to each other: two squares with diagonals, and four pairs
 * between them. A machine with fewer GPUs has the part of it that they span. */
static void mesh_add(struct builder *b)
{
	static const char *const rows[] = {"01122000", "10210200", "12020010", "21200001",
		"20000112", "02001021", "00101202", "00012120"};

	for (uint32_t i = 0; i < b->gpu_count && i < 8; i++)
		for (uint32_t j = 0; j < b->gpu_count && j < 8; j++)
			if (rows[i][j] != '0')
				nvlink_add(b, b->gpus[i], b->busids[j], rows[i][j] - '0',
					"0x030200");
}

/* "TARGET*COUNT TARGET*COUNT", the same for every GPU. */
static void switches_add(struct builder *b, const char *links)
{
	for (uint32_t i = 0; i < b->gpu_count; i++) {
		const char *at = links;

		while (*at) {
			size_t bytes = strcspn(at, "*");
			char target[BUSID_BYTES];

			snprintf(target, sizeof(target), "%.*s", (int)bytes, at);
			nvlink_add(
				b, b->gpus[i], target, atoi(at + bytes + 1), "0x068000");
			at += strcspn(at, " ");
			at += strspn(at, " ");
		}
	}
}

static void links_add(struct builder *b)
{
	const struct part_gpu *part = b->row->gpu;

	if (part->nvlinks && !strcmp(part->nvlinks, "mesh"))
		mesh_add(b);
	else if (part->nvlinks)
		switches_add(b, part->nvlinks);
	for (uint32_t i = 0; part->c2c_count && i < b->gpu_count; i++) {
		struct xml_node *c2c = element(b, b->gpus[i], "c2c");

		attr_int(b, c2c, "bw", part->c2c_bw_mbs);
		attr_int(b, c2c, "count", part->c2c_count);
	}
}

enum err instance_build(const struct instance_row *row, struct xml_node **tree)
{
	struct builder b = {.row = row, .tree = xml_add(NULL, "system")};

	if (!b.tree)
		return ERR_SYSTEM;
	attr(&b, b.tree, "version", "1");
	for (const char *at = row->layout; *at;) {
		const char *end = at + strcspn(at, ";");

		group_add(&b, at, end);
		at = end + strspn(end, "; ");
	}
	links_add(&b);
	if (b.error) {
		xml_free(b.tree);
		return b.error;
	}
	*tree = b.tree;
	return OK;
}
