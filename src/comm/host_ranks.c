#include "comm/host_ranks.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "topo/topo.h"

enum {
	BUSID_DOMAIN = 0xf000,
	BUSES_OF_DOMAIN = 256,
	DEVICES_OF_BUS = 32,
	NODES_MAX = 256
};

static void busid_print(uint32_t rank, char text[20])
{
	snprintf(text, 20, "%04x:%02x:%02x.0", BUSID_DOMAIN,
		rank / DEVICES_OF_BUS % BUSES_OF_DOMAIN, rank % DEVICES_OF_BUS);
}

uint64_t host_rank_busid(uint32_t rank)
{
	char text[20];

	busid_print(rank, text);
	return topo_busid_parse(text);
}

/* And with them the PCI functions that are nothing else. */
static void gpus_remove(struct xml_node *tree)
{
	struct xml_node *gpu;

	while ((gpu = xml_find(tree, "gpu", NULL))) {
		struct xml_node *pci = gpu->parent;

		xml_free(gpu);
		if (pci && !pci->sub_count && !strcmp(pci->name, "pci"))
			xml_free(pci);
	}
}

/* Do the mask of the tree (hex digits, the highest first, commas between) and the rank's
 * have a processor in common? */
static bool mask_meets(const char *mask, const struct host_rank *rank)
{
	uint32_t bit = 0;

	for (size_t i = mask ? strlen(mask) : 0; i > 0 && bit < rank->words * 64; i--) {
		const char *digits = "0123456789abcdef";
		const char *at = strchr(digits, mask[i - 1] | 0x20);
		uint64_t value = at ? (uint64_t)(at - digits) : 0;

		if (!at)
			continue;
		if (rank->cpus[bit / 64] >> bit % 64 & value)
			return true;
		bit += 4;
	}
	return false;
}

/* The <cpu> elements this rank may run on, or all when the tree does not say. */
static uint32_t nodes_of(struct xml_node *tree, const struct host_rank *rank,
	struct xml_node *nodes[NODES_MAX])
{
	uint32_t count = 0;

	for (int all = 0; all < 2 && !count; all++)
		for (uint32_t i = 0; i < tree->sub_count && count < NODES_MAX; i++) {
			struct xml_node *cpu = tree->subs[i];

			if (!strcmp(cpu->name, "cpu") &&
				(all || mask_meets(xml_attr(cpu, "affinity"), rank)))
				nodes[count++] = cpu;
		}
	return count;
}

static enum err attrs_set(struct xml_node *node, const char *const (*attrs)[2])
{
	enum err e = OK;

	for (; (*attrs)[0] && !e; attrs++)
		e = xml_attr_set(node, (*attrs)[0], (*attrs)[1]);
	return e;
}

static enum err rank_add(struct xml_node *cpu, uint32_t rank)
{
	static const char *const pci_attrs[][2] = {{"class", "0x120000"},
		{"link_speed", "8.0 GT/s PCIe"}, {"link_width", "16"}, {NULL, NULL}};
	static const char *const gpu_attrs[][2] = {
		{"sm", "80"}, {"gdr", "0"}, {NULL, NULL}};
	struct xml_node *pci = xml_add(cpu, "pci");
	struct xml_node *gpu = pci ? xml_add(pci, "gpu") : NULL;
	char busid[20];
	enum err e;

	if (!gpu)
		return ERR_SYSTEM;
	busid_print(rank, busid);
	e = xml_attr_set(pci, "busid", busid);
	if (!e)
		e = attrs_set(pci, pci_attrs);
	if (!e)
		e = xml_attr_setf(gpu, "dev", "%u", rank);
	if (!e)
		e = attrs_set(gpu, gpu_attrs);
	return e ? e : xml_attr_setf(gpu, "rank", "%u", rank);
}

enum err host_ranks_place(
	struct xml_node *tree, const struct host_rank *ranks, uint32_t count)
{
	struct xml_node *nodes[NODES_MAX], *cpu;
	enum err e = OK;

	gpus_remove(tree);
	if (!xml_sub(tree, "cpu")) {
		cpu = xml_add(tree, "cpu");
		if (!cpu)
			return ERR_SYSTEM;
		e = xml_attr_set(cpu, "numaid", "-1");
	}
	for (uint32_t rank = 0; rank < count && !e; rank++) {
		uint32_t found = nodes_of(tree, &ranks[rank], nodes);

		assert(found); /* there is a <cpu>, and any will do */
		e = rank_add(nodes[rank % found], rank);
	}
	return e;
}
