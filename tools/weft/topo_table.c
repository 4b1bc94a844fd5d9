/* Tables of paths for people, and the log block for scripts. */
#include <string.h>

#include "common/terminal.h"
#include "topo/print.h"
#include "weft/topo.h"

enum { COLUMNS_MAX = 8, LABEL_BYTES = 18, CELL_BYTES = 64, CELL_WIDTH = 12 };

static void print_cell(FILE *file, const struct topo_path *path, bool last)
{
	char text[CELL_BYTES];

	if (path->type == PATH_LOC && !path->hop_count)
		snprintf(text, sizeof(text), "X");
	else
		snprintf(text, sizeof(text), "%s %.1f/%u", path_name(path->type),
			(double)path->bw, path->hop_count);
	fprintf(file, "  %-*s", last ? 0 : CELL_WIDTH, text);
}

static void short_name(const struct topo_node *node, char text[LABEL_BYTES], int most)
{
	char name[TOPO_VIEW_NAME_MAX];

	topo_view_name(node, name);
	if (node->kind == TOPO_CPU)
		snprintf(text, LABEL_BYTES, "node %d", (int)topo_local(node->id));
	else if (strlen(name) <= (size_t)most)
		snprintf(text, LABEL_BYTES, "%.*s", LABEL_BYTES - 1, name);
	else
		snprintf(text, LABEL_BYTES, "%.*s..", most - 2, name);
}

static int label_width(const struct topo *topo, enum topo_kind kind)
{
	char text[LABEL_BYTES];
	int widest = 0;

	for (uint32_t i = 0; i < topo->counts[kind]; i++) {
		short_name(topo->nodes[kind][i], text, LABEL_BYTES - 1);
		widest = (int)strlen(text) > widest ? (int)strlen(text) : widest;
	}
	return widest;
}

/* Columns of a table that fit beside the labels. */
static uint32_t columns_at_once(const struct topo *topo, enum topo_kind kind)
{
	int columns = terminal_columns();
	int room = (columns - label_width(topo, kind)) / (CELL_WIDTH + 2);

	if (!columns || room > COLUMNS_MAX)
		return COLUMNS_MAX;
	return room < 1 ? 1 : (uint32_t)room;
}

/* A few columns of a table at a time, so that lines stay readable. */
static void print_part(FILE *file, const struct topo *topo, const enum topo_kind kinds[2],
	uint32_t first)
{
	uint32_t end = first + columns_at_once(topo, kinds[0]);
	int width = label_width(topo, kinds[0]);
	char text[LABEL_BYTES];

	end = end < topo->counts[kinds[1]] ? end : topo->counts[kinds[1]];
	fprintf(file, "%-*s", width, "");
	for (uint32_t c = first; c < end; c++) {
		short_name(topo->nodes[kinds[1]][c], text, CELL_WIDTH);
		fprintf(file, "  %-*s", c == end - 1 ? 0 : CELL_WIDTH, text);
	}
	fprintf(file, "\n");
	for (uint32_t r = 0; r < topo->counts[kinds[0]]; r++) {
		const struct topo_node *node = topo->nodes[kinds[0]][r];

		short_name(node, text, LABEL_BYTES - 1);
		fprintf(file, "%-*s", width, text);
		for (uint32_t c = first; node->paths[kinds[1]] && c < end; c++)
			print_cell(file, topo_path(node, kinds[1], c), c == end - 1);
		fprintf(file, "\n");
	}
}

static void print_line(void *context, const char *line)
{
	fprintf(context, "%s\n", line);
}

void topo_tables(FILE *file, const struct topo_view *view)
{
	static const struct {
		const char *title;
		enum topo_kind kinds[2];
	} tables[] = {
		{"from GPU to GPU", {TOPO_GPU, TOPO_GPU}},
		{"from GPU to NIC (sending)", {TOPO_GPU, TOPO_NET}},
		{"from NIC to GPU (receiving)", {TOPO_NET, TOPO_GPU}},
		{"from GPU to NUMA node", {TOPO_GPU, TOPO_CPU}},
	};
	const struct topo *topo = view->topo;

	fprintf(file, "Paths of %s: type, GB/s in one direction / hops\n", view->name);
	for (size_t i = 0; i < sizeof(tables) / sizeof(tables[0]); i++) {
		const enum topo_kind *kinds = tables[i].kinds;

		if (!topo->counts[kinds[0]] || !topo->counts[kinds[1]])
			continue;
		fprintf(file, "\n%s\n", tables[i].title);
		for (uint32_t c = 0; c < topo->counts[kinds[1]];
			c += columns_at_once(topo, kinds[0]))
			print_part(file, topo, kinds, c);
	}
	fprintf(file, "\nas NCCL logs it (NCCL_DEBUG=INFO, NCCL_DEBUG_SUBSYS=GRAPH)%s\n",
		topo->is_inter ? " in a job of several such machines" : "");
	topo_print(topo, print_line, file);
}
