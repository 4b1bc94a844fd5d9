#include "weft/topo_view.h"

#include <assert.h>
#include <ctype.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "topo/discover.h"
#include "topo/fuse.h"
#include "weft/machines.h"

/* One rank per GPU, in NVML's order. Without a GPU there is nobody to agree. */
static enum err fuse(struct topo_view *view)
{
	const struct xml_node *tree = view->tree;
	int devs[TOPO_GPUS_MAX];
	struct fuse_host host = {.tree = tree, .devs = devs};
	struct fuse_args args = {.hosts = &host,
		.host_count = 1,
		.merge_nics = view->rules.merge_nics,
		.merge_level = view->rules.merge_level};

	host.dev_count = fuse_devs(tree, devs, TOPO_GPUS_MAX);
	if (host.dev_count)
		return fuse_domain(&args, &view->fused);
	view->fused = xml_copy(NULL, tree);
	return view->fused ? OK : ERR_SYSTEM;
}

enum err topo_view_ask(
	const struct topo_view *view, const struct topo_rules *rules, struct topo **topo)
{
	struct topo *made = NULL;
	enum err e = topo_build(view->fused, 0, rules->nccl, &made);

	if (e)
		return e;
	/* In a job of several such machines; alone, its NICs would not be looked at. */
	made->is_inter = made->counts[TOPO_NET] > 0;
	e = topo_paths(made, rules);
	if (e) {
		topo_free(made);
		return e;
	}
	topo_bandwidths(made);
	*topo = made;
	return OK;
}

enum err topo_view_direct(const struct topo_view *view, struct topo **topo)
{
	struct topo_rules open = view->rules;
	enum err e;

	open.p2p_level = PATH_SYS;
	open.nvml_p2p_ok = true;
	open.net_disable_intra = true;
	e = topo_view_ask(view, &open, topo);
	if (!e)
		(*topo)->rules = view->rules;
	return e;
}

enum err topo_view_whole(const struct topo_view *view, struct topo **topo)
{
	struct xml_node *tree = xml_copy(NULL, view->tree), *gpu = NULL;
	enum err e = tree ? OK : ERR_SYSTEM;

	/* A GPU that is nobody's rank is left out of topologies. */
	while (!e && (gpu = xml_find(tree, "gpu", gpu)))
		e = xml_attr_default(gpu, "rank", "0");
	if (!e)
		e = topo_build(tree, 0, view->rules.nccl, topo);
	xml_free(tree);
	return e;
}

static enum err make_matrix(struct topo_view *view)
{
	enum err e;

	if (!view->is_here)
		return matrix_build(view->tree, &view->matrix);
	view->bridged = xml_copy(NULL, view->tree);
	if (!view->bridged)
		return ERR_SYSTEM;
	e = matrix_bridges_read(view->bridged, "/sys");
	return e ? e : matrix_build(view->bridged, &view->matrix);
}

static enum err load_here(struct topo_view *view)
{
	enum err e = machine_tree_plugged(&view->tree, &view->report);

	if (e)
		return e;
	if (view->report.p2p_known)
		view->rules.nvml_p2p_ok = view->report.p2p_ok;
	view->name = strdup("this machine");
	return view->name ? OK : err_set(ERR_SYSTEM, "no memory for a name");
}

static enum err load_other(struct topo_view *view, const char *name)
{
	char *names[] = {(char *)(uintptr_t)name};
	struct machines machines = {0};
	enum err e = machines_load(1, names, &machines);

	assert(name);
	if (e)
		return e;
	if (access(name, F_OK))
		view->instance = instance_find(name);
	view->tree = machines.trees[0];
	view->name = machines.names[0];
	machines.count = 0;
	machines_free(&machines);
	return OK;
}

/* Another description, where it has one for the network that is assumed. */
static enum err load_named(struct topo_view *view, const char *name, enum net_choice net)
{
	char *names[] = {(char *)(uintptr_t)name};
	enum err e = net_assume(net, view->is_here ? 0 : 1, names, &view->net);

	if (e)
		return e;
	name = net_assumed_machine(&view->net, name ? name : "this");
	view->is_here = !strcasecmp(name, "this");
	e = view->is_here ? load_here(view) : load_other(view, name);
	net_assumed_rules(&view->net, &view->rules);
	return e ? e : net_assumed_tree(&view->net, view->tree);
}

enum err topo_view_open(
	struct topo_view *view, const char *name, bool no_p2p, enum net_choice net)
{
	enum err e;

	*view = (struct topo_view){.is_here = !name || !strcasecmp(name, "this")};
	e = topo_rules_read(&view->rules);
	if (!e)
		e = load_named(view, name, net);
	if (no_p2p)
		view->rules.nvml_p2p_ok = false;
	if (!e)
		e = make_matrix(view);
	if (!e)
		e = fuse(view);
	if (!e)
		e = topo_view_ask(view, &view->rules, &view->topo);
	if (e)
		topo_view_close(view);
	return e;
}

void topo_view_close(struct topo_view *view)
{
	topo_free(view->topo);
	matrix_free(view->matrix);
	xml_free(view->bridged);
	xml_free(view->fused);
	xml_free(view->tree);
	free(view->name);
	*view = (struct topo_view){0};
}

void topo_view_notes(const struct topo_view *view, FILE *file, const char *prefix)
{
	const struct matrix *matrix = view->matrix;
	char text[NET_ASSUMED_TEXT];

	net_assumed_text(&view->net, text);
	if (text[0])
		fprintf(file, "%s%s\n", prefix, text);
	for (uint32_t i = 0; i < view->report.sentence_count; i++)
		fprintf(file, "%s%s\n", prefix, view->report.sentences[i]);
	if (view->instance)
		fprintf(file, "%s%s is described from %s\n", prefix, view->name,
			view->instance->source);
	if (view->instance && view->instance->inferred[0])
		fprintf(file, "%sinferred there: %s\n", prefix, view->instance->inferred);
	if (!matrix->gpu_count && !view->report.sentence_count)
		fprintf(file, "%sthere is no GPU in this machine that could be seen\n",
			prefix);
	if (matrix->inferred)
		fprintf(file,
			"%spairs that are PHB or NODE by inference: %u; the tree names "
			"no "
			"host bridges (see weft-topo(1))\n",
			prefix, matrix->inferred);
	if (matrix->bare_gpus)
		fprintf(file,
			"%snot in the table, having a PCI function but no <gpu> in the "
			"tree: %u\n",
			prefix, matrix->bare_gpus);
	if (matrix->hidden_nics)
		fprintf(file, "%snot in the table, being on no PCI bus: %u network %s\n",
			prefix, matrix->hidden_nics,
			matrix->hidden_nics == 1 ? "device" : "devices");
	for (uint32_t i = 0; i < matrix->gpu_count; i++)
		if (xml_sub(matrix->parts[i].place, "c2c")) {
			fprintf(file,
				"%sGPU NUMA ID is not in NCCL's tree and N/A here\n",
				prefix);
			break;
		}
}

void topo_view_name(const struct topo_node *node, char name[TOPO_VIEW_NAME_MAX])
{
	char busid[20];

	topo_busid_print(topo_local(node->id), busid);
	switch (node->kind) {
	case TOPO_GPU:
	case TOPO_DEV:
		snprintf(name, TOPO_VIEW_NAME_MAX, "GPU%d", node->gpu.dev);
		return;
	case TOPO_NET:
		snprintf(name, TOPO_VIEW_NAME_MAX, "%s",
			node->net.name[0] ? node->net.name : "the NIC");
		return;
	case TOPO_NVS:
		snprintf(name, TOPO_VIEW_NAME_MAX, "NVSwitch");
		return;
	case TOPO_CPU:
		if ((int32_t)topo_local(node->id) < 0)
			snprintf(name, TOPO_VIEW_NAME_MAX, "the processor");
		else
			snprintf(name, TOPO_VIEW_NAME_MAX, "NUMA node %d",
				(int)topo_local(node->id));
		return;
	case TOPO_PCI:
		snprintf(name, TOPO_VIEW_NAME_MAX, "PCIe switch %s", busid);
		return;
	default:
		snprintf(name, TOPO_VIEW_NAME_MAX, "NIC %s", busid);
	}
}

/* "GPU3" with prefix GPU, and nothing after the number. */
static bool numbered(const char *text, const char *prefix, int *number)
{
	size_t bytes = strlen(prefix);
	char *end;
	long value;

	if (strncasecmp(text, prefix, bytes) || !isdigit((unsigned char)text[bytes]))
		return false;
	value = strtol(text + bytes, &end, 10);
	*number = value < 0 || value > 1 << 20 ? -1 : (int)value;
	return !*end;
}

static const struct topo_node *gpu_numbered(const struct topo *topo, int dev)
{
	for (uint32_t i = 0; i < topo->counts[TOPO_GPU]; i++)
		if (topo->nodes[TOPO_GPU][i]->gpu.dev == dev)
			return topo->nodes[TOPO_GPU][i];
	return NULL;
}

/* Ports that became one are called mlx5_0+mlx5_1: each name finds it. */
static const struct topo_node *net_named(const struct topo *topo, const char *name)
{
	for (uint32_t i = 0; i < topo->counts[TOPO_NET]; i++) {
		const struct topo_node *net = topo->nodes[TOPO_NET][i];
		char copy[TOPO_NAME_MAX], *rest = copy, *word;

		if (!strcasecmp(net->net.name, name))
			return net;
		snprintf(copy, sizeof(copy), "%s", net->net.name);
		while ((word = strsep(&rest, "+")))
			if (!strcasecmp(word, name))
				return net;
	}
	return NULL;
}

static const struct topo_node *net_numbered(const struct topo *topo, int dev)
{
	for (uint32_t i = 0; i < topo->counts[TOPO_NET]; i++)
		if (topo->nodes[TOPO_NET][i]->net.dev == dev)
			return topo->nodes[TOPO_NET][i];
	return NULL;
}

/* The first port of the NIC at a bus id. */
static const struct topo_node *net_at(const struct topo *topo, uint64_t id)
{
	for (uint32_t i = 0; i < topo->counts[TOPO_NIC]; i++) {
		const struct topo_node *nic = topo->nodes[TOPO_NIC][i];

		for (uint32_t l = 0; topo_local(nic->id) == id && l < nic->link_count;
			l++)
			if (nic->links[l].to->kind == TOPO_NET)
				return nic->links[l].to;
	}
	return NULL;
}

static const struct topo_node *at_busid(const struct topo *topo, const char *text)
{
	uint64_t id = topo_busid_parse(text);

	if (!strchr(text, ':') || !strchr(text, '.'))
		return NULL;
	for (uint32_t i = 0; i < topo->counts[TOPO_GPU]; i++)
		if (topo_local(topo->nodes[TOPO_GPU][i]->id) == id)
			return topo->nodes[TOPO_GPU][i];
	return net_at(topo, id & ~0xfull) ? net_at(topo, id & ~0xfull) : net_at(topo, id);
}

const struct topo_node *topo_view_find(const struct topo_view *view, const char *name)
{
	const struct matrix *matrix = view->matrix;
	int number;

	if (numbered(name, "GPU", &number) || numbered(name, "", &number))
		return gpu_numbered(view->topo, number);
	if (numbered(name, "NET", &number))
		return net_numbered(view->topo, number);
	if (numbered(name, "NIC", &number))
		return number >= 0 && (uint32_t)number < matrix->nic_count
			       ? net_named(view->topo, matrix->parts[matrix->gpu_count +
								     (uint32_t)number]
							       .name)
			       : NULL;
	if (net_named(view->topo, name))
		return net_named(view->topo, name);
	return at_busid(view->topo, name);
}
