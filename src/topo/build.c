/*
 * build.c - nodes and links from a fused tree.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "topo/parts.h"

struct builder {
	struct topo *topo;
	uint32_t system; /* of the CPU we are below */
};

struct word {
	const char *prefix; /* NULL ends the table and matches everything */
	int value;
};

/* NCCL compares as many characters as the table's word has. */
static int word_value(const struct word *words, const char *text)
{
	while (words->prefix &&
		(!text || strncmp(text, words->prefix, strlen(words->prefix))))
		words++;
	return words->value;
}

static const struct word pci_classes[] = {{"0x060400", TOPO_PCI}, {"0x080100", TOPO_PCI},
	{"0x068000", TOPO_NVS}, {"0x068001", TOPO_CPU}, {"0x03", TOPO_GPU},
	{"0x02", TOPO_NIC}, {NULL, TOPO_PCI}};

/* In units of 100 Mb/s a lane. */
static const struct word pci_speeds[] = {{"2.5 GT/s", 15}, {"5 GT/s", 30}, {"8 GT/s", 60},
	{"16 GT/s", 120}, {"32 GT/s", 240}, {"5.0 GT/s PCIe", 30}, {"8.0 GT/s PCIe", 60},
	{"16.0 GT/s PCIe", 120}, {"32.0 GT/s PCIe", 240}, {"64.0 GT/s PCIe", 480},
	{NULL, 60}};

static const struct word cpu_archs[] = {{"x86_64", CPU_ARCH_X86}, {"arm64", CPU_ARCH_ARM},
	{"ppc64", CPU_ARCH_POWER}, {NULL, CPU_OTHER}};

static const struct word cpu_vendors[] = {{"GenuineIntel", CPU_INTEL},
	{"AuthenticAMD", CPU_AMD}, {"CentaurHauls", CPU_ZHAOXIN},
	{"  Shanghai  ", CPU_ZHAOXIN}, {NULL, CPU_OTHER}};

static uint64_t id_make(uint32_t system, uint64_t local)
{
	return (uint64_t)system << 56 | topo_local(local);
}

/* One direction of one NVLink. */
static float nvlink_bandwidth(int sm)
{
	return sm >= 100  ? 40.1f
	       : sm >= 90 ? 20.6f
	       : sm == 86 ? 12.0f
	       : sm >= 80 ? 20.0f
	       : sm >= 70 ? 20.0f
	       : sm >= 60 ? 18.0f
			  : 20.0f;
}

static enum err net_add(
	struct builder *builder, const struct xml_node *xml, struct topo_node *nic)
{
	int64_t dev = xml_int(xml, "dev", -1);
	struct topo_node *node;
	int64_t speed;
	const char *name = xml_attr(xml, "name");
	struct topo_net net = {.dev = (int)dev};

	if (dev < 0 || dev >= TOPO_NODES_MAX)
		return OK;
	node = topo_add(builder->topo, TOPO_NET, id_make(builder->system, (uint64_t)dev));
	if (!node)
		return ERR_USAGE;
	/* 0 is a guid like any other: sockets on one bridge may share it */
	net.asic = xml_hex(xml, "guid", node->id);
	speed = xml_int(xml, "speed", 0);
	net.bw = (float)(speed > 0 ? speed : 10000) / 8000.0f;
	/* NCCL keeps whole microseconds of what a plugin says. */
	net.latency = truncf(xml_float(xml, "latency", 0));
	net.port = (int)xml_int(xml, "port", 0);
	net.gdr = xml_int(xml, "gdr", 1) != 0;
	net.coll = xml_int(xml, "coll", 0) != 0;
	net.max_channels = (int)xml_int(xml, "maxconn", 64);
	net.rail = (int)xml_int(xml, "rail", -1);
	net.plane = (int)xml_int(xml, "plane", -1);
	net.local_gpu = -1;
	snprintf(net.name, sizeof(net.name), "%s", name ? name : "");
	node->net = net;
	return topo_connect_both(nic, node, LINK_NET, net.bw);
}

static enum err gin_add(
	struct builder *builder, const struct xml_node *xml, struct topo_node *nic)
{
	int64_t dev = xml_int(xml, "dev", -1), speed = xml_int(xml, "speed", 0);
	struct topo_node *node;

	if (dev < 0 || dev >= TOPO_NODES_MAX || !xml_int(xml, "gin", 0))
		return OK;
	node = topo_add(builder->topo, TOPO_GIN, id_make(builder->system, (uint64_t)dev));
	if (!node)
		return ERR_USAGE;
	return topo_connect_both(
		nic, node, LINK_NET, (float)(speed > 0 ? speed : 10000) / 8000.0f);
}

static enum err nic_add(
	struct builder *builder, const struct xml_node *xml, struct topo_node *nic)
{
	for (uint32_t i = 0; i < xml->sub_count; i++) {
		const struct xml_node *net = xml->subs[i];
		enum err e = OK;

		if (strcmp(net->name, "net"))
			continue;
		if (xml_int(net, "net", 1))
			e = net_add(builder, net, nic);
		if (!e)
			e = gin_add(builder, net, nic);
		if (e)
			return e;
	}
	return OK;
}

static uint64_t device_read(const struct xml_node *xml)
{
	static const char *const names[] = {
		"vendor", "device", "subsystem_vendor", "subsystem_device"};
	uint64_t device = 0;

	for (int i = 0; i < 4; i++)
		device = device << 16 | (uint64_t)(xml_int(xml, names[i], 0) & 0xffff);
	return device;
}

/* A GPU that no rank uses is left out. *node: what is connected upwards. */
static enum err gpu_add(struct builder *builder, const struct xml_node *xml,
	uint64_t busid, struct topo_node **node)
{
	int64_t rank = xml_int(xml, "rank", -1), dev = xml_int(xml, "dev", -1);
	struct topo_node *gpu;

	if (rank < 0 || rank > INT32_MAX || dev < INT32_MIN || dev > INT32_MAX)
		return OK;
	*node = topo_add(builder->topo, TOPO_DEV, id_make(builder->system, busid));
	if (!*node)
		return ERR_USAGE;
	gpu = topo_add(builder->topo, TOPO_GPU, id_make(builder->system, busid));
	if (!gpu)
		return ERR_USAGE;
	gpu->gpu = (struct topo_gpu){.dev = (int)dev,
		.rank = (int)rank,
		.sm = (int)xml_int(xml, "sm", 0),
		.device = (uint32_t)(device_read(xml->parent) >> 32),
		.gdr = xml_int(xml, "gdr", 1) != 0};
	(*node)->gpu = gpu->gpu;
	return topo_connect_both(gpu, *node, LINK_LOC, TOPO_LOC_BW);
}

static enum err nic_function_add(struct builder *builder, const struct xml_node *xml,
	uint64_t busid, struct topo_node **node)
{
	uint64_t id = id_make(builder->system, busid);
	struct topo_node *nic = topo_find(builder->topo, TOPO_NIC, id);

	if (!nic) {
		nic = *node = topo_add(builder->topo, TOPO_NIC, id);
		if (!nic)
			return ERR_USAGE;
	}
	return nic_add(builder, xml, nic);
}

static enum err pci_add(
	struct builder *builder, const struct xml_node *xml, struct topo_node *parent);

static enum err switch_add(struct builder *builder, const struct xml_node *xml,
	uint64_t busid, struct topo_node **node)
{
	*node = topo_add(builder->topo, TOPO_PCI, id_make(builder->system, busid));
	if (!*node)
		return ERR_USAGE;
	(*node)->pci_device = device_read(xml);
	for (uint32_t i = 0; i < xml->sub_count; i++) {
		enum err e = OK;

		if (!strcmp(xml->subs[i]->name, "pci"))
			e = pci_add(builder, xml->subs[i], *node);
		if (e)
			return e;
	}
	return OK;
}

static float pci_bandwidth(const struct xml_node *xml)
{
	int width = (int)xml_int(xml, "link_width", 0);
	int speed = word_value(pci_speeds, xml_attr(xml, "link_speed"));

	if (width <= 0 || width > 64)
		width = 16;
	return (float)(width * speed) / 80.0f;
}

/* What else the function is, beside a GPU: a NIC or a switch. */
static enum err function_add(struct builder *builder, const struct xml_node *xml,
	uint64_t busid, struct topo_node **node)
{
	const struct xml_node *nic = xml_sub(xml, "nic");

	if (nic)
		return nic_function_add(builder, nic, busid, node);
	if (!xml_sub(xml, "gpu") &&
		word_value(pci_classes, xml_attr(xml, "class")) == TOPO_PCI)
		return switch_add(builder, xml, busid, node);
	return OK;
}

static enum err pci_add(
	struct builder *builder, const struct xml_node *xml, struct topo_node *parent)
{
	const char *text = xml_attr(xml, "busid");
	const struct xml_node *gpu = xml_sub(xml, "gpu");
	struct topo_node *dev = NULL, *node = NULL;
	float bw = pci_bandwidth(xml);
	uint64_t busid;
	enum err e = OK;

	if (!text)
		return err_set(ERR_USAGE,
			"line %d of the topology: a <pci> without a busid", xml->line);
	busid = topo_busid_parse(text);
	if (gpu)
		e = gpu_add(builder, gpu, busid, &dev);
	if (!e && dev)
		e = topo_connect_both(dev, parent, LINK_PCI, bw);
	if (e || (gpu && !dev))
		return e; /* a GPU that nobody uses */
	e = function_add(builder, xml, busid, &node);
	return e || !node ? e : topo_connect_both(node, parent, LINK_PCI, bw);
}

/* A mask in groups of eight hex digits, the highest first. */
static void affinity_read(const char *text, uint64_t *mask)
{
	int bit = 0;

	for (size_t i = text ? strlen(text) : 0; i > 0 && bit < TOPO_CPUS_MAX; i--) {
		const char *digits = "0123456789abcdef";
		char c = text[i - 1];
		const char *at = c ? strchr(digits, c | 0x20) : NULL;

		if (c == ',' || !at)
			continue;
		mask[bit / 64] |= (uint64_t)(at - digits) << (bit % 64);
		bit += 4;
	}
}

/* Granite Rapids and Sierra Forest came after Emerald Rapids with lower numbers; before
 * 2.31 they counted as what came before it. */
static int intel_model(int family, int model, enum nccl_rules nccl)
{
	bool is_late = nccl >= NCCL_RULES_2_32 && model >= 0xAD && model <= 0xAF;

	if (family != 6)
		return CPU_INTEL_BDW;
	return model >= 0xCF || is_late ? CPU_INTEL_EMR
	       : model >= 0x8F		? CPU_INTEL_SPR
	       : model >= 0x55		? CPU_INTEL_SKL
					: CPU_INTEL_BDW;
}

/* By family, which files of older versions give in another way of counting. */
static int amd_model(int family, enum nccl_rules nccl)
{
	if (nccl < NCCL_RULES_2_32)
		return CPU_UNKNOWN;
	return family == 26 || family == 0xBF	? CPU_AMD_ZEN5
	       : family == 25 || family == 0xAF ? CPU_AMD_ZEN34
						: CPU_AMD_ZEN12;
}

static void cpu_read(
	const struct xml_node *xml, enum nccl_rules nccl, struct topo_cpu *cpu)
{
	int family = (int)xml_int(xml, "familyid", 0);
	int model = (int)xml_int(xml, "modelid", 0);

	cpu->arch = word_value(cpu_archs, xml_attr(xml, "arch"));
	cpu->vendor = cpu->model = CPU_UNKNOWN;
	affinity_read(xml_attr(xml, "affinity"), cpu->affinity);
	if (cpu->arch != CPU_ARCH_X86)
		return;
	cpu->vendor = word_value(cpu_vendors, xml_attr(xml, "vendor"));
	if (cpu->vendor == CPU_INTEL)
		cpu->model = intel_model(family, model, nccl);
	if (cpu->vendor == CPU_AMD)
		cpu->model = amd_model(family, nccl);
	if (cpu->vendor == CPU_ZHAOXIN && family == 7 && model == 0x5B)
		cpu->model = CPU_YONGFENG;
}

static uint32_t system_of(struct topo *topo, uint64_t hash)
{
	uint32_t i = 0;

	while (i < topo->system_count && topo->system_hashes[i] != hash)
		i++;
	if (i == topo->system_count && i < TOPO_NODES_MAX)
		topo->system_hashes[topo->system_count++] = hash;
	return i;
}

/* A NIC that hangs on the CPU itself, with no PCI function known. */
static enum err cpu_nic_add(
	struct builder *builder, const struct xml_node *xml, struct topo_node *cpu)
{
	uint64_t id = id_make(builder->system, 0);
	struct topo_node *nic = topo_find(builder->topo, TOPO_NIC, id);
	enum err e = OK;

	if (!nic) {
		nic = topo_add(builder->topo, TOPO_NIC, id);
		if (!nic)
			return ERR_USAGE;
		e = topo_connect_both(cpu, nic, LINK_PCI, TOPO_LOC_BW);
	}
	return e ? e : nic_add(builder, xml, nic);
}

static enum err cpu_add(
	struct topo *topo, const struct xml_node *xml, enum nccl_rules nccl)
{
	struct builder builder = {
		.topo = topo, .system = system_of(topo, xml_hex(xml, "host_hash", 0))};
	int64_t numa = xml_int(xml, "numaid", -1);
	struct topo_node *cpu;
	enum err e = OK;

	if (builder.system > 255)
		return err_set(ERR_USAGE, "a topology of more than 256 hosts");
	cpu = topo_add(topo, TOPO_CPU, id_make(builder.system, (uint64_t)numa));
	if (!cpu)
		return ERR_USAGE;
	cpu_read(xml, nccl, &cpu->cpu);
	for (uint32_t i = 0; i < xml->sub_count && !e; i++) {
		const struct xml_node *sub = xml->subs[i];

		if (!strcmp(sub->name, "pci"))
			e = pci_add(&builder, sub, cpu);
		else if (!strcmp(sub->name, "nic"))
			e = cpu_nic_add(&builder, sub, cpu);
	}
	return e;
}

enum extra { EXTRA_NVLINK, EXTRA_C2C, EXTRA_PCILINK };
static const char *const extra_names[] = {"nvlink", "c2c", "pcilink"};

/* Links beside the PCI tree: they need all nodes to be there. */
struct extras {
	struct topo *topo;
	struct topo_node *cpu; /* above the element that is looked at */
	enum extra extra;
};

static enum err nvlink_add(
	struct extras *at, const struct xml_node *xml, struct topo_node *dev)
{
	struct topo *topo = at->topo;
	int64_t count = xml_int(xml, "count", 1);
	const char *class = xml_attr(xml, "tclass"), *target = xml_attr(xml, "target");
	int kind = class ? word_value(pci_classes, class) : TOPO_NVS;
	struct topo_node *far = NULL;
	float bw;
	enum err e;

	if (count <= 0 || count > 1024)
		return err_set(ERR_USAGE, "line %d of the topology: %ld NVLinks",
			xml->line, (long)count);
	bw = (float)count * nvlink_bandwidth(dev->gpu.sm);
	if (kind == TOPO_GPU) {
		if (target)
			far = topo_find(topo, TOPO_DEV,
				id_make(topo_system(dev->id), topo_busid_parse(target)));
		return far ? topo_connect(dev, far, LINK_NVL, bw) : OK;
	}
	if (kind == TOPO_CPU)
		far = at->cpu;
	else if (topo->counts[TOPO_NVS])
		far = topo->nodes[TOPO_NVS][0];
	else if (!(far = topo_add(topo, TOPO_NVS, 0)))
		return ERR_USAGE;
	if (!far)
		return OK;
	e = topo_connect(dev, far, LINK_NVL, bw);
	return e ? e : topo_connect(far, dev, LINK_NVL, bw);
}

static enum err c2c_add(
	struct extras *at, const struct xml_node *xml, struct topo_node *dev)
{
	float bw = (float)xml_int(xml, "bw", 0) * (float)xml_int(xml, "count", 0) /
		   1000.0f;

	return bw > 0 ? topo_connect_both(dev, at->cpu, LINK_C2C, bw) : OK;
}

static enum err extra_add(struct extras *at, const struct xml_node *xml)
{
	bool is_pcilink = at->extra == EXTRA_PCILINK;
	const struct xml_node *pci = is_pcilink ? xml->parent : xml->parent->parent;
	const char *busid = pci ? xml_attr(pci, "busid") : NULL;
	const char *target = xml_attr(xml, "target");
	struct topo_node *near, *far;
	uint32_t system;

	if (!busid || !at->cpu)
		return OK;
	system = topo_system(at->cpu->id);
	near = topo_find(at->topo, is_pcilink ? TOPO_PCI : TOPO_DEV,
		id_make(system, topo_busid_parse(busid)));
	if (!near)
		return OK;
	if (at->extra == EXTRA_NVLINK)
		return nvlink_add(at, xml, near);
	if (at->extra == EXTRA_C2C)
		return c2c_add(at, xml, near);
	far = target ? topo_find(at->topo, TOPO_PCI,
			       id_make(system, topo_busid_parse(target)))
		     : NULL;
	return far && far != near ? topo_connect(near, far, LINK_LOC, TOPO_LOC_BW) : OK;
}

static enum err extras_below(struct extras *at, const struct xml_node *xml)
{
	enum err e = OK;

	if (!strcmp(xml->name, extra_names[at->extra]))
		return extra_add(at, xml);
	for (uint32_t i = 0; i < xml->sub_count && !e; i++)
		e = extras_below(at, xml->subs[i]);
	return e;
}

/* cpu_add() made one node per <cpu>, in order. */
static enum err extras_add(
	struct topo *topo, const struct xml_node *tree, enum extra extra)
{
	struct extras at = {.topo = topo, .extra = extra};
	uint32_t cpus = 0;
	enum err e = OK;

	for (uint32_t i = 0; i < tree->sub_count && cpus < topo->counts[TOPO_CPU]; i++)
		if (!e && !strcmp(tree->subs[i]->name, "cpu")) {
			at.cpu = topo->nodes[TOPO_CPU][cpus++];
			e = extras_below(&at, tree->subs[i]);
		}
	return e;
}

enum err topo_build(const struct xml_node *tree, uint64_t host_hash, enum nccl_rules nccl,
	struct topo **topo)
{
	struct topo *made = calloc(1, sizeof(*made));
	enum err e = OK;

	if (!made)
		return err_set(ERR_SYSTEM, "no memory for a topology");
	for (uint32_t i = 0; i < tree->sub_count && !e; i++)
		if (!strcmp(tree->subs[i]->name, "cpu"))
			e = cpu_add(made, tree->subs[i], nccl);
	for (int extra = EXTRA_NVLINK; extra <= EXTRA_PCILINK && !e; extra++)
		e = extras_add(made, tree, (enum extra)extra);
	if (!e)
		e = topo_finish_links(made);
	if (e) {
		topo_free(made);
		return e;
	}
	made->system = (int)system_of(made, host_hash);
	made->host_count = made->system_count;
	*topo = made;
	return OK;
}
