/* The block NCCL logs, to the blank: a machine with a switch, two GPUs and a NIC. */
#include "topo/print.h"

#include "test.h"

static const char machine[] =
	"<system version=\"1\">"
	"<cpu numaid=\"0\" affinity=\"f\" arch=\"x86_64\" vendor=\"GenuineIntel\" "
	"familyid=\"6\" modelid=\"143\">"
	"<pci busid=\"0000:10:00.0\" class=\"0x060400\" vendor=\"0x10b5\" "
	"device=\"0x8796\" subsystem_vendor=\"0x10b5\" subsystem_device=\"0x8796\" "
	"link_speed=\"16.0 GT/s PCIe\" link_width=\"16\">"
	"<pci busid=\"0000:14:00.0\" class=\"0x030200\" link_speed=\"16.0 GT/s PCIe\" "
	"link_width=\"16\"><gpu dev=\"0\" sm=\"80\" rank=\"0\" gdr=\"1\">"
	"<nvlink target=\"0000:15:00.0\" count=\"4\" tclass=\"0x030200\"/></gpu></pci>"
	"<pci busid=\"0000:15:00.0\" class=\"0x030200\" link_speed=\"16.0 GT/s PCIe\" "
	"link_width=\"16\"><gpu dev=\"1\" sm=\"80\" rank=\"1\" gdr=\"1\">"
	"<nvlink target=\"0000:14:00.0\" count=\"4\" tclass=\"0x030200\"/></gpu></pci>"
	"<pci busid=\"0000:18:00.0\" class=\"0x020700\" link_speed=\"16.0 GT/s PCIe\" "
	"link_width=\"16\"><nic><net name=\"mlx5_0\" dev=\"0\" speed=\"200000\" "
	"port=\"1\" "
	"guid=\"0x1122\" gdr=\"1\"/></nic></pci>"
	"</pci></cpu></system>";

static const char expected[] =
	"=== System : maxBw 24.0 totalBw 80.0 ===\n"
	"CPU/0-0 (1/1/3)\n"
	"+ PCI[24.0] - PCI/0-10000 (10b5879610b58796)\n"
	"              + PCI[24.0] - DEV/0-14000\n"
	"                            + LOC[5000.0] - GPU/0-14000\n"
	"                            + NVL[80.0] - DEV/0-15000\n"
	"              + PCI[24.0] - DEV/0-15000\n"
	"                            + LOC[5000.0] - GPU/0-15000\n"
	"                            + NVL[80.0] - DEV/0-14000\n"
	"              + PCI[24.0] - NIC/0-18000\n"
	"                            + NET[25.0] - NET/0-0 (0/1122/1/25.000000)\n"
	"==========================================\n";

static void append(void *context, const char *line)
{
	fprintf(context, "%s\n", line);
}

int main(void)
{
	struct topo_rules rules;
	struct xml_node *tree = NULL;
	struct topo *topo = NULL;
	char *text = NULL, *paths;
	size_t bytes = 0;
	FILE *file = open_memstream(&text, &bytes);

	TRUE(file);
	EQ(xml_parse(machine, strlen(machine), "test", "system", &tree), OK);
	EQ(topo_build(tree, 0, NCCL_RULES_NEWEST, &topo), OK);
	topo_rules_default(&rules);
	topo->is_inter = true;
	EQ(topo_paths(topo, &rules), OK);
	topo_bandwidths(topo);
	topo_print(topo, append, file);
	fclose(file);

	paths = strstr(text, "==\nGPU");
	TRUE(paths);
	EQ(strncmp(text, expected, strlen(expected)), 0);
	TRUE(strstr(paths, "\nGPU/0-14000 :GPU/0-14000 (0/5000.0/LOC) GPU/0-15000 "
			   "(3/80.0/NVL) "));
	TRUE(strstr(paths, "CPU/0-0 (3/24.0/PHB) NET/0-0 (4/24.0/PIX) "));
	TRUE(strstr(paths, "\nNET/0-0 :GPU/0-14000 (4/24.0/PIX) "));
	free(text);
	topo_free(topo);
	xml_free(tree);
	return 0;
}
