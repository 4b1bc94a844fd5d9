/* What the kernel's files say of a host. */
#include <ctype.h>
#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/cores.h"
#include "weft/doctor/host_facts.h"

enum { PATH = 1024, FILE_BYTES = 4096 };

bool host_read_text(const char *root, const char *path, char *text, size_t room)
{
	char full[2 * PATH];
	FILE *file;
	size_t bytes;

	snprintf(full, sizeof(full), "%.1000s/%s", root, path);
	text[0] = 0;
	file = fopen(full, "r");
	if (!file)
		return false;
	bytes = fread(text, 1, room - 1, file);
	fclose(file);
	text[bytes] = 0;
	while (bytes && isspace((unsigned char)text[bytes - 1]))
		text[--bytes] = 0;
	return true;
}

static bool exists(const char *root, const char *path)
{
	char full[2 * PATH];

	return snprintf(full, sizeof(full), "%s/%s", root, path) < (int)sizeof(full) &&
	       !access(full, F_OK);
}

/* Entries of a folder whose names begin so and go on with a digit or end. */
static int count_names(const char *root, const char *path, const char *prefix)
{
	char full[PATH];
	const struct dirent *entry;
	size_t bytes = strlen(prefix);
	int count = 0;
	DIR *dir;

	snprintf(full, sizeof(full), "%s/%s", root, path);
	dir = opendir(full);
	if (!dir)
		return 0;
	while ((entry = readdir(dir)))
		count += entry->d_name[0] != '.' &&
			 !strncmp(entry->d_name, prefix, bytes) &&
			 (!bytes || isdigit((unsigned char)entry->d_name[bytes]));
	closedir(dir);
	return count;
}

/* Does a process of this name run? The kernel keeps fifteen letters of it. */
static bool has_process(const char *root, const char *name)
{
	char full[PATH], text[32], path[64];
	const struct dirent *entry;
	bool found = false;
	DIR *dir;

	snprintf(full, sizeof(full), "%s/proc", root);
	dir = opendir(full);
	while (dir && !found && (entry = readdir(dir))) {
		if (!isdigit((unsigned char)entry->d_name[0]) ||
			strlen(entry->d_name) > 20)
			continue;
		snprintf(path, sizeof(path), "proc/%.20s/comm", entry->d_name);
		found = host_read_text(root, path, text, sizeof(text)) &&
			!strcmp(text, name);
	}
	if (dir)
		closedir(dir);
	return found;
}

static void read_gpus(struct host_facts *facts, const char *root)
{
	char full[PATH], text[FILE_BYTES], path[PATH];
	const struct dirent *entry;
	DIR *dir;

	snprintf(full, sizeof(full), "%s/sys/bus/pci/devices", root);
	dir = opendir(full);
	while (dir && (entry = readdir(dir))) {
		if (entry->d_name[0] == '.' || strlen(entry->d_name) > 32)
			continue;
		snprintf(path, sizeof(path), "sys/bus/pci/devices/%.32s/vendor",
			entry->d_name);
		if (!host_read_text(root, path, text, sizeof(text)) ||
			strncmp(text, "0x10de", 6) != 0)
			continue;
		snprintf(path, sizeof(path), "sys/bus/pci/devices/%.32s/class",
			entry->d_name);
		host_read_text(root, path, text, sizeof(text));
		facts->gpu_count += !strncmp(text, "0x03", 4);
		facts->switch_count += !strncmp(text, "0x0680", 6);
	}
	if (dir)
		closedir(dir);
	facts->gpu_files = count_names(root, "dev", "nvidia");
	if (host_read_text(root, "proc/driver/nvidia/version", text, sizeof(text))) {
		const char *number = strstr(text, "  ");

		facts->is_open_driver = strstr(text, "Open Kernel Module") != NULL;
		while (number && *number == ' ')
			number++;
		snprintf(facts->driver, sizeof(facts->driver), "%.*s",
			number ? (int)strcspn(number, " ") : 0, number ? number : "");
	}
	facts->has_peermem = exists(root, "sys/module/nvidia_peermem") ||
			     exists(root, "sys/module/nv_peer_mem");
	facts->has_gdrcopy = exists(root, "dev/gdrdrv");
	facts->has_imex = count_names(root, "dev/nvidia-caps-imex-channels", "") > 0;
	/* a container does not see the host's services */
	if (exists(root, "run/nvidia-fabricmanager/nv-fabricmanager.pid") ||
		has_process(root, "nv-fabricmanage"))
		facts->fabric_manager = 1;
	else if (!facts->container[0] && facts->switch_count)
		facts->fabric_manager = 0;
	if (has_process(root, "nvidia-imex"))
		facts->imex_service = 1;
}

static void read_nic(struct host_facts *facts, const char *root, const char *name)
{
	struct host_nic *nic = &facts->nics[facts->nic_count++];
	char path[PATH], text[FILE_BYTES], driver[PATH];
	const char *last;
	ssize_t bytes;

	snprintf(nic->name, sizeof(nic->name), "%.31s", name);
	nic->gbps = HOST_UNKNOWN;
	snprintf(path, sizeof(path), "sys/class/infiniband/%.64s/ports/1/state", name);
	if (host_read_text(root, path, text, sizeof(text)))
		snprintf(nic->state, sizeof(nic->state), "%.23s",
			strchr(text, ' ') ? strchr(text, ' ') + 1 : text);
	snprintf(path, sizeof(path), "sys/class/infiniband/%.64s/ports/1/rate", name);
	if (host_read_text(root, path, text, sizeof(text)))
		nic->gbps = atoi(text);
	snprintf(path, sizeof(path), "sys/class/infiniband/%.64s/ports/1/link_layer",
		name);
	if (host_read_text(root, path, text, sizeof(text)))
		snprintf(nic->link, sizeof(nic->link), "%.15s", text);
	/* a captured host keeps the driver's name as a file */
	snprintf(path, sizeof(path), "sys/class/infiniband/%.64s/weft-driver", name);
	if (host_read_text(root, path, text, sizeof(text))) {
		snprintf(nic->driver, sizeof(nic->driver), "%.31s", text);
		return;
	}
	snprintf(path, sizeof(path), "%s/sys/class/infiniband/%.64s/device/driver", root,
		name);
	bytes = readlink(path, driver, sizeof(driver) - 1);
	if (bytes > 0) {
		driver[bytes] = 0;
		last = strrchr(driver, '/');
		snprintf(nic->driver, sizeof(nic->driver), "%.31s",
			last ? last + 1 : driver);
	}
}

/* Names come first in both kinds of rows. */
static int by_name(const void *a, const void *b)
{
	return strcmp(a, b);
}

static void read_nics(struct host_facts *facts, const char *root)
{
	char full[PATH];
	const struct dirent *entry;
	DIR *dir;

	snprintf(full, sizeof(full), "%s/sys/class/infiniband", root);
	dir = opendir(full);
	while (dir && (entry = readdir(dir)) && facts->nic_count < HOST_NICS_MAX)
		if (entry->d_name[0] != '.')
			read_nic(facts, root, entry->d_name);
	if (dir)
		closedir(dir);
	qsort(facts->nics, facts->nic_count, sizeof(facts->nics[0]), by_name);
	facts->verbs_files = count_names(root, "dev/infiniband", "uverbs");
	snprintf(full, sizeof(full), "%s/sys/class/net", root);
	dir = opendir(full);
	while (dir && (entry = readdir(dir)) && facts->iface_count < HOST_IFACES_MAX)
		if (entry->d_name[0] != '.')
			snprintf(facts->ifaces[facts->iface_count++], 32, "%.31s",
				entry->d_name);
	if (dir)
		closedir(dir);
	qsort(facts->ifaces, facts->iface_count, sizeof(facts->ifaces[0]), by_name);
}

static void read_limits(struct host_facts *facts, const char *root)
{
	char text[FILE_BYTES];
	const char *line;
	struct cores_quota quota;

	cores_quota_read(root, &quota);
	if (quota.cores > 0 && (facts->cpus <= 0 || quota.cores < facts->cpus))
		facts->cpus = quota.cores;
	/* the first generation has other names, and no limit is a number near 2^63 */
	if ((host_read_text(root, "sys/fs/cgroup/memory.max", text, sizeof(text)) ||
		    host_read_text(root, "sys/fs/cgroup/memory/memory.limit_in_bytes",
			    text, sizeof(text))) &&
		isdigit((unsigned char)text[0]) && atoll(text) < INT64_MAX / 2)
		facts->memory_limit = atoll(text);
	if (host_read_text(root, "sys/fs/cgroup/memory.current", text, sizeof(text)) ||
		host_read_text(root, "sys/fs/cgroup/memory/memory.usage_in_bytes", text,
			sizeof(text)))
		facts->memory_used = atoll(text);
	facts->hugepages_free = HOST_UNKNOWN;
	if (host_read_text(root, "proc/meminfo", text, sizeof(text)) &&
		(line = strstr(text, "HugePages_Free:")))
		facts->hugepages_free = atoll(line + strlen("HugePages_Free:"));
}

static void read_identity(struct host_facts *facts, const char *root)
{
	char text[FILE_BYTES];

	host_read_text(
		root, "proc/sys/kernel/hostname", facts->name, sizeof(facts->name));
	host_read_text(root, "proc/sys/kernel/random/boot_id", facts->boot_id,
		sizeof(facts->boot_id));
	host_read_text(root, "sys/devices/virtual/dmi/id/product_name", facts->product,
		sizeof(facts->product));
	if (exists(root, ".dockerenv"))
		snprintf(facts->container, sizeof(facts->container), "docker container");
	if (exists(root, "run/.containerenv"))
		snprintf(facts->container, sizeof(facts->container), "podman container");
	if (exists(root, "var/run/secrets/kubernetes.io"))
		snprintf(facts->container, sizeof(facts->container), "kubernetes pod");
	facts->has_iommu = count_names(root, "sys/class/iommu", "dmar") ||
			   count_names(root, "sys/class/iommu", "ivhd") ||
			   count_names(root, "sys/class/iommu", "smmu");
	if (host_read_text(root, "proc/cmdline", text, sizeof(text)))
		facts->is_passthrough = strstr(text, "iommu=pt") ||
					strstr(text, "iommu.passthrough=1") ||
					strstr(text, "intel_iommu=off") ||
					strstr(text, "amd_iommu=off");
}

/* The library that NCCL would look for: libnccl-net.so, or what NCCL_NET_PLUGIN makes of
 * it; "" where it says none. */
static void plugin_name(const struct host_facts *facts, char *name, size_t room)
{
	const char *asked = host_env(facts, "NCCL_NET_PLUGIN");

	if (!asked || !asked[0])
		snprintf(name, room, "libnccl-net.so");
	else if (!strcmp(asked, "none"))
		name[0] = 0;
	else if (strstr(asked, ".so"))
		snprintf(name, room, "%s", asked);
	else
		snprintf(name, room, "libnccl-net-%s.so", asked);
}

static bool try_plugin(
	struct host_facts *facts, const char *root, const char *folder, const char *name)
{
	char path[PATH];

	snprintf(path, sizeof(path), "%.700s/%.200s", folder, name);
	if (facts->plugin[0] || !exists(root, path))
		return facts->plugin[0] != 0;
	snprintf(facts->plugin, sizeof(facts->plugin), "%.255s", path);
	return true;
}

/* Where a loader would look for the network's plugin. */
static void find_plugin(struct host_facts *facts, const char *root)
{
	static const char *const folders[] = {"/opt/amazon/ofi-nccl/lib",
		"/opt/amazon/ofi-nccl/lib64", "/opt/amazon/ofi-nccl/lib/x86_64-linux-gnu",
		"/opt/aws-ofi-nccl/install/lib", "/usr/lib/x86_64-linux-gnu",
		"/usr/lib64", "/usr/local/lib", "/usr/lib",
		"/opt/hpcx/nccl_rdma_sharp_plugin/lib", "/usr/local/gib/lib64",
		"/usr/local/nvidia/lib64"};
	const char *list = host_env(facts, "LD_LIBRARY_PATH");
	char name[200], folder[PATH];

	plugin_name(facts, name, sizeof(name));
	if (!name[0])
		return;
	if (name[0] == '/') {
		try_plugin(facts, root, "", name + 1);
		return;
	}
	while (list && *list && !facts->plugin[0]) {
		size_t bytes = strcspn(list, ":");

		snprintf(folder, sizeof(folder), "%.*s", (int)bytes, list);
		try_plugin(facts, root, folder, name);
		list += bytes + (list[bytes] == ':');
	}
	for (size_t i = 0; i < sizeof(folders) / sizeof(folders[0]); i++)
		try_plugin(facts, root, folders[i], name);
}

void host_read_files(struct host_facts *facts, const char *root)
{
	read_identity(facts, root);
	read_gpus(facts, root);
	host_read_bus(facts, root);
	read_nics(facts, root);
	host_read_place(facts, root);
	read_limits(facts, root);
	find_plugin(facts, root);
}
