/* Every machine we know by name has the parts it announces; those that are also in the
 * corpus of real and derived files hang together there as they do here. */
#include "topo/instance.h"

#include <stdbool.h>

#include "data.h"
#include "test.h"
#include "topo/fuse.h"
#include "topo/topo.h"

enum { LINES_MAX = 64, LINE_BYTES = 512 };

/* What decides paths and bandwidths: a line for each GPU and network device. */
struct shape {
	char lines[LINES_MAX][LINE_BYTES];
	uint32_t count;
};

static struct xml_node *next(
	struct xml_node *tree, const char *name, const struct xml_node *after)
{
	return xml_find(tree, name, after);
}

static uint32_t count(struct xml_node *tree, const char *name)
{
	struct xml_node *node = NULL;
	uint32_t found = 0;

	while ((node = next(tree, name, node)))
		found++;
	return found;
}

/* The way up to the CPU: every link on it, then what the CPU is. */
static void way_print(const struct xml_node *node, char *line)
{
	for (; node && strcmp(node->name, "system"); node = node->parent) {
		size_t used = strlen(line);
		const char *speed = xml_attr(node, "link_speed");
		const char *vendor = xml_attr(node, "vendor");

		if (!strcmp(node->name, "pci"))
			snprintf(line + used, LINE_BYTES - used, " < %s x%lld",
				speed ? speed : "",
				(long long)xml_int(node, "link_width", 0));
		if (!strcmp(node->name, "cpu"))
			snprintf(line + used, LINE_BYTES - used,
				" < cpu %s %s %s %lld/%lld", xml_attr(node, "numaid"),
				xml_attr(node, "arch"), vendor ? vendor : "-",
				(long long)xml_int(node, "familyid", -1),
				(long long)xml_int(node, "modelid", -1));
	}
}

/* NVLinks: how many to switches, and to which GPU how many. */
static void links_print(const struct xml_node *gpu, char *line)
{
	long long switched = 0;

	for (uint32_t i = 0; i < gpu->sub_count; i++) {
		const struct xml_node *link = gpu->subs[i];
		const char *class_id = xml_attr(link, "tclass");
		size_t used = strlen(line);

		if (strcmp(link->name, "nvlink"))
			continue;
		if (class_id && !strncmp(class_id, "0x03", 4))
			snprintf(line + used, LINE_BYTES - used, " %s*%s",
				xml_attr(link, "target"), xml_attr(link, "count"));
		else
			switched += xml_int(link, "count", 0);
	}
	snprintf(line + strlen(line), LINE_BYTES - strlen(line), " nvs %lld", switched);
}

static int line_compare(const void *a, const void *b)
{
	return strcmp(a, b);
}

static void shape_of(struct xml_node *tree, struct shape *shape)
{
	struct xml_node *node = NULL;

	memset(shape, 0, sizeof(*shape));
	while ((node = next(tree, "gpu", node))) {
		char *line = shape->lines[shape->count++];

		snprintf(line, LINE_BYTES, "gpu %s %s sm %s", xml_attr(node, "dev"),
			xml_attr(node->parent, "busid"), xml_attr(node, "sm"));
		links_print(node, line);
		way_print(node, line);
	}
	for (node = NULL; (node = next(tree, "net", node));) {
		char *line = shape->lines[shape->count++];

		snprintf(line, LINE_BYTES, "net %s %s %s lat %s gdr %s",
			xml_attr(node, "dev"), xml_attr(node->parent->parent, "busid"),
			xml_attr(node, "speed"), xml_attr(node, "latency"),
			xml_attr(node, "gdr"));
		way_print(node, line);
	}
	qsort(shape->lines, shape->count, LINE_BYTES, line_compare);
}

static bool has_line(const struct shape *shape, const char *line)
{
	for (uint32_t i = 0; i < shape->count; i++)
		if (!strcmp(shape->lines[i], line))
			return true;
	return false;
}

/* Several hosts: the paths of one, NICs included. */
static struct topo *paths_of(const struct xml_node *tree)
{
	int devs[TOPO_GPUS_MAX];
	struct fuse_host host = {.tree = tree,
		.host_hash = 1,
		.devs = devs,
		.dev_count = fuse_devs(tree, devs, TOPO_GPUS_MAX)};
	struct fuse_args args = {.hosts = &host, .host_count = 1};
	struct topo_rules rules;
	struct xml_node *fused;
	struct topo *topo;

	topo_rules_default(&rules);
	EQ(fuse_domain(&args, &fused), OK);
	EQ(topo_build(fused, 1, rules.nccl, &topo), OK);
	EQ(topo_paths(topo, &rules), OK);
	xml_free(fused);
	return topo;
}

/* From every GPU to every GPU and network device the same way, as wide. */
static void same_paths(const struct xml_node *one, const struct xml_node *other)
{
	static const enum topo_kind kinds[] = {TOPO_GPU, TOPO_NET, TOPO_CPU};
	struct topo *a = paths_of(one), *b = paths_of(other);

	EQ(a->counts[TOPO_GPU], b->counts[TOPO_GPU]);
	for (uint32_t g = 0; g < a->counts[TOPO_GPU]; g++) {
		for (size_t k = 0; k < sizeof(kinds) / sizeof(*kinds); k++) {
			EQ(a->counts[kinds[k]], b->counts[kinds[k]]);
			for (uint32_t i = 0; i < a->counts[kinds[k]]; i++) {
				const struct topo_path *mine = topo_path(
					topo_gpu_at(a, g), kinds[k], i);
				const struct topo_path *theirs = topo_path(
					topo_gpu_at(b, g), kinds[k], i);

				EQ(mine->type, theirs->type);
				EQ(mine->bw * 1000, theirs->bw * 1000);
				EQ(mine->hop_count, theirs->hop_count);
			}
		}
	}
	topo_free(a);
	topo_free(b);
}

/* Everything the file has is in ours; and the other way round unless it is a part. */
static void same_shape(const char *name, const char *path, bool is_part)
{
	static struct shape ours, theirs;
	struct xml_node *mine, *file;
	uint32_t missing = 0;

	EQ(instance_tree(name, &mine), OK);
	EQ(xml_read(path, "system", &file), OK);
	shape_of(mine, &ours);
	shape_of(file, &theirs);
	for (uint32_t i = 0; i < theirs.count; i++) {
		if (has_line(&ours, theirs.lines[i]))
			continue;
		missing++;
		fprintf(stderr, "%s: only in the file: %s\n", name, theirs.lines[i]);
	}
	for (uint32_t i = 0; i < ours.count && missing; i++)
		if (!has_line(&theirs, ours.lines[i]))
			fprintf(stderr, "%s: only here: %s\n", name, ours.lines[i]);
	EQ(missing, 0);
	if (!is_part) {
		EQ(ours.count, theirs.count);
		same_paths(mine, file);
	}
	xml_free(mine);
	xml_free(file);
}

/* Names, numbers and bus ids are unique; links go both ways. */
static void tree_is_sound(struct xml_node *tree)
{
	struct xml_node *node = NULL;

	while ((node = next(tree, "pci", node))) {
		struct xml_node *other = node;

		TRUE(xml_attr(node, "busid") && xml_attr(node, "class"));
		while ((other = next(tree, "pci", other)))
			TRUE(strcmp(xml_attr(node, "busid"), xml_attr(other, "busid")));
	}
	while ((node = next(tree, "net", node))) {
		struct xml_node *other = node;

		while ((other = next(tree, "net", other))) {
			TRUE(strcmp(xml_attr(node, "name"), xml_attr(other, "name")));
			TRUE(xml_int(node, "dev", -1) != xml_int(other, "dev", -1));
			TRUE(strcmp(xml_attr(node, "guid"), xml_attr(other, "guid")));
		}
	}
	for (int64_t dev = 0; (node = next(tree, "gpu", node)); dev++) {
		TRUE(xml_int(node, "dev", -1) >= 0);
		TRUE(xml_int(node, "sm", 0) >= 60);
		EQ(xml_int(node, "rank", -1), xml_int(node, "dev", -1));
	}
}

static void all_load(void)
{
	uint32_t all, gpu_total = 0;
	const struct instance_info *list = instance_list(&all);

	TRUE(all >= 60);
	for (uint32_t i = 0; i < all; i++) {
		struct xml_node *tree;
		struct topo *topo;

		EQ(instance_tree(list[i].name, &tree), OK);
		EQ(count(tree, "gpu"), list[i].gpu_count);
		EQ(count(tree, "net"), list[i].net_count);
		TRUE(list[i].gpu_count >= 1 && list[i].net_count >= 1);
		TRUE(count(tree, "cpu") >= 1);
		TRUE(list[i].summary[0] && list[i].source[0] && list[i].inferred[0]);
		TRUE(strlen(list[i].source) < INSTANCE_TEXT_BYTES - 1);
		TRUE(strlen(list[i].summary) < INSTANCE_SUMMARY_BYTES - 1);
		EQ(instance_find(list[i].name) == &list[i], 1);
		for (uint32_t j = 0; j < i; j++)
			TRUE(strcmp(list[i].name, list[j].name));
		tree_is_sound(tree);
		topo = paths_of(tree);
		EQ(topo->counts[TOPO_GPU], list[i].gpu_count);
		EQ(topo->counts[TOPO_NET], list[i].net_count);
		topo_free(topo);
		gpu_total += list[i].gpu_count;
		xml_free(tree);
	}
	TRUE(gpu_total > 250);
}

/* What the field knows of a few, number by number. */
static void facts_hold(void)
{
	static const struct {
		const char *name;
		uint32_t gpus, nets;
	} facts[] = {{"p3dn.24xlarge", 8, 1}, {"p4d.24xlarge", 8, 4},
		{"p4de.24xlarge", 8, 4}, {"p5.48xlarge-32efa", 8, 32},
		{"p5e.48xlarge-32efa", 8, 32}, {"p5en.48xlarge-16efa", 8, 16},
		{"p5.4xlarge", 1, 1}, {"p6-b200.48xlarge", 8, 8},
		{"p6e-gb200.36xlarge", 4, 4}, {"g4dn.8xlarge", 1, 1},
		{"g4dn.12xlarge", 4, 1}, {"g4dn.metal", 8, 1}, {"g5.24xlarge", 4, 1},
		{"g5.48xlarge", 8, 1}, {"g6.12xlarge", 4, 1}, {"g6.48xlarge", 8, 1},
		{"g6e.24xlarge", 4, 2}, {"g6e.48xlarge", 8, 4}, {"gr6.8xlarge", 1, 1},
		{"dgx-1v", 8, 4}, {"dgx-a100", 8, 8}, {"dgx-h100", 8, 8},
		{"dgx-b200", 8, 8}, {"hgx-h100-4nic", 8, 4}};
	struct xml_node *tree, *gpu;

	for (size_t i = 0; i < sizeof(facts) / sizeof(*facts); i++) {
		const struct instance_info *info = instance_find(facts[i].name);

		TRUE(info);
		EQ(info->gpu_count, facts[i].gpus);
		EQ(info->net_count, facts[i].nets);
	}
	EQ(instance_tree("p4d.24xlarge", &tree), OK);
	EQ_STR(xml_attr(tree->subs[0], "affinity"), "000000ff,ffff0000,00ffffff");
	EQ_STR(xml_attr(tree->subs[1], "affinity"), "ffffff00,0000ffff,ff000000");
	xml_free(tree);
	EQ(instance_tree("p3.16xlarge", &tree), OK);
	for (gpu = NULL; (gpu = next(tree, "gpu", gpu));) {
		int64_t links = 0;

		for (uint32_t i = 0; i < gpu->sub_count; i++)
			links += xml_int(gpu->subs[i], "count", 0);
		EQ(links, 6);
	}
	xml_free(tree);
	EQ(instance_tree("p9.nothing", &tree), ERR_ARGUMENT);
	EQ(instance_find("p9.nothing") == NULL, 1);
}

static bool corpus_holds(void)
{
	static const struct {
		const char *name, *file;
		bool is_part;
	} pairs[] = {{"p4d.24xlarge", "aws-p4d.24xlarge-ofi-nccl", false},
		{"p4de.24xlarge", "aws-p4de.24xlarge-ofi-nccl", false},
		{"p5.48xlarge", "aws-p5.48xlarge-ofi-grouped.derived", false},
		{"p5.48xlarge-32efa", "aws-p5.48xlarge-32efa.derived", false},
		{"p5en.48xlarge-16efa", "aws-p5en.48xlarge-16efa.derived", false},
		{"p6-b200.48xlarge", "aws-p6-b200.48xlarge-8efa.derived", false},
		{"g5.48xlarge", "aws-g5.48xlarge-ofi-nccl", false},
		{"g6.48xlarge", "aws-g6.48xlarge-8xL4-1efa.derived", false},
		{"g6e.48xlarge", "aws-g6e.48xlarge-4of8gpu-from-log.derived", true},
		{"dgx-1v", "dgx-1v", false}, {"dgx-a100", "dgx-a100-8nic", false},
		{"dgx-h100", "dgx-h100", false}, {"dgx-b200", "dgx-b200-cx7", false},
		{"hgx-h100-4nic", "hgx-h100-4nic", false},
		{"pcie-l40s-8gpu-2nic", "pcie-l40s-8gpu-2nic", false}};

	for (size_t i = 0; i < sizeof(pairs) / sizeof(*pairs); i++) {
		char name[128], path[DATA_PATH_MAX];

		snprintf(name, sizeof(name), "topologies/%s.xml", pairs[i].file);
		if (!data_find(name, path))
			return false;
		same_shape(pairs[i].name, path, pairs[i].is_part);
	}
	return true;
}

int main(void)
{
	all_load();
	facts_hold();
	return corpus_holds() ? 0 : TEST_SKIP;
}
