#include "topo/parts.h"

#include <stdlib.h>
#include <string.h>

struct topo_node *topo_find(const struct topo *topo, enum topo_kind kind, uint64_t id)
{
	for (uint32_t i = 0; i < topo->counts[kind]; i++)
		if (topo->nodes[kind][i]->id == id)
			return topo->nodes[kind][i];
	return NULL;
}

struct topo_node *topo_add(struct topo *topo, enum topo_kind kind, uint64_t id)
{
	uint32_t most = kind == TOPO_GPU ? TOPO_GPUS_MAX : TOPO_NODES_MAX;
	struct topo_node *node;

	if (topo->counts[kind] >= most) {
		err_set(ERR_USAGE,
			"a topology of more than %u %s nodes; at most that "
			"many can be described",
			most, topo_kind_name(kind));
		return NULL;
	}
	node = calloc(1, sizeof(*node));
	if (!node) {
		err_set(ERR_SYSTEM, "no memory for a topology");
		return NULL;
	}
	node->kind = kind;
	node->id = id;
	node->index = topo->counts[kind];
	topo->nodes[kind][topo->counts[kind]++] = node;
	return node;
}

static enum err link_room(struct topo_node *node)
{
	uint32_t capacity = node->link_capacity ? 2 * node->link_capacity : 8;
	struct topo_link *links;

	if (node->link_count >= TOPO_LINKS_MAX)
		return err_set(ERR_USAGE, "a part of the topology has more than %d links",
			TOPO_LINKS_MAX);
	if (node->link_count < node->link_capacity)
		return OK;
	links = realloc(node->links, capacity * sizeof(*links));
	if (!links)
		return err_set(ERR_SYSTEM, "no memory for a topology");
	node->links = links;
	node->link_capacity = capacity;
	return OK;
}

enum err topo_connect(
	struct topo_node *from, struct topo_node *to, enum link_type type, float bw)
{
	uint32_t at = 0;
	struct topo_link link = {.type = type, .bw = bw, .to = to};
	enum err e;

	while (at < from->link_count &&
		(from->links[at].to != to || from->links[at].type != type))
		at++;
	if (at == from->link_count) {
		e = link_room(from);
		if (e)
			return e;
		from->link_count++;
	} else {
		link.bw = from->links[at].bw + bw;
	}
	for (; at > 0 && from->links[at - 1].bw < link.bw; at--)
		from->links[at] = from->links[at - 1];
	from->links[at] = link;
	return OK;
}

enum err topo_connect_both(
	struct topo_node *a, struct topo_node *b, enum link_type type, float bw)
{
	enum err e = topo_connect(a, b, type, bw);

	return e ? e : topo_connect(b, a, type, bw);
}

struct topo_path *topo_path_none(void)
{
	static _Thread_local struct topo_path none;

	none = (struct topo_path){.type = PATH_DIS};
	return &none;
}

static void paths_free(struct topo_node *node, enum topo_kind kind, uint32_t count)
{
	if (!node->paths[kind])
		return;
	for (uint32_t i = 0; i < count; i++)
		free(node->paths[kind][i].hops);
	free(node->paths[kind]);
	node->paths[kind] = NULL;
}

void topo_forget_paths(struct topo *topo)
{
	for (int from = 0; from < TOPO_KINDS; from++)
		for (uint32_t i = 0; i < topo->counts[from]; i++)
			for (int to = 0; to < TOPO_KINDS; to++)
				paths_free(topo->nodes[from][i], (enum topo_kind)to,
					topo->counts[to]);
}

static void links_drop(struct topo_node *node, const struct topo_node *to)
{
	uint32_t kept = 0;

	for (uint32_t i = 0; i < node->link_count; i++)
		if (node->links[i].to != to)
			node->links[kept++] = node->links[i];
	node->link_count = kept;
}

void topo_remove(struct topo *topo, enum topo_kind kind, uint32_t index)
{
	struct topo_node *gone = topo->nodes[kind][index];

	topo_forget_paths(topo);
	for (int k = 0; k < TOPO_KINDS; k++)
		for (uint32_t i = 0; i < topo->counts[k]; i++)
			links_drop(topo->nodes[k][i], gone);
	for (uint32_t i = index + 1; i < topo->counts[kind]; i++) {
		topo->nodes[kind][i - 1] = topo->nodes[kind][i];
		topo->nodes[kind][i - 1]->index = i - 1;
	}
	topo->counts[kind]--;
	free(gone->links);
	free(gone);
}

void topo_free(struct topo *topo)
{
	if (!topo)
		return;
	topo_forget_paths(topo);
	for (int k = 0; k < TOPO_KINDS; k++)
		for (uint32_t i = 0; i < topo->counts[k]; i++) {
			free(topo->nodes[k][i]->links);
			free(topo->nodes[k][i]);
		}
	free(topo);
}

/* Broadcom's PEX switches show two levels though every port reaches every other at full
 * speed. The generation, 0 when it is none of them; level 0 above, 1 below. */
static int pex_generation(uint64_t device, int level)
{
	uint64_t model = device & ~0xfffull;

	if (model == 0x1000c0101000a000ull)
		return 4;
	if (model == 0x1000c03010000000ull + (level ? 0x1000u : 0u))
		return 5;
	return 0;
}

/* Everything below `sub` now hangs on `top`. */
static enum err switch_absorb(struct topo_node *top, struct topo_node *sub)
{
	for (uint32_t i = 0; i < sub->link_count; i++) {
		struct topo_node *far = sub->links[i].to;
		enum err e;

		if (far == top)
			continue;
		e = link_room(top);
		if (e)
			return e;
		top->links[top->link_count++] = sub->links[i];
		for (uint32_t j = 0; j < far->link_count; j++)
			if (far->links[j].to == sub)
				far->links[j].to = top;
	}
	return OK;
}

static enum err switch_flatten(struct topo *topo, struct topo_node *top, int generation)
{
	struct topo_node *subs[TOPO_LINKS_MAX];
	uint32_t count = 0;

	for (uint32_t i = 0; i < top->link_count; i++) {
		struct topo_node *sub = top->links[i].to;

		if (sub->kind == TOPO_PCI &&
			pex_generation(sub->pci_device, 1) == generation)
			subs[count++] = sub;
	}
	for (uint32_t i = 0; i < count; i++) {
		enum err e;

		links_drop(top, subs[i]);
		e = switch_absorb(top, subs[i]);
		if (e)
			return e;
		topo_remove(topo, TOPO_PCI, subs[i]->index);
	}
	top->pci_device |= 0xffff; /* one level of it is enough */
	return OK;
}

static enum err switches_flatten(struct topo *topo)
{
	for (uint32_t i = 0; i < topo->counts[TOPO_PCI];) {
		struct topo_node *top = topo->nodes[TOPO_PCI][i];
		int generation = pex_generation(top->pci_device, 0);
		enum err e;

		if (!generation) {
			i++;
			continue;
		}
		e = switch_flatten(topo, top, generation);
		if (e)
			return e;
		i = 0;
	}
	return OK;
}

static float cpu_bandwidth(const struct topo_cpu *cpu)
{
	if (cpu->arch == CPU_ARCH_POWER)
		return 32.0f;
	if (cpu->arch == CPU_ARCH_ARM)
		return 6.0f;
	if (cpu->arch != CPU_ARCH_X86)
		return TOPO_LOC_BW;
	switch (cpu->vendor) {
	case CPU_INTEL:
		return cpu->model == CPU_INTEL_EMR   ? 40.0f
		       : cpu->model == CPU_INTEL_SPR ? 22.0f
		       : cpu->model == CPU_INTEL_SKL ? 10.0f
						     : 6.0f;
	case CPU_AMD:
		return cpu->model == CPU_AMD_ZEN5    ? 32.0f
		       : cpu->model == CPU_AMD_ZEN34 ? 24.0f
						     : 16.0f;
	case CPU_ZHAOXIN:
		return cpu->model == CPU_YONGFENG ? 9.0f : 6.0f;
	default:
		return TOPO_LOC_BW;
	}
}

static enum err cpus_connect(struct topo *topo)
{
	for (uint32_t i = 0; i < topo->counts[TOPO_CPU]; i++) {
		struct topo_node *from = topo->nodes[TOPO_CPU][i];

		for (uint32_t j = 0; j < topo->counts[TOPO_CPU]; j++) {
			struct topo_node *to = topo->nodes[TOPO_CPU][j];
			enum err e;

			if (i == j || topo_system(from->id) != topo_system(to->id))
				continue;
			e = topo_connect(from, to, LINK_SYS, cpu_bandwidth(&from->cpu));
			if (e)
				return e;
		}
	}
	return OK;
}

/* Down the PCI tree; the link to where we came from goes last. */
static void links_sort(struct topo_node *node, const struct topo_node *up, int depth)
{
	uint32_t at = 0;

	while (up && at < node->link_count && node->links[at].to != up)
		at++;
	if (up && at < node->link_count) {
		struct topo_link link = node->links[at];

		memmove(&node->links[at], &node->links[at + 1],
			(node->link_count - at - 1) * sizeof(link));
		node->links[node->link_count - 1] = link;
	}
	if (depth >= XML_DEPTH_MAX)
		return;
	for (uint32_t i = 0; i < node->link_count; i++)
		if (node->links[i].type == LINK_PCI && node->links[i].to != up)
			links_sort(node->links[i].to, node, depth + 1);
}

enum err topo_finish_links(struct topo *topo)
{
	enum err e = switches_flatten(topo);

	if (!e)
		e = cpus_connect(topo);
	for (uint32_t i = 0; i < topo->counts[TOPO_CPU] && !e; i++)
		links_sort(topo->nodes[TOPO_CPU][i], NULL, 0);
	return e;
}
