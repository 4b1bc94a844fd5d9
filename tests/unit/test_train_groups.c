/* Ranks are numbered as Megatron numbers them: for every order and many sizes the groups
 * are those that the rule gives when it is followed rank by rank. */
#include "train/groups.h"

#include "test.h"

static const enum train_axis of_group[GROUPS][3] = {{AXIS_TP, AXES}, {AXIS_CP, AXES},
	{AXIS_DP, AXES}, {AXIS_DP, AXIS_CP, AXES}, {AXIS_PP, AXES},
	{AXIS_TP, AXIS_PP, AXES}, {AXIS_EP, AXES}, {AXIS_TP, AXIS_EP, AXES},
	{AXIS_DP, AXES}};

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

static void group_try(const struct train_grid *grid, const struct train_order *order,
	enum train_group group, uint32_t gpus)
{
	static uint32_t ranks[4096], seen[4096];
	struct train_group_shape shape;
	uint32_t all = 0;

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
		{8, 1, 2, 2, 4}, {1, 2, 8, 8, 2}};
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
			continue; /* pp is not last, and the experts' dp differs */
		EQ(grid_make(&l, &order, true, &expert), OK);
		for (int g = 0; g < GROUPS; g++)
			group_try(g >= GROUP_EP ? &expert : &dense, &order,
				(enum train_group)g, l.gpus);
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
}

int main(void)
{
	char text[32] = "";
	struct train_order order;

	orders(text, 0, 0);
	by_hand();
	shapes();
	EQ(order_parse("tp-cp-ep-dp", &order), ERR_USAGE);
	EQ(order_parse("tp-cp-ep-dp-dp", &order), ERR_USAGE);
	EQ(order_parse("tp-cp-ep-dp-pp-", &order), ERR_USAGE);
	return 0;
}
