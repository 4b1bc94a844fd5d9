/* Graphs are found on any machine that can be built, and come back from the file that is
 * written of them. */
#include <assert.h>
#include <stdlib.h>
#include <unistd.h>

#include "graph/graph.h"
#include "topo/fuse.h"

/* More take the search too long for a fuzzer. */
enum { DEVS_MAX = 3 };

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes);

static void check_file(const struct topo *topo, const struct graph_set *set)
{
	static struct graph_set again;
	static char path[64];
	bool has[GRAPH_COUNT];

	if (!path[0])
		snprintf(path, sizeof(path), "/dev/shm/fuzz_search.%d", getpid());
	assert(!graph_file_write(path, topo, set));
	/* Numbers out of bounds come from speeds that are. */
	if (!graph_file_read(path, topo, &again, has))
		for (int id = 0; id < GRAPH_COUNT; id++)
			assert(has[id] == (set->graphs[id].channel_count > 0));
	unlink(path);
}

static void search(struct topo *topo, int rank_count)
{
	static const struct search_options options;
	static struct graph_set set;
	struct topo_rules rules;

	topo_rules_default(&rules);
	if (topo_paths(topo, &rules) || !topo->counts[TOPO_GPU] ||
		topo_trim(topo, topo_gpu_at(topo, 0)->gpu.rank, rank_count))
		return;
	topo_bandwidths(topo);
	if (!graph_set_search(topo, &options, &set))
		check_file(topo, &set);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes)
{
	int devs[DEVS_MAX];
	struct fuse_host host = {.host_hash = 0x1234, .devs = devs};
	struct fuse_args args = {
		.hosts = &host, .host_count = 1, .merge_level = PATH_PORT};
	struct xml_node *tree, *domain;
	struct topo *topo;

	if (xml_parse((const char *)data, bytes, "fuzz", "system", &tree))
		return 0;
	host.tree = tree;
	host.dev_count = fuse_devs(tree, devs, DEVS_MAX);
	args.collnet = xml_attr(tree, "collnet") != NULL;
	if (!fuse_domain(&args, &domain)) {
		if (!topo_build(domain, 0x1234, NCCL_RULES_NEWEST, &topo)) {
			search(topo,
				(int)host.dev_count * (xml_attr(tree, "inter") ? 2 : 1));
			topo_free(topo);
		}
		xml_free(domain);
	}
	xml_free(tree);
	return 0;
}
