#include "topo/place.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Switches above each other; real machines have three. */
enum { CHAIN_MAX = 24 };

static enum err default_if(struct xml_node *node, const char *name, const char *value)
{
	return value[0] ? xml_attr_default(node, name, value) : OK;
}

static struct xml_node *pci_find(struct xml_node *tree, const char *busid)
{
	struct xml_node *node = NULL;

	while ((node = xml_find(tree, "pci", node))) {
		const char *has = xml_attr(node, "busid");

		if (has && !strcmp(has, busid))
			return node;
	}
	return NULL;
}

static enum err cpu_fill(const struct placing *place, struct xml_node *node)
{
	const char *numa = xml_attr(node, "numaid");
	struct seen_cpu cpu;
	enum err e;

	seen_cpu(place->seen, numa ? numa : "-1", &cpu);
	/* A rank completes the CPU of its own GPU with zeros (fuse.c). Where there is
	 * nothing to ask for, as on arm64, all get them, so that they stay alike. */
	if (cpu.arch[0] && strcmp(cpu.arch, "x86_64")) {
		snprintf(cpu.vendor, sizeof(cpu.vendor), "0");
		cpu.family = cpu.model = 0;
	}
	e = default_if(node, "affinity", cpu.affinity);
	if (!e)
		e = default_if(node, "arch", cpu.arch);
	if (!e)
		e = default_if(node, "vendor", cpu.vendor);
	if (e || xml_attr(node, "familyid") || cpu.family < 0)
		return e;
	e = xml_attr_setf(node, "familyid", "%d", cpu.family);
	return e || cpu.model < 0 ? e : xml_attr_setf(node, "modelid", "%d", cpu.model);
}

enum err place_cpu(const struct placing *place, const char *numa, struct xml_node **out)
{
	struct xml_node *cpu = xml_sub_with(place->tree, "cpu", "numaid", numa);
	enum err e;

	if (!cpu) {
		cpu = xml_add(place->tree, "cpu");
		if (!cpu)
			return ERR_SYSTEM;
		e = xml_attr_set(cpu, "numaid", numa);
		if (e)
			return e;
	}
	e = cpu_fill(place, cpu);
	*out = cpu;
	return e;
}

enum err place_first_cpu(const struct placing *place, struct xml_node **out)
{
	struct xml_node *cpu = xml_find(place->tree, "cpu", NULL);
	char numa[16];

	if (cpu) {
		*out = cpu;
		return cpu_fill(place, cpu);
	}
	snprintf(numa, sizeof(numa), "%d", seen_numa_at(place->seen, 0));
	return place_cpu(place, numa, out);
}

static const struct nvml_gpu *gpu_find(const struct placing *place, const char *busid)
{
	for (uint32_t i = 0; i < place->gpu_count; i++)
		if (!strcmp(place->gpus[i].busid, busid))
			return &place->gpus[i];
	return NULL;
}

/* NVML has device and vendor in one number. */
static void ids_from_nvml(const struct nvml_gpu *gpu, struct seen_pci *pci)
{
	if (gpu->pci_device) {
		snprintf(pci->vendor, sizeof(pci->vendor), "0x%04x",
			gpu->pci_device & 0xffff);
		snprintf(pci->device, sizeof(pci->device), "0x%04x",
			gpu->pci_device >> 16);
	}
	if (gpu->pci_subsystem) {
		snprintf(pci->subsystem_vendor, sizeof(pci->subsystem_vendor), "0x%04x",
			gpu->pci_subsystem & 0xffff);
		snprintf(pci->subsystem_device, sizeof(pci->subsystem_device), "0x%04x",
			gpu->pci_subsystem >> 16);
	}
}

/* NCCL takes what runs now, and where NVML is silent a text it later counts as Gen3. */
static void link_from_nvml(const struct nvml_gpu *gpu, struct seen_pci *pci)
{
	static const char *const speeds[] = {"16.0 GT/s", "2.5 GT/s PCIe",
		"5.0 GT/s PCIe", "8.0 GT/s PCIe", "16.0 GT/s PCIe", "32.0 GT/s PCIe",
		"64.0 GT/s PCIe"};

	if (gpu->gen < sizeof(speeds) / sizeof(*speeds))
		snprintf(
			pci->link_speed, sizeof(pci->link_speed), "%s", speeds[gpu->gen]);
	pci->link_width = gpu->width && gpu->width <= 64 ? (int)gpu->width : 16;
}

/* Broadcom switches can be tied together below the bus; NCCL follows these ties. */
static enum err ties_fill(const struct placing *place, struct xml_node *node)
{
	const char *busid = xml_attr(node, "busid");
	char folder[128];
	struct seen_names *names;
	enum err e = OK;

	snprintf(folder, sizeof(folder), "kernel/pci_switch_link/virtual_switch_links/%s",
		busid);
	names = malloc(sizeof(*names));
	if (!names)
		return err_set(ERR_SYSTEM, "no memory to list the ties of a PCI switch");
	seen_list(place->seen, folder, names);
	for (uint32_t i = 0; i < names->count && !e; i++) {
		struct xml_node *tie;
		struct seen_pci peer;

		if (!seen_pci(place->seen, names->names[i], &peer) ||
			xml_sub_with(node, "pcilink", "target", names->names[i]))
			continue;
		tie = xml_add(node, "pcilink");
		e = tie ? xml_attr_set(tie, "target", names->names[i]) : ERR_SYSTEM;
	}
	free(names);
	return e;
}

static enum err ids_fill(struct xml_node *node, const struct seen_pci *pci)
{
	enum err e = default_if(node, "vendor", pci->vendor);

	if (!e)
		e = default_if(node, "device", pci->device);
	if (!e)
		e = default_if(node, "subsystem_vendor", pci->subsystem_vendor);
	return e ? e : default_if(node, "subsystem_device", pci->subsystem_device);
}

static enum err pci_fill(
	const struct placing *place, struct xml_node *node, const char *class_id)
{
	const char *busid = xml_attr(node, "busid"), *class_now, *vendor;
	const struct nvml_gpu *gpu = NULL;
	struct seen_pci pci = {0};
	bool is_seen;
	char width[16];
	enum err e;

	if (!busid)
		return OK;
	is_seen = seen_pci(place->seen, busid, &pci);
	if (pci.class_id[0])
		e = xml_attr_set(node, "class", pci.class_id);
	else
		e = default_if(node, "class", class_id);
	if (e)
		return e;
	class_now = xml_attr(node, "class");
	if (!class_now || !class_now[0] || !strncmp(class_now, "0x03", 4))
		gpu = gpu_find(place, busid);
	if (gpu) {
		ids_from_nvml(gpu, &pci);
		link_from_nvml(gpu, &pci);
	}
	e = ids_fill(node, &pci);
	if (!e)
		e = xml_attr_default(node, "link_speed", pci.link_speed);
	snprintf(width, sizeof(width), "%d", pci.link_width);
	if (!e)
		e = xml_attr_default(node, "link_width", is_seen || gpu ? width : "");
	if (is_seen && !gpu && !pci.link_speed[0] && place->report)
		report_add(place->report,
			"the link speed of %s is unknown: NCCL counts "
			"it as Gen3 x16",
			busid);
	vendor = xml_attr(node, "vendor");
	if (!e && vendor && !strcmp(vendor, "0x1000"))
		e = ties_fill(place, node);
	return e;
}

/* A new <pci> among its siblings, before the first whose bus id is greater. */
static struct xml_node *pci_add(struct xml_node *parent, const char *busid)
{
	uint32_t at = parent->sub_count;
	struct xml_node *node;

	for (uint32_t i = 0; i < parent->sub_count; i++) {
		const char *other = xml_attr(parent->subs[i], "busid");

		if (other && strcmp(busid, other) < 0) {
			at = i;
			break;
		}
	}
	node = xml_add(parent, "pci");
	if (!node || xml_attr_set(node, "busid", busid))
		return NULL;
	xml_place_last(parent, at);
	return node;
}

/* From a device up to what the tree has already or to the root complex. `names` get what
 * must be made, the device first; `numa` the node of the last. */
static uint32_t chain_find(const struct placing *place, const char *busid,
	char names[CHAIN_MAX][SEEN_BUSID_BYTES], char numa[16], struct xml_node **found)
{
	uint32_t count = 0;
	char next[SEEN_BUSID_BYTES];

	snprintf(next, sizeof(next), "%s", busid);
	snprintf(numa, 16, "-1");
	*found = NULL;
	while (next[0] && count < CHAIN_MAX) {
		struct seen_pci pci;

		*found = pci_find(place->tree, next);
		if (*found)
			break;
		memcpy(names[count++], next, sizeof(next));
		if (!seen_pci(place->seen, next, &pci))
			break;
		if (pci.numa[0])
			memcpy(numa, pci.numa, sizeof(pci.numa));
		memcpy(next, pci.above, sizeof(next));
		if (!next[0] && numa[0] == '-' && place->report)
			report_add(place->report,
				"the firmware does not say which NUMA node devices are "
				"near to: they hang on one CPU without a number");
	}
	return count;
}

enum err place_pci(const struct placing *place, const char *busid, const char *class_id,
	struct xml_node **out)
{
	char names[CHAIN_MAX][SEEN_BUSID_BYTES], numa[16];
	struct xml_node *at;
	uint32_t count = chain_find(place, busid, names, numa, &at);
	enum err e = OK;

	if (!at)
		e = place_cpu(place, numa, &at);
	/* A file's own switches are filled too, and its CPU. */
	for (struct xml_node *up = at; up && !e; up = up->parent) {
		if (!strcmp(up->name, "pci"))
			e = pci_fill(place, up, up == at && !count ? class_id : "");
		else if (!strcmp(up->name, "cpu"))
			e = cpu_fill(place, up);
	}
	while (count && !e) {
		at = pci_add(at, names[--count]);
		if (!at)
			return ERR_SYSTEM;
		e = pci_fill(place, at, count ? "" : class_id);
	}
	*out = at;
	return e;
}
