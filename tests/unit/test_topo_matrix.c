/* The table: the printer against real nvidia-smi output, byte for byte, and the words
 * computed from trees against what nvidia-smi said on the same kind of machine. */
#include "topo/matrix.h"

#include <dirent.h>
#include <errno.h>
#include <sys/stat.h>
#include <unistd.h>

#include "smi_text.h"
#include "test.h"
#include "topo/instance.h"

static struct xml_node *parse(const char *text)
{
	struct xml_node *tree = NULL;

	EQ(xml_parse(text, strlen(text), "test", "system", &tree), OK);
	return tree;
}

static const char *word(const struct matrix *matrix, uint32_t row, uint32_t column)
{
	static char text[MATRIX_CELL_MAX];

	matrix_cell_text(*matrix_at(matrix, row, column), text);
	return text;
}

#define GPU(bus, dev, inside)                                                            \
	"<pci busid=\"" bus "\" class=\"0x030200\"><gpu dev=\"" dev "\" sm=\"80\" "      \
	"rank=\"" dev "\">" inside "</gpu></pci>"
#define NIC(bus, name)                                                                   \
	"<pci busid=\"" bus "\" class=\"0x020000\"><nic><net name=\"" name               \
	"\" dev=\"0\"/>"                                                                 \
	"</nic></pci>"
#define SWITCH(bus, inside) "<pci busid=\"" bus "\" class=\"0x060400\">" inside "</pci>"
#define CPU(numa, mask, model, inside)                                                   \
	"<cpu numaid=\"" numa "\" affinity=\"" mask "\" arch=\"x86_64\" "                \
	"vendor=\"GenuineIntel\" familyid=\"6\" modelid=\"" model "\">" inside "</cpu>"

static void test_levels(void)
{
	struct xml_node *tree = parse("<system version=\"1\">" CPU("0", "3f", "143",
		SWITCH("0000:10:00.0",
			SWITCH("0000:11:00.0", GPU("0000:12:00.0", "1", "")
						       NIC("0000:13:00.0", "mlx5_10"))
				SWITCH("0000:14:00.0", GPU("0000:15:00.0", "0", "")))
			GPU("0000:20:00.0", "2", "") GPU("0000:21:00.0", "3", ""))
			CPU("1", "f00000000,000000c0", "143",
				NIC("0000:a0:00.0", "mlx5_2") NIC("0000:a0:00.1",
					"mlx5_3") "<nic><net name=\"eth0\" "
						  "dev=\"9\"/></nic>") "</system>");
	struct matrix *matrix = NULL;

	EQ(matrix_build(tree, &matrix), OK);
	EQ(matrix->gpu_count, 4);
	EQ(matrix->nic_count, 3);
	EQ(matrix->hidden_nics, 1);
	EQ_STR(matrix->parts[0].name, "0000:15:00.0"); /* by dev */
	EQ_STR(matrix->parts[4].name, "mlx5_2");       /* as people count */
	EQ_STR(matrix->parts[6].name, "mlx5_10");
	EQ_STR(matrix->parts[0].cpus, "0-5");
	EQ_STR(word(matrix, 0, 0), " X ");
	EQ_STR(word(matrix, 0, 1), "PXB");  /* two bridges */
	EQ_STR(word(matrix, 1, 6), "PIX");  /* one */
	EQ_STR(word(matrix, 0, 2), "NODE"); /* a gap of buses: another host bridge */
	EQ_STR(word(matrix, 2, 3), "PHB");  /* no gap */
	EQ_STR(word(matrix, 4, 5), "PIX");  /* two functions of a card */
	EQ_STR(word(matrix, 3, 4), "SYS");
	EQ(matrix->inferred, 7);
	matrix_free(matrix);
	xml_free(tree);
}

/* Before Skylake a socket had one host bridge, whatever the bus numbers. */
static void test_one_bridge(void)
{
	struct xml_node *tree = parse("<system version=\"1\">" CPU("0", "1", "79",
		SWITCH("0000:04:00.0", GPU("0000:06:00.0", "0", "")) SWITCH(
			"0000:40:00.0", GPU("0000:42:00.0", "1", ""))) "</system>");
	struct matrix *matrix = NULL;

	EQ(matrix_build(tree, &matrix), OK);
	EQ_STR(word(matrix, 0, 1), "PHB");
	matrix_free(matrix);
	EQ(xml_attr_set(tree->subs[0]->subs[0], "host_bridge", "pci0000:00"), OK);
	EQ(xml_attr_set(tree->subs[0]->subs[1], "host_bridge", "pci0000:3f"), OK);
	EQ(matrix_build(tree, &matrix), OK);
	EQ_STR(word(matrix, 0, 1), "NODE"); /* told, not inferred */
	EQ(matrix->inferred, 0);
	matrix_free(matrix);
	xml_free(tree);
}

static void link_device(const char *sysfs, const char *busid, const char *bridge)
{
	char device[256], from[256];

	snprintf(device, sizeof(device), "%s/devices/%s", sysfs, bridge);
	TRUE(!mkdir(device, 0700) || errno == EEXIST);
	snprintf(device, sizeof(device), "%s/devices/%s/%s", sysfs, bridge, busid);
	EQ(mkdir(device, 0700), 0);
	snprintf(from, sizeof(from), "%s/bus/pci/devices/%s", sysfs, busid);
	EQ(symlink(device, from), 0);
}

/* What sysfs says of this machine's host bridges settles it. */
static void test_sysfs(void)
{
	static const char *const folders[] = {
		"bus", "bus/pci", "bus/pci/devices", "devices"};
	char sysfs[] = "/tmp/weft-matrix-XXXXXX", path[256];
	struct xml_node *tree = parse("<system version=\"1\">" CPU("0", "1", "143",
		GPU("0000:11:00.0", "0", "") GPU("0000:12:00.0", "1", "")
			GPU("0000:51:00.0", "2", "")
				GPU("0000:61:00.0", "3", "")) "</system>");
	struct matrix *matrix = NULL;

	TRUE(mkdtemp(sysfs));
	for (int i = 0; i < 4; i++) {
		snprintf(path, sizeof(path), "%s/%s", sysfs, folders[i]);
		EQ(mkdir(path, 0700), 0);
	}
	link_device(sysfs, "0000:11:00.0", "pci0000:10");
	link_device(sysfs, "0000:12:00.0", "pci0000:12");
	link_device(sysfs, "0000:51:00.0", "pci0000:10");
	EQ(matrix_bridges_read(tree, sysfs), OK);
	EQ(matrix_build(tree, &matrix), OK);
	EQ_STR(word(matrix, 0, 1), "NODE"); /* though the buses follow each other */
	EQ_STR(word(matrix, 0, 2), "PHB");  /* though they do not */
	EQ(matrix->inferred, 3);	    /* what sysfs does not have */
	matrix_free(matrix);
	xml_free(tree);
	snprintf(path, sizeof(path), "rm -r %s", sysfs);
	EQ(system(path), 0);
}

static void test_nvlink(void)
{
	struct xml_node *tree = parse("<system version=\"1\">" CPU("0", "1", "143",
		GPU("0000:06:00.0", "0",
			"<nvlink target=\"0000:42:00.0\" count=\"2\" "
			"tclass=\"0x030200\"/>") GPU("0000:42:00.0", "1",
			"<nvlink target=\"0000:06:00.0\" count=\"2\" "
			"tclass=\"0x030200\"/>"
			"<nvlink target=\"fffffff:ffff:ff\" count=\"4\"/>")
			GPU("0000:82:00.0", "2",
				"<nvlink target=\"0000:0a:00.0\" count=\"5\" "
				"tclass=\"0x068000\"/><nvlink "
				"target=\"0000:0b:00.0\" count=\"7\" "
				"tclass=\"0x068000\"/>")) "</system>");
	struct matrix *matrix = NULL;

	EQ(matrix_build(tree, &matrix), OK);
	EQ_STR(word(matrix, 0, 1), "NV2");
	EQ_STR(word(matrix, 1, 2), "NV4"); /* the fewer of 4 and 12 to the switches */
	EQ_STR(word(matrix, 0, 2), "NODE");
	matrix_free(matrix);
	xml_free(tree);
}

static void check_list(const char *mask, const char *list)
{
	char *text = matrix_cpu_list(mask);

	if (list)
		EQ_STR(text, list);
	else
		TRUE(!text);
	free(text);
}

static void test_cpu_list(void)
{
	check_list("1", "0");
	check_list("00ff00,0000000f", "0-3,40-47");
	check_list("55", "0,2,4,6");
	check_list("80000000", "31");
	check_list("0", NULL);
	check_list("", NULL);
}

static char *print(const struct matrix *matrix, bool underline)
{
	char *text = NULL;
	size_t bytes = 0;
	FILE *file = open_memstream(&text, &bytes);

	TRUE(file);
	matrix_print(file, matrix, underline);
	fclose(file);
	return text;
}

/* What nvidia-smi wrote into a file on a machine with one H200, where nothing
 * was cut or typed. */
static void test_whole_output(void)
{
	static const char expected[] =
		"\t\033[4mGPU0\tCPU Affinity\tNUMA Affinity\tGPU NUMA ID\033[0m\n"
		"GPU0\t X \t0-15\t0\t\tN/A\n"
		"\nLegend:\n\n"
		"  X    = Self\n"
		"  SYS  = Connection traversing PCIe as well as the SMP interconnect "
		"between "
		"NUMA nodes (e.g., QPI/UPI)\n"
		"  NODE = Connection traversing PCIe as well as the interconnect between "
		"PCIe "
		"Host Bridges within a NUMA node\n"
		"  PHB  = Connection traversing PCIe as well as a PCIe Host Bridge "
		"(typically "
		"the CPU)\n"
		"  PXB  = Connection traversing multiple PCIe bridges (without "
		"traversing the "
		"PCIe Host Bridge)\n"
		"  PIX  = Connection traversing at most a single PCIe bridge\n"
		"  NV#  = Connection traversing a bonded set of # NVLinks\n";
	struct xml_node *tree = parse("<system version=\"1\">" CPU(
		"0", "ffff", "143", GPU("0000:06:00.0", "0", "")) "</system>");
	struct matrix *matrix = NULL;
	char *text;

	EQ(matrix_build(tree, &matrix), OK);
	text = print(matrix, true);
	EQ_STR(text, expected);
	free(text);
	matrix_free(matrix);
	xml_free(tree);
}

/* What people cut is the end: the text must be the beginning of ours, in whole lines. */
static bool begins_with(const char *whole, const char *part)
{
	size_t bytes = strlen(part);

	while (bytes && part[bytes - 1] == '\n')
		bytes--;
	return !strncmp(whole, part, bytes) && (whole[bytes] == '\n' || !whole[bytes]);
}

static void test_printer(const char *folder)
{
	struct dirent *entry;
	DIR *directory = opendir(folder);
	int verbatim = 0, retyped = 0, other = 0;

	TRUE(directory);
	while ((entry = readdir(directory))) {
		struct smi smi;
		char path[1024], *printed;

		if (entry->d_name[0] == '.')
			continue;
		snprintf(path, sizeof(path), "%s/%s", folder, entry->d_name);
		if (!smi_read(path, &smi)) {
			other++;
			continue;
		}
		printed = print(smi.matrix, smi.has_escapes);
		if (!smi.is_verbatim) {
			retyped++;
		} else if (begins_with(printed, smi.text)) {
			verbatim++;
		} else {
			fprintf(stderr, "%s:\n%s---- is not\n%s", entry->d_name, printed,
				smi.text);
			exit(1);
		}
		free(printed);
		smi_free(&smi);
	}
	closedir(directory);
	printf("printed %d tables byte for byte as nvidia-smi; read %d of other forms; "
	       "%d files are no tables\n",
		verbatim, retyped, other);
	TRUE(verbatim >= 14);
}

struct pair {
	const char *smi, *topology;
	int cells, affinities; /* known to differ: the reason is beside */
};

/* Where affinities differ, the tree's own mask differs from the machine's: the derived
 * trees know one thread a core, AWS's p5 file of 2023 another split, dgx-1v is invented.
 */
static const struct pair pairs[] = {
	{"aws-p4d.24xlarge", "aws-p4d.24xlarge-ofi-nccl", 0, 0},
	{"aws-p4d.24xlarge-b", "aws-p4d.24xlarge-4efa.derived", 0, 8},
	{"topo-m-p4d", "aws-p4d.24xlarge-ofi-nccl-2020", 0, 0},
	{"aws-p5.48xlarge", "aws-p5.48xlarge-32efa.derived", 0, 8},
	{"aws-p5.48xlarge", "aws-p5.48xlarge-ofi-nccl-2023", 0, 8},
	{"azure-nc96ads-a100-v4", "azure-ncv4-4xA100pcie", 0, 0},
	{"dgx1-8xV100-4mlx5", "dgx-1v", 0, 8},
	{"dgx1-8xV100-4mlx5", "dgx1-8xV100-32g", 0, 0},
	{"oci-BM.GPU.H100.8", "oci-hpc-H100-topology", 0, 0},
	{"oci-BM.GPU.H100.8", "oci-BM.GPU.H100.8-8xH100-16xCX7", 0, 0},
	{"hgx-h200-8x-vastai", "hgx-h200-8x-vastai", 0, 0},
	/* by instance type; p3.8xlarge's driver did not say which NUMA node */
	{"aws-g6e.12xlarge", "g6e.12xlarge", 0, 0},
	{"aws-p3.8xlarge-4xV100", "p3.8xlarge", 0, 4},
	{"aws-p4d.24xlarge", "p4d.24xlarge", 0, 0},
	{"aws-p5.48xlarge", "p5.48xlarge", 0, 0},
};

static int part_named(
	const struct matrix *matrix, const struct matrix_part *part, bool gpu)
{
	uint32_t first = gpu ? 0 : matrix->gpu_count;
	uint32_t end = gpu ? matrix->gpu_count : matrix->gpu_count + matrix->nic_count;

	for (uint32_t i = first; i < end; i++)
		if (gpu ? matrix->parts[i].number == part->number
			: !strcmp(matrix->parts[i].name, part->name))
			return (int)i;
	return -1;
}

static int compare(const struct matrix *real, const struct matrix *ours, int *cells)
{
	uint32_t count = real->gpu_count + real->nic_count;
	int differences = 0;

	*cells = 0;
	for (uint32_t r = 0; r < count; r++) {
		int row = part_named(ours, &real->parts[r], r < real->gpu_count);

		for (uint32_t c = 0; row >= 0 && c < count; c++) {
			int column = part_named(
				ours, &real->parts[c], c < real->gpu_count);
			char theirs[MATRIX_CELL_MAX];

			if (column < 0)
				continue;
			(*cells)++;
			matrix_cell_text(*matrix_at(real, r, c), theirs);
			if (!strcmp(theirs, word(ours, (uint32_t)row, (uint32_t)column)))
				continue;
			differences++;
			printf("  row %u column %u: nvidia-smi says %s, we say %s\n", r,
				c, theirs, word(ours, (uint32_t)row, (uint32_t)column));
		}
	}
	return differences;
}

static int compare_affinity(const struct matrix *real, const struct matrix *ours)
{
	int differences = 0;

	for (uint32_t i = 0; i < real->gpu_count; i++) {
		int row = part_named(ours, &real->parts[i], true);
		const char *cpus = row < 0 ? NULL : ours->parts[row].cpus;

		if (row < 0)
			continue;
		if (real->parts[i].numa[0] &&
			strcmp(real->parts[i].numa, ours->parts[row].numa)) {
			printf("  GPU%u: NUMA node %s, we say %s\n", i,
				real->parts[i].numa, ours->parts[row].numa);
			differences++;
		}
		if (!cpus || strcmp(real->parts[i].cpus, cpus)) {
			printf("  GPU%u: CPUs %s, we say %s\n", i, real->parts[i].cpus,
				cpus ? cpus : "none");
			differences++;
		}
	}
	return differences;
}

static void test_pair(const char *data, const struct pair *pair)
{
	struct xml_node *tree = NULL;
	struct matrix *ours = NULL;
	struct smi smi;
	char path[512];
	struct stat status;
	int cells, wrong, affinity;

	snprintf(path, sizeof(path), "%s/topologies/%s.xml", data, pair->topology);
	if (!stat(path, &status))
		EQ(xml_read(path, "system", &tree), OK);
	else if (instance_find(pair->topology))
		EQ(instance_tree(pair->topology, &tree), OK);
	else
		return;
	EQ(matrix_build(tree, &ours), OK);
	snprintf(path, sizeof(path), "%s/smi/%s.txt", data, pair->smi);
	TRUE(smi_read(path, &smi));
	wrong = compare(smi.matrix, ours, &cells);
	affinity = compare_affinity(smi.matrix, ours);
	printf("%s, %s: %d of %d cells differ, %d affinities differ\n", pair->smi,
		pair->topology, wrong, cells, affinity);
	EQ(wrong, pair->cells);
	EQ(affinity, pair->affinities);
	smi_free(&smi);
	matrix_free(ours);
	xml_free(tree);
}

int main(void)
{
	const char *data = getenv("WEFT_DATA");
	struct stat status;
	char folder[512];

	test_levels();
	test_one_bridge();
	test_sysfs();
	test_nvlink();
	test_cpu_list();
	test_whole_output();
	snprintf(folder, sizeof(folder), "%s/smi", data ? data : WEFT_SHARED_DATA);
	if (stat(folder, &status))
		return TEST_SKIP;
	test_printer(folder);
	for (size_t i = 0; i < sizeof(pairs) / sizeof(pairs[0]); i++)
		test_pair(data ? data : WEFT_SHARED_DATA, &pairs[i]);
	return 0;
}
