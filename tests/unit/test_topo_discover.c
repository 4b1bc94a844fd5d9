/* Machines made of a folder, an hwloc file and a stand-in for NVML become the trees NCCL
 * would make of them; what is hidden is said. */
#include "topo/discover.h"

#include <ftw.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/param.h"
#include "test.h"
#include "topo/fuse.h"
#include "topo/nets.h"
#include "topo/topo.h"

static char root[] = "/tmp/weft-discover-XXXXXX";
static struct discover_report report;

static int remove_one(const char *path, const struct stat *info, int kind, struct FTW *at)
{
	(void)info, (void)kind, (void)at;
	return remove(path);
}

/* A folder and all above it, below the root. */
static void folder(const char *name)
{
	char path[512];

	snprintf(path, sizeof(path), "%s/%s", root, name);
	for (char *at = path + strlen(root) + 1; (at = strchr(at, '/')); at++) {
		*at = '\0';
		mkdir(path, 0755);
		*at = '/';
	}
	mkdir(path, 0755);
}

static void text(const char *base, const char *name, const char *content)
{
	char path[512];
	FILE *file;

	folder(base);
	snprintf(path, sizeof(path), "%s/%s/%s", root, base, name);
	file = fopen(path, "w");
	TRUE(file);
	fprintf(file, "%s\n", content);
	EQ(fclose(file), 0);
}

static void link_to(const char *base, const char *name, const char *target)
{
	char from[512], to[512];

	folder(base);
	snprintf(from, sizeof(from), "%s/%s/%s", root, base, name);
	snprintf(to, sizeof(to), "%s/%s", root, target);
	unlink(from);
	EQ(symlink(to, from), 0);
}

/* A PCI device: `path` below sys/devices, last part its bus id. */
static void device(const char *path, const char *class_id, const char *vendor, int numa)
{
	const char *busid = strrchr(path, '/') + 1;
	char base[512], number[16];

	snprintf(base, sizeof(base), "sys/devices/%s", path);
	snprintf(number, sizeof(number), "%d", numa);
	text(base, "class", class_id);
	text(base, "vendor", vendor);
	text(base, "device", "0x1021");
	text(base, "subsystem_vendor", vendor);
	text(base, "subsystem_device", "0x0001");
	text(base, "max_link_speed", "32.0 GT/s PCIe");
	text(base, "max_link_width", "16");
	text(base, "numa_node", number);
	folder("sys/bus/pci");
	link_to(base, "subsystem", "sys/bus/pci");
	link_to("sys/bus/pci/devices", busid, base);
}

static void port(const char *name, const char *path, const char *state, const char *guid)
{
	char base[512], at[256];

	snprintf(base, sizeof(base), "sys/class/infiniband/%s", name);
	text(base, "sys_image_guid", guid);
	snprintf(at, sizeof(at), "sys/devices/%s", path);
	link_to(base, "device", at);
	strcat(base, "/ports/1");
	text(base, "state", state);
	text(base, "rate", "400 Gb/sec (4X NDR)");
}

/* Eight GPUs: each behind a switch with a NIC; a switch is three bridges deep. */
static void machine_make(void)
{
	for (unsigned i = 0; i < 8; i++) {
		unsigned bus = (i < 4 ? 0x10 : 0x50) + i * 0x10;
		int numa = i / 4 ? 1 : 0;
		char up[256], path[256], name[16], guid[32];

		snprintf(up, sizeof(up), "pci0000:%02x/0000:%02x:01.0", bus, bus);
		device(up, "0x060400", "0x8086", numa);
		snprintf(up + strlen(up), 64, "/0000:%02x:00.0", bus + 1);
		device(up, "0x060400", "0x1000", numa);
		snprintf(path, sizeof(path), "%s/0000:%02x:00.0", up, bus + 2);
		device(path, "0x060400", "0x1000", numa);
		snprintf(path + strlen(path), 64, "/0000:%02x:00.0", bus + 3);
		device(path, "0x030200", "0x10de", numa);
		snprintf(path, sizeof(path), "%s/0000:%02x:01.0", up, bus + 2);
		device(path, "0x060400", "0x1000", numa);
		snprintf(path + strlen(path), 64, "/0000:%02x:00.0", bus + 8);
		device(path, "0x020700", "0x15b3", numa);
		snprintf(name, sizeof(name), "mlx5_%u", i);
		snprintf(guid, sizeof(guid), "1070:fd03:00d6:50%02x", i);
		port(name, path, i == 7 ? "1: DOWN" : "4: ACTIVE", guid);
	}
	for (int i = 0; i < 4; i++) {
		char path[64];

		snprintf(path, sizeof(path), "pci0000:00/0000:%02x:00.0", 5 + i);
		device(path, "0x068000", "0x10de", 0);
	}
	text("sys/devices/system/node/node0", "cpumap", "00000000,00000003");
	text("sys/devices/system/node/node1", "cpumap", "00000000,0000000c");
	text("sys/module/nvidia_peermem", "version", "580.95.05");
	/* One downstream port is slower than what is plugged into it. */
	text("sys/devices/pci0000:10/0000:10:01.0/0000:11:00.0/0000:12:01.0",
		"max_link_speed", "16.0 GT/s PCIe");
	text("sys/devices/pci0000:10/0000:10:01.0/0000:11:00.0/0000:12:01.0",
		"max_link_width", "8");
	link_to("sys/kernel/pci_switch_link/virtual_switch_links/0000:11:00.0",
		"0000:21:00.0", "sys");
}

static struct xml_node *look(const char *machine, bool sysfs)
{
	char sys[256];
	struct discover_args args = {.hwloc_xml = WEFT_TEST_HWLOC};
	struct xml_node *tree;

	snprintf(sys, sizeof(sys), "%s/sys", root);
	if (sysfs)
		args.sysfs = sys;
	if (machine) {
		setenv("FAKE_NVML", machine, 1);
		args.nvml_library = WEFT_TEST_NVML;
	}
	EQ(machine_tree_of(&args, &tree, &report), OK);
	return tree;
}

static bool said(const char *part)
{
	for (uint32_t i = 0; i < report.sentence_count; i++)
		if (strstr(report.sentences[i], part))
			return true;
	return false;
}

static struct xml_node *pci(struct xml_node *tree, const char *busid)
{
	struct xml_node *node = NULL;

	while ((node = xml_find(tree, "pci", node)))
		if (!strcmp(xml_attr(node, "busid"), busid))
			return node;
	return NULL;
}

static uint32_t count(struct xml_node *tree, const char *name)
{
	struct xml_node *node = NULL;
	uint32_t found = 0;

	while ((node = xml_find(tree, name, node)))
		found++;
	return found;
}

/* What was seen is a whole machine: GPUs reach each other and the nearest NIC. */
static void paths_are_right(const struct xml_node *tree)
{
	int devs[8];
	struct fuse_host host = {
		.tree = tree, .devs = devs, .dev_count = fuse_devs(tree, devs, 8)};
	struct fuse_args args = {.hosts = &host, .host_count = 1};
	struct topo_rules rules;
	struct xml_node *fused;
	struct topo *topo;

	topo_rules_default(&rules);
	EQ(fuse_domain(&args, &fused), OK);
	EQ(topo_build(fused, 0, NCCL_RULES_NEWEST, &topo), OK);
	EQ(topo_paths(topo, &rules), OK);
	EQ(topo->counts[TOPO_GPU], 8);
	EQ(topo->counts[TOPO_CPU], 2);
	EQ(topo_path(topo_gpu_at(topo, 0), TOPO_GPU, 7)->type, PATH_NVL);
	EQ(topo_path(topo_gpu_at(topo, 0), TOPO_GPU, 7)->bw * 10, 3708);
	EQ(topo_path(topo_gpu_at(topo, 1), TOPO_NET, 1)->type, PATH_PIX);
	EQ(topo_path(topo_gpu_at(topo, 1), TOPO_NET, 1)->bw, 48);
	EQ(topo_path(topo_gpu_at(topo, 0), TOPO_NET, 0)->bw, 12); /* the slow port */
	topo_free(topo);
	xml_free(fused);
}

static void nvswitch_machine(void)
{
	struct xml_node *tree = look("nvswitch8", true), *gpu, *node;

	EQ(count(tree, "gpu"), 8);
	EQ(count(tree, "net"), 7);
	EQ(count(tree, "cpu"), 2);
	EQ(report.gpu_count, 8);
	EQ(report.net_count, 7);
	TRUE(report.p2p_known && report.p2p_ok);
	EQ_STR(report.driver, "580.95.05");
	TRUE(said("port 1 of mlx5_7 is not active"));
	/* The ports of the switch are left out, its upper port is the switch. */
	node = pci(tree, "0000:13:00.0");
	EQ_STR(xml_attr(node, "class"), "0x030200");
	EQ_STR(xml_attr(node, "device"), "0x2330");
	EQ_STR(xml_attr(node->parent, "busid"), "0000:11:00.0");
	EQ_STR(node->parent->parent->name, "cpu");
	EQ_STR(xml_attr(node->parent->parent, "affinity"), "00000000,00000003");
	EQ_STR(xml_attr(node->parent->parent, "vendor"), "AuthenticAMD");
	EQ_STR(xml_attr(node->parent->parent, "familyid"), "175");
	EQ_STR(xml_attr(xml_sub(node->parent, "pcilink"), "target"), "0000:21:00.0");
	gpu = xml_sub(node, "gpu");
	EQ_STR(xml_attr(gpu, "dev"), "0");
	EQ_STR(xml_attr(gpu, "sm"), "90");
	EQ_STR(xml_attr(gpu, "gdr"), "1");
	EQ(gpu->sub_count, 4);
	EQ_STR(xml_attr(gpu->subs[0], "target"), "0000:05:00.0");
	EQ_STR(xml_attr(gpu->subs[0], "count"), "5");
	EQ_STR(xml_attr(gpu->subs[3], "count"), "4");
	EQ_STR(xml_attr(gpu->subs[0], "tclass"), "0x068000");
	node = pci(tree, "0000:18:00.0");
	EQ_STR(xml_attr(node, "link_speed"), "16.0 GT/s PCIe");
	EQ_STR(xml_attr(node, "link_width"), "8");
	node = xml_sub(xml_sub(node, "nic"), "net");
	EQ_STR(xml_attr(node, "name"), "mlx5_0");
	EQ_STR(xml_attr(node, "speed"), "400000");
	EQ_STR(xml_attr(node, "guid"), "0x50d60003fd7010");
	EQ_STR(xml_attr(node, "gdr"), "1");
	node = pci(tree, "0000:93:00.0");
	EQ_STR(xml_attr(node->parent->parent, "numaid"), "1");
	/* The first rank meets its own switch, then the NICs in order. */
	EQ_STR(xml_attr(tree->subs[0]->subs[3], "busid"), "0000:41:00.0");
	paths_are_right(tree);
	xml_free(tree);
}

static void bridges_machine(void)
{
	struct xml_node *tree = look("bridge4", true), *gpu;

	EQ(count(tree, "gpu"), 4);
	gpu = xml_sub(pci(tree, "0000:13:00.0"), "gpu");
	EQ(gpu->sub_count, 1);
	EQ_STR(xml_attr(gpu->subs[0], "target"), "0000:23:00.0");
	EQ_STR(xml_attr(gpu->subs[0], "count"), "12");
	EQ_STR(xml_attr(gpu->subs[0], "tclass"), "0x030200");
	gpu = xml_sub(pci(tree, "0000:a3:00.0"), "gpu");
	EQ_STR(xml_attr(gpu->subs[0], "count"), "11");
	TRUE(said("GPU 3 has 1 NVLinks that are down"));
	TRUE(said("4 NVIDIA GPUs on the PCI bus are not shown by NVML"));
	TRUE(report.p2p_known && !report.p2p_ok);
	xml_free(tree);
}

/* GPUs that sysfs does not show, NVSwitches that nobody shows. */
static void virtual_machine(void)
{
	struct xml_node *tree = look("vm8", false), *gpu;

	EQ(count(tree, "gpu"), 8);
	EQ(tree->sub_count, 1);
	EQ_STR(xml_attr(tree->subs[0], "numaid"), "-1");
	gpu = xml_find(tree, "gpu", NULL);
	EQ_STR(xml_attr(gpu->parent, "class"), "0x03");
	EQ_STR(xml_attr(gpu->parent, "link_speed"), "32.0 GT/s PCIe");
	EQ_STR(xml_attr(gpu->subs[0], "target"), "fffffff:ff:ff.0");
	EQ_STR(xml_attr(gpu->subs[0], "count"), "18");
	EQ_STR(xml_attr(gpu->subs[0], "tclass"), "0x068000");
	TRUE(said("GPU 0 (0000:53:00.0) is not in the PCI tree"));
	TRUE(said("not registered with its NVLink fabric (in progress)"));
	TRUE(said("no network device"));
	xml_free(tree);
}

static void special_gpus(void)
{
	struct xml_node *tree = look("grace2", true), *gpu, *c2c;

	gpu = xml_find(tree, "gpu", NULL);
	c2c = xml_sub(gpu, "c2c");
	EQ_STR(xml_attr(c2c, "bw"), "44712");
	EQ_STR(xml_attr(c2c, "count"), "9");
	EQ_STR(xml_attr(gpu->parent, "link_speed"), "64.0 GT/s PCIe");
	TRUE(said("clique 7 of NVLink cluster abababab"));
	xml_free(tree);
	tree = look("mig1", true);
	TRUE(said("GPU 0 is split into instances (MIG)"));
	EQ(report.p2p_known, 0);
	xml_free(tree);
	tree = look("idle1", true);
	gpu = xml_find(tree, "gpu", NULL);
	EQ_STR(xml_attr(gpu, "gdr"), "0");
	EQ_STR(xml_attr(gpu->parent, "link_speed"), "2.5 GT/s PCIe");
	TRUE(said("GPU 0 runs its PCI link at Gen1 x8 and could do Gen4 x8"));
	xml_free(tree);
	tree = look("none", true);
	TRUE(said("NVML shows no GPU"));
	EQ(count(tree, "net"), 7);
	xml_free(tree);
	tree = look("broken", true);
	TRUE(said("NVML does not start: Driver Not Loaded: GPUs are not known"));
	xml_free(tree);
}

/* Without sysfs the places come from hwloc's own file. */
static void hwloc_only(void)
{
	struct xml_node *tree = look("bridge4", false), *node;

	node = pci(tree, "0000:13:00.0");
	EQ_STR(xml_attr(node, "class"), "0x030200");
	EQ_STR(xml_attr(node->parent, "busid"), "0000:11:00.0");
	EQ_STR(xml_attr(node->parent, "link_speed"), "16.0 GT/s PCIe");
	EQ_STR(xml_attr(node->parent, "link_width"), "16");
	EQ_STR(xml_attr(node->parent->parent, "numaid"), "0");
	EQ_STR(xml_attr(node->parent->parent, "affinity"), "00000003");
	xml_free(tree);
	tree = look(NULL, false);
	EQ(count(tree, "cpu"), 2);
	EQ_STR(xml_attr(tree->subs[1], "affinity"), "0000000c");
	TRUE(said("GPUs are not known"));
	xml_free(tree);
}

/* The file's word stands; what it leaves out is added, and the whole is written. */
static void file_first(void)
{
	char path[256], dump[256];
	struct xml_node *tree, *node, *again;

	text(".", "topo.xml",
		"<system version=\"1\"><cpu numaid=\"0\" affinity=\"ff\">"
		"<pci busid=\"ffff:ff:01.0\" class=\"0x060400\" link_speed=\"8 GT/s\" "
		"link_width=\"16\"><pci busid=\"0000:13:00.0\" class=\"0x030200\" "
		"link_speed=\"8 GT/s\"/><pci busid=\"0000:18:00.0\" class=\"0x020000\"/>"
		"</pci></cpu></system>");
	snprintf(path, sizeof(path), "%s/topo.xml", root);
	snprintf(dump, sizeof(dump), "%s/dump.xml", root);
	setenv("NCCL_TOPO_FILE", path, 1);
	setenv("NCCL_TOPO_DUMP_FILE", dump, 1);
	param_forget(PARAM_TOPO_FILE);
	param_forget(PARAM_TOPO_DUMP_FILE);
	tree = look("bridge4", true);
	EQ_STR(report.file, path);
	node = pci(tree, "0000:13:00.0");
	EQ_STR(xml_attr(node->parent, "busid"), "ffff:ff:01.0");
	EQ_STR(xml_attr(node, "link_speed"), "8 GT/s");
	EQ_STR(xml_attr(node, "link_width"), "16");
	EQ_STR(xml_attr(node, "vendor"), "0x10de");
	TRUE(xml_sub(node, "gpu"));
	EQ_STR(xml_attr(tree->subs[0], "affinity"), "ff");
	EQ_STR(xml_attr(tree->subs[0], "arch"), "x86_64");
	node = pci(tree, "0000:18:00.0");
	EQ_STR(xml_attr(node, "class"), "0x020700"); /* sysfs knows better */
	TRUE(xml_sub(xml_sub(node, "nic"), "net"));
	EQ(count(tree, "gpu"), 4);
	EQ(xml_read(dump, "system", &again), OK);
	TRUE(xml_equal(tree, again));
	xml_free(again);
	xml_free(tree);

	setenv("NCCL_TOPO_FILE", "/nonexistent/topo.xml", 1);
	unsetenv("NCCL_TOPO_DUMP_FILE");
	param_forget(PARAM_TOPO_FILE);
	param_forget(PARAM_TOPO_DUMP_FILE);
	tree = look("bridge4", true);
	TRUE(said("/nonexistent/topo.xml cannot be read"));
	EQ(count(tree, "gpu"), 4);
	xml_free(tree);
	text(".", "topo.xml", "<graphs version=\"1\"/>");
	setenv("NCCL_TOPO_FILE", path, 1);
	param_forget(PARAM_TOPO_FILE);
	EQ(machine_tree(&tree, &report), ERR_USAGE);
	unsetenv("NCCL_TOPO_FILE");
	param_forget(PARAM_TOPO_FILE);
}

/* Interfaces when there is no RDMA, or it is switched off; an EFA machine. */
static void other_networks(void)
{
	struct xml_node *tree, *net;

	setenv("NCCL_IB_DISABLE", "1", 1);
	param_forget(PARAM_IB_DISABLE);
	text("sys/class/net/lo", "operstate", "unknown");
	text("sys/class/net/docker0", "operstate", "up");
	text("sys/class/net/eth0", "operstate", "up");
	text("sys/class/net/eth0", "speed", "25000");
	text("sys/class/net/eth1", "operstate", "up");
	text("sys/class/net/eth1", "speed", "-1");
	text("sys/class/net/eth2", "operstate", "down");
	link_to("sys/class/net/eth0", "device",
		"sys/devices/pci0000:c0/0000:c0:01.0/0000:c1:00.0/0000:c2:01.0/"
		"0000:c8:00.0");
	tree = look("none", true);
	EQ(count(tree, "net"), 2);
	TRUE(said("no RDMA device: the network is sockets"));
	net = xml_find(tree, "net", NULL);
	EQ_STR(xml_attr(net, "name"), "eth0");
	EQ_STR(xml_attr(net, "speed"), "25000");
	EQ_STR(xml_attr(net, "gdr"), "0");
	EQ_STR(xml_attr(net->parent->parent, "busid"), "0000:c8:00.0");
	net = xml_find(tree, "net", net);
	EQ_STR(xml_attr(net, "name"), "eth1");
	EQ_STR(xml_attr(net, "speed"), "10000");
	EQ_STR(xml_attr(net, "guid"), "0x1");
	EQ_STR(net->parent->parent->name, "cpu");
	xml_free(tree);
	setenv("NCCL_SOCKET_IFNAME", "=docker0", 1);
	param_forget(PARAM_SOCKET_IFNAME);
	tree = look("none", true);
	EQ(count(tree, "net"), 1);
	xml_free(tree);
	unsetenv("NCCL_IB_DISABLE");
	param_forget(PARAM_IB_DISABLE);
	setenv("NCCL_IB_HCA", "mlx5_1:1,mlx5_3:2,rdma", 1);
	param_forget(PARAM_IB_HCA);
	text("sys/devices/virtual/dmi/id", "product_name", "p5en.48xlarge");
	device("pci0000:d0/0000:d0:05.0", "0x020000", "0x1d0f", 1);
	port("rdmap208s5", "pci0000:d0/0000:d0:05.0", "4: ACTIVE", "0:0:0:0");
	tree = look("none", true);
	EQ(count(tree, "net"), 2);
	net = xml_sub(xml_sub(pci(tree, "0000:d0:05.0"), "nic"), "net");
	EQ_STR(xml_attr(net, "name"), "rdmap208s5");
	EQ_STR(xml_attr(net, "dev"), "1");
	EQ_STR(xml_attr(net, "latency"), "35");
	TRUE(said("EFA devices are listed one by one"));
	xml_free(tree);
}

/* Whatever this machine is, it has a tree, and a look at it does not fail. */
static void this_machine(void)
{
	struct xml_node *tree;

	EQ(discover(&(struct discover_args){0}, &tree, &report), OK);
	TRUE(xml_sub(tree, "cpu"));
	EQ_STR(xml_attr(tree, "version"), "1");
	xml_free(tree);
	EQ(discover(&(struct discover_args){.hwloc_xml = "/nonexistent"}, &tree, &report),
		ERR_USAGE);
}

int main(void)
{
	TRUE(mkdtemp(root));
	machine_make();
	nvswitch_machine();
	bridges_machine();
	virtual_machine();
	special_gpus();
	hwloc_only();
	file_first();
	other_networks();
	this_machine();
	EQ(nftw(root, remove_one, 16, FTW_DEPTH | FTW_PHYS), 0);
	return 0;
}
