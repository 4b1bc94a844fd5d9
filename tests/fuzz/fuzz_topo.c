/* Any file the reader takes is laid over itself, built and measured, or refused: never
 * worse. */
#include <stdlib.h>

#include "topo/fuse.h"
#include "topo/topo.h"

enum { DEVS_MAX = 16 };

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes);

static void build(const struct xml_node *tree)
{
	struct topo_rules rules;
	struct topo *topo;

	if (topo_build(tree, 0x1234, NCCL_RULES_NEWEST, &topo))
		return;
	topo_rules_default(&rules);
	if (!topo_paths(topo, &rules) && topo->counts[TOPO_GPU] > 0) {
		topo_bandwidths(topo);
		topo_trim(topo, topo_gpu_at(topo, 0)->gpu.rank,
			(int)topo->counts[TOPO_GPU]);
	}
	topo_free(topo);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes)
{
	int devs[DEVS_MAX];
	struct fuse_host host = {.host_hash = 0x1234, .devs = devs};
	struct fuse_args args = {
		.hosts = &host, .host_count = 1, .merge_level = PATH_PORT};
	struct xml_node *tree, *domain;

	if (xml_parse((const char *)data, bytes, "fuzz", "system", &tree))
		return 0;
	host.tree = tree;
	host.dev_count = fuse_devs(tree, devs, DEVS_MAX);
	args.merge_nics = xml_attr(tree, "merge") != NULL;
	args.collnet = xml_attr(tree, "collnet") != NULL;
	if (host.dev_count > DEVS_MAX)
		host.dev_count = DEVS_MAX;
	if (!fuse_domain(&args, &domain)) {
		build(domain);
		xml_free(domain);
	}
	build(tree); /* not fused: ranks, hashes and order are the file's */
	xml_free(tree);
	return 0;
}
