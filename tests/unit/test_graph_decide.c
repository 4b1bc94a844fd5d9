/* From machine files to channels: every recorded decision, decided again. */
#include "graph/decide.h"

#include "decisions.h"
#include "test.h"

enum { FILES_MAX = 16, PATH_BYTES = 2048 };

struct totals {
	struct tally comm, channels, nvls;
	int files;
};

/* run.xml is one path, or several. */
static uint32_t read_files(json_t *xml, struct xml_node *trees[FILES_MAX])
{
	uint32_t count = json_is_array(xml) ? (uint32_t)json_array_size(xml) : 1;

	TRUE(count <= FILES_MAX);
	for (uint32_t i = 0; i < count; i++) {
		json_t *name = json_is_array(xml) ? json_array_get(xml, i) : xml;
		char path[PATH_BYTES];
		snprintf(path, sizeof(path), "%s/../%s", decisions_folder(),
			json_string_value(name));
		EQ(xml_read(path, "system", &trees[i]), OK);
	}
	return count;
}

static void add(struct tally *sum, const struct tally *tally)
{
	sum->equal += tally->equal;
	sum->different += tally->different;
}

static void check_file(const char *name, json_t *root, void *context)
{
	struct totals *totals = context;
	json_t *run = json_object_get(root, "run");
	struct xml_node *trees[FILES_MAX];
	struct decide_args args = {.machines = (const struct xml_node *const *)trees,
		.machine_count = read_files(json_object_get(run, "xml"), trees),
		.host_count = (uint32_t)decisions_int(run, "machines"),
		.mnnvl_hosts = (uint32_t)decisions_int(run, "mnnvlHostsPerDomain"),
		.collnet = decisions_int(run, "collnet") != 0,
		.has_multicast = decisions_int(run, "multicast") != 0};
	struct tally comm = {0}, channels = {0}, nvls = {0};
	struct decision *decision = NULL;

	topo_rules_default(&args.rules);
	args.rules.nccl = NCCL_RULES_2_30;
	args.rules.merge_nics = decisions_int(run, "vnicMerge") != 0;
	args.rules.nvml_p2p_ok = decisions_int(run, "nvmlP2p") != 0;
	if (decide(&args, &decision) != OK) {
		comm.different = channels.different = nvls.different = 1;
		printf("%s: %s\n", name, err_last());
	} else {
		decisions_compare_comm(name, root, decision->cluster, &comm);
		decisions_compare_channels(name, root, decision->cluster, &channels);
		decisions_compare_nvls(name, root, decision->cluster, &nvls);
	}
	printf("%s: comm %d/%d channels %d/%d nvls %d/%d\n", name, comm.equal,
		comm.equal + comm.different, channels.equal,
		channels.equal + channels.different, nvls.equal,
		nvls.equal + nvls.different);
	totals->files++;
	add(&totals->comm, &comm);
	add(&totals->channels, &channels);
	add(&totals->nvls, &nvls);
	decision_free(decision);
	for (uint32_t i = 0; i < args.machine_count; i++)
		xml_free(trees[i]);
}

/* Two GPUs below one switch, and a NIC. */
static struct xml_node *small_machine(void)
{
	static const char text[] =
		"<system version=\"1\"><cpu numaid=\"0\" affinity=\"f\" arch=\"x86_64\" "
		"vendor=\"GenuineIntel\" familyid=\"6\" modelid=\"85\">"
		"<pci busid=\"0000:10:00.0\" class=\"0x060400\" link_speed=\"8.0 GT/s "
		"PCIe\" "
		"link_width=\"16\">"
		"<pci busid=\"0000:11:00.0\" class=\"0x030200\" link_speed=\"8.0 GT/s "
		"PCIe\" "
		"link_width=\"16\"><gpu dev=\"0\" sm=\"80\" rank=\"0\" gdr=\"1\"/></pci>"
		"<pci busid=\"0000:12:00.0\" class=\"0x030200\" link_speed=\"8.0 GT/s "
		"PCIe\" "
		"link_width=\"16\"><gpu dev=\"1\" sm=\"80\" rank=\"1\" gdr=\"1\"/></pci>"
		"<pci busid=\"0000:13:00.0\" class=\"0x020000\" link_speed=\"8.0 GT/s "
		"PCIe\" "
		"link_width=\"16\"><nic><net name=\"eth0\" dev=\"0\" speed=\"10000\" "
		"port=\"0\" guid=\"0x1\" maxconn=\"64\" gdr=\"0\"/></nic></pci>"
		"</pci></cpu></system>";
	struct xml_node *tree = NULL;

	EQ(xml_parse(text, sizeof(text) - 1, "small", "system", &tree), OK);
	return tree;
}

/* Equal machines are looked at once, given as one tree or as two. */
static void equal_machines_share(const struct xml_node *const trees[2])
{
	struct decide_args args = {
		.machines = trees, .machine_count = 2, .host_count = 300};
	struct decision *decision;

	topo_rules_default(&args.rules);
	EQ(decide(&args, &decision), OK);
	EQ(decision->domain_count, 1);
	EQ(decision->gpus_per_machine, 2);
	EQ(decision->cluster->node_count, 300);
	EQ(decision->cluster->rank_count, 600);
	EQ(decision->cluster->rank_node[599], 299);
	EQ(decision->cluster->channel_count, 2);
	decision_free(decision);
	args.channels.min_ctas = 7; /* repeats; the graphs are as they were */
	EQ(decide(&args, &decision), OK);
	EQ(decision->cluster->channel_count, 7);
	EQ(decision->domains[0]->set.graphs[GRAPH_RING].channel_count, 1);
	decision_free(decision);
}

static void pods_are_nodes(const struct xml_node *const trees[2])
{
	struct decide_args args = {.machines = trees,
		.machine_count = 2,
		.host_count = 3,
		.pods = 2,
		.gpus_per_pod = 1};
	struct decision *decision;

	topo_rules_default(&args.rules);
	EQ(decide(&args, &decision), OK);
	EQ(decision->cluster->node_count, 6);
	EQ(decision->cluster->local_ranks, 1);
	EQ(decision->domain_count, 2); /* first and second GPU */
	EQ(decision->domains[1]->topo->nodes[TOPO_GPU][0]->gpu.dev, 1);
	EQ(decision->domains[1]->topo->counts[TOPO_NET], 1);
	decision_free(decision);
	args.pods = 3;
	EQ(decide(&args, &decision), ERR_USAGE);
	args.pods = 1;
	EQ(decide(&args, &decision), OK); /* one GPU is left alone */
	EQ(decision->cluster->rank_count, 3);
	decision_free(decision);
	args.gpus_per_pod = 0;
	EQ(decide(&args, &decision), ERR_USAGE);
	args.pods = UINT32_MAX;
	args.gpus_per_pod = UINT32_MAX;
	EQ(decide(&args, &decision), ERR_USAGE);
	args.pods = 0;
	args.host_count = UINT32_MAX;
	EQ(decide(&args, &decision), ERR_USAGE);
	args.host_count = 0;
	EQ(decide(&args, &decision), ERR_ARGUMENT);
}

static void files_may_be_missing(const struct xml_node *const trees[2])
{
	struct decide_args args = {.machines = trees,
		.machine_count = 1,
		.host_count = 1,
		.graph_file = "/nowhere/graph.xml"};
	struct decision *decision;

	topo_rules_default(&args.rules);
	EQ(decide(&args, &decision), ERR_SYSTEM);
}

int main(void)
{
	struct totals totals = {0};
	struct xml_node *trees[2] = {small_machine(), small_machine()};
	const struct xml_node *const machines[2] = {trees[0], trees[1]};

	equal_machines_share(machines);
	pods_are_nodes(machines);
	files_may_be_missing(machines);
	xml_free(trees[0]);
	xml_free(trees[1]);
	if (!*decisions_folder())
		return TEST_SKIP;
	decisions_each(check_file, &totals);
	printf("%d files; equal/different: comm %d/%d channels %d/%d nvls %d/%d\n",
		totals.files, totals.comm.equal, totals.comm.different,
		totals.channels.equal, totals.channels.different, totals.nvls.equal,
		totals.nvls.different);
	EQ(totals.comm.different + totals.channels.different + totals.nvls.different, 0);
	return 0;
}
