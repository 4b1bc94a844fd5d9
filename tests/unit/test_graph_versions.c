/* What NCCL 2.31 changed and 2.32 has: each rule as it was and as it is. */
#include "graph/decide.h"
#include "model_machine.h"
#include "test.h"

static const enum nccl_rules ages[2] = {NCCL_RULES_2_30, NCCL_RULES_2_32};

static void names(void)
{
	enum nccl_rules rules = NCCL_RULES_NEWEST;

	TRUE(nccl_rules_named("2.30.7", &rules));
	EQ(rules, NCCL_RULES_2_30);
	TRUE(nccl_rules_named(nccl_rules_version(NCCL_RULES_2_32), &rules));
	EQ(rules, NCCL_RULES_2_32);
	TRUE(!nccl_rules_named("2.33", &rules) && !nccl_rules_named("", &rules));
	EQ(rules, NCCL_RULES_2_32); /* as it was */
	EQ_STR(nccl_rules_version(NCCL_RULES_2_30), "2.30.7");
}

/* Two processors: how fast they are to each other, and NCCL's number for them. */
static void processors_are(const char *vendor, int family, int model, enum nccl_rules age,
	const int wanted[2])
{
	struct xml_node *tree;
	struct topo *topo;
	char text[1024];

	snprintf(text, sizeof(text),
		"<system version='1'>"
		"<cpu numaid='0' arch='x86_64' vendor='%s' familyid='%d' modelid='%d'/>"
		"<cpu numaid='1' arch='x86_64' vendor='%s' familyid='%d' modelid='%d'/>"
		"</system>",
		vendor, family, model, vendor, family, model);
	EQ(xml_parse(text, strlen(text), "t.xml", "system", &tree), OK);
	EQ(topo_build(tree, 0, age, &topo), OK);
	EQ(topo->nodes[TOPO_CPU][0]->links[0].bw, wanted[0]);
	EQ(topo->nodes[TOPO_CPU][0]->cpu.model, wanted[1]);
	topo_free(topo);
	xml_free(tree);
}

static void processors(void)
{
	static const struct {
		const char *vendor;
		int family, model;
		int wanted[2][2]; /* 2.30, 2.32: GB/s, number */
	} rows[] = {
		{"AuthenticAMD", 23, 49, {{16, CPU_UNKNOWN}, {16, CPU_AMD_ZEN12}}},
		{"AuthenticAMD", 0x8F, 49, {{16, CPU_UNKNOWN}, {16, CPU_AMD_ZEN12}}},
		{"AuthenticAMD", 25, 17, {{16, CPU_UNKNOWN}, {24, CPU_AMD_ZEN34}}},
		{"AuthenticAMD", 0xAF, 17, {{16, CPU_UNKNOWN}, {24, CPU_AMD_ZEN34}}},
		{"AuthenticAMD", 26, 2, {{16, CPU_UNKNOWN}, {32, CPU_AMD_ZEN5}}},
		{"AuthenticAMD", 0xBF, 2, {{16, CPU_UNKNOWN}, {32, CPU_AMD_ZEN5}}},
		{"GenuineIntel", 6, 0x8F, {{22, CPU_INTEL_SPR}, {22, CPU_INTEL_SPR}}},
		{"GenuineIntel", 6, 0xAC, {{22, CPU_INTEL_SPR}, {22, CPU_INTEL_SPR}}},
		{"GenuineIntel", 6, 0xAD, {{22, CPU_INTEL_SPR}, {40, CPU_INTEL_EMR}}},
		{"GenuineIntel", 6, 0xAF, {{22, CPU_INTEL_SPR}, {40, CPU_INTEL_EMR}}},
		{"GenuineIntel", 6, 0xB0, {{22, CPU_INTEL_SPR}, {22, CPU_INTEL_SPR}}},
		{"GenuineIntel", 6, 0xCF, {{40, CPU_INTEL_EMR}, {40, CPU_INTEL_EMR}}},
		{"GenuineIntel", 5, 0xAD, {{6, CPU_INTEL_BDW}, {6, CPU_INTEL_BDW}}},
	};

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
		for (int age = 0; age < 2; age++)
			processors_are(rows[i].vendor, rows[i].family, rows[i].model,
				ages[age], rows[i].wanted[age]);
}

#define GEN6 "link_speed='64.0 GT/s PCIe' link_width='16'"
#define PART(bus, dev, sm)                                                               \
	"<pci busid='0000:" bus "0:00.0' class='0x060400' " GEN6                         \
	"><pci busid='0000:" bus "1:00.0' class='0x030200' " GEN6 "><gpu dev='" dev      \
	"' sm='" sm                                                                      \
	"'><nvlink target='0000:ff:00.0' count='18' tclass='0x068000'/></gpu></pci>"     \
	"<pci busid='0000:" bus "2:00.0' class='0x020700' " GEN6                         \
	"><nic><net name='n" dev "' dev='" dev "' speed='728000'/></nic></pci></pci>"
#define MACHINE(sm)                                                                      \
	"<system version='1'><cpu numaid='0' arch='x86_64' vendor='GenuineIntel' "       \
	"familyid='6' modelid='207'>" PART("1", "0", sm)                                 \
		PART("2", "1", sm) "</cpu></system>"

/* What the NVLS graph of two such machines has for every NIC of 91 GB/s. */
static float nvls_speed(const char *text, enum nccl_rules age)
{
	struct xml_node *tree;
	const struct xml_node *trees[1];
	struct decide_args args = {.machines = trees,
		.machine_count = 1,
		.host_count = 2,
		.has_multicast = true};
	struct decision *decision;
	float speed;

	EQ(xml_parse(text, strlen(text), "t.xml", "system", &tree), OK);
	trees[0] = tree;
	topo_rules_default(&args.rules);
	args.rules.nccl = age;
	EQ(decide(&args, &decision), OK);
	EQ(decision->cluster->nccl, age);
	EQ(decision->domains[0]->set.graphs[GRAPH_NVLS].channel_count, 2);
	speed = decision->domains[0]->set.graphs[GRAPH_NVLS].bw_inter;
	decision_free(decision);
	xml_free(tree);
	return speed;
}

static void ladder(void)
{
	EQ(nvls_speed(MACHINE("100"), NCCL_RULES_2_30), 86);
	EQ(nvls_speed(MACHINE("100"), NCCL_RULES_2_32) * 10, 902);
	EQ(nvls_speed(MACHINE("90"), NCCL_RULES_2_30), 48);
	EQ(nvls_speed(MACHINE("90"), NCCL_RULES_2_32), 48);
}

/* Part of its bandwidth that an NVLS tree of 64 bytes times 2^size is said to reach. */
static float part(struct cluster *cluster, int size)
{
	struct model_call call = {.func = MODEL_ALL_REDUCE, .pipe_ops = 1};
	struct model_rules rules;
	struct model model;
	float latency, bandwidth, time;

	call.bytes = (uint64_t)64 << size;
	model_rules_default(&rules);
	EQ(model_make(cluster, &rules, &model), OK);
	latency = model.latency[MODEL_ALL_REDUCE][ALGO_NVLS_TREE][PROTO_SIMPLE];
	bandwidth = model.bandwidth[MODEL_ALL_REDUCE][ALGO_NVLS_TREE][PROTO_SIMPLE];
	time = model_time(&model, &call, ALGO_NVLS_TREE, PROTO_SIMPLE);
	return (float)call.bytes / 1000 / bandwidth / (time - latency);
}

static bool is_whole(struct cluster *cluster, int size)
{
	float reached = part(cluster, size);

	return reached > 0.99f && reached < 1.01f;
}

static void arm_fill(struct cluster *cluster, int nodes)
{
	machine_fill(cluster, nodes);
	cluster->rank_count = 4 * nodes;
	cluster->local_ranks = cluster->min_local_ranks = cluster->max_local_ranks = 4;
	cluster->min_sm = cluster->max_sm = 100;
	cluster->cpu_arch = CPU_ARCH_ARM;
	cluster->min_net_bw = 96;
	cluster->nccl = NCCL_RULES_2_32;
}

static void arm_correction(void)
{
	struct cluster cluster;

	arm_fill(&cluster, 2);
	TRUE(!is_whole(&cluster, 22));
	TRUE(is_whole(&cluster, 23)); /* two nodes: the last size is left alone */
	cluster.cpu_arch = CPU_ARCH_X86;
	TRUE(!is_whole(&cluster, 23));
	arm_fill(&cluster, 3);
	TRUE(!is_whole(&cluster, 22) && !is_whole(&cluster, 23));
	TRUE(is_whole(&cluster, 24));
	cluster.nccl = NCCL_RULES_2_30;
	TRUE(is_whole(&cluster, 22));
	arm_fill(&cluster, 3);
	cluster.min_net_bw = 95;
	TRUE(is_whole(&cluster, 22));
	arm_fill(&cluster, 3);
	cluster.max_local_ranks = 8;
	TRUE(is_whole(&cluster, 22));
	arm_fill(&cluster, 3);
	cluster.min_sm = 90;
	TRUE(is_whole(&cluster, 22));
}

int main(void)
{
	names();
	processors();
	ladder();
	arm_correction();
	return 0;
}
