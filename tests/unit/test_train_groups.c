/* Ranks are numbered as Megatron numbers them: for every order and many sizes the groups
 * are those that the rule gives when it is followed rank by rank. */
#include "train/groups.h"

#include "test.h"

static const enum train_axis of_group[GROUPS][3] = {{AXIS_TP, AXES}, {AXIS_CP, AXES},
	{AXIS_DP, AXES}, {AXIS_DP, AXIS_CP, AXES}, {AXIS_PP, AXES},
	{AXIS_TP, AXIS_PP, AXES}, {AXIS_TP, AXIS_CP, AXES}, {AXIS_TP, AXIS_DP, AXIS_CP},
	{AXIS_PP, AXES}, {AXIS_EP, AXES}, {AXIS_TP, AXIS_EP, AXES}, {AXIS_DP, AXES}};

/* The place of a rank on each axis: rank = sum of index times the sizes before it. */
static void places(const struct train_grid *grid, const struct train_order *order,
	uint32_t rank, uint32_t place[AXES])
{
	for (int i = 0; i < AXES; i++) {
		place[order->axes[i]] = rank % grid->size[order->axes[i]];
		rank /= grid->size[order->axes[i]];
	}
}

static bool is_free(enum train_group group, int axis)
{
	for (int i = 0; i < 3 && of_group[group][i] != AXES; i++)
		if ((int)of_group[group][i] == axis)
			return true;
	return false;
}

static bool is_together(const struct train_grid *grid, const struct train_order *order,
	enum train_group group, const uint32_t ranks[2])
{
	uint32_t a[AXES], b[AXES];

	places(grid, order, ranks[0], a);
	places(grid, order, ranks[1], b);
	for (int axis = 0; axis < AXES; axis++)
		if (!is_free(group, axis) && a[axis] != b[axis])
			return false;
	return true;
}

/* Nodes of so many GPUs that the ranks are on, and the most of them on one. */
static void spread(const uint32_t *ranks, uint32_t size, uint32_t node,
	struct train_group_shape *shape)
{
	uint32_t nodes = 0, here = 0;

	for (uint32_t i = 0; i < size; i++) {
		bool is_same = i && ranks[i] / node == ranks[i - 1] / node;

		here = is_same ? here + 1 : 1;
		nodes += !is_same;
		if (here > shape->per_node)
			shape->per_node = here;
	}
	if (nodes > shape->nodes)
		shape->nodes = nodes;
}

/* What a shape says without walking is what the ranks of all groups say. */
static void shape_try(const struct train_grid *grid, enum train_group group)
{
	static const uint32_t nodes[] = {1, 2, 3, 4, 5, 8, 12};
	static uint32_t ranks[4096];

	for (size_t n = 0; n < sizeof(nodes) / sizeof(nodes[0]); n++) {
		struct train_group_shape shape, all = {0};

		group_shape(grid, group, nodes[n], &shape);
		for (uint32_t i = 0; i < shape.count; i++)
			spread(ranks, group_ranks(grid, group, i, ranks), nodes[n], &all);
		EQ(shape.per_node, all.per_node);
		EQ(shape.nodes, all.nodes);
	}
}

/* The first and the last of each pipeline. */
static void embedding_try(const struct train_grid *grid)
{
	uint32_t ranks[64], ends[64], size;
	struct train_group_shape shape;

	group_shape(grid, GROUP_EMBEDDING, 8, &shape);
	for (uint32_t i = 0; i < shape.count; i++) {
		size = group_ranks(grid, GROUP_PP, i, ranks);
		EQ(group_ranks(grid, GROUP_EMBEDDING, i, ends), shape.size);
		EQ(shape.size, size < 2 ? size : 2);
		EQ(ends[0], ranks[0]);
		EQ(ends[shape.size - 1], ranks[size - 1]);
	}
}

static void group_try(const struct train_grid *grid, const struct train_order *order,
	enum train_group group, uint32_t gpus)
{
	static uint32_t ranks[4096], seen[4096];
	struct train_group_shape shape;
	uint32_t all = 0;

	shape_try(grid, group);
	if (group == GROUP_EMBEDDING) {
		embedding_try(grid);
		return;
	}
	memset(seen, 0, sizeof(seen));
	group_shape(grid, group, 8, &shape);
	EQ(shape.size * shape.count, gpus);
	for (uint32_t i = 0; i < shape.count; i++) {
		EQ(group_ranks(grid, group, i, ranks), shape.size);
		for (uint32_t k = 0; k < shape.size; k++) {
			TRUE(ranks[k] < gpus);
			EQ(seen[ranks[k]]++, 0);
			TRUE(!k || ranks[k] > ranks[k - 1]);
			TRUE(is_together(grid, order, group,
				(const uint32_t[2]){ranks[0], ranks[k]}));
			all++;
		}
	}
	EQ(all, gpus);
}

static void order_try(const char *text)
{
	static const uint32_t sizes[][5] = {/* tp cp ep dp pp */
		{1, 1, 1, 8, 1}, {2, 1, 1, 4, 2}, {4, 2, 1, 3, 2}, {2, 2, 4, 4, 3},
		{8, 1, 2, 2, 4}, {1, 2, 8, 8, 2}, {3, 1, 1, 5, 1}, {6, 1, 2, 2, 3},
		{1, 5, 1, 3, 2}, {2, 1, 1, 9, 1}};
	struct train_order order;

	EQ(order_parse(text, &order), OK);
	for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
		struct train_layout l;
		struct train_grid dense, expert;

		layout_default(0, &l);
		l.tp = sizes[i][0];
		l.cp = sizes[i][1];
		l.ep = sizes[i][2];
		l.dp = sizes[i][3];
		l.pp = sizes[i][4];
		l.gpus = l.tp * l.cp * l.dp * l.pp;
		if (grid_make(&l, &order, false, &dense))
			continue; /* Megatron refuses it: refusals() below */
		EQ(grid_make(&l, &order, true, &expert), OK);
		for (int g = 0; g < GROUPS; g++)
			group_try(group_is_expert((enum train_group)g) ? &expert : &dense,
				&order, (enum train_group)g, l.gpus);
	}
}

/* Every order of the five axes. */
static void orders(char *text, int count, unsigned used)
{
	static const char *const names[AXES] = {"tp", "cp", "ep", "dp", "pp"};
	size_t length = strlen(text);

	if (count == AXES) {
		order_try(text);
		return;
	}
	for (int i = 0; i < AXES; i++) {
		if (used & 1u << i)
			continue;
		snprintf(text + length, 8, "%s%s", count ? "-" : "", names[i]);
		orders(text, count + 1, used | 1u << i);
		text[length] = 0;
	}
}

/* tp 2, cp 1, dp 2, pp 2 on eight GPUs, as Megatron's own example has it. */
static void by_hand(void)
{
	struct train_order order;
	struct train_layout l;
	struct train_grid grid;
	uint32_t ranks[8];

	EQ(order_parse("tp-cp-ep-dp-pp", &order), OK);
	layout_default(8, &l);
	l.tp = l.dp = l.pp = 2;
	EQ(grid_make(&l, &order, false, &grid), OK);
	EQ(group_ranks(&grid, GROUP_TP, 1, ranks), 2);
	EQ(ranks[0], 2);
	EQ(ranks[1], 3);
	EQ(group_ranks(&grid, GROUP_DP, 1, ranks), 2);
	EQ(ranks[0], 1);
	EQ(ranks[1], 3);
	EQ(group_ranks(&grid, GROUP_PP, 3, ranks), 2);
	EQ(ranks[0], 3);
	EQ(ranks[1], 7);
}

/* tp 2, cp 2, dp 2, pp 2 and ep 2 on sixteen GPUs. */
static enum err refusal(const char *text, uint32_t pp, uint32_t cp)
{
	struct train_order order;
	struct train_layout l;
	struct train_grid grid;
	enum err e;

	EQ(order_parse(text, &order), OK);
	layout_default(0, &l);
	l.tp = l.dp = l.ep = 2;
	l.cp = cp;
	l.pp = pp;
	l.gpus = l.tp * l.cp * l.dp * l.pp;
	e = grid_make(&l, &order, false, &grid);
	EQ(grid_make(&l, &order, true, &grid), e);
	EQ(grid_is_allowed(&l, &order), !e);
	return e;
}

/* Megatron asks that experts and the rest have the same pipelines, and the same dp where
 * pp is not last; of one stage it asks nothing. */
static void refusals(void)
{
	EQ(refusal("tp-cp-ep-dp-pp", 2, 1), OK);
	EQ(refusal("tp-cp-ep-pp-dp", 2, 1), ERR_USAGE); /* experts' dp 1, not 2 */
	EQ(refusal("tp-cp-ep-pp-dp", 1, 1), OK);
	EQ(refusal("pp-tp-cp-ep-dp", 2, 2), OK); /* both dp 2, pipelines of neighbours */
	EQ(refusal("cp-pp-tp-ep-dp", 2, 2), ERR_USAGE); /* 2 apart, and 1 */
	TRUE(strstr(err_last(), "other pipelines") != NULL);
	EQ(refusal("cp-pp-tp-ep-dp", 1, 2), OK);
}

/* Tensor parallelism of one for the experts holds without expert parallelism, too: eight
 * ranks have all experts alike. */
static void expert_tp(void)
{
	struct train_order order;
	struct train_layout l;
	struct train_grid grid;
	struct train_group_shape shape;

	EQ(order_parse("tp-cp-ep-dp-pp", &order), OK);
	layout_default(8, &l);
	l.tp = 4;
	l.dp = 2;
	l.etp = 1;
	EQ(grid_make(&l, &order, true, &grid), OK);
	group_shape(&grid, GROUP_EXPERT_DP, 8, &shape);
	EQ(shape.size, 8);
}

/* tp 8 on nodes of 8 stays inside; the data-parallel groups have one rank a node. */
static void shapes(void)
{
	struct train_order order;
	struct train_group_shape shape;
	struct train_layout l;
	struct train_grid grid;

	EQ(order_parse("tp-cp-ep-dp-pp", &order), OK);
	layout_default(64, &l);
	l.tp = 8;
	l.dp = 4;
	l.pp = 2;
	EQ(grid_make(&l, &order, false, &grid), OK);
	group_shape(&grid, GROUP_TP, 8, &shape);
	EQ(shape.per_node, 8);
	EQ(shape.nodes, 1);
	group_shape(&grid, GROUP_DP_CP, 8, &shape);
	EQ(shape.per_node, 1);
	EQ(shape.nodes, 4);
	/* A bad order: dp first puts tp across nodes. */
	EQ(order_parse("dp-cp-ep-tp-pp", &order), OK);
	EQ(grid_make(&l, &order, false, &grid), OK);
	group_shape(&grid, GROUP_TP, 8, &shape);
	EQ(shape.nodes, 4);
	/* tp 6 on nodes of 8: the second group is on two. */
	EQ(order_parse("tp-cp-ep-dp-pp", &order), OK);
	layout_default(24, &l);
	l.tp = 6;
	l.dp = 4;
	EQ(grid_make(&l, &order, false, &grid), OK);
	group_shape(&grid, GROUP_TP, 8, &shape);
	EQ(shape.per_node, 6);
	EQ(shape.nodes, 2);
}

/* Sixteen neighbours on nodes of 8 in parts of 4 are on one node each, and four parts on
 * two; every fourth rank in parts of 2 is the same. */
static void split(void)
{
	struct train_order order;
	struct train_group_shape parts[2];
	struct train_layout l;
	struct train_grid grid;

	EQ(order_parse("tp-cp-ep-dp-pp", &order), OK);
	layout_default(16, &l);
	l.dp = 16;
	EQ(grid_make(&l, &order, false, &grid), OK);
	group_split(&grid, GROUP_DP_CP, 4, 8, parts);
	EQ(parts[0].size, 4);
	EQ(parts[0].nodes, 1);
	EQ(parts[1].size, 4);
	EQ(parts[1].per_node, 2);
	EQ(parts[1].nodes, 2);
	l.tp = l.dp = 4;
	EQ(grid_make(&l, &order, false, &grid), OK);
	group_split(&grid, GROUP_DP_CP, 2, 8, parts);
	EQ(parts[0].size, 2);
	EQ(parts[0].nodes, 1);
	EQ(parts[1].size, 2);
	EQ(parts[1].nodes, 2);
}

int main(void)
{
	char text[32] = "";
	struct train_order order;

	orders(text, 0, 0);
	by_hand();
	shapes();
	split();
	refusals();
	expert_tp();
	EQ(order_parse("tp-cp-ep-dp", &order), ERR_USAGE);
	EQ(order_parse("tp-cp-ep-dp-dp", &order), ERR_USAGE);
	EQ(order_parse("tp-cp-ep-dp-pp-", &order), ERR_USAGE);
	return 0;
}
