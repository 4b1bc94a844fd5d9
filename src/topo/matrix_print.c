/* The table's text, its legends, and the two texts that go in and out of it: CPU masks
 * and the host bridges of sysfs. */
#include <limits.h>
#include <stdlib.h>
#include <string.h>

#include "topo/matrix.h"

#define UNDERLINE "\033[4m"
#define PLAIN	  "\033[0m"

void matrix_cell_text(struct matrix_cell cell, char text[MATRIX_CELL_MAX])
{
	static const char *const words[] = {" X ", "PIX", "PXB", "PHB", "NODE", "SYS"};

	if (cell.level == MATRIX_NVLINK)
		snprintf(text, MATRIX_CELL_MAX, "NV%d", cell.links);
	else
		snprintf(text, MATRIX_CELL_MAX, "%s", words[cell.level]);
}

static void print_label(FILE *file, const struct matrix *matrix, uint32_t index)
{
	fprintf(file, "%s%d", index < matrix->gpu_count ? "GPU" : "NIC",
		matrix->parts[index].number);
}

static void print_row(FILE *file, const struct matrix *matrix, uint32_t row)
{
	const struct matrix_part *part = &matrix->parts[row];
	char text[MATRIX_CELL_MAX];

	print_label(file, matrix, row);
	for (uint32_t i = 0; i < matrix->gpu_count + matrix->nic_count; i++) {
		matrix_cell_text(*matrix_at(matrix, row, i), text);
		fprintf(file, "\t%s", text);
	}
	if (row < matrix->gpu_count)
		fprintf(file, "\t%s\t%s\t\t%s\n", part->cpus ? part->cpus : "N/A",
			part->numa, part->gpu_numa);
	else
		fprintf(file, "\t\t\t\t\n");
}

void matrix_print_legend(FILE *file)
{
	fputs("\nLegend:\n\n"
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
	      "  PXB  = Connection traversing multiple PCIe bridges (without traversing "
	      "the "
	      "PCIe Host Bridge)\n"
	      "  PIX  = Connection traversing at most a single PCIe bridge\n"
	      "  NV#  = Connection traversing a bonded set of # NVLinks\n",
		file);
}

void matrix_print(FILE *file, const struct matrix *matrix, bool underline)
{
	uint32_t count = matrix->gpu_count + matrix->nic_count;

	fprintf(file, "\t%s", underline ? UNDERLINE : "");
	for (uint32_t i = 0; i < count; i++) {
		print_label(file, matrix, i);
		fputc('\t', file);
	}
	fprintf(file, "CPU Affinity\tNUMA Affinity\tGPU NUMA ID%s\n",
		underline ? PLAIN : "");
	for (uint32_t i = 0; i < count; i++)
		print_row(file, matrix, i);
	matrix_print_legend(file);
	if (!matrix->nic_count)
		return;
	fputs("\nNIC Legend:\n\n", file);
	for (uint32_t i = matrix->gpu_count; i < count; i++)
		fprintf(file, "  NIC%d: %s\n", matrix->parts[i].number,
			matrix->parts[i].name);
	fputc('\n', file);
}

/* Bit `cpu` of a hexadecimal mask of `digits` digits. */
static bool mask_has(const char *mask, size_t digits, size_t cpu)
{
	size_t at = cpu / 4;
	char text[2] = {0};

	if (at >= digits)
		return false;
	text[0] = mask[digits - 1 - at];
	return strtoul(text, NULL, 16) >> (cpu % 4) & 1;
}

static void print_ranges(FILE *file, const char *mask, size_t digits)
{
	const char *comma = "";

	for (size_t cpu = 0; cpu < 4 * digits; cpu++) {
		size_t first = cpu;

		if (!mask_has(mask, digits, cpu))
			continue;
		while (mask_has(mask, digits, cpu + 1))
			cpu++;
		if (cpu == first)
			fprintf(file, "%s%zu", comma, cpu);
		else
			fprintf(file, "%s%zu-%zu", comma, first, cpu);
		comma = ",";
	}
}

char *matrix_cpu_list(const char *mask)
{
	char *digits = calloc(strlen(mask) + 1, 1);
	char *text = NULL;
	size_t bytes = 0, count = 0;
	FILE *file;

	if (!digits)
		return NULL;
	for (const char *at = mask; *at; at++)
		if (strchr("0123456789abcdefABCDEF", *at))
			digits[count++] = *at;
	file = open_memstream(&text, &bytes);
	if (file) {
		print_ranges(file, digits, count);
		fclose(file);
	}
	free(digits);
	if (text && !*text) {
		free(text);
		return NULL;
	}
	return text;
}

/* The first part of a device's path under /sys/devices, such as pci0000:17. */
static bool bridge_of(const char *sysfs, const char *busid, char *bridge, size_t size)
{
	char path[PATH_MAX], real[PATH_MAX];
	const char *at;
	int wrote = snprintf(path, sizeof(path), "%s/bus/pci/devices/%s", sysfs, busid);

	if (wrote < 0 || (size_t)wrote >= sizeof(path) || strchr(busid, '/') ||
		!realpath(path, real))
		return false;
	at = strstr(real, "/devices/");
	if (!at)
		return false;
	at = strstr(at, "/pci");
	if (!at)
		return false;
	snprintf(bridge, size, "%.*s", (int)strcspn(at + 1, "/"), at + 1);
	return true;
}

enum err matrix_bridges_read(struct xml_node *tree, const char *sysfs)
{
	for (struct xml_node *pci = NULL; (pci = xml_find(tree, "pci", pci));) {
		const char *busid = xml_attr(pci, "busid");
		char bridge[64];
		enum err e;

		if (!busid || (pci->parent && !strcmp(pci->parent->name, "pci")))
			continue;
		if (!bridge_of(sysfs, busid, bridge, sizeof(bridge)))
			continue;
		e = xml_attr_set(pci, "host_bridge", bridge);
		if (e)
			return e;
	}
	return OK;
}
