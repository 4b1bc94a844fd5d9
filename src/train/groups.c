#include "train/groups.h"

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
	{"ep", 1 << AXIS_EP, true},
	{"tp-ep", 1 << AXIS_TP | 1 << AXIS_EP, true},
	{"expert-dp", 1 << AXIS_DP, true},
};

const char *group_name(enum train_group group)
{
	return kinds[group].name;
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

enum err grid_make(const struct train_layout *l, const struct train_order *order,
	bool is_expert, struct train_grid *grid)
{
	uint64_t stage = (uint64_t)l->tp * l->cp * l->dp, stride = 1;
	uint32_t etp = l->ep > 1 ? layout_expert_tp(l) : l->tp;
	uint32_t expert_dp = (uint32_t)(stage / etp / l->ep);

	if (l->ep > 1 && stage % ((uint64_t)etp * l->ep))
		return err_set(ERR_USAGE,
			"experts' tp %u x ep %u does not divide the %llu GPUs of a stage",
			etp, l->ep, (unsigned long long)stage);
	if (l->ep > 1 && !is_last(order, AXIS_PP) && expert_dp != l->dp)
		return err_set(ERR_USAGE,
			"with pp not last in the order the experts' dp %u has to be dp "
			"%u",
			expert_dp, l->dp);
	grid->size[AXIS_TP] = is_expert ? etp : l->tp;
	grid->size[AXIS_CP] = is_expert ? 1 : l->cp;
	grid->size[AXIS_EP] = is_expert ? l->ep : 1;
	grid->size[AXIS_DP] = is_expert ? expert_dp : l->dp;
	grid->size[AXIS_PP] = l->pp;
	for (int i = 0; i < AXES; i++) {
		grid->stride[order->axes[i]] = (uint32_t)stride;
		stride *= grid->size[order->axes[i]];
	}
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

	for (uint32_t i = 0; i < size; i++)
		ranks[i] = base + offset(grid, axes, true, i);
	return size;
}

/* Ranks of an axis that one node holds, where strides and nodes divide each other; 0
 * where they do not. */
static uint32_t axis_in_node(const struct train_grid *grid, int axis, uint32_t node)
{
	uint64_t stride = grid->stride[axis], whole = stride * grid->size[axis];

	if (stride >= node)
		return stride % node ? 0 : 1;
	if (node % stride || (whole < node ? node % whole : whole % node))
		return 0;
	return whole < node ? grid->size[axis] : (uint32_t)(node / stride);
}

/* Rank by rank: for sizes that do not divide. */
static void shape_walk(const struct train_grid *grid, uint32_t axes,
	uint32_t gpus_per_node, struct train_group_shape *shape)
{
	uint32_t node = UINT32_MAX, here = 0;

	shape->per_node = shape->nodes = 0;
	for (uint32_t i = 0; i < shape->size; i++) {
		uint32_t at = offset(grid, axes, true, i) / gpus_per_node;

		here = at == node ? here + 1 : 1;
		shape->nodes += at != node;
		node = at;
		if (here > shape->per_node)
			shape->per_node = here;
	}
}

void group_shape(const struct train_grid *grid, enum train_group group,
	uint32_t gpus_per_node, struct train_group_shape *shape)
{
	uint32_t axes = kinds[group].axes;

	*shape = (struct train_group_shape){.size = part_size(grid, axes, true),
		.count = part_size(grid, axes, false),
		.per_node = 1};
	for (int axis = 0; axis < AXES && shape->per_node; axis++)
		if (axes & 1u << axis && grid->size[axis] > 1)
			shape->per_node *= axis_in_node(grid, axis, gpus_per_node);
	if (shape->per_node)
		shape->nodes = shape->size / shape->per_node;
	else
		shape_walk(grid, axes, gpus_per_node, shape);
}
