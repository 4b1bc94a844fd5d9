/* weft plan --groups: every group of ranks, and the worst way between two neighbours. */
#include <jansson.h>
#include <stdlib.h>
#include <string.h>

#include "topo/matrix.h"
#include "weft/command.h"
#include "weft/json_print.h"
#include "weft/plan.h"

enum { WAY_BYTES = 40 };

/* The inside of a machine: what nvidia-smi would print of it. */
struct inside {
	struct xml_node *tree; /* owned */
	struct matrix *matrix; /* owned */
	uint32_t nodes;	       /* pods of one machine; 1: not cut */
};

static enum err inside_make(const struct plan_run *run, struct inside *in)
{
	struct sim_site whole = run->net.site;
	enum err e;

	*in = (struct inside){.nodes = run->args->pods ? run->args->pods : 1};
	whole.gpus *= in->nodes;
	e = sim_site_tree(&whole, &in->tree);
	return e ? e : matrix_build(in->tree, &in->matrix);
}

static void inside_free(struct inside *in)
{
	matrix_free(in->matrix);
	xml_free(in->tree);
}

/* Two ranks of one node. */
static struct matrix_cell cell_of(
	const struct plan_run *run, const struct inside *in, uint32_t a, uint32_t b)
{
	uint32_t gpus = run->net.site.gpus, first = a / gpus % in->nodes * gpus;
	uint32_t row = first + a % gpus, column = first + b % gpus;

	if (row >= in->matrix->gpu_count || column >= in->matrix->gpu_count)
		return (struct matrix_cell){.level = MATRIX_SYS};
	return *matrix_at(in->matrix, row, column);
}

/* Neighbours as a ring has them, the last beside the first. */
static void way(const struct plan_run *run, const struct inside *in,
	const uint32_t *ranks, uint32_t size, char text[WAY_BYTES])
{
	uint32_t node = run->net.site.gpus, domain = run->net.domain;
	bool is_apart = false, is_far = false;
	struct matrix_cell worst = {.level = MATRIX_NVLINK};

	for (uint32_t i = 0; i < size; i++) {
		uint32_t next = ranks[(i + 1) % size], a = ranks[i] / node,
			 b = next / node;
		struct matrix_cell cell;

		is_apart |= a != b;
		is_far |= domain > 1 ? a / domain != b / domain : a != b;
		if (a != b)
			continue;
		cell = cell_of(run, in, ranks[i], next);
		if (worst.level == MATRIX_NVLINK ||
			(cell.level != MATRIX_NVLINK && cell.level > worst.level))
			worst = cell;
	}
	if (is_apart)
		snprintf(text, WAY_BYTES, "%s",
			is_far ? sim_wire_name(run->net.site.outer)
			       : "NVLink between nodes");
	else if (worst.level == MATRIX_NVLINK)
		snprintf(text, WAY_BYTES, "NVLink of one node");
	else {
		char cell[MATRIX_CELL_MAX];

		matrix_cell_text(worst, cell);
		snprintf(text, WAY_BYTES, "%s of one node", cell);
	}
}

/* Do all members sit at the same place of their nodes? Then one rail carries them. */
static bool is_rail(const struct plan_run *run, const uint32_t *ranks, uint32_t size)
{
	for (uint32_t i = 1; i < size; i++)
		if (ranks[i] % run->net.site.gpus != ranks[0] % run->net.site.gpus)
			return false;
	return ranks[size - 1] / run->net.site.gpus != ranks[0] / run->net.site.gpus;
}

static void line_print(
	const char *by, bool is_on_rail, const uint32_t *ranks, uint32_t size)
{
	printf("  %-20s%-6s ", by, is_on_rail ? " rail" : "");
	for (uint32_t i = 0; i < size; i++)
		printf("%s%u", i ? " " : "", ranks[i]);
	putchar('\n');
}

static json_t *group_json(
	const char *by, bool is_on_rail, const uint32_t *ranks, uint32_t size)
{
	json_t *all = json_array();

	for (uint32_t i = 0; i < size; i++)
		json_array_append_new(all, json_integer(ranks[i]));
	return json_pack(
		"{s:s, s:b, s:o}", "by", by, "rail", (int)is_on_rail, "ranks", all);
}

/* What a class of network is. */
static const char *wire_meaning(enum sim_wire wire)
{
	static const char *const meanings[SIM_WIRES] = {[SIM_RDMA] = "RDMA",
		[SIM_IB] = "InfiniBand",
		[SIM_ROCE] = "RDMA over Ethernet",
		[SIM_EFA] = "EFA, straight from GPU memory",
		[SIM_EFA_OLD] = "EFA of the first generation, straight from GPU memory",
		[SIM_STAGED] = "NICs that cannot reach GPU memory: by way of the host",
		[SIM_VIRTUAL] = "a function of a shared RDMA NIC",
		[SIM_KERNEL] = "the kernel's network",
		[SIM_TCP] = "sockets",
		[SIM_ENA] = "sockets over AWS's interfaces",
		[SIM_TCPX] = "TCP with the payload put into GPU memory",
		[SIM_TCPXO] = "the same, offloaded"};

	return meanings[wire] ? meanings[wire] : "a network";
}

/* Whose groups these are, and what their words mean. */
static void head_print(const struct plan_run *run)
{
	static const char *const axes[AXES] = {"tp", "cp", "ep", "dp", "pp"};
	const enum train_axis *order = run->args->order.axes;
	char layout[LAYOUT_TEXT_BYTES], cluster[CLUSTER_BYTES];

	layout_text(&run->layout, layout);
	plan_cluster_text(run, cluster);
	printf("%s on %s: %s%s\n", run->model.name, cluster, layout,
		run->fitting ? " (none was said: the fastest that fits)" : "");
	printf("ranks are numbered %s-%s-%s-%s-%s; a group's way is the worst between "
	       "two neighbours\n",
		axes[order[0]], axes[order[1]], axes[order[2]], axes[order[3]],
		axes[order[4]]);
	if (run->net.site.nodes > 1)
		printf("%s: %s; rail: one place on each node, so one NIC carries the "
		       "group\n",
			sim_wire_name(run->net.site.outer),
			wire_meaning(run->net.site.outer));
	putchar('\n');
}

/* The groups of one kind, printed, or into `kinds` where that is not NULL. */
static enum err kind_print(const struct plan_run *run, const struct inside *in,
	enum train_group group, const struct train_grid *grid, json_t *kinds)
{
	uint32_t *ranks = calloc(run->layout.gpus, sizeof(*ranks));
	struct train_group_shape shape;
	json_t *groups = kinds ? json_array() : NULL;

	if (!ranks)
		return err_set(ERR_SYSTEM, "no memory for %u ranks", run->layout.gpus);
	group_shape(grid, group, run->net.site.gpus, &shape);
	if (!kinds)
		printf("%s: %u group%s of %u\n", group_name(group), shape.count,
			shape.count == 1 ? "" : "s", shape.size);
	for (uint32_t i = 0; i < shape.count; i++) {
		uint32_t size = group_ranks(grid, group, i, ranks);
		char by[WAY_BYTES];
		bool is_on_rail;

		way(run, in, ranks, size, by);
		is_on_rail = strncmp(by, "NVL", 3) && is_rail(run, ranks, size);
		if (groups)
			json_array_append_new(
				groups, group_json(by, is_on_rail, ranks, size));
		else
			line_print(by, is_on_rail, ranks, size);
	}
	if (kinds)
		json_object_set_new(kinds, group_name(group), groups);
	free(ranks);
	return OK;
}

static enum err kinds_print(
	const struct plan_run *run, const struct inside *in, json_t *kinds)
{
	bool has_experts = run->model.experts &&
			   (run->layout.ep > 1 ||
				   layout_expert_tp(&run->layout) != run->layout.tp);
	struct train_grid grids[2];
	enum err e = grid_make(&run->layout, &run->args->order, false, &grids[0]);

	if (!e)
		e = grid_make(&run->layout, &run->args->order, true, &grids[1]);
	for (int i = 0; !e && i < GROUPS; i++) {
		enum train_group group = (enum train_group)i;
		const struct train_grid *grid = &grids[group_is_expert(group)];
		struct train_group_shape shape;

		group_shape(grid, group, run->net.site.gpus, &shape);
		if (shape.size > 1 && (!group_is_expert(group) || has_experts))
			e = kind_print(run, in, group, grid, kinds);
	}
	return e;
}

int plan_groups_print(const struct plan_run *run)
{
	json_t *kinds = run->args->json ? json_object() : NULL;
	struct inside in;
	enum err e = inside_make(run, &in);

	if (!e && !kinds)
		head_print(run);
	if (!e)
		e = kinds_print(run, &in, kinds);
	inside_free(&in);
	if (!e && kinds)
		return json_print("plan", kinds);
	json_decref(kinds);
	return e ? plan_failed(e) : EXIT_GOOD;
}
