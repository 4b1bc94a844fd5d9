#include "topo/discover.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/log.h"
#include "base/param.h"
#include "topo/nets.h"
#include "topo/nvml.h"
#include "topo/place.h"
#include "topo/seen.h"

enum { P2P_GPUS_MAX = 32, WHY_BYTES = 160 };

/* Left by the host for its virtual machines. */
static const char virtual_file[] = "/var/run/nvidia-topologyd/virtualTopology.xml";

static enum err attr_default_int(struct xml_node *node, const char *name, int64_t value)
{
	char text[24];

	snprintf(text, sizeof(text), "%lld", (long long)value);
	return xml_attr_default(node, name, text);
}

/* Parallel links to one far end become one element with a count. */
static enum err nvlinks_add(struct xml_node *node, const struct nvml_gpu *gpu)
{
	enum err e = OK;

	for (uint32_t i = 0; i < gpu->link_count && !e; i++) {
		const char *remote = gpu->links[i];
		struct xml_node *link = xml_sub_with(node, "nvlink", "target", remote);
		int64_t count = link ? xml_int(link, "count", 0) : 0;

		if (!link) {
			link = xml_add(node, "nvlink");
			if (!link)
				return ERR_SYSTEM;
			e = xml_attr_set(link, "target", remote);
		}
		if (!e)
			e = xml_attr_setf(link, "count", "%lld", (long long)count + 1);
	}
	return e;
}

/* A far end that cannot be seen is taken for an NVSwitch: in a virtual machine it is. */
static enum err targets_fill(const struct seen *seen, struct xml_node *gpu_node)
{
	for (uint32_t i = 0; i < gpu_node->sub_count; i++) {
		struct xml_node *link = gpu_node->subs[i];
		const char *target = xml_attr(link, "target");
		char class_id[16] = "0x068000";
		enum err e;

		if (strcmp(link->name, "nvlink") || !target)
			continue;
		if (!xml_attr(link, "tclass"))
			seen_class(seen, target, class_id);
		e = xml_attr_default(link, "tclass", class_id);
		if (e)
			return e;
	}
	return OK;
}

static enum err gpu_links_fill(
	const struct placing *place, struct xml_node *node, const struct nvml_gpu *gpu)
{
	struct xml_node *c2c;
	enum err e = OK;

	if (!xml_sub(node, "nvlink"))
		e = nvlinks_add(node, gpu);
	if (!e && gpu->c2c_count && !xml_sub(node, "c2c")) {
		c2c = xml_add(node, "c2c");
		if (!c2c)
			return ERR_SYSTEM;
		e = xml_attr_setf(c2c, "bw", "%u", gpu->c2c_bw_mbs);
		if (!e)
			e = xml_attr_setf(c2c, "count", "%u", gpu->c2c_count);
	}
	return e ? e : targets_fill(place->seen, node);
}

static enum err gpu_fill(const struct placing *place, const struct nvml_gpu *gpu)
{
	/* GeForce boards do not let other devices into their memory. */
	int gdr = !strstr(gpu->name, "GeForce");
	struct xml_node *pci, *node;
	enum err e = place_pci(place, gpu->busid, "0x03", &pci);

	if (e)
		return e;
	node = xml_sub(pci, "gpu");
	if (!node)
		node = xml_add(pci, "gpu");
	if (!node)
		return ERR_SYSTEM;
	e = attr_default_int(node, "dev", gpu->index);
	if (!e)
		e = attr_default_int(node, "sm", gpu->sm);
	if (!e)
		e = attr_default_int(node, "rank", gpu->index);
	if (!e)
		e = attr_default_int(node, "gdr", gdr);
	return e ? e : gpu_links_fill(place, node, gpu);
}

/* Up to thousandths, whatever the locale. */
static enum err attr_default_latency(struct xml_node *node, float us)
{
	long thousandths = (long)((double)us * 1000 + 0.5);
	char text[32];

	if (thousandths % 1000)
		snprintf(text, sizeof(text), "%ld.%03ld", thousandths / 1000,
			thousandths % 1000);
	else
		snprintf(text, sizeof(text), "%ld", thousandths / 1000);
	return xml_attr_default(node, "latency", text);
}

static enum err net_attrs(struct xml_node *node, const struct net_seen *net, uint32_t dev)
{
	char guid[24];
	enum err e;

	snprintf(guid, sizeof(guid), "0x%llx", (unsigned long long)net->guid);
	e = xml_attr_setf(node, "dev", "%u", dev);
	if (!e)
		e = attr_default_latency(node, net->latency_us);
	if (!e)
		e = attr_default_int(node, "speed", net->speed_mbps);
	if (!e)
		e = attr_default_int(node, "port", net->port);
	if (!e)
		e = xml_attr_default(node, "guid", guid);
	if (!e)
		e = attr_default_int(node, "maxconn", net->connections_max);
	return e ? e : attr_default_int(node, "gdr", net->gdr);
}

static struct xml_node *net_find(struct xml_node *tree, const char *name)
{
	struct xml_node *node = NULL;

	while ((node = xml_find(tree, "net", node))) {
		const char *has = xml_attr(node, "name");

		if (has && !strcmp(has, name))
			return node;
	}
	return NULL;
}

static enum err net_fill(
	const struct placing *place, const struct nets_seen *nets, uint32_t dev)
{
	const struct net_seen *net = &nets->nets[dev];
	struct xml_node *node = net_find(place->tree, net->name), *parent, *nic;
	bool is_further_port = false;
	enum err e;

	/* The second port of a device has the name of the first. */
	for (uint32_t i = 0; i < dev; i++)
		is_further_port |= !strcmp(nets->nets[i].name, net->name);
	if (node && !is_further_port)
		return net_attrs(node, net, dev);
	e = net->busid[0] ? place_pci(place, net->busid, "0x02", &parent)
			  : place_first_cpu(place, &parent);
	if (e)
		return e;
	nic = xml_sub(parent, "nic");
	if (!nic)
		nic = xml_add(parent, "nic");
	node = nic ? xml_add(nic, "net") : NULL;
	if (!node)
		return ERR_SYSTEM;
	e = xml_attr_set(node, "name", net->name);
	return e ? e : net_attrs(node, net, dev);
}

static void fabric_say(const struct nvml_gpu *gpu, struct discover_report *report)
{
	char cluster[33];

	if (gpu->fabric == FABRIC_NONE)
		return;
	if (gpu->fabric != FABRIC_READY) {
		report_add(report,
			"GPU %d is not registered with its NVLink fabric (%s): look at "
			"the fabric manager",
			gpu->index,
			gpu->fabric == FABRIC_IN_PROGRESS ? "in progress"
							  : "not started");
		return;
	}
	if (gpu->fabric_status) {
		report_add(report,
			"GPU %d could not be registered with its NVLink fabric (NVML "
			"code %d): look at the fabric manager",
			gpu->index, gpu->fabric_status);
		return;
	}
	for (int i = 0; i < 16; i++)
		snprintf(cluster + 2 * i, 3, "%02x", gpu->cluster[i]);
	if (strspn(cluster, "0") < 32)
		report_add(report, "its GPUs are in clique %u of NVLink cluster %s",
			gpu->clique, cluster);
}

/* What NVML says that a user should know and no attribute holds. */
static void gpu_say(const struct seen *seen, const struct nvml_gpu *gpu,
	struct discover_report *report)
{
	struct seen_pci pci;

	if (gpu->is_mig)
		report_add(report,
			"GPU %d is split into instances (MIG): it is shown whole, and "
			"its instances cannot reach other GPUs directly",
			gpu->index);
	if (gpu->links_down)
		report_add(report, "GPU %d has %u NVLinks that are down", gpu->index,
			gpu->links_down);
	if (gpu->gen && gpu->width &&
		(gpu->gen < gpu->gen_max || gpu->width < gpu->width_max))
		report_add(report,
			"GPU %d runs its PCI link at Gen%u x%u and could do Gen%u x%u; "
			"NCCL counts what runs now",
			gpu->index, gpu->gen, gpu->width, gpu->gen_max, gpu->width_max);
	if (!seen_pci(seen, gpu->busid, &pci))
		report_add(report,
			"GPU %d (%s) is not in the PCI tree that can be seen: NCCL hangs "
			"it on a CPU of unknown cores",
			gpu->index, gpu->busid);
	fabric_say(gpu, report);
}

/* GPUs on the bus that NVML does not show are kept from us. */
static void hidden_say(const struct seen *seen, const struct nvml_gpu *gpus,
	uint32_t count, struct discover_report *report)
{
	struct seen_names *names = malloc(sizeof(*names));
	uint32_t hidden = 0;

	if (!names)
		return;
	seen_list(seen, "bus/pci/devices", names);
	for (uint32_t i = 0; i < names->count; i++) {
		bool is_shown = false;
		struct seen_pci pci;

		if (!seen_pci(seen, names->names[i], &pci) ||
			strcmp(pci.vendor, "0x10de") || strncmp(pci.class_id, "0x03", 4))
			continue;
		for (uint32_t g = 0; g < count; g++)
			is_shown |= !strcmp(gpus[g].busid, pci.busid);
		hidden += !is_shown;
	}
	free(names);
	if (hidden)
		report_add(report,
			"%u NVIDIA GPU%s on the PCI bus %s not shown by NVML: kept from "
			"this container, or without a driver",
			hidden, hidden == 1 ? "" : "s", hidden == 1 ? "is" : "are");
}

static void p2p_ask(
	const struct nvml *nvml, uint32_t count, struct discover_report *report)
{
	bool known = true, ok = true;

	if (count < 2 || count > P2P_GPUS_MAX)
		return;
	for (uint32_t a = 0; a < count; a++) {
		for (uint32_t b = a + 1; b < count && known; b++) {
			bool here;

			ok &= nvml_p2p_ok(nvml, a, b, &here);
			known &= here;
		}
	}
	report->p2p_known = known;
	report->p2p_ok = known && ok;
	if (known && !ok)
		report_add(report, "the driver does not let all GPUs reach each other "
				   "directly (nvidia-smi topo -p2p r)");
}

/* All GPUs that NVML shows, report->gpu_count of them; NULL when there are none. */
static struct nvml_gpu *gpus_look(const struct discover_args *args,
	const struct seen *seen, struct discover_report *report)
{
	const char *library = args->nvml_library;
	char why[WHY_BYTES] = "";
	struct nvml_gpu *gpus;
	struct nvml *nvml = NULL;
	uint32_t count = 0;

	report->gpu_count = 0;
	if (!library)
		library = param_text(PARAM_NVML_LIBRARY);
	if (library || seen_is_here(seen))
		nvml = nvml_open(library, why, sizeof(why));
	else
		snprintf(why, sizeof(why), "another machine is shown, without its NVML");
	if (!nvml) {
		report_add(report, "%s: GPUs are not known", why);
		return NULL;
	}
	snprintf(report->driver, sizeof(report->driver), "%s", nvml_driver(nvml));
	gpus = calloc(nvml_gpu_count(nvml) + 1, sizeof(*gpus));
	for (uint32_t i = 0; gpus && i < nvml_gpu_count(nvml); i++) {
		if (nvml_gpu_read(nvml, i, &gpus[count], why, sizeof(why)))
			count++;
		else
			report_add(report, "GPU %u cannot be reached: %s", i, why);
	}
	if (!count)
		report_add(report, "NVML shows no GPU");
	p2p_ask(nvml, nvml_gpu_count(nvml), report);
	nvml_close(nvml);
	report->gpu_count = count;
	return gpus;
}

/* The order is NCCL's: the first rank's GPU, all network devices, the other GPUs. */
static enum err all_fill(const struct placing *place, const struct nets_seen *nets)
{
	enum err e = OK;

	if (place->gpu_count)
		e = gpu_fill(place, &place->gpus[0]);
	for (uint32_t i = 0; i < nets->count && !e; i++)
		e = net_fill(place, nets, i);
	for (uint32_t i = 1; i < place->gpu_count && !e; i++)
		e = gpu_fill(place, &place->gpus[i]);
	return e;
}

/* CPUs that nothing hangs on: for people, and for ranks without a GPU. Where devices have
 * no NUMA node, the CPU they hang on stands for all. */
static enum err cpus_fill(const struct placing *place)
{
	enum err e = OK;

	if (xml_sub_with(place->tree, "cpu", "numaid", "-1"))
		return OK;
	for (uint32_t i = 0; i < seen_numa_count(place->seen) && !e; i++) {
		struct xml_node *cpu;
		char numa[16];

		snprintf(numa, sizeof(numa), "%d", seen_numa_at(place->seen, i));
		e = place_cpu(place, numa, &cpu);
	}
	return e;
}

static enum err look(const struct discover_args *args, struct xml_node *tree,
	bool all_cpus, struct discover_report *report)
{
	struct seen_args where = {.sysfs = args->sysfs, .hwloc_xml = args->hwloc_xml};
	struct placing place = {.tree = tree, .report = report};
	struct nets_seen *nets = calloc(1, sizeof(*nets));
	struct nvml_gpu *gpus = NULL;
	struct seen *seen = NULL;
	enum err e;

	if (!nets)
		return err_set(ERR_SYSTEM, "no memory to look at the machine");
	e = seen_open(&where, &seen);
	if (e)
		goto out;
	gpus = gpus_look(args, seen, report);
	place.seen = seen;
	place.gpus = gpus;
	place.gpu_count = gpus ? report->gpu_count : 0;
	if (!seen_has_pci(seen))
		report_add(report, "the PCI tree is hidden: places are unknown and link "
				   "speeds are NCCL's defaults");
	if (args->nets) {
		*nets = *args->nets;
		report->net_count = nets->count;
	} else {
		nets_look(seen, nets, report);
	}
	for (uint32_t i = 0; i < place.gpu_count; i++)
		gpu_say(seen, &gpus[i], report);
	hidden_say(seen, gpus, place.gpu_count, report);
	e = all_fill(&place, nets);
	if (!e && all_cpus)
		e = cpus_fill(&place);
out:
	seen_close(seen);
	free(gpus);
	free(nets);
	return e;
}

enum err discover_into(const struct discover_args *args, struct xml_node *tree,
	struct discover_report *report)
{
	return look(args, tree, false, report);
}

static enum err tree_new(struct xml_node **tree)
{
	enum err e;

	*tree = xml_add(NULL, "system");
	if (!*tree)
		return ERR_SYSTEM;
	e = xml_attr_set(*tree, "version", "1");
	if (e)
		xml_free(*tree);
	return e;
}

enum err discover(const struct discover_args *args, struct xml_node **out,
	struct discover_report *report)
{
	struct xml_node *tree;
	enum err e = tree_new(&tree);

	*report = (struct discover_report){0};
	if (e)
		return e;
	e = look(args, tree, true, report);
	if (e) {
		xml_free(tree);
		return e;
	}
	*out = tree;
	return OK;
}

/* The file to start from; NULL when there is none. */
static const char *file_choose(struct discover_report *report)
{
	const char *file = param_text(PARAM_TOPO_FILE);

	if (!file)
		return access(virtual_file, R_OK) ? NULL : virtual_file;
	if (!access(file, R_OK))
		return file;
	log_info(LOG_GRAPH, "topology file %s cannot be read: %m", file);
	report_add(report, "the topology file %s cannot be read: detection alone is used",
		file);
	return NULL;
}

enum err machine_tree_of(const struct discover_args *args, struct xml_node **out,
	struct discover_report *report)
{
	const char *dump = param_text(PARAM_TOPO_DUMP_FILE), *file;
	struct discover_report before = {0};
	struct xml_node *tree;
	enum err e;

	file = file_choose(&before);
	if (!file) {
		e = discover(args, &tree, report);
	} else {
		*report = (struct discover_report){0};
		snprintf(report->file, sizeof(report->file), "%s", file);
		e = xml_read(file, "system", &tree);
		if (e)
			return e;
		e = discover_into(args, tree, report);
		if (e)
			xml_free(tree);
	}
	if (e)
		return e;
	if (before.sentence_count)
		report_add(report, "%s", before.sentences[0]);
	/* As in NCCL, a dump that cannot be written is only worth a warning. */
	if (dump && !args->no_dump && xml_write(dump, tree))
		report_add(report, "the topology could not be written to %s", dump);
	*out = tree;
	return OK;
}

enum err machine_tree(struct xml_node **tree, struct discover_report *report)
{
	return machine_tree_of(&(struct discover_args){0}, tree, report);
}
