/*
 * names.c - the words and numbers by which parts of a machine are known.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "topo/topo.h"

static const char *const path_names[PATH_TYPES] = {"LOC", "NVL", "NVB", "C2C", "PIX",
	"PXB", "P2C", "PXN", "PHB", "SYS", "NET", "DIS"};
static const char *const link_names[] = {"LOC", "NVL", "C2C", "PCI", "SYS", "NET"};
static const char *const kind_names[TOPO_KINDS] = {
	"GPU", "PCI", "NVS", "CPU", "NIC", "NET", "GIN", "DEV"};

const char *path_name(enum path_type type)
{
	return path_names[type];
}

const char *link_name(enum link_type type)
{
	return link_names[type];
}

const char *topo_kind_name(enum topo_kind kind)
{
	return kind_names[kind];
}

bool path_named(const char *name, enum path_type *type)
{
	for (int i = 0; i < PATH_TYPES; i++)
		if (!strcmp(name, path_names[i])) {
			*type = (enum path_type)i;
			return true;
		}
	return false;
}

void topo_label(const struct topo_node *node, char label[TOPO_LABEL_MAX])
{
	snprintf(label, TOPO_LABEL_MAX, "%s/%x-%lx", kind_names[node->kind],
		topo_system(node->id), (unsigned long)topo_local(node->id));
}

/* All hex digits in a row, whatever stands between them: dddd:bb:dd.f. */
uint64_t topo_busid_parse(const char *text)
{
	char digits[17];
	size_t count = 0;

	for (; *text && count < sizeof(digits) - 1; text++) {
		if (*text == ':' || *text == '.')
			continue;
		if (!strchr("0123456789abcdefABCDEF", *text))
			break;
		digits[count++] = *text;
	}
	digits[count] = 0;
	return strtoull(digits, NULL, 16);
}

void topo_busid_print(uint64_t id, char text[20])
{
	snprintf(text, 20, "%04x:%02x:%02x.%01x", (unsigned)(id >> 20) & 0xffffu,
		(unsigned)(id >> 12) & 0xffu, (unsigned)(id >> 4) & 0xffu,
		(unsigned)id & 0xfu);
}

int topo_gpu_of_rank(const struct topo *topo, int rank)
{
	for (uint32_t i = 0; i < topo->counts[TOPO_GPU]; i++)
		if (topo->nodes[TOPO_GPU][i]->gpu.rank == rank)
			return (int)i;
	return -1;
}

int topo_net_of_id(const struct topo *topo, uint64_t id)
{
	for (uint32_t i = 0; i < topo->counts[TOPO_NET]; i++)
		if (topo->nodes[TOPO_NET][i]->id == id)
			return (int)i;
	return -1;
}
