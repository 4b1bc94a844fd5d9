/* Machines that cannot be: parts that no way joins, switches with more ports than there
 * is room for, numbers out of all bounds. */
#include "test.h"
#include "topo/fuse.h"
#include "topo/topo.h"

static enum err build(const char *text, struct topo **topo)
{
	struct xml_node *tree;
	enum err e;

	EQ(xml_parse(text, strlen(text), "t.xml", "system", &tree), OK);
	e = topo_build(tree, 1, NCCL_RULES_NEWEST, topo);
	xml_free(tree);
	return e;
}

#define GPU(bus, rest)                                                                   \
	"<pci busid='0000:" bus ":00.0' class='0x030200'><gpu sm='90' " rest "/></pci>"

/* The only NIC is on another host. */
static void test_apart(void)
{
	struct topo_rules rules;
	struct topo *topo;
	struct topo_gdr gdr;
	uint64_t id;

	EQ(build("<system version='1'><cpu host_hash='0x1' numaid='0'>" GPU(
			 "01", "dev='0' rank='0'") GPU("02",
			 "dev='1' rank='1'") "</cpu>"
					     "<cpu host_hash='0x2' numaid='0'><nic><net "
					     "dev='0' latency='1e38'/></nic>"
					     "</cpu></system>",
		   &topo),
		OK);
	topo_rules_default(&rules);
	EQ(topo_paths(topo, &rules), OK);
	EQ(topo->counts[TOPO_NET], 1);
	EQ(topo_path(topo_gpu_at(topo, 0), TOPO_NET, 0)->type, PATH_DIS);
	EQ(topo_path(topo_gpu_at(topo, 0), TOPO_GPU, 1)->type, PATH_PHB);
	TRUE(topo_local_net(topo, 0, 0, &id) != OK);
	topo_gdr(topo, 0, topo->nodes[TOPO_NET][0]->id, true, &gdr);
	EQ(gdr.mode, GDR_OFF);
	topo_bandwidths(topo);
	EQ(topo_trim(topo, 0, 2), OK);
	EQ(topo->counts[TOPO_GPU], 2);
	topo_free(topo);
}

/* A Broadcom switch whose lower level has more parts than a node has links. */
static void test_wide(void)
{
	char *text = NULL;
	size_t bytes;
	FILE *file = open_memstream(&text, &bytes);
	struct topo *topo;

	fputs("<system version='1'><cpu numaid='0'><pci busid='0001:00:00.0' "
	      "class='0x060400' vendor='0x1000' device='0xc010' "
	      "subsystem_vendor='0x1000' "
	      "subsystem_device='0xa000'>",
		file);
	for (int i = 0; i < TOPO_NODES_MAX - 1; i++)
		fprintf(file,
			"<pci busid='0000:%02x:%02x.0' class='0x060400' vendor='0x1000' "
			"device='0xc010' subsystem_vendor='0x1000' "
			"subsystem_device='0xa000'/>",
			i >> 8, i & 255);
	fputs("</pci></cpu></system>", file);
	fclose(file);
	EQ(build(text, &topo), ERR_USAGE);
	TRUE(strstr(err_last(), "more than 576 links"));
	free(text);
}

static void test_numbers(void)
{
	int devs[4] = {0};
	struct fuse_host host = {.host_hash = 1, .devs = devs};
	struct fuse_args args = {.hosts = &host,
		.host_count = 1,
		.merge_nics = true,
		.merge_level = PATH_PORT};
	const char *text = "<system version='1'><cpu numaid='0'>" GPU(
		"01", "dev='2147483648'") GPU("02",
		"dev='1'") "<nic><net name='mlx5_0' dev='0' "
			   "speed='9223372036854775807'/><net name='mlx5_1' dev='1' "
			   "speed='9223372036854775807'/></nic></cpu></system>";
	struct xml_node *tree, *domain;

	EQ(xml_parse(text, strlen(text), "t.xml", "system", &tree), OK);
	host.tree = tree;
	host.dev_count = fuse_devs(tree, devs, 4);
	TRUE(host.dev_count >= 1);
	devs[0] = 1;
	host.dev_count = 1;
	EQ(fuse_domain(&args, &domain), OK);
	TRUE(xml_find(domain, "net", NULL));
	xml_free(domain);
	xml_free(tree);
}

/* So many elements that laying them over each other would take minutes. */
static void test_many(void)
{
	int devs[1] = {0};
	struct fuse_host host = {.host_hash = 1, .devs = devs, .dev_count = 1};
	struct fuse_args args = {.hosts = &host, .host_count = 1};
	struct xml_node *tree = xml_add(NULL, "system"), *domain;

	for (int i = 0; i < 5000; i++)
		TRUE(xml_add(tree, "x"));
	host.tree = tree;
	EQ(fuse_domain(&args, &domain), ERR_USAGE);
	TRUE(strstr(err_last(), "a topology of 5001 elements"));
	xml_free(tree);
}

int main(void)
{
	test_apart();
	test_wide();
	test_numbers();
	test_many();
	return 0;
}
