/* Everything about a machine as JSON. Nodes, links and paths look as in `weft graph`. */
#include <string.h>

#include "topo/decide_path.h"
#include "weft/graph_json.h"
#include "weft/topo.h"

static json_t *cell_rows(const struct matrix *matrix)
{
	uint32_t count = matrix->gpu_count + matrix->nic_count;
	json_t *rows = json_array();

	for (uint32_t r = 0; r < count; r++) {
		json_t *row = json_array();

		for (uint32_t c = 0; c < count; c++) {
			char text[MATRIX_CELL_MAX];

			matrix_cell_text(*matrix_at(matrix, r, c), text);
			json_array_append_new(row, json_string(r == c ? "X" : text));
		}
		json_array_append_new(rows, row);
	}
	return rows;
}

static json_t *matrix_json(const struct matrix *matrix)
{
	json_t *object = json_object(), *parts = json_array();

	for (uint32_t i = 0; i < matrix->gpu_count + matrix->nic_count; i++) {
		const struct matrix_part *part = &matrix->parts[i];
		bool is_gpu = i < matrix->gpu_count;
		json_t *row = json_object();

		json_object_set_new(row, "label",
			json_sprintf("%s%d", is_gpu ? "GPU" : "NIC", part->number));
		json_object_set_new(
			row, is_gpu ? "busid" : "name", json_string(part->name));
		if (is_gpu) {
			json_object_set_new(row, "cpuAffinity",
				json_string(part->cpus ? part->cpus : "N/A"));
			json_object_set_new(row, "numaAffinity", json_string(part->numa));
			json_object_set_new(
				row, "gpuNumaId", json_string(part->gpu_numa));
		}
		json_array_append_new(parts, row);
	}
	json_object_set_new(object, "parts", parts);
	json_object_set_new(object, "cells", cell_rows(matrix));
	json_object_set_new(object, "inferred", json_integer(matrix->inferred));
	return object;
}

/* `direct`: where no pair was led through the host, to know the rule. */
static json_t *p2p_json(const struct topo *topo, const struct topo *direct)
{
	json_t *list = json_array();

	for (uint32_t a = 0; a < topo->counts[TOPO_GPU]; a++)
		for (uint32_t b = 0; b < topo->counts[TOPO_GPU]; b++) {
			struct topo_p2p verdict;
			json_t *pair;

			if (a == b)
				continue;
			topo_p2p(direct, a, b, &verdict);
			if (verdict.ok)
				topo_p2p(topo, a, b, &verdict);
			pair = json_object();
			json_object_set_new(pair, "from",
				json_integer(topo_gpu_at(topo, a)->gpu.dev));
			json_object_set_new(
				pair, "to", json_integer(topo_gpu_at(topo, b)->gpu.dev));
			json_object_set_new(pair, "transport",
				json_string(verdict.ok			    ? "P2P"
					    : topo_shm_connects(topo, a, b) ? "SHM"
									    : "NET"));
			json_object_set_new(
				pair, "direct", json_string(path_name(verdict.type)));
			json_object_set_new(pair, "read", json_boolean(verdict.read));
			json_object_set_new(pair, "rule", json_string(verdict.rule));
			json_array_append_new(list, pair);
		}
	return list;
}

static json_t *gdr_json(const struct topo *topo)
{
	static const char *const modes[] = {"off", "on", "pci"};
	json_t *list = json_array();

	for (uint32_t g = 0; g < topo->counts[TOPO_GPU]; g++)
		for (uint32_t n = 0; n < topo->counts[TOPO_NET]; n++) {
			struct topo_gdr send, receive;
			json_t *pair = json_object();

			topo_gdr(topo, topo_gpu_at(topo, g)->gpu.rank,
				topo->nodes[TOPO_NET][n]->id, true, &send);
			topo_gdr(topo, topo_gpu_at(topo, g)->gpu.rank,
				topo->nodes[TOPO_NET][n]->id, false, &receive);
			json_object_set_new(
				pair, "gpu", json_integer(topo_gpu_at(topo, g)->gpu.dev));
			json_object_set_new(pair, "net",
				json_integer(topo->nodes[TOPO_NET][n]->net.dev));
			json_object_set_new(pair, "send", json_string(modes[send.mode]));
			json_object_set_new(
				pair, "receive", json_string(modes[receive.mode]));
			json_object_set_new(pair, "relayRank", json_integer(send.relay));
			json_object_set_new(pair, "rule", json_string(send.rule));
			json_array_append_new(list, pair);
		}
	return list;
}

enum err topo_json(FILE *file, const struct topo_view *view)
{
	json_t *object = json_object(), *notes = json_array();
	json_t *system = graph_json_system(view->topo, false);
	struct topo *direct;
	enum err e = topo_view_direct(view, &direct);
	char text[NET_ASSUMED_TEXT];
	int failed;

	if (e) {
		json_decref(object);
		json_decref(notes);
		json_decref(system);
		return e;
	}
	json_object_set_new(object, "machine", json_string(view->name));
	json_object_set_new(object, "matrix", matrix_json(view->matrix));
	json_object_del(system, "note"); /* that of weft graph: nothing is trimmed here */
	json_object_set_new(object, "system", system);
	json_object_set_new(object, "paths", graph_json_paths(view->topo));
	json_object_set_new(object, "p2p", p2p_json(view->topo, direct));
	topo_free(direct);
	json_object_set_new(object, "gdr", gdr_json(view->topo));
	json_object_set_new(object, "net", json_string(net_assumed_name(&view->net)));
	net_assumed_text(&view->net, text);
	if (text[0])
		json_array_append_new(notes, json_string(text));
	for (uint32_t i = 0; i < view->report.sentence_count; i++)
		json_array_append_new(notes, json_string(view->report.sentences[i]));
	json_object_set_new(object, "notes", notes);
	failed = json_dumpf(object, file, JSON_INDENT(1) | JSON_REAL_PRECISION(9));
	if (failed)
		err_set(ERR_SYSTEM, "the JSON text cannot be written: %m");
	json_decref(object);
	if (failed)
		return ERR_SYSTEM;
	fputc('\n', file);
	return OK;
}
