#include "weft/doctor/live.h"

#include <stdio.h>
#include <string.h>

#include "base/ifname.h"
#include "topo/instance.h"
#include "weft/doctor/env_rules.h"

enum { MIB = 1 << 20, GPU_CPUS_MIN = 2, FILES_FEW = 4096, PORTS_FEW = 2048 };

static bool has_efa(const struct host_facts *facts)
{
	for (uint32_t i = 0; i < facts->nic_count; i++)
		if (!strcmp(facts->nics[i].driver, "efa"))
			return true;
	return false;
}

static bool has_rdma(const struct host_facts *facts)
{
	return facts->nic_count > 0;
}

static void check_fabric(const struct host_facts *facts, struct diagnosis *diagnosis)
{
	const char *state = facts->fabric_state;
	bool is_late = state[0] && strcmp(state, "Completed") != 0 &&
		       strcmp(state, "N/A") != 0;
	struct finding *finding;

	if (!facts->gpu_files ||
		(!is_late && (!facts->switch_count || facts->fabric_manager != 0)))
		return;
	finding = diagnosis_add(diagnosis, FIND_LIVE_FABRIC, NULL);
	if (is_late)
		snprintf(finding->detail, sizeof(finding->detail),
			"nvidia-smi says of the fabric: %s.", state);
}

static void check_links(const struct host_facts *facts, struct diagnosis *diagnosis)
{
	struct finding *finding;

	if (facts->links_down > 0 || facts->link_errors > 0) {
		finding = diagnosis_add(diagnosis, FIND_LIVE_NVLINK, NULL);
		snprintf(finding->detail, sizeof(finding->detail),
			"%d links are up, %d of the same GPUs are not, %lld errors.",
			facts->links_up, facts->links_down,
			(long long)(facts->link_errors > 0 ? facts->link_errors : 0));
		/* a counter alone may be of last year */
		if (facts->links_down <= 0)
			finding->severity = SEVERITY_NOTE;
	}
	if (facts->p2p_refused > 0) {
		finding = diagnosis_add(diagnosis, FIND_LIVE_P2P, NULL);
		snprintf(finding->detail, sizeof(finding->detail), "%d pairs say %s.",
			facts->p2p_refused, facts->p2p_why);
	}
}

static void check_gpus(const struct host_facts *facts, struct diagnosis *diagnosis)
{
	const struct instance_info *machine = facts->product[0]
						      ? instance_find(facts->product)
						      : NULL;
	struct finding *finding;

	if (facts->gpu_count && !facts->gpu_files) {
		finding = diagnosis_add(diagnosis, FIND_LIVE_GPU, NULL);
		snprintf(finding->detail, sizeof(finding->detail),
			"%d on the PCI bus, no /dev/nvidia0.", facts->gpu_count);
	}
	if (facts->gpu_files && !facts->driver[0])
		diagnosis_add(diagnosis, FIND_LIVE_DRIVER, NULL);
	if (facts->gpu_files == 1 && facts->container[0] &&
		((machine && machine->gpu_count > 1) || facts->gpu_count > 1)) {
		finding = diagnosis_add(diagnosis, FIND_LIVE_SIBLINGS, NULL);
		snprintf(finding->detail, sizeof(finding->detail),
			"This %s sees one GPU; the machine%s%s has %u.", facts->container,
			machine ? ", a " : "", machine ? facts->product : "",
			machine ? machine->gpu_count : (uint32_t)facts->gpu_count);
	}
	check_fabric(facts, diagnosis);
	if ((strstr(facts->product, "gb200") || strstr(facts->product, "gb300") ||
		    strstr(facts->product, "GB200") || strstr(facts->product, "GB300")) &&
		(!facts->has_imex || (facts->imex_service < 0 && !facts->container[0]))) {
		finding = diagnosis_add(diagnosis, FIND_LIVE_IMEX, NULL);
		if (facts->has_imex)
			snprintf(finding->detail, sizeof(finding->detail),
				"The channel is here, and nvidia-imex does not run.");
	}
}

static void check_bus(const struct host_facts *facts, struct diagnosis *diagnosis)
{
	bool is_translated = facts->has_iommu && !facts->is_passthrough;
	struct finding *finding;

	if (facts->gpu_count > 1 && (is_translated || facts->acs_count)) {
		finding = diagnosis_add(diagnosis, FIND_LIVE_ACS, NULL);
		if (facts->acs_count)
			snprintf(finding->detail, sizeof(finding->detail),
				"ACS redirects on %d of %d bridges, %s among them%s.",
				facts->acs_count, facts->bridge_count, facts->acs_bridge,
				is_translated ? "; the IOMMU translates" : "");
		if (facts->acs_count)
			snprintf(finding->remedy, sizeof(finding->remedy),
				"disable ACS in the BIOS, or for each bridge: setpci -s "
				"%s "
				"ECAP_ACS+6.w=0000; virtual machines need ATS instead",
				facts->acs_bridge);
		/* NVLink does not care */
		if (facts->switch_count)
			finding->severity = SEVERITY_NOTE;
	}
	if (facts->gpu_files && has_rdma(facts) && !facts->has_peermem &&
		!facts->is_open_driver && facts->driver[0])
		diagnosis_add(diagnosis, FIND_LIVE_GDR, NULL);
}

static void check_nodes(const struct host_facts *facts, struct diagnosis *diagnosis)
{
	uint64_t far = facts->gpu_nodes & ~facts->numa_allowed;
	struct finding *finding;
	char own[HOST_TEXT], gpus[HOST_TEXT];

	if (!far || !facts->numa_allowed || !facts->gpu_files)
		return;
	/* of some GPUs on the bus only some may be ours */
	if (far != facts->gpu_nodes && facts->gpu_files < facts->gpu_count)
		return;
	finding = diagnosis_add(diagnosis, FIND_LIVE_NUMA, NULL);
	live_nodes(own, sizeof(own), facts->numa_allowed);
	live_nodes(gpus, sizeof(gpus), facts->gpu_nodes);
	snprintf(finding->detail, sizeof(finding->detail),
		"GPUs are at node %s, and it may run at node %s.", gpus, own);
	/* a rank of several is bound so on purpose */
	if (far != facts->gpu_nodes)
		finding->severity = SEVERITY_NOTE;
}

static bool has_word(const char *words, const char *word)
{
	size_t bytes = strlen(word);

	for (const char *at = words; (at = strstr(at, word)); at += bytes)
		if ((at == words || at[-1] == ' ') && (!at[bytes] || at[bytes] == ' '))
			return true;
	return false;
}

static void check_plugin(const struct host_facts *facts, struct diagnosis *diagnosis)
{
	const char *asked = host_env(facts, "NCCL_NET_PLUGIN");
	struct finding *finding;

	if (facts->plugin_error[0] || (!facts->plugin[0] && has_efa(facts))) {
		finding = diagnosis_add(diagnosis, FIND_LIVE_PLUGIN, NULL);
		if (facts->plugin_error[0])
			snprintf(finding->detail, sizeof(finding->detail),
				"%.200s is there and cannot be loaded: %.200s.",
				facts->plugin, facts->plugin_error);
		else if (asked && asked[0])
			snprintf(finding->detail, sizeof(finding->detail),
				"NCCL_NET_PLUGIN=%.64s leads to no library.", asked);
	}
	if (has_efa(facts) && facts->providers[0] && !has_word(facts->providers, "efa")) {
		finding = diagnosis_add(diagnosis, FIND_LIVE_PROVIDER, NULL);
		snprintf(finding->detail, sizeof(finding->detail), "It has: %.200s.",
			facts->providers);
	}
}

static void check_nics(const struct host_facts *facts, struct diagnosis *diagnosis)
{
	const struct instance_info *machine = facts->product[0]
						      ? instance_find(facts->product)
						      : NULL;
	struct finding *finding = NULL;

	for (uint32_t i = 0; i < facts->nic_count; i++) {
		const struct host_nic *nic = &facts->nics[i];

		if (!nic->state[0] || !strcmp(nic->state, "ACTIVE"))
			continue;
		if (!finding)
			finding = diagnosis_add(diagnosis, FIND_LIVE_NIC, NULL);
		snprintf(finding->detail + strlen(finding->detail),
			sizeof(finding->detail) - strlen(finding->detail), "%s%s is %s",
			finding->detail[0] ? ", " : "", nic->name, nic->state);
	}
	if (machine && strstr(machine->summary, "EFA") && !has_efa(facts)) {
		finding = diagnosis_add(diagnosis, FIND_LIVE_EFA, NULL);
		snprintf(finding->detail, sizeof(finding->detail), "This is a %s: %s.",
			facts->product, machine->summary);
	} else if (has_efa(facts) && !facts->verbs_files) {
		finding = diagnosis_add(diagnosis, FIND_LIVE_EFA, NULL);
		snprintf(finding->detail, sizeof(finding->detail),
			"EFA devices are listed and /dev/infiniband/uverbs* is not "
			"here.");
	}
	check_plugin(facts, diagnosis);
	if (has_efa(facts) && facts->hugepages_free == 0)
		diagnosis_add(diagnosis, FIND_LIVE_HUGEPAGES, NULL);
}

static void check_limits(const struct host_facts *facts, struct diagnosis *diagnosis)
{
	int gpus = facts->gpu_files;
	struct finding *finding;

	if (facts->shm_bytes >= 0 && facts->shm_bytes <= 64ll * MIB) {
		finding = diagnosis_add(diagnosis, FIND_LIVE_SHM, NULL);
		snprintf(finding->detail, sizeof(finding->detail), "It has %lld MiB.",
			(long long)(facts->shm_bytes / MIB));
		if (gpus == 1 || facts->shm_bytes == 0)
			finding->severity = SEVERITY_PERFORMANCE;
	}
	if (facts->memlock_bytes >= 0 && facts->memlock_bytes <= 64ll * MIB) {
		finding = diagnosis_add(diagnosis, FIND_LIVE_MEMLOCK, NULL);
		snprintf(finding->detail, sizeof(finding->detail), "It is %lld KiB.",
			(long long)(facts->memlock_bytes / 1024));
		/* who has no such NIC needs none */
		if (!has_rdma(facts))
			finding->severity = SEVERITY_NOTE;
	}
	if (facts->files_max >= 0 && facts->files_max < FILES_FEW) {
		finding = diagnosis_add(diagnosis, FIND_LIVE_FILES, NULL);
		snprintf(finding->detail, sizeof(finding->detail), "%lld at most.",
			(long long)facts->files_max);
	}
	if (gpus > 0 && facts->cpus > 0 && facts->cpus < GPU_CPUS_MIN * gpus) {
		finding = diagnosis_add(diagnosis, FIND_LIVE_CPU, NULL);
		snprintf(finding->detail, sizeof(finding->detail), "%.1f for %d GPUs.",
			facts->cpus, gpus);
	}
	if (facts->memory_limit > 0 &&
		facts->memory_used > facts->memory_limit / 10 * 9) {
		finding = diagnosis_add(diagnosis, FIND_LIVE_MEMORY, NULL);
		snprintf(finding->detail, sizeof(finding->detail),
			"%lld of %lld MiB are used.",
			(long long)(facts->memory_used / MIB),
			(long long)(facts->memory_limit / MIB));
	}
}

static void check_variables(const struct host_facts *facts, struct diagnosis *diagnosis)
{
	static const enum finding_id ids[] = {[ENV_UNKNOWN] = FIND_ENV_UNKNOWN,
		[ENV_EMPTY] = FIND_ENV_EMPTY,
		[ENV_OVERRIDES] = FIND_ENV_AUDIT};
	struct env_context context = {0};

	for (uint32_t i = 0; i < facts->env_count; i++) {
		const struct host_env *env = &facts->envs[i];
		char why[FACTS_TEXT_BYTES];
		enum env_verdict verdict = env_judge(
			&context, env->name, env->value, why, sizeof(why));
		struct finding *finding;
		size_t used;

		if (verdict == ENV_FINE ||
			(verdict == ENV_EMPTY && strstr(env->name, "NCCL_") == NULL))
			continue;
		if (verdict == ENV_EMPTY && !strcmp(env->name, "NCCL_TOPO_FILE")) {
			diagnosis_add(diagnosis, FIND_TOPO_FILE_EMPTY, NULL);
			continue;
		}
		finding = diagnosis_find(diagnosis, ids[verdict]);
		if (!finding)
			finding = diagnosis_add(diagnosis, ids[verdict], NULL);
		used = strlen(finding->detail);
		if (used + 40 < sizeof(finding->detail))
			snprintf(finding->detail + used, sizeof(finding->detail) - used,
				"%s%s=%s (%s)", used ? "; " : "", env->name, env->value,
				why);
	}
}

static void check_network(const struct host_facts *facts, struct diagnosis *diagnosis)
{
	static const char *const answers[] = {[MASTER_REFUSED] = "refuses the connection",
		[MASTER_UNRESOLVED] = "does not resolve",
		[MASTER_SILENT] = "does not answer"};
	const char *names = host_env(facts, "NCCL_SOCKET_IFNAME");
	const char *master = host_env(facts, "MASTER_ADDR");
	struct finding *finding;
	bool fits = !names || !names[0] || !facts->iface_count;

	for (uint32_t i = 0; i < facts->iface_count && !fits; i++)
		fits = ifname_chosen(names, facts->ifaces[i], 0);
	if (!fits) {
		finding = diagnosis_add(diagnosis, FIND_LIVE_IFACE, NULL);
		snprintf(finding->detail, sizeof(finding->detail),
			"NCCL_SOCKET_IFNAME=%s, and there are", names);
		for (uint32_t i = 0; i < facts->iface_count && i < 12; i++)
			snprintf(finding->detail + strlen(finding->detail),
				sizeof(finding->detail) - strlen(finding->detail),
				"%s %s", i ? "," : "", facts->ifaces[i]);
	}
	if (facts->port_last > 0 && facts->port_last - facts->port_first < PORTS_FEW) {
		finding = diagnosis_add(diagnosis, FIND_LIVE_PORTS, NULL);
		snprintf(finding->detail, sizeof(finding->detail), "From %d to %d.",
			facts->port_first, facts->port_last);
	}
	if (facts->master < MASTER_REFUSED || !master)
		return;
	finding = diagnosis_add(diagnosis, FIND_LIVE_MASTER, NULL);
	snprintf(finding->detail, sizeof(finding->detail), "%s %s.", master,
		answers[facts->master]);
	/* rank 0 may not listen yet */
	if (facts->master == MASTER_REFUSED)
		finding->severity = SEVERITY_NOTE;
}

void live_diagnose(const struct host_facts *facts, struct diagnosis *diagnosis)
{
	memset(diagnosis, 0, sizeof(*diagnosis));
	check_gpus(facts, diagnosis);
	check_links(facts, diagnosis);
	check_bus(facts, diagnosis);
	check_nodes(facts, diagnosis);
	check_nics(facts, diagnosis);
	check_limits(facts, diagnosis);
	check_variables(facts, diagnosis);
	check_network(facts, diagnosis);
	diagnosis_sort(diagnosis);
}
