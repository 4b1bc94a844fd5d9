/* The topology files that the libfabric plugin gives NCCL: those it carries, and one for
 * interfaces in groups, of a machine made of files. */
#include "topology.h"

#include <limits.h>
#include <sys/stat.h>
#include <unistd.h>

#include "pci.h"
#include "platform.h"
#include "test.h"
#include "topo/xml.h"

static char root[] = "/tmp/weft-topology-XXXXXX";

static void folders_make(const char *path)
{
	char part[PATH_MAX];

	for (const char *at = path + strlen(root); *at; at++) {
		snprintf(part, sizeof(part), "%.*s", (int)(at - path), path);
		if (*at == '/')
			mkdir(part, 0755);
	}
	mkdir(path, 0755);
}

static void word_write(const char *path, const char *name, const char *word)
{
	char file[PATH_MAX];
	FILE *handle;

	snprintf(file, sizeof(file), "%s/%s", path, name);
	handle = fopen(file, "w");
	TRUE(handle);
	fprintf(handle, "%s\n", word);
	fclose(handle);
}

/* A device at a place below devices/, with a link such as "16.0 GT/s PCIe" x 8. */
static void device_make(char path[PATH_MAX], const char *place, const char *vendor,
	const char *speed, const char *width)
{
	char link[PATH_MAX + 64];

	snprintf(path, PATH_MAX, "%s/devices/%s", root, place);
	folders_make(path);
	word_write(path, "vendor", vendor);
	word_write(path, "class", strcmp(vendor, "0x10de") ? "0x020000" : "0x030200");
	word_write(path, "max_link_speed", speed);
	word_write(path, "max_link_width", width);
	snprintf(link, sizeof(link), "%s/bus/pci/devices", root);
	folders_make(link);
	snprintf(link, sizeof(link), "%s/bus/pci/devices/%s", root,
		strrchr(place, '/') + 1);
	TRUE(!symlink(path, link));
}

static char nics[4][PATH_MAX];

/* Two switches of p5's kind on one CPU; on another one of p5en's, with two groups. */
static void machine_make(void)
{
	char gpu[PATH_MAX];

	TRUE(mkdtemp(root));
	device_make(nics[0],
		"pci0000:44/0000:44:01.0/0000:45:00.0/0000:46:00.0/0000:4f:00.0",
		"0x1d0f", "16.0 GT/s PCIe", "8");
	device_make(nics[1],
		"pci0000:44/0000:44:02.0/0000:56:00.0/0000:57:00.0/0000:60:00.0",
		"0x1d0f", "16.0 GT/s PCIe", "8");
	device_make(nics[2],
		"pci0000:76/0000:76:01.0/0000:77:00.0/0000:78:00.0/0000:87:00.0",
		"0x1d0f", "16.0 GT/s PCIe", "16");
	device_make(nics[3],
		"pci0000:76/0000:76:01.0/0000:77:00.0/0000:78:01.0/0000:89:00.0",
		"0x1d0f", "8.0 GT/s PCIe", "8");
	for (int i = 0; i < 4; i++)
		word_write(nics[i], "numa_node", i < 2 ? "0" : "1");
	device_make(gpu, "pci0000:44/0000:44:01.0/0000:45:00.0/0000:46:01.0/0000:53:00.0",
		"0x10de", "32.0 GT/s PCIe", "16");
	EQ_STR(pci_step_text(pci_link(gpu).step), "32.0 GT/s PCIe");
}

static char *written(const struct topology_nic *list, int count, bool *is_any)
{
	char *text = NULL;
	size_t bytes;
	FILE *file = open_memstream(&text, &bytes);

	*is_any = topology_write(file, root, list, count);
	fclose(file);
	return text;
}

/* As the library reads it: what hangs on what. */
static void above_is(const char *text, const char *busid, const char *above)
{
	struct xml_node *tree, *node = NULL;

	EQ(xml_parse(text, strlen(text), "the plugin's file", "system", &tree), OK);
	while ((node = xml_find(tree, "pci", node)))
		if (!strcmp(xml_attr(node, "busid"), busid))
			break;
	TRUE(node && node->parent);
	EQ_STR(xml_attr(node->parent,
		       strcmp(node->parent->name, "cpu") ? "busid" : "numaid"),
		above);
	xml_free(tree);
}

static void test_groups(void)
{
	const struct topology_nic list[] = {
		{nics[0], 4}, {nics[1], 4}, {nics[2], 2}, {nics[3], 2}};
	bool is_any;
	char *text = written(list, 4, &is_any);

	TRUE(is_any);
	EQ_STR(text, "<system version=\"1\">\n"
		     "  <cpu numaid=\"0\">\n"
		     "    <pci busid=\"0000:45:00.0\">\n"
		     "      <pci busid=\"0000:4f:00.0\" link_speed=\"32.0 GT/s PCIe\" "
		     "link_width=\"16\"/>\n"
		     "    </pci>\n"
		     "    <pci busid=\"0000:56:00.0\">\n"
		     "      <pci busid=\"0000:60:00.0\" link_speed=\"32.0 GT/s PCIe\" "
		     "link_width=\"16\"/>\n"
		     "    </pci>\n"
		     "  </cpu>\n"
		     "  <cpu numaid=\"1\">\n"
		     "    <pci busid=\"0000:77:00.0\">\n"
		     "      <pci busid=\"0000:87:00.0\" link_speed=\"32.0 GT/s PCIe\" "
		     "link_width=\"16\"/>\n"
		     "      <pci busid=\"0000:89:00.0\" link_speed=\"16.0 GT/s PCIe\" "
		     "link_width=\"8\"/>\n"
		     "    </pci>\n"
		     "  </cpu>\n"
		     "</system>\n");
	above_is(text, "0000:89:00.0", "0000:77:00.0");
	free(text);
}

/* Interfaces by themselves need none; one whose place is not known is left out, and so is
 * the machine without a GPU, whose links are what they are. */
static void test_none(void)
{
	const struct topology_nic alone[] = {{nics[0], 1}, {nics[1], 1}};
	const struct topology_nic odd[] = {{"", 4}, {"/nowhere/0000:4f:00.0", 4},
		{"/sys/devices/virtual/net/lo", 2}, {nics[3], 2}};
	bool is_any;
	char *text = written(alone, 2, &is_any);

	TRUE(!is_any);
	EQ_STR(text, "");
	free(text);
	text = written(odd, 3, &is_any);
	TRUE(!is_any);
	free(text);
	text = written(odd, 4, &is_any);
	TRUE(is_any);
	TRUE(!strstr(text, "4f:00.0") && strstr(text, "0000:89:00.0"));
	free(text);
}

/* Each that the table of platforms names, with the PCI devices of the instance and not
 * what hangs on them. */
static void test_carried(void)
{
	static const struct {
		const char *type, *nic, *above;
		int devices;
	} those[] = {{"p4d.24xlarge", "0000:90:1b.0", "ffff:ff:03.0", 16},
		{"p4de.24xlarge", "0000:20:1b.0", "ffff:ff:02.0", 16},
		{"g5.48xlarge", "0000:00:15.0", "1", 9}};

	for (int i = 0; i < 3; i++) {
		const struct topology_file *file = topology_files;
		const char *name = platform_of(those[i].type)->topology, *at;
		int count = 0;

		while (file->name && strcmp(file->name, name))
			file++;
		TRUE(file->name);
		for (at = file->text; (at = strstr(at, "<pci ")); at++)
			count++;
		EQ(count, those[i].devices);
		above_is(file->text, those[i].nic, those[i].above);
		TRUE(!strstr(file->text, "<gpu") && !strstr(file->text, "<ni") &&
			!strstr(file->text, "affinity"));
	}
}

int main(void)
{
	char command[64];

	machine_make();
	test_groups();
	test_none();
	test_carried();
	snprintf(command, sizeof(command), "rm -r %s", root);
	return system(command) ? 1 : 0;
}
