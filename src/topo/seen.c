#include "topo/seen.h"

#include <ctype.h>
#include <dirent.h>
#include <float.h>
#include <hwloc.h>
#include <limits.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "topo/seen_hwloc.h"

struct seen {
	char sysfs[PATH_MAX]; /* "": do not look there */
	hwloc_topology_t hwloc;
	bool is_here;
};

enum err seen_open(const struct seen_args *args, struct seen **out)
{
	struct seen *seen = calloc(1, sizeof(*seen));
	enum err e;

	if (!seen)
		return err_set(ERR_SYSTEM, "no memory to look at the machine");
	e = seen_hwloc_load(args->hwloc_xml, &seen->hwloc);
	if (e) {
		free(seen);
		return e;
	}
	seen->is_here = hwloc_topology_is_thissystem(seen->hwloc) && !args->sysfs;
	if (args->sysfs)
		snprintf(seen->sysfs, sizeof(seen->sysfs), "%s", args->sysfs);
	else if (seen->is_here)
		snprintf(seen->sysfs, sizeof(seen->sysfs), "/sys");
	*out = seen;
	return OK;
}

void seen_close(struct seen *seen)
{
	if (!seen)
		return;
	hwloc_topology_destroy(seen->hwloc);
	free(seen);
}

bool seen_is_here(const struct seen *seen)
{
	return seen->is_here;
}

/* sysfs/rest into `path`; false when there is no sysfs or no room. */
static bool path_make(
	const struct seen *seen, char path[PATH_MAX], const char *format, va_list list)
{
	int bytes = snprintf(path, PATH_MAX, "%s/", seen->sysfs), more;

	if (!seen->sysfs[0] || bytes < 0 || bytes >= PATH_MAX)
		return false;
	more = vsnprintf(path + bytes, (size_t)(PATH_MAX - bytes), format, list);
	return more >= 0 && more < PATH_MAX - bytes;
}

static bool file_read(const char *path, char *text, size_t room)
{
	FILE *file = fopen(path, "re");
	size_t bytes;

	text[0] = '\0';
	if (!file)
		return false;
	bytes = fread(text, 1, room - 1, file);
	fclose(file);
	while (bytes && isspace((unsigned char)text[bytes - 1]))
		bytes--;
	text[bytes] = '\0';
	/* What goes into an XML attribute must be plain text. */
	for (size_t i = 0; i < bytes; i++)
		if (!isprint((unsigned char)text[i]))
			text[i] = ' ';
	return bytes > 0;
}

bool seen_text(const struct seen *seen, char *text, size_t room, const char *format, ...)
{
	char path[PATH_MAX];
	va_list list;
	bool is_made;

	text[0] = '\0';
	va_start(list, format);
	is_made = path_make(seen, path, format, list);
	va_end(list);
	return is_made && file_read(path, text, room);
}

/* "0000:53:00.0", and with a longer domain. */
static bool is_busid(const char *text)
{
	size_t domain = strspn(text, "0123456789abcdefABCDEF");
	const char *rest = text + domain;

	return domain >= 4 && domain <= 8 && strlen(rest) == 8 && rest[0] == ':' &&
	       isxdigit((unsigned char)rest[1]) && isxdigit((unsigned char)rest[2]) &&
	       rest[3] == ':' && isxdigit((unsigned char)rest[4]) &&
	       isxdigit((unsigned char)rest[5]) && rest[6] == '.' &&
	       isxdigit((unsigned char)rest[7]);
}

bool seen_busid(
	const struct seen *seen, char busid[SEEN_BUSID_BYTES], const char *format, ...)
{
	char path[PATH_MAX], subsystem[PATH_MAX + 16], *real, *kind;
	bool is_pci = false;
	va_list list;
	bool is_made;

	va_start(list, format);
	is_made = path_make(seen, path, format, list);
	va_end(list);
	real = is_made ? realpath(path, NULL) : NULL;
	if (!real)
		return false;
	snprintf(subsystem, sizeof(subsystem), "%s/subsystem", path);
	kind = realpath(subsystem, NULL);
	if (kind && !strcmp(strrchr(kind, '/') + 1, "pci") &&
		is_busid(strrchr(real, '/') + 1)) {
		snprintf(busid, SEEN_BUSID_BYTES, "%s", strrchr(real, '/') + 1);
		is_pci = true;
	}
	free(kind);
	free(real);
	return is_pci;
}

static int names_compare(const void *a, const void *b)
{
	return strverscmp(a, b);
}

void seen_list(const struct seen *seen, const char *folder, struct seen_names *names)
{
	char path[PATH_MAX];
	struct dirent *entry;
	DIR *dir;

	names->count = 0;
	if (!seen->sysfs[0] || snprintf(path, sizeof(path), "%s/%s", seen->sysfs,
				       folder) >= (int)sizeof(path))
		return;
	dir = opendir(path);
	if (!dir)
		return;
	while (names->count < SEEN_NAMES_MAX && (entry = readdir(dir))) {
		if (entry->d_name[0] == '.' || strlen(entry->d_name) >= SEEN_TEXT_BYTES)
			continue;
		snprintf(names->names[names->count++], SEEN_TEXT_BYTES, "%s",
			entry->d_name);
	}
	closedir(dir);
	qsort(names->names, names->count, sizeof(*names->names), names_compare);
}

bool seen_has_pci(const struct seen *seen)
{
	static const char folder[] = "bus/pci/devices";
	struct seen_names *names = malloc(sizeof(*names));
	bool has = false;

	if (names) {
		seen_list(seen, folder, names);
		has = names->count > 0;
	}
	free(names);
	return has || seen_hwloc_has_pci(seen->hwloc);
}

/* The link as NCCL counts it: the slower of the device and the port above it. A speed or
 * width that only one end tells is taken from there for the speed; NCCL's width is 0 then
 * and counts as x16. */
static void link_read(const char *device, struct seen_pci *pci)
{
	static const char speed_file[] = "max_link_speed",
			  width_file[] = "max_link_width";
	char path[PATH_MAX + 32], port[SEEN_TEXT_BYTES];
	float mine = FLT_MAX, ports = FLT_MAX;
	long my_width, port_width;

	snprintf(path, sizeof(path), "%s/%s", device, speed_file);
	file_read(path, pci->link_speed, sizeof(pci->link_speed));
	snprintf(path, sizeof(path), "%s/../%s", device, speed_file);
	file_read(path, port, sizeof(port));
	sscanf(pci->link_speed, "%f GT/s", &mine);
	sscanf(port, "%f GT/s", &ports);
	if (ports < mine)
		memcpy(pci->link_speed, port, sizeof(port));
	snprintf(path, sizeof(path), "%s/%s", device, width_file);
	file_read(path, port, sizeof(port));
	my_width = strtol(port, NULL, 0);
	snprintf(path, sizeof(path), "%s/../%s", device, width_file);
	file_read(path, port, sizeof(port));
	port_width = strtol(port, NULL, 0);
	if (port_width < my_width)
		my_width = port_width;
	pci->link_width = my_width > 0 && my_width <= 64 ? (int)my_width : 0;
}

/* Two steps up the path: the first is the port the device is plugged into, the second
 * the switch that the port belongs to, if there is one. `path` is cut. */
static void above_find(char *path, char above[SEEN_BUSID_BYTES])
{
	above[0] = '\0';
	for (int i = 0; i < 2; i++) {
		char *slash = strrchr(path, '/');

		if (!slash || slash == path)
			return;
		*slash = '\0';
		slash = strrchr(path, '/');
		if (!slash || !is_busid(slash + 1))
			return;
		if (i == 1)
			snprintf(above, SEEN_BUSID_BYTES, "%s", slash + 1);
	}
}

static bool pci_from_sysfs(
	const struct seen *seen, const char *busid, struct seen_pci *pci)
{
	char path[PATH_MAX + SEEN_TEXT_BYTES], *real;
	const struct {
		const char *name;
		char *text;
		size_t room;
	} files[] = {
		{"class", pci->class_id, sizeof(pci->class_id)},
		{"vendor", pci->vendor, sizeof(pci->vendor)},
		{"device", pci->device, sizeof(pci->device)},
		{"subsystem_vendor", pci->subsystem_vendor,
			sizeof(pci->subsystem_vendor)},
		{"subsystem_device", pci->subsystem_device,
			sizeof(pci->subsystem_device)},
		{"numa_node", pci->numa, sizeof(pci->numa)},
	};

	if (!seen->sysfs[0])
		return false;
	snprintf(path, sizeof(path), "%s/bus/pci/devices/%s", seen->sysfs, busid);
	real = realpath(path, NULL);
	if (!real)
		return false;
	for (size_t i = 0; i < sizeof(files) / sizeof(*files); i++) {
		snprintf(path, sizeof(path), "%s/%s", real, files[i].name);
		file_read(path, files[i].text, files[i].room);
	}
	link_read(real, pci);
	above_find(real, pci->above);
	free(real);
	return true;
}

bool seen_pci(const struct seen *seen, const char *busid, struct seen_pci *pci)
{
	*pci = (struct seen_pci){0};
	if (!is_busid(busid))
		return false;
	snprintf(pci->busid, sizeof(pci->busid), "%s", busid);
	for (char *at = pci->busid; *at; at++)
		*at = (char)tolower((unsigned char)*at);
	if (pci_from_sysfs(seen, pci->busid, pci))
		return true;
	return seen_hwloc_pci(seen->hwloc, pci->busid, pci);
}

bool seen_class(const struct seen *seen, const char *busid, char class_id[16])
{
	struct seen_pci pci;

	if (!seen_pci(seen, busid, &pci) || !pci.class_id[0])
		return false;
	memcpy(class_id, pci.class_id, 16);
	return true;
}

void seen_cpu(const struct seen *seen, const char *numa, struct seen_cpu *cpu)
{
	*cpu = (struct seen_cpu){.family = -1, .model = -1};
	seen_hwloc_cpu(seen->hwloc, numa, cpu);
	/* The kernel's own mask has as many words as the kernel has room for, as NCCL's
	 * has; hwloc's is as short as it can be. */
	if (!strchr(numa, '/')) {
		char mask[SEEN_AFFINITY_BYTES];

		if (seen_text(seen, mask, sizeof(mask),
			    "devices/system/node/node%s/cpumap", numa))
			memcpy(cpu->affinity, mask, sizeof(mask));
	}
}

uint32_t seen_numa_count(const struct seen *seen)
{
	return seen_hwloc_numa_count(seen->hwloc);
}

int seen_numa_at(const struct seen *seen, uint32_t index)
{
	return seen_hwloc_numa_at(seen->hwloc, index);
}
