/* Where things are: memory nodes of the devices and of this process, the ports that
 * connections may take, how fast the interfaces are. */
#include <ctype.h>
#include <dirent.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "weft/doctor/host_facts.h"

enum { PATH = 1024, TEXT = 4096, CPUS_MAX = 4096 };

/* The beginning of a file below the root; false: no such. */
__attribute__((format(printf, 4, 5))) static bool read_file(
	const char *root, char *text, size_t room, const char *format, ...)
{
	char path[PATH];
	va_list list;

	va_start(list, format);
	vsnprintf(path, sizeof(path), format, list);
	va_end(list);
	return host_read_text(root, path, text, room);
}

/* "0-3,8": one flag for each number. */
static void read_list(const char *text, bool *flags, long room)
{
	while (isdigit((unsigned char)*text)) {
		char *end;
		long first = strtol(text, &end, 10), last = first;

		if (*end == '-')
			last = strtol(end + 1, &end, 10);
		for (long i = first; i >= 0 && i <= last && i < room; i++)
			flags[i] = true;
		text = *end == ',' ? end + 1 : "";
	}
}

/* Of the process: on which processors may it run? All, where it does not say. */
static void read_allowed(const char *root, bool *cpus)
{
	char text[TEXT];
	const char *line = NULL;

	if (read_file(root, text, sizeof(text), "proc/self/status"))
		line = strstr(text, "Cpus_allowed_list:");
	if (line)
		read_list(line + strcspn(line, "0123456789\n"), cpus, CPUS_MAX);
	else
		memset(cpus, true, CPUS_MAX);
}

static void read_nodes(struct host_facts *facts, const char *root)
{
	static bool allowed[CPUS_MAX], own[CPUS_MAX];
	char text[TEXT];

	memset(allowed, 0, sizeof(allowed));
	read_allowed(root, allowed);
	for (int node = 0; node < HOST_NUMA_MAX; node++) {
		if (!read_file(root, text, sizeof(text),
			    "sys/devices/system/node/node%d/cpulist", node))
			continue;
		facts->numa_count++;
		memset(own, 0, sizeof(own));
		read_list(text, own, CPUS_MAX);
		for (int i = 0; i < CPUS_MAX; i++)
			if (own[i] && allowed[i])
				facts->numa_allowed |= 1ull << node;
	}
}

/* The node of one device; the kernel says -1 where it does not know. */
static void add_device(const char *text, uint64_t *nodes, int *unknown)
{
	int node = isdigit((unsigned char)text[0]) ? atoi(text) : HOST_UNKNOWN;

	if (node >= 0 && node < HOST_NUMA_MAX)
		*nodes |= 1ull << node;
	else
		++*unknown;
}

static void read_devices(struct host_facts *facts, const char *root)
{
	char full[PATH], text[TEXT];
	const struct dirent *entry;
	DIR *dir;

	snprintf(full, sizeof(full), "%.900s/sys/bus/pci/devices", root);
	dir = opendir(full);
	while (dir && (entry = readdir(dir))) {
		const char *name = entry->d_name;

		if (name[0] == '.' ||
			!read_file(root, text, sizeof(text),
				"sys/bus/pci/devices/%.64s/vendor", name) ||
			strncmp(text, "0x10de", 6) != 0 ||
			!read_file(root, text, sizeof(text),
				"sys/bus/pci/devices/%.64s/class", name) ||
			strncmp(text, "0x03", 4) != 0 ||
			!read_file(root, text, sizeof(text),
				"sys/bus/pci/devices/%.64s/numa_node", name))
			continue;
		add_device(text, &facts->gpu_nodes, &facts->numa_hidden);
	}
	if (dir)
		closedir(dir);
	for (uint32_t i = 0; i < facts->nic_count; i++)
		if (read_file(root, text, sizeof(text),
			    "sys/class/infiniband/%s/device/numa_node",
			    facts->nics[i].name))
			add_device(text, &facts->nic_nodes, &facts->numa_hidden);
}

/* Megabits per second; virtual interfaces know none. */
static void read_speeds(struct host_facts *facts, const char *root)
{
	char text[TEXT];

	for (uint32_t i = 0; i < facts->iface_count; i++) {
		facts->iface_mbps[i] = HOST_UNKNOWN;
		if (read_file(root, text, sizeof(text), "sys/class/net/%s/speed",
			    facts->ifaces[i]) &&
			atoi(text) > 0)
			facts->iface_mbps[i] = atoi(text);
	}
}

void host_read_place(struct host_facts *facts, const char *root)
{
	char text[TEXT];

	read_nodes(facts, root);
	read_devices(facts, root);
	read_speeds(facts, root);
	if (read_file(root, text, sizeof(text), "proc/sys/net/ipv4/ip_local_port_range"))
		sscanf(text, "%d %d", &facts->port_first, &facts->port_last);
	if (facts->port_first < 0 || facts->port_last > 65535 ||
		facts->port_last < facts->port_first)
		facts->port_first = facts->port_last = 0;
}
