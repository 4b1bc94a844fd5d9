#include "comm/near_nets.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "comm/hosts.h"
#include "comm/machine.h"
#include "comm/state.h"
#include "net/plugin.h"
#include "topo/fuse.h"
#include "topo/topo.h"

enum { REFUSAL_BYTES = 192 };

/* All GPUs of the machine, as ranks of one job. */
static enum err topo_make(const struct xml_node *tree, struct topo **topo)
{
	int devs[TOPO_GPUS_MAX];
	struct fuse_host host = {.tree = tree, .host_hash = 1, .devs = devs};
	const struct fuse_args args = {.hosts = &host, .host_count = 1};
	struct xml_node *fused = NULL;
	struct topo_rules rules;
	enum err e = topo_rules_read(&rules);

	host.dev_count = fuse_devs(tree, devs, TOPO_GPUS_MAX);
	if (!e && !host.dev_count)
		e = err_set(ERR_SYSTEM, "NVML shows no GPU");
	rules.pxn_disable = true; /* nobody sends for another */
	if (!e)
		e = fuse_domain(&args, &fused);
	if (!e)
		e = topo_build(fused, host.host_hash, rules.nccl, topo);
	if (!e)
		e = topo_paths(*topo, &rules);
	xml_free(fused);
	return e;
}

/* NULL, and the log says why, where it is not known. */
static struct topo *topo_look(const struct net_plugin *plugin)
{
	struct xml_node *tree = machine_copy(plugin);
	struct topo *topo = NULL;

	if (tree && topo_make(tree, &topo)) {
		log_info(LOG_NET | LOG_GRAPH,
			"which network device is near to which GPU is not known: %s",
			err_last());
		topo_free(topo);
		topo = NULL;
	}
	xml_free(tree);
	return topo;
}

/* The rank that the topology has for a GPU; negative: it knows no such GPU. */
static int rank_of(const struct topo *topo, const struct gpu_place *place)
{
	for (uint32_t i = 0; place->busid[0] && i < topo->counts[TOPO_GPU]; i++) {
		const struct topo_node *gpu = topo_gpu_at(topo, i);

		if (topo_local(gpu->id) == topo_busid_parse(place->busid))
			return gpu->gpu.rank;
	}
	return -1;
}

static bool is_device(const struct net_plugin *plugin, int index, const char *name)
{
	struct plugin_device device;

	return !net_plugin_look(plugin, index, &device) && !strcmp(device.name, name);
}

/* The plugin's number of a device of the topology, which may lack one that the plugin did
 * not describe, or may be that of another plugin; negative: it has none of that name. */
static int device_of(const struct net_plugin *plugin, const struct topo_net *net)
{
	int count = net_plugin_device_count(plugin);

	if (net->dev < count && is_device(plugin, net->dev, net->name))
		return net->dev;
	for (int i = 0; i < count; i++)
		if (is_device(plugin, i, net->name))
			return i;
	return -1;
}

/* Ranks that share a GPU take the devices that are near to it in turn. */
static int nearest(const struct topo *topo, const struct net_plugin *plugin,
	const struct gpu_place *place, uint32_t turn)
{
	int rank = topo ? rank_of(topo, place) : -1;
	uint64_t id;

	if (rank < 0 || topo_local_net(topo, rank, (int)turn, &id))
		return -1;
	return device_of(plugin, &topo->nodes[TOPO_NET][topo_net_of_id(topo, id)]->net);
}

/* Those of this host before it that have the same GPU. */
static uint32_t turn_of(
	const struct comm *comm, const struct gpu_place *places, uint32_t rank)
{
	uint32_t turn = 0;

	for (uint32_t other = 0; other < rank; other++)
		turn += comm_is_near(comm, other) &&
			!strcmp(places[other].busid, places[rank].busid);
	return turn;
}

static bool shows_gpu(const struct comm *comm, const struct gpu_place *places)
{
	for (uint32_t rank = 0; rank < comm->rank_count; rank++)
		if (comm_is_near(comm, rank) && places[rank].busid[0])
			return true;
	return false;
}

/* The device of each rank of this host; of others nothing is said. */
static void devices_find(const struct comm *comm, const struct net_plugin *plugin,
	const struct gpu_place *places, int *devices)
{
	int count = net_plugin_device_count(plugin);
	struct topo *topo = shows_gpu(comm, places) ? topo_look(plugin) : NULL;
	int local = 0;

	for (uint32_t rank = 0; rank < comm->rank_count; rank++) {
		if (!comm_is_near(comm, rank))
			continue;
		devices[rank] = nearest(
			topo, plugin, &places[rank], turn_of(comm, places, rank));
		if (rank == comm->rank && devices[rank] >= 0)
			log_info(LOG_INIT | LOG_NET,
				"NET/%s : device %d is the nearest to GPU %s",
				net_plugin_name(plugin), devices[rank],
				places[rank].busid);
		if (devices[rank] < 0)
			devices[rank] = local % count;
		local++;
	}
	topo_free(topo);
}

void near_nets_choose(const struct comm *comm, struct net_plugin *plugin,
	const struct gpu_place *places, uint32_t *sharing)
{
	int *devices = net_plugin_device_count(plugin) > 1
			       ? calloc(comm->rank_count, sizeof(*devices))
			       : NULL;

	*sharing = comm_near_count(comm);
	if (!devices) /* there is one; for want of memory it stays as it was opened */
		return;
	devices_find(comm, plugin, places, devices);
	net_plugin_use(plugin, devices[comm->rank]); /* if not, the log says why */
	*sharing = 0;
	for (uint32_t rank = 0; rank < comm->rank_count; rank++)
		*sharing += comm_is_near(comm, rank) &&
			    devices[rank] == devices[comm->rank];
	free(devices);
}

/* ---- how far ---- */

/* The topology's id of the device that the plugin is used by; false: it is not there. */
static bool net_of(const struct topo *topo, const struct net_plugin *plugin, uint64_t *id)
{
	const char *name = net_plugin_device(plugin)->name;

	for (uint32_t i = 0; i < topo->counts[TOPO_NET]; i++)
		if (!strcmp(topo->nodes[TOPO_NET][i]->net.name, name)) {
			*id = topo->nodes[TOPO_NET][i]->id;
			return true;
		}
	return false;
}

const char *near_nets_refusal(
	const struct net_plugin *plugin, const struct gpu_place *place)
{
	static _Thread_local char text[REFUSAL_BYTES];
	struct topo *topo = topo_look(plugin);
	int rank = topo ? rank_of(topo, place) : -1;
	struct topo_gdr verdict;
	uint64_t id = 0;

	if (rank < 0 || !net_of(topo, plugin, &id)) {
		topo_free(topo);
		return "the distance of GPU and network is not known; "
		       "NCCL_NET_GDR_LEVEL=SYS allows any";
	}
	topo_gdr(topo, rank, id, false, &verdict);
	topo_free(topo);
	if (verdict.is_measured)
		snprintf(text, sizeof(text),
			"GPU %s and %s are further apart than NCCL_NET_GDR_LEVEL allows "
			"(%s)",
			place->busid, net_plugin_device(plugin)->name,
			path_name(verdict.level));
	else
		snprintf(text, sizeof(text), "GPU %s and %s: %s", place->busid,
			net_plugin_device(plugin)->name, verdict.rule);
	return verdict.mode == GDR_OFF ? text : NULL;
}
