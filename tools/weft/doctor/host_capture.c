/* A host's files, copied into a folder that host_facts_read() takes for the host. */
#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "weft/doctor/host_facts.h"

enum { PATH = 1024 };

static enum err make_parents(char *path)
{
	for (char *slash = path + 1; (slash = strchr(slash, '/')); slash++) {
		*slash = 0;
		if (mkdir(path, 0777) && errno != EEXIST) {
			enum err e = err_set(ERR_SYSTEM,
				"cannot make the folder %s: %m; choose another place",
				path);

			*slash = '/';
			return e;
		}
		*slash = '/';
	}
	return OK;
}

static enum err write_text(const char *folder, const char *path, const char *text)
{
	char full[PATH];
	FILE *file;
	enum err e;

	snprintf(full, sizeof(full), "%s/%s", folder, path);
	e = make_parents(full);
	if (e)
		return e;
	file = fopen(full, "w");
	if (!file)
		return err_set(ERR_SYSTEM, "cannot write %s: %m", full);
	fputs(text, file);
	if (fclose(file))
		return err_set(
			ERR_SYSTEM, "cannot write %s: %m; is the disk full?", full);
	return OK;
}

/* What is not there here is not there in the copy. */
static enum err copy_file(const char *folder, const char *path)
{
	char full[PATH], text[8192];
	FILE *file;
	size_t bytes;

	snprintf(full, sizeof(full), "/%s", path);
	file = fopen(full, "r");
	if (!file)
		return OK;
	bytes = fread(text, 1, sizeof(text) - 1, file);
	fclose(file);
	text[bytes] = 0;
	return write_text(folder, path, text);
}

static bool is_there(const char *path)
{
	struct stat about;
	char full[PATH];

	snprintf(full, sizeof(full), "/%s", path);
	return !stat(full, &about);
}

/* Names only: of device files, modules and interfaces no more is asked. */
static enum err copy_names(const char *folder, const char *path, const char *prefix)
{
	char full[PATH], name[PATH];
	const struct dirent *entry;
	enum err e = OK;
	DIR *dir;

	snprintf(full, sizeof(full), "/%s", path);
	dir = opendir(full);
	while (dir && !e && (entry = readdir(dir))) {
		size_t bytes = strlen(prefix);

		if (entry->d_name[0] == '.' ||
			strncmp(entry->d_name, prefix, bytes) != 0 ||
			(bytes && !isdigit((unsigned char)entry->d_name[bytes])))
			continue;
		snprintf(name, sizeof(name), "%.500s/%.255s", path, entry->d_name);
		e = write_text(folder, name, "");
	}
	if (dir)
		closedir(dir);
	return e;
}

/* Of a bridge's configuration the one word that is asked for. */
static enum err save_acs(const char *folder, const char *name)
{
	static unsigned char config[4096];
	char path[PATH], text[16];
	FILE *file;
	size_t bytes;
	int control;

	snprintf(path, sizeof(path), "/sys/bus/pci/devices/%.64s/config", name);
	file = fopen(path, "r");
	if (!file)
		return OK;
	bytes = fread(config, 1, sizeof(config), file);
	fclose(file);
	control = host_acs_control(config, bytes);
	if (control == HOST_UNKNOWN)
		return OK;
	snprintf(path, sizeof(path), "sys/bus/pci/devices/%.64s/weft-acs", name);
	snprintf(text, sizeof(text), "0x%04x\n", control);
	return write_text(folder, path, text);
}

/* Of every device on PCI: vendor, class and node. */
static enum err copy_pci(const char *folder)
{
	static const char *const files[] = {"vendor", "class", "numa_node"};
	const struct dirent *entry;
	enum err e = OK;
	DIR *dir = opendir("/sys/bus/pci/devices");

	while (dir && !e && (entry = readdir(dir))) {
		char path[PATH];

		for (int i = 0; i < 3 && !e && entry->d_name[0] != '.'; i++) {
			snprintf(path, sizeof(path), "sys/bus/pci/devices/%.64s/%s",
				entry->d_name, files[i]);
			e = copy_file(folder, path);
		}
		if (!e && entry->d_name[0] != '.')
			e = save_acs(folder, entry->d_name);
	}
	if (dir)
		closedir(dir);
	return e;
}

static enum err copy_nics(const struct host_facts *facts, const char *folder)
{
	static const char *const files[] = {"state", "rate", "link_layer"};
	enum err e = OK;

	for (uint32_t i = 0; i < facts->nic_count && !e; i++) {
		char path[PATH];

		for (int k = 0; k < 3 && !e; k++) {
			snprintf(path, sizeof(path), "sys/class/infiniband/%s/ports/1/%s",
				facts->nics[i].name, files[k]);
			e = copy_file(folder, path);
		}
		snprintf(path, sizeof(path), "sys/class/infiniband/%s/device/numa_node",
			facts->nics[i].name);
		if (!e)
			e = copy_file(folder, path);
		snprintf(path, sizeof(path), "sys/class/infiniband/%s/weft-driver",
			facts->nics[i].name);
		if (!e)
			e = write_text(folder, path, facts->nics[i].driver);
	}
	return e;
}

/* Nodes of memory, and of each interface its name and speed. */
static enum err copy_place(const struct host_facts *facts, const char *folder)
{
	char path[PATH], text[32];
	enum err e = OK;

	for (int node = 0; node < HOST_NUMA_MAX && !e; node++) {
		snprintf(path, sizeof(path), "sys/devices/system/node/node%d/cpulist",
			node);
		e = copy_file(folder, path);
	}
	for (uint32_t i = 0; i < facts->iface_count && !e; i++) {
		snprintf(path, sizeof(path), "sys/class/net/%s/speed", facts->ifaces[i]);
		snprintf(text, sizeof(text), "%d\n", facts->iface_mbps[i]);
		e = write_text(folder, path, text);
	}
	return e;
}

/* Of the kernel's command line only what it says of the IOMMU. */
static enum err copy_cmdline(const char *folder)
{
	char text[4096], kept[4096] = "", *rest = text, *word;
	FILE *file = fopen("/proc/cmdline", "r");
	size_t bytes;

	if (!file)
		return OK;
	bytes = fread(text, 1, sizeof(text) - 1, file);
	fclose(file);
	text[bytes] = 0;
	while ((word = strsep(&rest, " \n")))
		if (strstr(word, "iommu"))
			snprintf(kept + strlen(kept), sizeof(kept) - strlen(kept), "%s ",
				word);
	return write_text(folder, "proc/cmdline", kept);
}

static enum err save_process(const struct host_facts *facts, const char *folder)
{
	static char text[HOST_ENVS_MAX * 330];
	size_t used = 0;
	enum err e;

	snprintf(text, sizeof(text),
		"shm %lld\nmemlock %lld\nfiles %lld\ncpus %g\nmaster %d\n",
		(long long)facts->shm_bytes, (long long)facts->memlock_bytes,
		(long long)facts->files_max, facts->cpus, (int)facts->master);
	used = strlen(text);
	if (facts->links_up >= 0)
		used += (size_t)snprintf(text + used, sizeof(text) - used,
			"links %d %d\n", facts->links_up, facts->links_down);
	if (facts->link_errors >= 0)
		used += (size_t)snprintf(text + used, sizeof(text) - used,
			"link-errors %lld\n", (long long)facts->link_errors);
	if (facts->p2p_refused >= 0)
		used += (size_t)snprintf(text + used, sizeof(text) - used,
			"p2p-refused %d %s\n", facts->p2p_refused, facts->p2p_why);
	snprintf(text + used, sizeof(text) - used,
		"fabric %s\nfabric-manager %d\nimex-service %d\nproviders %s\n"
		"plugin-error %s\n",
		facts->fabric_state, facts->fabric_manager, facts->imex_service,
		facts->providers, facts->plugin_error);
	e = write_text(folder, "weft/limits", text);
	text[0] = 0;
	used = 0;
	for (uint32_t i = 0; i < facts->env_count; i++)
		used += (size_t)snprintf(text + used, sizeof(text) - used, "%s=%s\n",
			facts->envs[i].name, facts->envs[i].value);
	return e ? e : write_text(folder, "weft/environment", text);
}

enum err host_capture_folder(const struct host_facts *facts, const char *folder)
{
	static const char *const files[] = {"proc/sys/kernel/hostname",
		"proc/sys/kernel/random/boot_id", "proc/driver/nvidia/version",
		"proc/meminfo", "sys/devices/virtual/dmi/id/product_name",
		"sys/fs/cgroup/cpu.max", "sys/fs/cgroup/memory.max",
		"sys/fs/cgroup/memory.current", "sys/fs/cgroup/cpu/cpu.cfs_quota_us",
		"sys/fs/cgroup/cpu/cpu.cfs_period_us",
		"sys/fs/cgroup/memory/memory.limit_in_bytes",
		"sys/fs/cgroup/memory/memory.usage_in_bytes", "proc/self/status",
		"proc/sys/net/ipv4/ip_local_port_range"};
	static const char *const marks[] = {".dockerenv", "run/.containerenv",
		"var/run/secrets/kubernetes.io", "sys/module/nvidia_peermem",
		"dev/gdrdrv", "run/nvidia-fabricmanager/nv-fabricmanager.pid"};
	static const struct {
		const char *path, *prefix;
	} names[] = {{"dev", "nvidia"}, {"dev/infiniband", "uverbs"},
		{"sys/class/iommu", ""}, {"dev/nvidia-caps-imex-channels", ""}};
	enum err e = OK;

	if (mkdir(folder, 0777))
		return err_set(ERR_SYSTEM,
			"cannot make the folder %s: %m; name one that is not there",
			folder);
	for (size_t i = 0; i < sizeof(files) / sizeof(files[0]) && !e; i++)
		e = copy_file(folder, files[i]);
	for (size_t i = 0; i < sizeof(marks) / sizeof(marks[0]) && !e; i++)
		if (is_there(marks[i]))
			e = write_text(folder, marks[i], "");
	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]) && !e; i++)
		e = copy_names(folder, names[i].path, names[i].prefix);
	if (!e)
		e = copy_cmdline(folder);
	if (!e)
		e = copy_pci(folder);
	if (!e)
		e = copy_nics(facts, folder);
	if (!e)
		e = copy_place(facts, folder);
	if (!e && facts->plugin[0])
		e = write_text(folder, facts->plugin + (facts->plugin[0] == '/'), "");
	return e ? e : save_process(facts, folder);
}
