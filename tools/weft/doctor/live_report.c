#include <inttypes.h>
#include <string.h>

#include "common/terminal.h"
#include "weft/doctor/live.h"

enum { LABEL = 12, MIB = 1 << 20 };

static void line(FILE *file, const char *label, const char *text)
{
	if (!text[0])
		return;
	fprintf(file, "%-*s", LABEL, label);
	terminal_fold(file, text, LABEL, LABEL);
}

static void amount(char *text, size_t room, int64_t bytes)
{
	if (bytes < 0)
		snprintf(text, room, "unknown");
	else if (bytes == INT64_MAX)
		snprintf(text, room, "unlimited");
	else if (bytes < MIB)
		snprintf(text, room, "%" PRId64 " KiB", bytes / 1024);
	else
		snprintf(text, room, "%" PRId64 " MiB", bytes / MIB);
}

static void print_devices(FILE *file, const struct host_facts *facts)
{
	char text[1024];
	size_t used = 0;

	if (facts->gpu_count || facts->gpu_files)
		snprintf(text, sizeof(text), "%d on PCI, %d usable here, driver %s%s%s",
			facts->gpu_count, facts->gpu_files,
			facts->driver[0] ? facts->driver : "unknown",
			facts->is_open_driver ? " (open)" : "",
			facts->switch_count ? ", NVSwitches" : "");
	else
		snprintf(text, sizeof(text), "none");
	line(file, "GPUs", text);
	if (facts->links_up >= 0) {
		snprintf(text, sizeof(text), "%d up, %d down; peer-to-peer %s%s%s",
			facts->links_up, facts->links_down,
			facts->p2p_refused > 0 ? "refused to some"
			: facts->p2p_refused   ? "unknown"
					       : "allowed",
			facts->fabric_state[0] ? "; fabric " : "", facts->fabric_state);
		line(file, "NVLink", text);
	}
	text[0] = 0;
	for (uint32_t i = 0; i < facts->nic_count && used < 900; i++) {
		const struct host_nic *nic = &facts->nics[i];

		used += (size_t)snprintf(text + used, sizeof(text) - used,
			"%s%s %s %d Gb/s", used ? ", " : "", nic->name,
			nic->state[0] ? nic->state : "?", nic->gbps);
	}
	line(file, "RDMA", used ? text : "none");
	snprintf(text, sizeof(text), "peermem %s, DMA-BUF %s, gdrcopy %s",
		facts->has_peermem ? "yes" : "no",
		facts->is_open_driver ? "by the open driver" : "unknown",
		facts->has_gdrcopy ? "yes" : "no");
	if (facts->gpu_files)
		line(file, "GPUDirect", text);
	line(file, "plugin", facts->plugin[0] ? facts->plugin : "none found");
	line(file, "libfabric", facts->providers);
}

void live_nodes(char *text, size_t room, uint64_t nodes)
{
	size_t used = 0;

	text[0] = 0;
	for (int i = 0; i < HOST_NUMA_MAX && used + 4 < room; i++)
		if (nodes >> i & 1)
			used += (size_t)snprintf(
				text + used, room - used, "%s%d", used ? " " : "", i);
}

static void print_place(FILE *file, const struct host_facts *facts)
{
	char text[1024], own[HOST_TEXT], gpus[HOST_TEXT], nics[HOST_TEXT];
	size_t used = 0;

	live_nodes(own, sizeof(own), facts->numa_allowed);
	live_nodes(gpus, sizeof(gpus), facts->gpu_nodes);
	live_nodes(nics, sizeof(nics), facts->nic_nodes);
	snprintf(text, sizeof(text), "%d node%s, this process at %s%s%s%s%s",
		facts->numa_count, facts->numa_count == 1 ? "" : "s", own,
		gpus[0] ? ", GPUs at " : "", gpus, nics[0] ? ", NICs at " : "", nics);
	line(file, "NUMA", facts->numa_count ? text : "");
	if (facts->gpu_count) {
		snprintf(text, sizeof(text),
			"IOMMU %s; ACS redirects on %d of %d bridges%s",
			!facts->has_iommu	? "off"
			: facts->is_passthrough ? "passes through"
						: "translates",
			facts->acs_count, facts->bridge_count,
			facts->bridges_hidden ? ", as far as may be seen" : "");
		line(file, "PCI", text);
	}
	text[0] = 0;
	for (uint32_t i = 0; i < facts->iface_count && used < 900; i++) {
		used += (size_t)snprintf(text + used, sizeof(text) - used, "%s%s",
			used ? ", " : "", facts->ifaces[i]);
		if (facts->iface_mbps[i] > 0)
			used += (size_t)snprintf(text + used, sizeof(text) - used,
				" %g Gb/s", facts->iface_mbps[i] / 1e3);
	}
	line(file, "network", text);
}

static void print_meeting(FILE *file, const struct host_facts *facts)
{
	static const char *const answers[] = {[MASTER_REACHED] = "answers",
		[MASTER_REFUSED] = "refuses the connection",
		[MASTER_UNRESOLVED] = "does not resolve",
		[MASTER_SILENT] = "does not answer"};
	const char *master = host_env(facts, "MASTER_ADDR");
	const char *port = host_env(facts, "MASTER_PORT");
	char text[512] = "";

	if (facts->port_last)
		snprintf(text, sizeof(text), "ports %d to %d", facts->port_first,
			facts->port_last);
	if (master && facts->master != MASTER_UNSET)
		snprintf(text + strlen(text), sizeof(text) - strlen(text),
			"%sMASTER_ADDR %.200s port %.20s %s", text[0] ? "; " : "", master,
			port && port[0] ? port : "29500", answers[facts->master]);
	line(file, "meeting", text);
}

void live_print(FILE *file, const struct host_facts *facts)
{
	char text[512], shm[32], memlock[32], memory[32], files[32];

	snprintf(text, sizeof(text), "%s%s%s%s%s",
		facts->name[0] ? facts->name : "unknown", facts->product[0] ? ", " : "",
		facts->product, facts->container[0] ? ", in a " : "", facts->container);
	line(file, "host", text);
	line(file, "boot id", facts->boot_id);
	print_devices(file, facts);
	print_place(file, facts);
	amount(shm, sizeof(shm), facts->shm_bytes);
	amount(memlock, sizeof(memlock), facts->memlock_bytes);
	amount(memory, sizeof(memory),
		facts->memory_limit ? facts->memory_limit : INT64_MAX);
	if (facts->files_max == INT64_MAX || facts->files_max < 0)
		amount(files, sizeof(files), facts->files_max);
	else
		snprintf(files, sizeof(files), "%" PRId64, facts->files_max);
	snprintf(text, sizeof(text),
		"/dev/shm %s, locked memory %s, memory %s, %.1f cores, %s files", shm,
		memlock, memory, facts->cpus, files);
	if (facts->hugepages_free >= 0)
		snprintf(text + strlen(text), sizeof(text) - strlen(text),
			", %" PRId64 " huge pages free", facts->hugepages_free);
	line(file, "limits", text);
	print_meeting(file, facts);
	for (uint32_t i = 0; i < facts->unseen_count; i++)
		line(file, i ? "" : "not seen", facts->unseen[i]);
}

json_t *live_json(const struct host_facts *facts)
{
	json_t *object = json_pack("{s:s, s:s, s:s, s:s, s:i, s:i, s:s, s:I, s:I, s:f}",
		"host", facts->name, "bootId", facts->boot_id, "machine", facts->product,
		"container", facts->container, "gpus", facts->gpu_count, "usableGpus",
		facts->gpu_files, "driver", facts->driver, "shmBytes",
		(json_int_t)facts->shm_bytes, "memlockBytes",
		(json_int_t)facts->memlock_bytes, "cores", facts->cpus);
	json_t *nics = json_array(), *unseen = json_array();

	for (uint32_t i = 0; i < facts->nic_count; i++)
		json_array_append_new(nics,
			json_pack("{s:s, s:s, s:s, s:i}", "name", facts->nics[i].name,
				"driver", facts->nics[i].driver, "state",
				facts->nics[i].state, "gbps", facts->nics[i].gbps));
	for (uint32_t i = 0; i < facts->unseen_count; i++)
		json_array_append_new(unseen, json_string(facts->unseen[i]));
	if (object) {
		json_object_set_new(object, "nvlinksUp", json_integer(facts->links_up));
		json_object_set_new(
			object, "nvlinksDown", json_integer(facts->links_down));
		json_object_set_new(object, "fabric", json_string(facts->fabric_state));
		json_object_set_new(object, "numaNodes", json_integer(facts->numa_count));
		json_object_set_new(
			object, "hugepagesFree", json_integer(facts->hugepages_free));
		json_object_set_new(object, "plugin", json_string(facts->plugin));
		json_object_set_new(object, "providers", json_string(facts->providers));
		json_object_set_new(object, "nics", nics);
		json_object_set_new(object, "notSeen", unseen);
	}
	return object;
}
