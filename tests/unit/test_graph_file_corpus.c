/* Every captured graph file is read, and NCCL's own dumps come out as they went in, but
 * for the spelling of `dev` and the ranks that newer dumps have. */
#include "graph/graph.h"

#include <unistd.h>

#include "data.h"

enum { GPUS_MAX = 8, NETS = 16 };

static struct topo topo;
static struct topo_node nodes[GPUS_MAX + NETS];
static struct graph_set set;
static bool has[GRAPH_COUNT];

/* As many GPUs as the file's first channel lists. */
static void make_topo(const struct xml_node *tree)
{
	const struct xml_node *channel = xml_sub(xml_sub(tree, "graph"), "channel");

	memset(&topo, 0, sizeof(topo));
	for (uint32_t s = 0; s < channel->sub_count; s++) {
		uint32_t g = topo.counts[TOPO_GPU];

		if (strcmp(channel->subs[s]->name, "gpu") != 0)
			continue;
		TRUE(g < GPUS_MAX);
		nodes[g].gpu.dev = nodes[g].gpu.rank = (int)g;
		topo.nodes[TOPO_GPU][topo.counts[TOPO_GPU]++] = &nodes[g];
	}
	topo.is_inter = xml_sub(channel, "net") != NULL;
	topo.rules.cross_nic = 2;
	for (uint32_t n = 0; n < NETS && topo.is_inter; n++) {
		nodes[GPUS_MAX + n].id = n;
		topo.nodes[TOPO_NET][topo.counts[TOPO_NET]++] = &nodes[GPUS_MAX + n];
	}
}

/* What a dump says of a graph, without its channels. */
static void check_heads(const struct xml_node *old, const struct xml_node *new)
{
	for (uint32_t s = 0; s < old->sub_count; s++) {
		const struct xml_node *graph = old->subs[s];
		const struct xml_node *again = xml_sub_with(
			new, "graph", "id", xml_attr(graph, "id"));

		TRUE(again);
		if (!graph->sub_count || !xml_attr(graph, "latencyinter"))
			continue;
		TRUE(xml_same(graph, again));
		EQ(graph->sub_count, again->sub_count);
	}
}

static void check_file(const char *folder, const char *file)
{
	char path[2 * DATA_PATH_MAX], copy[] = "/tmp/test_graph_file_corpus.XXXXXX";
	struct xml_node *tree, *again;

	snprintf(path, sizeof(path), "%s/%s", folder, file);
	EQ(xml_read(path, "graphs", &tree), OK);
	make_topo(tree);
	memset(&set, 0, sizeof(set));
	for (int id = 0; id < GRAPH_COUNT; id++)
		set.graphs[id].id = (enum graph_id)id;
	EQ(graph_file_read(path, &topo, &set, has), OK);
	TRUE(has[GRAPH_RING]);
	close(mkstemp(copy));
	EQ(graph_file_write(copy, &topo, &set), OK);
	EQ(xml_read(copy, "graphs", &again), OK);
	check_heads(tree, again);
	EQ(unlink(copy), 0);
	xml_free(again);
	xml_free(tree);
}

int main(void)
{
	return data_each("topologies", ".graph", check_file);
}
