/* The machine itself: nodes, links and paths of one domain. */
#include <inttypes.h>
#include <stdio.h>

#include "weft/graph_json.h"

/* A rack's paths are too many to list every hop of. */
enum { VIA_GPUS_MAX = 32, TEXT_BYTES = 24 };

static json_t *label(const struct topo_node *node)
{
	char text[TOPO_LABEL_MAX];

	topo_label(node, text);
	return json_string(text);
}

static json_t *gpus(const struct topo *topo)
{
	json_t *list = json_array();

	for (uint32_t i = 0; i < topo->counts[TOPO_GPU]; i++) {
		const struct topo_node *node = topo->nodes[TOPO_GPU][i];
		json_t *gpu = json_object();
		char busid[20];

		topo_busid_print(topo_local(node->id), busid);
		json_object_set_new(gpu, "index", json_integer(i));
		json_object_set_new(gpu, "name", label(node));
		json_object_set_new(gpu, "busid", json_string(busid));
		json_object_set_new(gpu, "rank", json_integer(node->gpu.rank));
		json_object_set_new(gpu, "dev", json_integer(node->gpu.dev));
		json_object_set_new(gpu, "sm", json_integer(node->gpu.sm));
		json_object_set_new(gpu, "gdr", json_integer(node->gpu.gdr));
		json_array_append_new(list, gpu);
	}
	return list;
}

static json_t *net_json(const struct topo_node *node, bool has_coll)
{
	const struct topo_net *facts = &node->net;
	json_t *net = json_object();
	char asic[TEXT_BYTES];

	snprintf(asic, sizeof(asic), "0x%" PRIx64, facts->asic);
	json_object_set_new(net, "index", json_integer(node->index));
	json_object_set_new(net, "name", label(node));
	json_object_set_new(net, "dev", json_integer(facts->dev));
	json_object_set_new(net, "netName", json_string(facts->name));
	json_object_set_new(net, "bw", graph_json_float(facts->bw));
	json_object_set_new(net, "latency", graph_json_float(facts->latency));
	json_object_set_new(net, "port", json_integer(facts->port));
	json_object_set_new(net, "asic", json_string(asic));
	json_object_set_new(net, "gdr", json_integer(facts->gdr));
	json_object_set_new(net, "coll", json_integer(has_coll && facts->coll));
	json_object_set_new(net, "maxChannels", json_integer(facts->max_channels));
	json_object_set_new(net, "localGpuIndex", json_integer(facts->local_gpu));
	json_object_set_new(net, "rail", json_integer(facts->rail));
	json_object_set_new(net, "plane", json_integer(facts->plane));
	return net;
}

static json_t *cpus(const struct topo *topo)
{
	json_t *list = json_array();

	for (uint32_t i = 0; i < topo->counts[TOPO_CPU]; i++) {
		const struct topo_node *node = topo->nodes[TOPO_CPU][i];
		json_t *cpu = json_object();

		json_object_set_new(cpu, "name", label(node));
		json_object_set_new(cpu, "arch", json_integer(node->cpu.arch));
		json_object_set_new(cpu, "vendor", json_integer(node->cpu.vendor));
		json_object_set_new(cpu, "model", json_integer(node->cpu.model));
		json_array_append_new(list, cpu);
	}
	return list;
}

static void add_links(json_t *list, const struct topo_node *node)
{
	for (uint32_t i = 0; i < node->link_count; i++) {
		const struct topo_link *link = &node->links[i];
		json_t *row = json_array();

		json_array_append_new(row, label(node));
		json_array_append_new(row, label(link->to));
		json_array_append_new(row, json_string(link_name(link->type)));
		json_array_append_new(row, graph_json_float(link->bw));
		json_array_append_new(list, row);
	}
}

json_t *graph_json_system(const struct topo *topo, bool collnet)
{
	/* Between nodes, what a file says of a NIC counts for nothing without a plugin.
	 */
	bool has_coll = collnet || !topo->is_inter;
	json_t *system = json_object(), *nets = json_array(), *links = json_array();

	json_object_set_new(
		system, "note", json_string("trimmed system of rank 0's node"));
	json_object_set_new(system, "maxBw", graph_json_float(topo->max_bw));
	json_object_set_new(system, "totalBw", graph_json_float(topo->total_bw));
	json_object_set_new(system, "inter", json_integer(topo->is_inter));
	json_object_set_new(system, "nHosts", json_integer(topo->host_count));
	json_object_set_new(system, "gpus", gpus(topo));
	for (uint32_t i = 0; i < topo->counts[TOPO_NET]; i++)
		json_array_append_new(nets, net_json(topo->nodes[TOPO_NET][i], has_coll));
	json_object_set_new(system, "nets", nets);
	json_object_set_new(system, "cpus", cpus(topo));
	for (int kind = 0; kind < TOPO_KINDS; kind++)
		for (uint32_t i = 0; i < topo->counts[kind]; i++)
			add_links(links, topo->nodes[kind][i]);
	json_object_set_new(system, "links", links);
	return system;
}

static json_t *path_json(const struct topo_path *path, bool with_via)
{
	json_t *object = json_object(), *via = json_array();

	json_object_set_new(object, "type", json_string(path_name(path->type)));
	json_object_set_new(object, "bw", graph_json_float(path->bw));
	json_object_set_new(object, "hops", json_integer(path->hop_count));
	for (uint32_t i = 0; with_via && i < path->hop_count; i++)
		json_array_append_new(via, label(path->hops[i]->to));
	if (json_array_size(via))
		json_object_set(object, "via", via);
	json_decref(via);
	return object;
}

static json_t *table(
	const struct topo *topo, enum topo_kind from, enum topo_kind to, bool with_via)
{
	static const struct topo_path none = {.type = PATH_DIS};
	json_t *rows = json_array();

	for (uint32_t i = 0; i < topo->counts[from]; i++) {
		const struct topo_node *node = topo->nodes[from][i];
		json_t *row = json_array();

		for (uint32_t j = 0; j < topo->counts[to]; j++)
			json_array_append_new(row,
				path_json(node->paths[to] ? &node->paths[to][j] : &none,
					with_via));
		json_array_append_new(rows, row);
	}
	return rows;
}

static json_t *gdr_modes(const struct topo *topo)
{
	json_t *rows = json_array();

	for (uint32_t i = 0; i < topo->counts[TOPO_GPU]; i++) {
		json_t *row = json_array();

		for (uint32_t j = 0; j < topo->counts[TOPO_NET]; j++) {
			int rank = topo_gpu_at(topo, i)->gpu.rank, modes[2];
			struct topo_gdr verdict;

			for (int is_send = 0; is_send < 2; is_send++) {
				topo_gdr(topo, rank, topo->nodes[TOPO_NET][j]->id,
					is_send, &verdict);
				modes[is_send] = verdict.mode;
			}
			json_array_append_new(row, graph_json_ints(modes, 2));
		}
		json_array_append_new(rows, row);
	}
	return rows;
}

json_t *graph_json_paths(const struct topo *topo)
{
	bool with_via = topo->counts[TOPO_GPU] <= VIA_GPUS_MAX;
	json_t *paths = json_object();

	json_object_set_new(paths, "GPU-GPU", table(topo, TOPO_GPU, TOPO_GPU, with_via));
	json_object_set_new(paths, "GPU-NET", table(topo, TOPO_GPU, TOPO_NET, with_via));
	json_object_set_new(paths, "NET-GPU", table(topo, TOPO_NET, TOPO_GPU, false));
	json_object_set_new(paths, "GPU-CPU", table(topo, TOPO_GPU, TOPO_CPU, false));
	json_object_set_new(paths, "gdrMode", gdr_modes(topo));
	json_object_set_new(paths, "gdrModeNote",
		json_string("[recv(write),send(read)] per GPU x NET: 0 disabled 1 "
			    "default 2 PCI"));
	return paths;
}
