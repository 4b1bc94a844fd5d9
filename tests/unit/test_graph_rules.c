/* Rules of search and joining that few machines show, each on the smallest one that does.
 * What is expected was worked out by hand from what NCCL 2.30.7 does. */
#include "graph/decide.h"
#include "test.h"

#define GEN4 " link_speed='16.0 GT/s PCIe' link_width='16'"
#define CPU(numa, arch, vendor, body)                                                    \
	"<cpu numaid='" numa "' arch='" arch "' vendor='" vendor                         \
	"' familyid='6' modelid='85'>" body "</cpu>"
#define GPU(bus, dev, sm)                                                                \
	"<pci busid='0000:" bus ":00.0' class='0x030200'" GEN4 "><gpu dev='" dev         \
	"' sm='" sm "'/></pci>"
#define NIC(bus, dev, speed)                                                             \
	"<pci busid='0000:" bus ":00.0' class='0x020700'" GEN4 "><nic><net name='x" dev  \
	"' dev='" dev "' speed='" speed "' port='1'/></nic></pci>"
/* The way up is half as wide as those down. */
#define SWITCH(bus, body)                                                                \
	"<pci busid='0000:" bus ":00.0' class='0x060400' link_speed='16.0 GT/s PCIe' "   \
	"link_width='8'>" body "</pci>"

static enum err decide_on(const char *const *texts, uint32_t count, uint32_t hosts,
	struct decision **decision)
{
	struct xml_node *trees[4];
	struct decide_args args = {.machines = (const struct xml_node *const *)trees,
		.machine_count = count,
		.host_count = hosts};
	enum err e;

	topo_rules_default(&args.rules);
	for (uint32_t i = 0; i < count; i++) {
		char text[4096];

		snprintf(text, sizeof(text), "<system version='1'>%s</system>", texts[i]);
		EQ(xml_parse(text, strlen(text), "t.xml", "system", &trees[i]), OK);
	}
	*decision = NULL;
	e = decide(&args, decision);
	for (uint32_t i = 0; i < count; i++)
		xml_free(trees[i]);
	return e;
}

/* Both GPUs have a NIC that is faster than the way between them, so each is a node; yet
 * the older one decides for both which speeds are tried: 20 and not 22 GB/s. */
static void test_oldest(void)
{
	static const char *const text = CPU("0", "x86_64", "GenuineIntel",
		SWITCH("10", GPU("11", "0", "80") NIC("12", "0", "176000"))
			SWITCH("20", GPU("21", "1", "90") NIC("22", "1", "176000")));
	struct decision *decision;

	EQ(decide_on(&text, 1, 1, &decision), OK);
	EQ(decision->cluster->node_count, 2);
	EQ(decision->domain_count, 2);
	for (uint32_t d = 0; d < 2; d++) {
		const struct graph *ring = &decision->domains[d]->set.graphs[GRAPH_RING];

		EQ(ring->channel_count, 1);
		EQ(ring->bw_inter, 20);
		EQ(ring->type_inter, PATH_PIX);
	}
	decision_free(decision);
}

static void test_no_nic(void)
{
	static const char *const text = CPU(
		"0", "x86_64", "GenuineIntel", GPU("11", "0", "80") GPU("12", "1", "80"));
	struct decision *decision;

	EQ(decide_on(&text, 1, 1, &decision), OK);
	EQ(decision->cluster->node_count, 1);
	decision_free(decision);
	EQ(decide_on(&text, 1, 2, &decision), ERR_USAGE);
	TRUE(strstr(err_last(), "has no NIC"));
}

/* Machines of different makers, one of them unknown, and of different size. */
static void test_mixture(void)
{
	static const char *const texts[] = {
		CPU("0", "x86_64", "HygonGenuine",
			GPU("11", "0", "80") GPU("13", "1", "80")
				NIC("12", "0", "100000")),
		CPU("0", "arm64", "0", GPU("11", "0", "90") NIC("12", "0", "100000"))};
	const struct cluster *cluster;
	struct decision *decision;

	EQ(decide_on(texts, 2, 3, &decision), OK);
	cluster = decision->cluster;
	EQ(cluster->cpu_arch, CPU_ARCH_MIXED);
	EQ(cluster->cpu_vendor, CPU_VENDOR_MIXED);
	EQ(cluster->rank_count, 5);
	EQ(cluster->node_count, 3);
	EQ(cluster->min_local_ranks, 1);
	EQ(cluster->max_local_ranks, 2);
	EQ(cluster->min_sm, 80);
	EQ(cluster->max_sm, 90);
	for (int rank = 0; rank < 5; rank++)
		EQ(cluster->channels[0].ring_next[rank], (rank + 1) % 5);
	decision_free(decision);
}

int main(void)
{
	test_oldest();
	test_no_nic();
	test_mixture();
	return 0;
}
