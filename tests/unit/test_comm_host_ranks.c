/* Ranks on host memory find their NUMA nodes; the machine's GPUs make room for them. */
#include "comm/host_ranks.h"

#include "test.h"
#include "topo/topo.h"

static const char machine[] =
	"<system version=\"1\">"
	"<cpu numaid=\"0\" affinity=\"0000000f,ffffffff\">"
	"<pci busid=\"0000:10:00.0\" class=\"0x060400\">"
	"<pci busid=\"0000:14:00.0\" class=\"0x030200\"><gpu dev=\"0\" sm=\"90\"/></pci>"
	"<pci busid=\"0000:15:00.0\" class=\"0x020000\"><nic><net name=\"a\" dev=\"0\"/>"
	"</nic></pci>"
	"</pci></cpu>"
	"<cpu numaid=\"1\" affinity=\"FFFFFFF0,00000000\"/>"
	"</system>";

static struct xml_node *parse(const char *text)
{
	struct xml_node *tree = NULL;

	EQ(xml_parse(text, strlen(text), "machine", "system", &tree), OK);
	return tree;
}

static uint32_t count_of(struct xml_node *tree, const char *name)
{
	struct xml_node *node = NULL;
	uint32_t count = 0;

	while ((node = xml_find(tree, name, node)))
		count++;
	return count;
}

/* The NUMA node above the device of this rank. */
static int64_t node_of(struct xml_node *tree, uint32_t rank)
{
	struct xml_node *gpu = NULL;

	while ((gpu = xml_find(tree, "gpu", gpu)))
		if (xml_int(gpu, "rank", -1) == rank)
			return xml_int(gpu->parent->parent, "numaid", -2);
	return -3;
}

static void test_nodes(void)
{
	static const uint64_t first[2] = {1, 0}, last[2] = {1ull << 63, 0},
			      low[2] = {1ull << 35, 0}, all[2] = {~0ull, ~0ull},
			      none[2] = {0, 1};
	const struct host_rank ranks[] = {
		{first, 2}, {last, 2}, {low, 2}, {all, 2}, {all, 2}, {none, 2}};
	struct xml_node *tree = parse(machine);

	EQ(host_ranks_place(tree, ranks, 6), OK);
	EQ(count_of(tree, "gpu"), 6); /* the machine's own is out */
	EQ(count_of(tree, "net"), 1);
	EQ(node_of(tree, 0), 0);
	EQ(node_of(tree, 1), 1);
	EQ(node_of(tree, 2), 0);
	EQ(node_of(tree, 3), 1); /* either would do: by number */
	EQ(node_of(tree, 4), 0);
	EQ(node_of(tree, 5), 1); /* on a processor that the tree does not know */
	/* placing again replaces */
	EQ(host_ranks_place(tree, ranks, 2), OK);
	EQ(count_of(tree, "gpu"), 2);
	xml_free(tree);
}

/* Without any <cpu> there is still one place for all. */
static void test_bare(void)
{
	static const uint64_t some[1] = {3};
	const struct host_rank ranks[] = {{some, 1}, {some, 1}, {some, 1}};
	struct xml_node *tree = parse("<system version=\"1\"/>");
	struct topo *topo = NULL;

	EQ(host_ranks_place(tree, ranks, 3), OK);
	EQ(count_of(tree, "cpu"), 1);
	EQ(topo_build(tree, 0, NCCL_RULES_NEWEST, &topo), OK);
	EQ(topo->counts[TOPO_GPU], 3);
	for (uint32_t rank = 0; rank < 3; rank++)
		EQ(topo_local(topo_gpu_at(topo, rank)->id), host_rank_busid(rank));
	topo_free(topo);
	xml_free(tree);
}

static void test_busids(void)
{
	for (uint32_t a = 0; a < 128; a++)
		for (uint32_t b = 0; b < a; b++)
			TRUE(host_rank_busid(a) != host_rank_busid(b));
}

int main(void)
{
	test_nodes();
	test_bare();
	test_busids();
	return 0;
}
