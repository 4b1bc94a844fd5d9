/* On captured machines: the graphs we find come back from the file we write of them, and
 * what NCCL dumped on a machine is taken for that machine. */
#include <dirent.h>
#include <unistd.h>

#include "data.h"
#include "graph/graph.h"
#include "topo/fuse.h"

static struct graph_set set, again;
static char copy[] = "/tmp/test_graph_file_machines.XXXXXX";

/* The whole machine as one domain, alone or as one of two. NULL when it is no machine by
 * itself: some files lack what only the running NCCL fills in. */
static struct topo *load(const char *path, uint32_t domain_count)
{
	int devs[TOPO_GPUS_MAX];
	struct fuse_host host = {.host_hash = 1, .devs = devs};
	struct fuse_args args = {.hosts = &host,
		.host_count = 1,
		.merge_nics = true,
		.merge_level = PATH_PORT};
	struct topo_rules rules;
	struct xml_node *tree, *fused = NULL;
	struct topo *topo = NULL;

	EQ(xml_read(path, "system", &tree), OK);
	host.tree = tree;
	host.dev_count = fuse_devs(tree, devs, TOPO_GPUS_MAX);
	topo_rules_default(&rules);
	if (host.dev_count && !fuse_domain(&args, &fused)) {
		EQ(topo_build(fused, 1, rules.nccl, &topo), OK);
		EQ(topo_paths(topo, &rules), OK);
		EQ(topo_trim(topo, 0, (int)(domain_count * host.dev_count)), OK);
		topo_bandwidths(topo);
		xml_free(fused);
	}
	xml_free(tree);
	return topo;
}

static void same_graph(
	const struct topo *topo, const struct graph *a, const struct graph *b)
{
	int gpu_count = a->id == GRAPH_NVLS ? 1 : (int)topo->counts[TOPO_GPU];

	EQ(a->pattern, b->pattern);
	EQ(a->cross_nic, b->cross_nic);
	EQ(a->channel_count, b->channel_count);
	EQ(a->type_intra, b->type_intra);
	EQ(a->type_inter, b->type_inter);
	EQ(a->same_channels, b->same_channels);
	EQ(a->collnet, b->collnet);
	for (int c = 0; c < a->channel_count; c++) {
		for (int g = 0; g < gpu_count; g++)
			EQ(a->intra[c][g], b->intra[c][g]);
		for (int n = 0; n < 2 && topo->is_inter; n++)
			EQ(a->inter[c][n], b->inter[c][n]);
	}
}

static void round_trip(const char *path, uint32_t domain_count)
{
	static const struct search_options options;
	struct topo *topo = load(path, domain_count);
	bool has[GRAPH_COUNT];

	if (!topo)
		return;
	if (!topo->counts[TOPO_GPU] || (topo->is_inter && !topo->counts[TOPO_NET])) {
		topo_free(topo);
		return;
	}
	EQ(graph_set_search(topo, &options, &set), OK);
	EQ(graph_file_write(copy, topo, &set), OK);
	EQ(graph_file_read(copy, topo, &again, has), OK);
	for (int id = 0; id < GRAPH_COUNT; id++) {
		EQ(has[id], set.graphs[id].channel_count > 0);
		if (has[id])
			same_graph(topo, &set.graphs[id], &again.graphs[id]);
	}
	topo_free(topo);
}

/* NAME.graph*.xml belongs to NAME.xml. */
static void check_dump(const char *folder, const char *name)
{
	char graph[2 * DATA_PATH_MAX], machine[2 * DATA_PATH_MAX];
	const char *dot = strstr(name, ".graph");
	bool has[GRAPH_COUNT];
	struct topo *topo;

	/* Of four of the eight GPUs. */
	if (strstr(name, "gpus0123"))
		return;
	snprintf(graph, sizeof(graph), "%s/%s", folder, name);
	snprintf(
		machine, sizeof(machine), "%s/%.*s.xml", folder, (int)(dot - name), name);
	if (access(machine, R_OK))
		return;
	topo = load(machine, 1);
	TRUE(topo);
	EQ(graph_file_read(graph, topo, &set, has), OK);
	TRUE(has[GRAPH_RING]);
	topo_free(topo);
}

int main(void)
{
	char folder[DATA_PATH_MAX], path[2 * DATA_PATH_MAX];
	const struct dirent *entry;
	DIR *dir;

	if (!data_find("topologies", folder))
		return TEST_SKIP;
	close(mkstemp(copy));
	dir = opendir(folder);
	TRUE(dir);
	while ((entry = readdir(dir))) {
		snprintf(path, sizeof(path), "%s/%s", folder, entry->d_name);
		if (strstr(entry->d_name, ".graph")) {
			check_dump(folder, entry->d_name);
		} else if (strstr(entry->d_name, ".xml") && !strstr(path, "/rccl-")) {
			round_trip(path, 1);
			round_trip(path, 2);
		}
	}
	closedir(dir);
	EQ(unlink(copy), 0);
	return 0;
}
