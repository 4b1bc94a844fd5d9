#include "topo/instance_table.h"

/*
 * Amazon's machines with NVIDIA GPUs. What is a row and what is one of its parts comes
 * from the public description of each type, from the files that the libfabric plugin
 * ships for three of them, and from what guests report (lstopo, NCCL's logs); `source`
 * and `inferred` say which, row by row. On p5 to p6 the plugin shows NCCL one network
 * device per GPU for the EFA devices near it; a name that ends in -32efa or -16efa is the
 * same machine with every EFA device by itself.
 */

#define EC2 "Amazon's public description of the type (GPUs, vCPUs, network)"

static const char public_ec2[] = EC2;
static const char from_ec2[] = EC2 "; number of EFA devices as EKS's plugin lists them";
static const char from_plugin[] = EC2
	"; EFA devices, latency and GPUDirect as the libfabric plugin's platform table";
static const char from_p4_file[] = "the topology that the libfabric plugin ships for p4d "
				   "and p4de: switches, bus ids, "
				   "PCI links, CPU; " EC2;
static const char from_g5_file[] = "the topology that the libfabric plugin ships for "
				   "g5.48xlarge: bus ids, PCI links; " EC2;
static const char from_p5[] =
	"lstopo of a p5.48xlarge guest and the plugin's grouping: switches, bus ids, PCI "
	"links, NVSwitches, CPU; " EC2;
static const char from_p5en[] =
	"lstopo of a p5en.48xlarge guest: switches, bus ids, PCI links, CPU; " EC2;
static const char from_p6[] = "an NCCL dump and lstopo of p6-b200.48xlarge guests: "
			      "switches, bus ids, PCI links, "
			      "CPU; " EC2;
static const char from_g6[] =
	"lstopo of a g6.48xlarge guest: bus ids, PCI links, CPU; " EC2;
static const char from_g6e[] =
	"NCCL's log of four GPUs of a g6e.48xlarge: bus ids, PCI links, CPU; " EC2;

static const char inf_p3[] =
	"bus ids; NUMA node of each device; NVLinks are those of a DGX-1; the interface "
	"does not tell its speed, so NCCL takes 10 Gb/s";
static const char inf_p4[] =
	"NVSwitches are hidden from the guest: 12 links to one stand for them";
static const char inf_p5[] =
	"the device that stands for four EFA devices has the place of the last of them";
static const char inf_p5_single[] = "device numbers are in the order of the bus ids";
static const char inf_p5e[] = "everything but GPU and counts is taken from p5.48xlarge, "
			      "which differs in the GPU";
static const char inf_p5en[] = "that two EFA devices are shown as one, and its place; "
			       "NVSwitches are hidden from "
			       "the guest: 18 links to one stand for them";
static const char inf_p5en_single[] =
	"device numbers are in the order of the bus ids; NVSwitches are hidden from the "
	"guest: 18 links to one stand for them";
static const char inf_p6[] =
	"NVSwitches are hidden from the guest: 18 links to one stand for them";
static const char inf_b300[] =
	"all but counts, GPU and EFA speed is taken from p6-b200.48xlarge; that two EFA "
	"devices of 400 Gb/s are shown as one";
static const char inf_gb200[] = "bus ids, PCI links, one EFA device per GPU; links to "
				"the CPU as on a GB300 tray; "
				"other hosts of the NVLink domain are not described";
static const char inf_alone[] = "bus ids, PCI links";
static const char inf_g[] =
	"bus ids and PCI links are those of the family's largest size where that is "
	"known; "
	"an interface that is no EFA does not tell its speed, so NCCL takes 10 Gb/s";
static const char inf_g5[] = "core masks";
static const char inf_g6[] = "EFA speed";
static const char inf_g6e[] = "bus ids of GPUs 4 to 7";
static const char inf_g7e[] =
	"bus ids, PCI links, CPU, number of EFA devices and their speed";

/* AMD's families are 15 + (extended << 4), as NCCL counts. */
static const struct part_cpu broadwell = {"x86_64", "GenuineIntel", 6, 79, true};
static const struct part_cpu skylake = {"x86_64", "GenuineIntel", 6, 85, true};
static const struct part_cpu sapphire = {"x86_64", "GenuineIntel", 6, 143, true};
static const struct part_cpu emerald = {"x86_64", "GenuineIntel", 6, 207, true};
static const struct part_cpu rome = {"x86_64", "AuthenticAMD", 143, 49, true};
static const struct part_cpu milan = {"x86_64", "AuthenticAMD", 175, 1, true};
static const struct part_cpu grace = {"arm64", "0", 0, 0, false};

#define GEN3	   "8.0 GT/s PCIe"
#define GEN4	   "16.0 GT/s PCIe"
#define GEN5	   "32.0 GT/s PCIe"
#define GEN3_PLAIN "8 GT/s"

static const struct part_switch switch_p4 = {"0xffff", "0xffff", GEN3_PLAIN, 16};
static const struct part_switch switch_p5 = {"0x1d0f", "0x0200", GEN4, 8};
static const struct part_switch switch_gen5 = {"0x1d0f", "0x0200", GEN5, 16};
static const struct part_switch switch_g6 = {"0x1d0f", "0x0200", GEN4, 16};

#define HIDDEN_12   "fffffff:ffff:ff*12"
#define HIDDEN_18   "fffffff:ff:ff.0*18"
#define P5_SWITCHES "0000:d0:00.0*5 0000:d2:00.0*4 0000:d1:00.0*5 0000:cf:00.0*4"

static const struct part_gpu v100_p3 = {
	"V100", "0x1db1", "0x1212", 70, GEN3, 16, "mesh", 0, 0, false};
static const struct part_gpu a100_40 = {
	"A100-40GB", "0x20b0", "0x134f", 80, GEN3_PLAIN, 16, HIDDEN_12, 0, 0, true};
static const struct part_gpu a100_80 = {
	"A100-80GB", "0x20b2", "0x1463", 80, GEN3_PLAIN, 16, HIDDEN_12, 0, 0, true};
static const struct part_gpu h100 = {
	"H100", "0x2330", "0x16c1", 90, GEN5, 16, P5_SWITCHES, 0, 0, true};
static const struct part_gpu h100_alone = {
	"H100", "0x2330", "0x16c1", 90, GEN5, 16, NULL, 0, 0, true};
static const struct part_gpu h200 = {
	"H200", "0x2335", "0x18be", 90, GEN5, 16, P5_SWITCHES, 0, 0, true};
static const struct part_gpu h200_hidden = {
	"H200", "0x2335", "0x18be", 90, GEN5, 16, HIDDEN_18, 0, 0, true};
static const struct part_gpu b200 = {
	"B200", "0x2901", "0x1999", 100, GEN5, 16, HIDDEN_18, 0, 0, true};
static const struct part_gpu b300 = {
	"B300", "0x3182", "0x20e6", 103, GEN5, 16, HIDDEN_18, 0, 0, true};
static const struct part_gpu gb200 = {
	"GB200", "0x2941", "0x2046", 100, GEN5, 16, HIDDEN_18, 44712, 5, true};
static const struct part_gpu t4 = {
	"T4", "0x1eb8", "0x12a2", 75, GEN3, 8, NULL, 0, 0, false};
static const struct part_gpu a10g = {
	"A10G", "0x2237", "0x152f", 86, GEN4, 8, NULL, 0, 0, true};
static const struct part_gpu l4 = {
	"L4", "0x27b8", "0x16ca", 89, GEN4, 8, NULL, 0, 0, false};
static const struct part_gpu l40s = {
	"L40S", "0x26b9", "0x1851", 89, GEN4, 8, NULL, 0, 0, false};
static const struct part_gpu rtx6000 = {
	"RTX PRO 6000", "0x2bb5", "0x204e", 120, GEN5, 16, NULL, 0, 0, true};

static const struct part_net ena = {NET_ENA, "0xec20", "", 0, 0, false};
static const struct part_net efa1_p3dn = {NET_EFA, "0xefa0", GEN3, 16, 150, false};
static const struct part_net efa1_p4 = {NET_EFA, "0xefa0", GEN3_PLAIN, 16, 75, true};
static const struct part_net efa1_g = {NET_EFA, "0xefa0", GEN3, 16, 75, false};
static const struct part_net efa2 = {NET_EFA, "0xefa1", GEN4, 8, 75, true};
static const struct part_net efa2_alone = {NET_EFA, "0xefa1", GEN4, 8, 75, false};
static const struct part_net efa2_grouped = {NET_EFA_GROUP, "0xefa1", GEN5, 16, 75, true};
static const struct part_net efa2_g = {NET_EFA, "0xefa1", GEN4, 16, 75, false};
static const struct part_net efa3 = {NET_EFA, "0xefa2", GEN4, 16, 35, true};
static const struct part_net efa3_grouped = {NET_EFA_GROUP, "0xefa2", GEN5, 16, 35, true};
static const struct part_net efa4 = {NET_EFA, "0xefa3", GEN5, 16, 35, true};
static const struct part_net efa4_grouped = {NET_EFA_GROUP, "0xefa3", GEN5, 16, 35, true};
static const struct part_net efa4_g = {NET_EFA, "0xefa3", GEN5, 16, 35, true};
static const struct part_net efa4_g_far = {NET_EFA, "0xefa3", GEN5, 16, 35, false};

/* clang-format off */
const struct instance_row instance_rows[] = {
	{"p3.2xlarge", &broadwell, NULL, &v100_p3, &ena, 10000, 8, 1,
		"0/- g00:1e n00:03",
		public_ec2, inf_p3},
	{"p3.8xlarge", &broadwell, NULL, &v100_p3, &ena, 10000, 32, 1,
		"0/- g00:1b g00:1c g00:1d g00:1e n00:03",
		public_ec2, inf_p3},
	{"p3.16xlarge", &broadwell, NULL, &v100_p3, &ena, 10000, 64, 2,
		"0/- g00:17 g00:18 g00:19 g00:1a n00:03; "
		"1/- g00:1b g00:1c g00:1d g00:1e",
		public_ec2, inf_p3},
	{"p3dn.24xlarge", &skylake, NULL, &v100_p3, &efa1_p3dn, 100000, 96, 2,
		"0/- g00:16 g00:17 g00:18 g00:19; "
		"1/- g00:1a g00:1b g00:1c g00:1d n00:15",
		from_plugin, inf_p3},
	{"p4d.24xlarge", &skylake, &switch_p4, &a100_40, &efa1_p4, 100000, 96, 2,
		"0/ffff:ff:01 g10:1c g10:1d n10:1b; "
		"0/ffff:ff:02 g20:1c g20:1d n20:1b; "
		"1/ffff:ff:03 g90:1c g90:1d n90:1b; "
		"1/ffff:ff:04 ga0:1c ga0:1d na0:1b",
		from_p4_file, inf_p4},
	{"p4de.24xlarge", &skylake, &switch_p4, &a100_80, &efa1_p4, 100000, 96, 2,
		"0/ffff:ff:01 g10:1c g10:1d n10:1b; "
		"0/ffff:ff:02 g20:1c g20:1d n20:1b; "
		"1/ffff:ff:03 g90:1c g90:1d n90:1b; "
		"1/ffff:ff:04 ga0:1c ga0:1d na0:1b",
		from_p4_file, inf_p4},
	{"p5.48xlarge", &milan, &switch_p5, &h100, &efa2_grouped, 400000, 192, 2,
		"0/45 n52 g53; 0/56 n63 g64; 0/67 n74 g75; 0/78 n85 g86; "
		"1/89 n96 g97; 1/9a na7 ga8; 1/ab nb8 gb9; 1/bc nc9 gca",
		from_p5, inf_p5},
	{"p5.48xlarge-32efa", &milan, &switch_p5, &h100, &efa2, 100000, 192, 2,
		"0/45 n4f n50 n51 n52 g53; 0/56 n60 n61 n62 n63 g64; "
		"0/67 n71 n72 n73 n74 g75; 0/78 n82 n83 n84 n85 g86; "
		"1/89 n93 n94 n95 n96 g97; 1/9a na4 na5 na6 na7 ga8; "
		"1/ab nb5 nb6 nb7 nb8 gb9; 1/bc nc6 nc7 nc8 nc9 gca",
		from_p5, inf_p5_single},
	{"p5e.48xlarge", &milan, &switch_p5, &h200, &efa2_grouped, 400000, 192, 2,
		"0/45 n52 g53; 0/56 n63 g64; 0/67 n74 g75; 0/78 n85 g86; "
		"1/89 n96 g97; 1/9a na7 ga8; 1/ab nb8 gb9; 1/bc nc9 gca",
		from_p5, inf_p5e},
	{"p5e.48xlarge-32efa", &milan, &switch_p5, &h200, &efa2, 100000, 192, 2,
		"0/45 n4f n50 n51 n52 g53; 0/56 n60 n61 n62 n63 g64; "
		"0/67 n71 n72 n73 n74 g75; 0/78 n82 n83 n84 n85 g86; "
		"1/89 n93 n94 n95 n96 g97; 1/9a na4 na5 na6 na7 ga8; "
		"1/ab nb5 nb6 nb7 nb8 gb9; 1/bc nc6 nc7 nc8 nc9 gca",
		from_p5, inf_p5e},
	{"p5.4xlarge", &milan, NULL, &h100_alone, &efa2_alone, 100000, 16, 1,
		"0/- n4f g53",
		from_plugin, inf_alone},
	{"p5en.48xlarge", &sapphire, &switch_gen5, &h200_hidden, &efa3_grouped, 400000, 192, 2,
		"0/45 n56 n58 g59 g5a; 0/5e n6f n71 g72 g73; "
		"1/77 n88 n8a g8b g8c; 1/90 na1 na3 ga4 ga5",
		from_p5en, inf_p5en},
	{"p5en.48xlarge-16efa", &sapphire, &switch_gen5, &h200_hidden, &efa3, 200000, 192, 2,
		"0/45 n55 n56 n57 n58 g59 g5a; "
		"0/5e n6e n6f n70 n71 g72 g73; "
		"1/77 n87 n88 n89 n8a g8b g8c; 1/90 na0 na1 na2 na3 ga4 ga5",
		from_p5en, inf_p5en_single},
	{"p6-b200.48xlarge", &emerald, &switch_gen5, &b200, &efa4, 400000, 192, 2,
		"0/45 n4f n50 g51 g52; 0/56 n60 n61 g62 g63; "
		"1/67 n71 n72 g75 g76; 1/7a n84 n85 g86 g87",
		from_p6, inf_p6},
	{"p6-b300.48xlarge", &emerald, &switch_gen5, &b300, &efa4_grouped, 800000, 192, 2,
		"0/45 n4f n50 g51 g52; 0/56 n60 n61 g62 g63; "
		"1/67 n71 n72 g75 g76; 1/7a n84 n85 g86 g87",
		from_plugin, inf_b300},
	{"p6e-gb200.36xlarge", &grace, NULL, &gb200, &efa4, 400000, 144, 2,
		"0/- g0008:01:00 n0000:01:00 g0009:01:00 n0001:01:00; "
		"1/- g0018:01:00 n0010:01:00 g0019:01:00 n0011:01:00",
		from_plugin, inf_gb200},
	{"g4dn.xlarge", &skylake, NULL, &t4, &ena, 10000, 4, 1,
		"0/- g00:1e n00:05",
		from_ec2, inf_g},
	{"g4dn.2xlarge", &skylake, NULL, &t4, &ena, 10000, 8, 1,
		"0/- g00:1e n00:05",
		from_ec2, inf_g},
	{"g4dn.4xlarge", &skylake, NULL, &t4, &ena, 10000, 16, 1,
		"0/- g00:1e n00:05",
		from_ec2, inf_g},
	{"g4dn.8xlarge", &skylake, NULL, &t4, &efa1_g, 50000, 32, 1,
		"0/- g00:1e n00:05",
		from_ec2, inf_g},
	{"g4dn.16xlarge", &skylake, NULL, &t4, &efa1_g, 50000, 64, 1,
		"0/- g00:1e n00:05",
		from_ec2, inf_g},
	{"g4dn.12xlarge", &skylake, NULL, &t4, &efa1_g, 50000, 48, 1,
		"0/- g00:1b g00:1c g00:1d g00:1e n00:05",
		from_ec2, inf_g},
	{"g4dn.metal", &skylake, NULL, &t4, &efa1_g, 100000, 96, 2,
		"0/- g18 g19 g35 g36 n3d; 1/- ge7 ge8 gf4 gf5",
		from_ec2, inf_g},
	{"g5.xlarge", &rome, NULL, &a10g, &ena, 10000, 4, 1,
		"0/- g00:1e n00:05",
		from_ec2, inf_g},
	{"g5.2xlarge", &rome, NULL, &a10g, &ena, 10000, 8, 1,
		"0/- g00:1e n00:05",
		from_ec2, inf_g},
	{"g5.4xlarge", &rome, NULL, &a10g, &ena, 10000, 16, 1,
		"0/- g00:1e n00:05",
		from_ec2, inf_g},
	{"g5.8xlarge", &rome, NULL, &a10g, &efa1_g, 25000, 32, 1,
		"0/- g00:1e n00:05",
		from_ec2, inf_g},
	{"g5.16xlarge", &rome, NULL, &a10g, &efa1_g, 25000, 64, 1,
		"0/- g00:1e n00:05",
		from_ec2, inf_g},
	{"g5.12xlarge", &rome, NULL, &a10g, &efa1_g, 40000, 48, 1,
		"0/- g00:1b g00:1c g00:1d g00:1e n00:05",
		from_ec2, inf_g},
	{"g5.24xlarge", &rome, NULL, &a10g, &efa1_g, 50000, 96, 1,
		"0/- g00:1b g00:1c g00:1d g00:1e n00:05",
		from_ec2, inf_g},
	{"g5.48xlarge", &rome, NULL, &a10g, &efa1_g, 100000, 192, 2,
		"0/- g00:16 g00:17 g00:18 g00:19; "
		"1/- g00:1a g00:1b g00:1c g00:1d n00:15",
		from_g5_file, inf_g5},
	{"g6.xlarge", &milan, NULL, &l4, &ena, 10000, 4, 1,
		"0/- n00:05 g9f",
		from_ec2, inf_g},
	{"g6.2xlarge", &milan, NULL, &l4, &ena, 10000, 8, 1,
		"0/- n00:05 g9f",
		from_ec2, inf_g},
	{"g6.4xlarge", &milan, NULL, &l4, &ena, 10000, 16, 1,
		"0/- n00:05 g9f",
		from_ec2, inf_g},
	{"g6.8xlarge", &milan, &switch_g6, &l4, &efa2_g, 25000, 32, 1,
		"0/85 n96; 0/- g9f",
		from_ec2, inf_g},
	{"g6.16xlarge", &milan, &switch_g6, &l4, &efa2_g, 25000, 64, 1,
		"0/85 n96; 0/- g9f",
		from_ec2, inf_g},
	{"g6.12xlarge", &milan, &switch_g6, &l4, &efa2_g, 40000, 48, 1,
		"0/85 n96; 0/- g9f ga1 ga3 ga5",
		from_ec2, inf_g},
	{"g6.24xlarge", &milan, &switch_g6, &l4, &efa2_g, 50000, 96, 1,
		"0/85 n96; 0/- g9f ga1 ga3 ga5",
		from_ec2, inf_g},
	{"g6.48xlarge", &milan, &switch_g6, &l4, &efa2_g, 100000, 192, 2,
		"0/85 n96; 0/- g9f ga1 ga3 ga5; 1/- gae gb0 gb2 gb4",
		from_g6, inf_g6},
	{"gr6.4xlarge", &milan, NULL, &l4, &ena, 10000, 16, 1,
		"0/- n00:05 g9f",
		from_ec2, inf_g},
	{"gr6.8xlarge", &milan, &switch_g6, &l4, &efa2_g, 25000, 32, 1,
		"0/85 n96; 0/- g9f",
		from_ec2, inf_g},
	{"g6e.xlarge", &milan, NULL, &l40s, &ena, 10000, 4, 1,
		"0/- n00:05 g9e",
		from_ec2, inf_g},
	{"g6e.2xlarge", &milan, NULL, &l40s, &ena, 10000, 8, 1,
		"0/- n00:05 g9e",
		from_ec2, inf_g},
	{"g6e.4xlarge", &milan, NULL, &l40s, &ena, 10000, 16, 1,
		"0/- n00:05 g9e",
		from_ec2, inf_g},
	{"g6e.8xlarge", &milan, &switch_g6, &l40s, &efa2_g, 25000, 32, 1,
		"0/85 n9b; 0/- g9e",
		from_ec2, inf_g},
	{"g6e.16xlarge", &milan, &switch_g6, &l40s, &efa2_g, 35000, 64, 1,
		"0/85 n9b; 0/- g9e",
		from_ec2, inf_g},
	{"g6e.12xlarge", &milan, &switch_g6, &l40s, &efa2_g, 100000, 48, 1,
		"0/85 n9b; 0/- g9e ga0 ga2 ga4",
		from_ec2, inf_g},
	{"g6e.24xlarge", &milan, &switch_g6, &l40s, &efa2_g, 100000, 96, 1,
		"0/85 n9b n9c; 0/- g9e ga0 ga2 ga4",
		from_ec2, inf_g},
	{"g6e.48xlarge", &milan, &switch_g6, &l40s, &efa2_g, 100000, 192, 2,
		"0/85 n9b n9c; 0/- g9e ga0 ga2 ga4; 1/a6 nbc nbd; "
		"1/- gbf gc1 gc3 gc5",
		from_g6e, inf_g6e},
	{"g7e.2xlarge", &emerald, NULL, &rtx6000, &ena, 10000, 8, 1,
		"0/- n00:05 g9f",
		public_ec2, inf_g7e},
	{"g7e.4xlarge", &emerald, NULL, &rtx6000, &ena, 10000, 16, 1,
		"0/- n00:05 g9f",
		public_ec2, inf_g7e},
	{"g7e.8xlarge", &emerald, NULL, &rtx6000, &efa4_g_far, 100000, 32, 1,
		"0/- n96 g9f",
		from_plugin, inf_g7e},
	{"g7e.12xlarge", &emerald, NULL, &rtx6000, &efa4_g, 400000, 48, 1,
		"0/- n96 g9f ga1",
		from_plugin, inf_g7e},
	{"g7e.24xlarge", &emerald, NULL, &rtx6000, &efa4_g, 400000, 96, 1,
		"0/- n96 n97 g9f ga1 ga3 ga5",
		from_plugin, inf_g7e},
	{"g7e.48xlarge", &emerald, NULL, &rtx6000, &efa4_g, 400000, 192, 2,
		"0/- n96 n97 g9f ga1 ga3 ga5; 1/- na8 na9 gae gb0 gb2 gb4",
		from_plugin, inf_g7e},
};
/* clang-format on */

uint32_t instance_row_count(void)
{
	return sizeof(instance_rows) / sizeof(*instance_rows);
}
