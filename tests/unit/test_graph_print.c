/* The lines are NCCL's, to the byte; long ones are cut where NCCL cuts. */
#include "graph/print.h"

#include "test.h"

enum { LINES_MAX = 64, RANKS_MANY = 100 };

static char lines[LINES_MAX][PRINT_LINE_MAX];
static int line_count;

static void keep(void *context, const char *line)
{
	(void)context;
	TRUE(line_count < LINES_MAX);
	snprintf(lines[line_count++], sizeof(lines[0]), "%s", line);
}

static const struct print_sink sink = {.line = keep};

static void test_channels(void)
{
	int prev[] = {3, 0, 1, 2}, next[] = {1, 2, 3, 0}, order[] = {0, 1, 2, 3};
	int up[] = {-1, 0, 1, 2};
	int down[][3] = {{1, -1, -1}, {2, -1, -1}, {3, -1, -1}, {-1, -1, -1}};
	struct channel channels[2] = {
		{prev, next, order, up, down}, {prev, next, order, up, down}};
	struct cluster cluster = {.rank_count = 4,
		.node_count = 1,
		.channel_count = 2,
		.coll_channels = 2,
		.p2p_channels = 8,
		.p2p_channels_per_peer = 4,
		.channels = channels};

	line_count = 0;
	print_rings(&cluster, &sink);
	print_trees(&cluster, 1, &sink);
	print_links(&cluster, 0, &sink);
	print_nvls(&cluster, 0, &sink);
	print_counts(&cluster, &sink);
	EQ(line_count, 8);
	EQ_STR(lines[0], "Channel 00/02 : 0 1 2 3");
	EQ_STR(lines[1], "Channel 01/02 : 0 1 2 3");
	EQ_STR(lines[2], "Trees [0] 2/-1/-1->1->0 [1] 2/-1/-1->1->0");
	EQ_STR(lines[3], "Ring 00 : 3 -> 0 -> 1");
	EQ_STR(lines[5], "Tree 0 : -1 -> 0 -> 1/-1/-1");
	EQ_STR(lines[7], "2 coll channels, 2 collnet channels, 0 nvls channels, "
			 "8 p2p channels, 4 p2p channels per peer");
}

static void test_long_ring(void)
{
	int order[RANKS_MANY];
	struct channel channel = {.ring_order = order};
	struct cluster cluster = {
		.rank_count = RANKS_MANY, .channel_count = 1, .channels = &channel};

	for (int i = 0; i < RANKS_MANY; i++)
		order[i] = i;
	line_count = 0;
	print_rings(&cluster, &sink);
	EQ(line_count, 1);
	EQ(strlen(lines[0]), PRINT_RING_LINE_MAX - 1);
	TRUE(!strncmp(lines[0], "Channel 00/01 :  0  1  2", 24));
	EQ_STR(lines[0] + PRINT_RING_LINE_MAX - 4, "...");
}

static void test_nvls(void)
{
	int heads[] = {0, 1, 0, 1}, up0[] = {-1, -1, 0, 1}, up1[] = {2, 3, -1, -1};
	int down0[][3] = {{2, -1, -1}, {3, -1, -1}, {-1, -1, -1}, {-1, -1, -1}};
	int down1[][3] = {{-1, -1, -1}, {-1, -1, -1}, {0, -1, -1}, {1, -1, -1}};
	struct cluster cluster = {.rank_count = 4,
		.node_count = 2,
		.nvls_support = true,
		.nvls_head_count = 2,
		.nvls_head_rank = heads,
		.nvls_tree = {{up0, down0}, {up1, down1}}};

	line_count = 0;
	print_nvls(&cluster, 0, &sink);
	EQ(line_count, 3);
	EQ_STR(lines[0], "NVLS Head  0:  0  2");
	EQ_STR(lines[1], "NVLS Head  1:  1  3");
	EQ_STR(lines[2], "NVLS Trees : 5/2/-1->0->-1 5/-1/-1->0->2");
}

int main(void)
{
	test_channels();
	test_long_ring();
	test_nvls();
	return 0;
}
