#include "train/groups.h"

#include <assert.h>
#include <string.h>

static const char *const axis_names[AXES] = {"tp", "cp", "ep", "dp", "pp"};

static const struct {
	const char *name;
	uint32_t axes; /* bits of those that vary */
	bool is_expert;
} kinds[GROUPS] = {
	{"tp", 1 << AXIS_TP, false},
	{"cp", 1 << AXIS_CP, false},
	{"dp", 1 << AXIS_DP, false},
	{"dp-cp", 1 << AXIS_DP | 1 << AXIS_CP, false},
	{"pp", 1 << AXIS_PP, false},
	{"tp-pp", 1 << AXIS_TP | 1 << AXIS_PP, false},
	{"tp-cp", 1 << AXIS_TP | 1 << AXIS_CP, false},
	{"tp-dp-cp", 1 << AXIS_TP | 1 << AXIS_DP | 1 << AXIS_CP, false},
	{"embedding", 1 << AXIS_PP, false},
	{"ep", 1 << AXIS_EP, true},
	{"tp-ep", 1 << AXIS_TP | 1 << AXIS_EP, true},
	{"expert-dp", 1 << AXIS_DP, true},
};

const char *group_name(enum train_group group)
{
	return kinds[group].name;
}

bool group_is_expert(enum train_group group)
{
	return kinds[group].is_expert;
}

enum err order_parse(const char *text, struct train_order *order)
{
	struct train_order found = {0};
	uint32_t seen = 0;
	int count = 0;

	for (const char *at = text; count < AXES; count++) {
		int axis = 0;

		while (axis < AXES && strncmp(at, axis_names[axis], 2) != 0)
			axis++;
		if (axis == AXES || seen & 1u << axis)
			break;
		seen |= 1u << axis;
		found.axes[count] = (enum train_axis)axis;
		at += 2;
		if (*at != (count == AXES - 1 ? 0 : '-'))
			break;
		at++;
	}
	if (count < AXES)
		return err_set(ERR_USAGE,
			"an order names tp, cp, ep, dp and pp once each, the fastest "
			"first, such as tp-cp-ep-dp-pp; '%s' does not",
			text);
	*order = found;
	return OK;
}

static bool is_last(const struct train_order *order, enum train_axis axis)
{
	return order->axes[AXES - 1] == axis;
}

static void grid_fill(const struct train_layout *l, const struct train_order *order,
	bool is_expert, struct train_grid *grid)
{
	uint64_t stage = (uint64_t)l->tp * l->cp * l->dp, stride = 1;
	uint32_t etp = layout_expert_tp(l);

	grid->size[AXIS_TP] = is_expert ? etp : l->tp;
	grid->size[AXIS_CP] = is_expert ? 1 : l->cp;
	grid->size[AXIS_EP] = is_expert ? l->ep : 1;
	grid->size[AXIS_DP] = is_expert ? (uint32_t)(stage / etp / l->ep) : l->dp;
	grid->size[AXIS_PP] = l->pp;
	for (int i = 0; i < AXES; i++) {
		grid->stride[order->axes[i]] = (uint32_t)stride;
		stride *= grid->size[order->axes[i]];
	}
}

/* Dense and experts' numbering; false where one of them cannot be. */
static bool grids_fill(const struct train_layout *l, const struct train_order *order,
	struct train_grid grids[2])
{
	uint64_t stage = (uint64_t)l->tp * l->cp * l->dp;

	if (stage % ((uint64_t)layout_expert_tp(l) * l->ep))
		return false;
	grid_fill(l, order, false, &grids[0]);
	grid_fill(l, order, true, &grids[1]);
	return true;
}

static bool is_free(const struct train_layout *l, const struct train_order *order)
{
	return l->pp == 1 || is_last(order, AXIS_PP);
}

bool grid_is_allowed(const struct train_layout *l, const struct train_order *order)
{
	struct train_grid grids[2];

	return grids_fill(l, order, grids) &&
	       (is_free(l, order) ||
		       (grids[0].size[AXIS_DP] == grids[1].size[AXIS_DP] &&
			       grids[0].stride[AXIS_PP] == grids[1].stride[AXIS_PP]));
}

enum err grid_make(const struct train_layout *l, const struct train_order *order,
	bool is_expert, struct train_grid *grid)
{
	uint64_t stage = (uint64_t)l->tp * l->cp * l->dp;
	struct train_grid grids[2];

	if (!grids_fill(l, order, grids))
		return err_set(ERR_USAGE,
			"experts' tp %u x ep %u does not divide the %llu GPUs of a stage",
			layout_expert_tp(l), l->ep, (unsigned long long)stage);
	*grid = grids[is_expert];
	if (is_free(l, order))
		return OK;
	if (grids[0].size[AXIS_DP] != grids[1].size[AXIS_DP])
		return err_set(ERR_USAGE,
			"with pp not last in the order the experts' dp %u has to be dp "
			"%u, as Megatron asks of all models",
			grids[1].size[AXIS_DP], grids[0].size[AXIS_DP]);
	if (grids[0].stride[AXIS_PP] != grids[1].stride[AXIS_PP])
		return err_set(ERR_USAGE,
			"this order gives the experts other pipelines than the rest: "
			"neighbours in one are %u ranks apart, in the other %u; put pp "
			"last",
			grids[1].stride[AXIS_PP], grids[0].stride[AXIS_PP]);
	return OK;
}

static uint32_t part_size(const struct train_grid *grid, uint32_t axes, bool is_in)
{
	uint32_t size = 1;

	for (int axis = 0; axis < AXES; axis++)
		if (!(axes & 1u << axis) != is_in)
			size *= grid->size[axis];
	return size;
}

/* The sum over some axes, counted in the order of their strides, the smallest first. */
static uint32_t offset(
	const struct train_grid *grid, uint32_t axes, bool is_in, uint32_t index)
{
	uint32_t sum = 0, done = 0;

	for (int round = 0; round < AXES; round++) {
		int best = -1;

		for (int axis = 0; axis < AXES; axis++)
			if (!(axes & 1u << axis) != is_in && !(done & 1u << axis) &&
				(best < 0 || grid->stride[axis] < grid->stride[best] ||
					(grid->stride[axis] == grid->stride[best] &&
						grid->size[axis] < grid->size[best])))
				best = axis;
		if (best < 0)
			break;
		done |= 1u << best;
		sum += index % grid->size[best] * grid->stride[best];
		index /= grid->size[best];
	}
	return sum;
}

uint32_t group_ranks(const struct train_grid *grid, enum train_group group,
	uint32_t index, uint32_t *ranks)
{
	uint32_t axes = kinds[group].axes, size = part_size(grid, axes, true);
	uint32_t base = offset(grid, axes, false, index);

	if (group == GROUP_EMBEDDING && size > 2) {
		ranks[0] = base;
		ranks[1] = base + offset(grid, axes, true, size - 1);
		return 2;
	}
	for (uint32_t i = 0; i < size; i++)
		ranks[i] = base + offset(grid, axes, true, i);
	return size;
}

/* Axes of a group that follow each other are one: so many ranks, so far apart. */
struct run {
	uint64_t size, stride;
};

static int runs_of(const struct train_grid *grid, uint32_t axes, struct run runs[AXES])
{
	uint32_t done = 0;
	int count = 0;

	for (;;) {
		int best = -1;

		for (int axis = 0; axis < AXES; axis++)
			if (axes & 1u << axis && !(done & 1u << axis) &&
				grid->size[axis] > 1 &&
				(best < 0 || grid->stride[axis] < grid->stride[best]))
				best = axis;
		if (best < 0)
			return count;
		done |= 1u << best;
		if (count && runs[count - 1].stride * runs[count - 1].size ==
				     grid->stride[best])
			runs[count - 1].size *= grid->size[best];
		else
			runs[count++] = (struct run){
				grid->size[best], grid->stride[best]};
	}
}

/* Ranks of a run that one node holds, where strides and nodes divide each other; 0
 * where they do not. */
static uint32_t run_in_node(const struct run *run, uint64_t node)
{
	uint64_t whole = run->stride * run->size;

	if (run->stride >= node)
		return run->stride % node ? 0 : 1;
	if (node % run->stride || (whole < node ? node % whole : whole % node))
		return 0;
	return (uint32_t)(whole < node ? run->size : node / run->stride);
}

/* The most nodes that a group of one run reaches. Groups begin at `block` + 0 to stride
 * less one, for each block; where in its node the last of these begins decides, and
 * that repeats after so many blocks as a node has ranks. */
static uint32_t run_nodes(const struct run *run, uint64_t ranks, uint64_t node)
{
	uint64_t whole = run->stride * run->size, blocks = ranks / whole, latest = 0;

	if (run->stride >= node)
		return (uint32_t)run->size;
	for (uint64_t block = 0; block < blocks && block < node; block++) {
		uint64_t at = block * whole % node + run->stride - 1;

		if (at > node - 1)
			at = node - 1;
		if (at > latest)
			latest = at;
	}
	return (uint32_t)((latest + (run->size - 1) * run->stride) / node + 1);
}

enum { WALKED_GROUPS = 64 };

/* Of one group, rank by rank: every so-manyth of it, from its first. */
struct members {
	uint32_t base, size, step, node;
};

static void walk_one(const struct train_grid *grid, uint32_t axes,
	const struct members *of, struct train_group_shape *shape)
{
	uint32_t here = 0, nodes = 0, last = UINT32_MAX;

	for (uint32_t i = 0; i < of->size; i++) {
		uint32_t rank = of->base + offset(grid, axes, true, i * of->step);

		here = rank / of->node == last ? here + 1 : 1;
		nodes += rank / of->node != last;
		last = rank / of->node;
		if (here > shape->per_node)
			shape->per_node = here;
	}
	if (nodes > shape->nodes)
		shape->nodes = nodes;
}

/* The first groups: where an order takes a group apart and sizes do not divide. */
static void shape_walk(const struct train_grid *grid, enum train_group group,
	uint32_t node, struct train_group_shape *shape)
{
	uint32_t axes = kinds[group].axes, step = 1;

	if (group == GROUP_EMBEDDING)
		step = part_size(grid, axes, true) - 1;
	shape->per_node = shape->nodes = 0;
	for (uint32_t i = 0; i < shape->count && i < WALKED_GROUPS; i++)
		walk_one(grid, axes,
			&(struct members){
				offset(grid, axes, false, i), shape->size, step, node},
			shape);
}

void group_split(const struct train_grid *grid, enum train_group group, uint32_t inner,
	uint32_t gpus_per_node, struct train_group_shape parts[2])
{
	uint32_t axes = kinds[group].axes, size = part_size(grid, axes, true);

	assert(inner);
	parts[0] = (struct train_group_shape){.size = inner, .count = size / inner};
	parts[1] = (struct train_group_shape){.size = size / inner, .count = inner};
	walk_one(grid, axes, &(struct members){0, inner, 1, gpus_per_node}, &parts[0]);
	walk_one(grid, axes, &(struct members){0, size / inner, inner, gpus_per_node},
		&parts[1]);
}

void group_shape(const struct train_grid *grid, enum train_group group,
	uint32_t gpus_per_node, struct train_group_shape *shape)
{
	uint32_t axes = kinds[group].axes, size = part_size(grid, axes, true);
	bool is_pair = group == GROUP_EMBEDDING && size > 2;
	struct run runs[AXES];
	int count = runs_of(grid, axes, runs);

	assert(gpus_per_node);
	*shape = (struct train_group_shape){.size = is_pair ? 2 : size,
		.count = part_size(grid, axes, false),
		.per_node = is_pair ? 0 : 1};
	for (int i = 0; i < count && shape->per_node; i++)
		shape->per_node *= run_in_node(&runs[i], gpus_per_node);
	if (shape->per_node) {
		shape->nodes = shape->size / shape->per_node;
	} else if (count == 1 && !is_pair) {
		uint64_t most = (gpus_per_node + runs[0].stride - 1) / runs[0].stride;

		shape->per_node = (uint32_t)(most < runs[0].size ? most : runs[0].size);
		shape->nodes = run_nodes(
			&runs[0], (uint64_t)size * shape->count, gpus_per_node);
	} else {
		shape_walk(grid, group, gpus_per_node, shape);
	}
}
