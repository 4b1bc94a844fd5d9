/* NICs are dealt to pods evenly, the nearest first, and seen by nobody else. */
#include "topo/share.h"

#include "graph/decide.h"
#include "test.h"

enum { GPUS = 8 };

static const int devs[GPUS] = {0, 1, 2, 3, 4, 5, 6, 7};

#define PCI(bus, class, body)                                                            \
	"<pci busid='0000:" bus                                                          \
	":00.0' class='" class "' link_speed='16.0 GT/s PCIe' link_width='16'>" body     \
			       "</pci>"
#define GPU(bus, dev) PCI(bus, "0x030200", "<gpu dev='" dev "' sm='80'/>")
#define NIC(bus, dev)                                                                    \
	PCI(bus, "0x020700",                                                             \
		"<nic><net name='n" dev "' dev='" dev "' speed='100000'/></nic>")
#define SWITCH(bus, body) PCI(bus, "0x060400", body)

/* Four switches with two GPUs and a NIC each, two on either processor. */
static const char text[] =
	"<system version='1'><cpu numaid='0' arch='x86_64' vendor='GenuineIntel' "
	"familyid='6' modelid='85'>" SWITCH(
		"10", GPU("11", "0") GPU("12", "1") NIC("13", "0")) SWITCH("20",
		GPU("21", "2") GPU("22", "3") NIC("23",
			"1")) "</cpu><cpu numaid='1' arch='x86_64' vendor='GenuineIntel' "
			      "familyid='6' "
			      "modelid='85'>" SWITCH(
				      "30", GPU("31", "4") GPU("32", "5") NIC("33", "2"))
				      SWITCH("40", GPU("41", "6") GPU("42", "7") NIC(
							   "43", "3")) "</cpu></system>";

static struct share dealt(
	const struct xml_node *tree, uint32_t pods, uint32_t gpus, uint32_t nets)
{
	struct share_args args = {.tree = tree,
		.devs = devs,
		.pods = pods,
		.gpus_per_pod = gpus,
		.nets_per_pod = nets};
	struct share share;

	EQ(share_nets(&args, &share), OK);
	EQ(share.net_count, 4);
	return share;
}

static void evenly(const struct xml_node *tree)
{
	struct share share = dealt(tree, 4, 2, 0);

	EQ(share.per_pod, 1);
	EQ(share.most_pods, 1);
	for (int pod = 0; pod < 4; pod++)
		EQ(share.nets[pod], pod); /* its own switch's */
	share_free(&share);
	share = dealt(tree, 2, 4, 0);
	EQ(share.per_pod, 2);
	EQ(share.nets[0] + share.nets[1], 1); /* its own processor's */
	EQ(share.nets[2] + share.nets[3], 5);
	share_free(&share);
	share = dealt(tree, 4, 1, 0); /* two of them sit at one switch */
	EQ(share.per_pod, 1);
	EQ(share.most_pods, 1);
	EQ(share.nets[0], 0);
	EQ(share.nets[2], 1);
	EQ(share.nets[1] + share.nets[3], 5);
	share_free(&share);
}

static void shared(const struct xml_node *tree)
{
	struct share_args args = {.tree = tree,
		.devs = devs,
		.pods = 2,
		.gpus_per_pod = 1,
		.nets_per_pod = 5};
	struct share share = dealt(tree, 8, 1, 0);

	EQ(share.per_pod, 1); /* one at least */
	EQ(share.most_pods, 2);
	for (int pod = 0; pod < 8; pod++)
		EQ(share.nets[pod], pod / 2);
	share_free(&share);
	share = dealt(tree, 2, 4, 4);
	EQ(share.most_pods, 2);
	share_free(&share);
	EQ(share_nets(&args, &share), ERR_USAGE);
}

/* A pod counts only its own NICs, from 0. */
static void seen_by_pods(const struct xml_node *tree)
{
	const struct xml_node *trees[] = {tree, tree};
	struct decide_args args = {.machines = trees,
		.machine_count = 2,
		.host_count = 2,
		.pods = 4,
		.gpus_per_pod = 1};
	struct decision *decision;

	topo_rules_default(&args.rules);
	EQ(decide(&args, &decision), OK);
	EQ(decision->net_count, 4);
	EQ(decision->nets_per_pod, 1);
	EQ(decision->pods_per_net, 1);
	for (uint32_t d = 0; d < decision->domain_count; d++) {
		const struct topo *topo = decision->domains[d]->topo;

		EQ(topo->counts[TOPO_NET], 1);
		EQ(topo->nodes[TOPO_NET][0]->net.dev, 0);
	}
	decision_free(decision);
	args.nets_per_pod = 3;
	EQ(decide(&args, &decision), OK);
	EQ(decision->domains[0]->topo->counts[TOPO_NET], 3);
	EQ(decision->pods_per_net, 3);
	decision_free(decision);
	args.nets_per_pod = 5;
	EQ(decide(&args, &decision), ERR_USAGE);
}

int main(void)
{
	struct xml_node *tree;

	EQ(xml_parse(text, strlen(text), "t.xml", "system", &tree), OK);
	evenly(tree);
	shared(tree);
	seen_by_pods(tree);
	xml_free(tree);
	return 0;
}
