/* Rules that few machines show, each on the smallest one that does. What is expected was
 * worked out by hand from what NCCL 2.30.7 does. */
#include "test.h"
#include "topo/fuse.h"
#include "topo/topo.h"

enum { GPUS_MAX = 8 };

#define GEN4		  " link_speed='16.0 GT/s PCIe' link_width='16'"
#define SYSTEM(body)	  "<system version='1'>" body "</system>"
#define CPU(numa, body)	  CPU_OF(numa, "GenuineIntel", body)
#define SWITCH(bus, body) SWITCH_X16("0000:" bus ":00.0", body)
#define NIC(bus, nets)	  NIC_AT("0000:" bus ":00.0", nets)
#define GPU(bus, dev)	  GPU_WITH(bus, dev, "80", "")
#define CPU_OF(numa, vendor, body)                                                       \
	"<cpu numaid='" numa "' arch='x86_64' vendor='" vendor                           \
	"' familyid='6' modelid='85'>" body "</cpu>"
#define SWITCH_X16(busid, body)                                                          \
	"<pci busid='" busid "' class='0x060400'" GEN4 ">" body "</pci>"
#define GPU_WITH(bus, dev, sm, links)                                                    \
	"<pci busid='0000:" bus ":00.0' class='0x030200'" GEN4 "><gpu dev='" dev         \
	"' sm='" sm "' gdr='1'>" links "</gpu></pci>"
#define NIC_AT(busid, nets)                                                              \
	"<pci busid='" busid "' class='0x020700'" GEN4 "><nic>" nets "</nic></pci>"
#define NET(name, dev, rest)                                                             \
	"<net name='" name "' dev='" dev "' speed='200000' port='1' " rest "/>"
#define NVLINK(bus, count)                                                               \
	"<nvlink target='0000:" bus ":00.0' count='" count "' tclass='0x030200'/>"

static enum err topo_try(const char *text, const struct topo_rules *rules, bool is_alone,
	struct topo **topo)
{
	int devs[GPUS_MAX];
	struct fuse_host host = {.host_hash = 1, .devs = devs};
	struct fuse_args args = {.hosts = &host,
		.host_count = 1,
		.merge_nics = rules->merge_nics,
		.merge_level = rules->merge_level};
	struct xml_node *tree, *fused;
	enum err e;

	*topo = NULL;
	EQ(xml_parse(text, strlen(text), "t.xml", "system", &tree), OK);
	host.tree = tree;
	host.dev_count = fuse_devs(tree, devs, GPUS_MAX);
	e = fuse_domain(&args, &fused);
	xml_free(tree);
	if (e)
		return e;
	EQ(topo_build(fused, 1, rules->nccl, topo), OK);
	xml_free(fused);
	e = topo_paths(*topo, rules);
	if (!e)
		e = topo_trim(*topo, 0, (int)host.dev_count + !is_alone);
	return e;
}

/* One of several such machines, with NCCL's defaults. */
static struct topo *topo_of(const char *text)
{
	struct topo_rules rules;
	struct topo *topo;

	topo_rules_default(&rules);
	EQ(topo_try(text, &rules, false, &topo), OK);
	return topo;
}

static struct topo *merged(const char *text, int level)
{
	struct topo_rules rules;
	struct topo *topo;

	topo_rules_default(&rules);
	rules.merge_level = level;
	EQ(topo_try(text, &rules, false, &topo), OK);
	return topo;
}

static const struct topo_net *net_at(const struct topo *topo, uint32_t index)
{
	TRUE(index < topo->counts[TOPO_NET]);
	return &topo->nodes[TOPO_NET][index]->net;
}

static const struct topo_node *nic_of(const struct topo *topo, uint32_t net)
{
	return topo->nodes[TOPO_NET][net]->links[0].to;
}

/* Two functions of a card are two ports: one device below a made function, which comes
 * after all that were there. */
static void test_functions(void)
{
	struct topo *topo = topo_of(SYSTEM(CPU("0",
		SWITCH("10", GPU("11", "0") NIC("12", NET("mlx5_0", "0", "guid='0xa'"))
				     NIC_AT("0000:12:00.1", NET("mlx5_1", "1", ""))
					     NIC("13", NET("mlx5_2", "2", ""))))));

	EQ(topo->counts[TOPO_NET], 2);
	EQ_STR(net_at(topo, 0)->name, "mlx5_2");
	EQ(net_at(topo, 0)->dev, 2);
	EQ_STR(net_at(topo, 1)->name, "mlx5_0+mlx5_1");
	EQ(net_at(topo, 1)->dev, 3);
	EQ(net_at(topo, 1)->asic, 0xa);
	EQ(net_at(topo, 1)->bw, 50);
	EQ(topo_local(nic_of(topo, 1)->id), 0x12002);
	EQ(topo_path(topo_gpu_at(topo, 0), TOPO_NET, 1)->type, PATH_PIX);
	topo_free(topo);
}

/* The bus ids that count are those where the ways part. */
static void test_where_ways_part(void)
{
	struct topo *topo = topo_of(SYSTEM(CPU("0",
		SWITCH("10", GPU("11", "0") NIC("12", NET("mlx5_0", "0", "")))
			SWITCH("20", NIC_AT("0000:12:00.1", NET("mlx5_1", "1", ""))))));

	EQ(topo->counts[TOPO_NET], 2);
	topo_free(topo);
	topo = topo_of(SYSTEM(CPU("0",
		SWITCH_X16(
			"0000:10:00.0", GPU("11", "0") NIC("12", NET("mlx5_0", "0", "")))
			SWITCH_X16("0000:10:00.1", NIC("22", NET("mlx5_1", "1", ""))))));
	EQ(topo->counts[TOPO_NET], 1);
	EQ(topo_path(topo_gpu_at(topo, 0), TOPO_NET, 0)->type, PATH_PHB);
	topo_free(topo);
}

/* On a switch the lanes of the members count together, on the switch's own link too. */
static void test_levels(void)
{
	static const char text[] = SYSTEM(
		CPU("0", SWITCH("10", GPU("11", "0") NIC("12", NET("mlx5_0", "0", ""))
					      NIC("13", NET("mlx5_1", "1", ""))))
			CPU("1", NIC("23", NET("mlx5_2", "2", ""))));
	struct topo *topo = merged(text, PATH_PIX);
	struct topo_rules rules;

	EQ(topo->counts[TOPO_NET], 2);
	EQ_STR(net_at(topo, 0)->name, "mlx5_0+mlx5_1");
	EQ(nic_of(topo, 0)->links[1].bw, 48);
	EQ(topo->nodes[TOPO_CPU][0]->links[0].bw, 48);
	topo_free(topo);
	topo = merged(text, PATH_LOC);
	EQ(topo->counts[TOPO_NET], 3);
	topo_free(topo);
	topo_rules_default(&rules);
	rules.merge_level = PATH_SYS;
	EQ(topo_try(text, &rules, false, &topo), ERR_USAGE);
	TRUE(strstr(err_last(), "different NUMA nodes"));
}

/* A GPU relays only to a NIC that it reaches by GPUDirect. */
static void test_relay(void)
{
#define RELAY(gdr)                                                                       \
	SYSTEM(CPU("0",                                                                  \
		SWITCH("10", GPU_WITH("11", "0", "80", NVLINK("21", "4")))               \
			SWITCH("20", GPU_WITH("21", "1", "80", NVLINK("11", "4")) NIC(   \
					     "22", NET("x", "0", "gdr='" gdr "'")))))
	struct topo *topo = topo_of(RELAY("1"));

	EQ(topo_path(topo_gpu_at(topo, 0), TOPO_NET, 0)->type, PATH_PXN);
	topo_free(topo);
	topo = topo_of(RELAY("0"));
	EQ(topo_path(topo_gpu_at(topo, 0), TOPO_NET, 0)->type, PATH_PHB);
	EQ(topo_path(topo_gpu_at(topo, 1), TOPO_NET, 0)->type, PATH_PHB);
	topo_free(topo);
}

/* Switches tied below the bus: as good as two levels of one. */
static void test_ties(void)
{
	struct topo *topo = topo_of(SYSTEM(CPU("0",
		SWITCH("10", GPU("11", "0") "<pcilink target='0000:20:00.0'/>")) CPU("1",
		SWITCH("20", GPU("21", "1") "<pcilink "
					    "target='0000:10:00.0'/>"))));
	const struct topo_path *path = topo_path(topo_gpu_at(topo, 0), TOPO_GPU, 1);

	EQ(path->type, PATH_PXB);
	EQ(path->bw, 24);
	EQ(path->hop_count, 5);
	topo_free(topo);
}

/* C2C is taken for what it is, also where PCI is faster. */
static void test_two_links(void)
{
	struct topo *topo = topo_of(
		SYSTEM(CPU("0", GPU_WITH("11", "0", "90", "<c2c bw='1000' count='5'/>")
					NIC("12", NET("x", "0", "")))));
	const struct topo_path *path = topo_path(topo_gpu_at(topo, 0), TOPO_CPU, 0);

	EQ(path->type, PATH_C2C);
	EQ(path->bw, 5);
	EQ(path->hops[1]->type, LINK_C2C);
	EQ(topo_path(topo_gpu_at(topo, 0), TOPO_NET, 0)->type, PATH_P2C);
	topo_free(topo);
}

/* NICs without a PCI function are one per host, on the CPU that has the first. */
static void test_on_cpus(void)
{
	struct topo *topo = topo_of(SYSTEM(
		CPU("0", GPU("11", "0") "<nic>" NET("eth0", "0", "") "</nic>")
			CPU("1", GPU("21", "1") "<nic>" NET("eth1", "1", "") "</nic>")));

	EQ(topo->counts[TOPO_NIC], 1);
	EQ(topo_path(topo_gpu_at(topo, 0), TOPO_NET, 1)->type, PATH_PHB);
	EQ(topo_path(topo_gpu_at(topo, 1), TOPO_NET, 1)->type, PATH_SYS);
	topo_free(topo);
}

/* A function that is a GPU and holds a NIC is both. */
static void test_both(void)
{
	struct topo *topo = topo_of(SYSTEM(CPU("0",
		"<pci busid='0000:11:00.0' class='0x030200'" GEN4
		"><gpu dev='0' sm='80'/><nic>" NET("x", "0", "") "</nic></pci>")));

	EQ(topo->counts[TOPO_GPU], 1);
	EQ(topo->counts[TOPO_NET], 1);
	EQ(topo_path(topo_gpu_at(topo, 0), TOPO_NET, 0)->type, PATH_PHB);
	topo_free(topo);
}

/* NVML's no is a fault where NVLink says yes. */
static void test_fault(void)
{
	static const char text[] = SYSTEM(
		CPU("0", GPU_WITH("11", "0", "86", NVLINK("21", "4"))
				 GPU_WITH("21", "1", "86", NVLINK("11", "4"))));
	struct topo_rules rules;
	struct topo *topo;

	topo_rules_default(&rules);
	rules.nvml_p2p_ok = false;
	EQ(topo_try(text, &rules, true, &topo), ERR_USAGE);
	TRUE(strstr(err_last(), "NVML refuses P2P"));
	topo_free(topo);
	rules.ignore_disabled_p2p = 1;
	EQ(topo_try(text, &rules, true, &topo), OK);
	EQ(topo_path(topo_gpu_at(topo, 0), TOPO_GPU, 1)->type, PATH_PHB);
	topo_free(topo);
	rules.ignore_disabled_p2p = 2;
	EQ(topo_try(text, &rules, true, &topo), OK);
	EQ(topo_path(topo_gpu_at(topo, 0), TOPO_GPU, 1)->type, PATH_NVL);
	EQ(topo_path(topo_gpu_at(topo, 0), TOPO_GPU, 1)->bw, 48);
	topo_free(topo);
}

/* AMD lets two devices reach each other across sockets, three not; makers nobody knows
 * have no bound between their sockets. */
static void test_makers(void)
{
#define PAIR(vendor, more)                                                               \
	SYSTEM(CPU_OF("0", vendor, GPU("11", "0"))                                       \
			CPU_OF("1", vendor, GPU("21", "1") more))
	struct topo *topo = topo_of(PAIR("AuthenticAMD", ""));
	struct topo_p2p verdict;

	topo_p2p(topo, 0, 1, &verdict);
	TRUE(verdict.ok);
	EQ(topo_path(topo_gpu_at(topo, 0), TOPO_GPU, 1)->bw, 16);
	topo_free(topo);
	topo = topo_of(PAIR("AuthenticAMD", GPU("31", "2")));
	topo_p2p(topo, 0, 1, &verdict);
	TRUE(!verdict.ok);
	topo_free(topo);
	topo = topo_of(PAIR("HygonGenuine", ""));
	EQ(topo->nodes[TOPO_CPU][0]->cpu.vendor, CPU_OTHER);
	EQ(topo_path(topo_gpu_at(topo, 0), TOPO_GPU, 1)->bw, 24);
	topo_free(topo);
}

/* Rails do not change which NIC a GPU takes first. */
static void test_rails(void)
{
	struct topo *topo = topo_of(SYSTEM(
		CPU("0", SWITCH("10", GPU("11", "0") NIC("12", NET("x", "0", "rail='1'"))
					      NIC("13", NET("y", "1", "rail='0'"))))));
	uint64_t id;

	for (int channel = 0; channel < 3; channel++) {
		EQ(topo_local_net(topo, 0, channel, &id), OK);
		EQ(topo_local(id), channel % 2);
	}
	topo_free(topo);
}

int main(void)
{
	test_functions();
	test_where_ways_part();
	test_levels();
	test_relay();
	test_ties();
	test_two_links();
	test_on_cpus();
	test_both();
	test_fault();
	test_makers();
	test_rails();
	return 0;
}
