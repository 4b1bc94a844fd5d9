#include "topo/seen_hwloc.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { PCI_CLASS_BRIDGE = 0x06, AFFINITY_WORDS_MAX = SEEN_AFFINITY_BYTES / 9 };

/* Load once; `io`: with PCI devices. */
static enum err load(const char *xml, bool io, hwloc_topology_t *out)
{
	hwloc_topology_t topology;

	if (hwloc_topology_init(&topology))
		return err_set(ERR_SYSTEM, "hwloc does not start: %m");
	if (xml && hwloc_topology_set_xml(topology, xml)) {
		hwloc_topology_destroy(topology);
		return err_set(ERR_USAGE,
			"%s is no hwloc file: save one with lstopo --of xml", xml);
	}
	if (io)
		hwloc_topology_set_io_types_filter(topology, HWLOC_TYPE_FILTER_KEEP_ALL);
	hwloc_topology_set_flags(topology, HWLOC_TOPOLOGY_FLAG_INCLUDE_DISALLOWED);
	if (hwloc_topology_load(topology)) {
		hwloc_topology_destroy(topology);
		return err_set(xml ? ERR_USAGE : ERR_SYSTEM,
			"hwloc cannot read %s: check the file, and the HWLOC_ variables",
			xml ? xml : "this machine");
	}
	*out = topology;
	return OK;
}

/* On this machine sysfs shows more of PCI than hwloc would, whose plugins take long to
 * look; another machine, which a file or the environment shows, is all in hwloc. */
enum err seen_hwloc_load(const char *xml, hwloc_topology_t *out)
{
	enum err e = load(xml, xml != NULL, out);

	if (e || xml || hwloc_topology_is_thissystem(*out))
		return e;
	hwloc_topology_destroy(*out);
	return load(NULL, true, out);
}

bool seen_hwloc_has_pci(hwloc_topology_t topology)
{
	return hwloc_get_next_pcidev(topology, NULL) != NULL;
}

/* The object of a bus id: a device, or a bridge. */
static hwloc_obj_t pci_find(hwloc_topology_t topology, const char *busid)
{
	unsigned domain, bus, device, function;
	hwloc_obj_t obj;

	if (sscanf(busid, "%x:%x:%x.%x", &domain, &bus, &device, &function) != 4)
		return NULL;
	obj = hwloc_get_pcidev_by_busid(topology, domain, bus, device, function);
	if (obj)
		return obj;
	for (obj = NULL; (obj = hwloc_get_next_bridge(topology, obj));) {
		const struct hwloc_pcidev_attr_s *pci = &obj->attr->bridge.upstream.pci;

		if (obj->attr->bridge.upstream_type == HWLOC_OBJ_BRIDGE_PCI &&
			pci->domain == domain && pci->bus == bus && pci->dev == device &&
			pci->func == function)
			return obj;
	}
	return NULL;
}

/* The PCI bridge right above, NULL at the root complex. */
static hwloc_obj_t port_above(hwloc_obj_t obj)
{
	obj = obj->parent;
	if (!obj || obj->type != HWLOC_OBJ_BRIDGE ||
		obj->attr->bridge.upstream_type != HWLOC_OBJ_BRIDGE_PCI)
		return NULL;
	return obj;
}

/* hwloc has GB/s of the whole link, encoding overhead taken off. Generation and width
 * are told apart by taking the widest link that fits: NCCL multiplies them again. */
static void link_guess(float gbs, struct seen_pci *pci)
{
	static const struct {
		const char *speed;
		float lane_gbs;
	} generations[] = {{"2.5 GT/s PCIe", 0.25f}, {"5.0 GT/s PCIe", 0.5f},
		{"8.0 GT/s PCIe", 0.985f}, {"16.0 GT/s PCIe", 1.969f},
		{"32.0 GT/s PCIe", 3.938f}, {"64.0 GT/s PCIe", 7.563f}};

	for (int width = 16; gbs > 0.2f && width; width /= 2) {
		for (size_t i = 0; i < sizeof(generations) / sizeof(*generations); i++) {
			float ratio = gbs / (generations[i].lane_gbs * (float)width);

			if (ratio < 0.97f || ratio > 1.03f)
				continue;
			snprintf(pci->link_speed, sizeof(pci->link_speed), "%s",
				generations[i].speed);
			pci->link_width = width;
			return;
		}
	}
}

/* The NUMA node a device is near to; "-1" when that is not one alone. */
static void numa_find(hwloc_topology_t topology, hwloc_obj_t obj, char numa[16])
{
	hwloc_obj_t near = hwloc_get_non_io_ancestor_obj(topology, obj);
	int first = near && near->nodeset ? hwloc_bitmap_first(near->nodeset) : -1;

	if (first >= 0 && hwloc_bitmap_weight(near->nodeset) != 1)
		first = -1;
	snprintf(numa, 16, "%d", first);
}

bool seen_hwloc_pci(hwloc_topology_t topology, const char *busid, struct seen_pci *pci)
{
	hwloc_obj_t obj = pci_find(topology, busid), port;
	const struct hwloc_pcidev_attr_s *attr;

	if (!obj)
		return false;
	attr = obj->type == HWLOC_OBJ_BRIDGE ? &obj->attr->bridge.upstream.pci
					     : &obj->attr->pcidev;
	snprintf(pci->class_id, sizeof(pci->class_id), "0x%04x00", attr->class_id);
	snprintf(pci->vendor, sizeof(pci->vendor), "0x%04x", attr->vendor_id);
	snprintf(pci->device, sizeof(pci->device), "0x%04x", attr->device_id);
	snprintf(pci->subsystem_vendor, sizeof(pci->subsystem_vendor), "0x%04x",
		attr->subvendor_id);
	snprintf(pci->subsystem_device, sizeof(pci->subsystem_device), "0x%04x",
		attr->subdevice_id);
	link_guess(attr->linkspeed, pci);
	numa_find(topology, obj, pci->numa);
	port = port_above(obj);
	port = port ? port_above(port) : NULL;
	if (port) {
		attr = &port->attr->bridge.upstream.pci;
		snprintf(pci->above, sizeof(pci->above), "%04x:%02x:%02x.%x",
			(unsigned)attr->domain, attr->bus, attr->dev, attr->func);
	}
	return true;
}

/* The node's cores as the kernel writes a mask, in as many words as all cores need. */
static void affinity_print(hwloc_topology_t topology, hwloc_const_bitmap_t cores,
	char text[SEEN_AFFINITY_BYTES])
{
	int last = hwloc_bitmap_last(hwloc_topology_get_complete_cpuset(topology));
	int words = last < 0 ? 0 : last / 32 + 1;
	size_t used = 0;

	if (words > AFFINITY_WORDS_MAX)
		words = AFFINITY_WORDS_MAX;
	for (int word = words - 1; word >= 0; word--) {
		uint32_t bits = 0;

		for (unsigned bit = 0; bit < 32; bit++)
			if (hwloc_bitmap_isset(cores, (unsigned)word * 32 + bit))
				bits |= 1u << bit;
		used += (size_t)snprintf(text + used, SEEN_AFFINITY_BYTES - used,
			"%08x%s", bits, word ? "," : "");
	}
}

/* What a package, or else the machine, says of itself. */
static const char *info_find(hwloc_topology_t topology, const char *name)
{
	hwloc_obj_t package = hwloc_get_obj_by_type(topology, HWLOC_OBJ_PACKAGE, 0);
	const char *text = package ? hwloc_obj_get_info_by_name(package, name) : NULL;

	return text ? text
		    : hwloc_obj_get_info_by_name(hwloc_get_root_obj(topology), name);
}

static int info_number(hwloc_topology_t topology, const char *name)
{
	const char *text = info_find(topology, name);
	long value = text ? strtol(text, NULL, 10) : -1;

	return value >= 0 && value <= 0xffff ? (int)value : -1;
}

static void arch_find(hwloc_topology_t topology, char arch[16])
{
	static const char *const names[][2] = {{"x86_64", "x86_64"}, {"amd64", "x86_64"},
		{"aarch64", "arm64"}, {"arm64", "arm64"}, {"ppc64", "ppc64"},
		{"ppc64le", "ppc64"}};
	const char *text = info_find(topology, "Architecture");

	for (size_t i = 0; text && i < sizeof(names) / sizeof(*names); i++)
		if (!strcmp(text, names[i][0]))
			snprintf(arch, 16, "%s", names[i][1]);
}

void seen_hwloc_cpu(hwloc_topology_t topology, const char *numa, struct seen_cpu *cpu)
{
	const char *vendor = info_find(topology, "CPUVendor");
	hwloc_obj_t node = hwloc_get_numanode_obj_by_os_index(
		topology, (unsigned)strtol(numa, NULL, 10));

	if (node && numa[0] != '-')
		affinity_print(topology, node->cpuset, cpu->affinity);
	else if (seen_hwloc_numa_count(topology) == 1)
		affinity_print(topology, hwloc_get_root_obj(topology)->cpuset,
			cpu->affinity); /* there is only one it can be */
	arch_find(topology, cpu->arch);
	/* NCCL asks the processor itself, and only an x86 one. */
	if (strcmp(cpu->arch, "x86_64"))
		return;
	if (vendor)
		snprintf(cpu->vendor, sizeof(cpu->vendor), "%s", vendor);
	cpu->family = info_number(topology, "CPUFamilyNumber");
	cpu->model = info_number(topology, "CPUModelNumber");
	/* The extended family is added to 15 by everybody, but shifted by NCCL. */
	if (cpu->family > 15)
		cpu->family = 15 + ((cpu->family - 15) << 4);
}

/* Nodes of memory alone (a GPU's, for example) are no CPU. */
static hwloc_obj_t node_next(hwloc_topology_t topology, hwloc_obj_t node)
{
	do
		node = hwloc_get_next_obj_by_type(topology, HWLOC_OBJ_NUMANODE, node);
	while (node && hwloc_bitmap_iszero(node->cpuset));
	return node;
}

uint32_t seen_hwloc_numa_count(hwloc_topology_t topology)
{
	uint32_t count = 0;

	for (hwloc_obj_t node = NULL; (node = node_next(topology, node));)
		count++;
	return count;
}

int seen_hwloc_numa_at(hwloc_topology_t topology, uint32_t index)
{
	hwloc_obj_t node = node_next(topology, NULL);

	while (node && index--)
		node = node_next(topology, node);
	return node ? (int)node->os_index : -1;
}
