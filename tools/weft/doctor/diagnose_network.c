/* What is slow between hosts. */
#include <stdio.h>
#include <string.h>

#include "topo/instance.h"
#include "weft/doctor/diagnose.h"

static bool uses_network(const struct log_facts *facts, const char *name)
{
	for (uint32_t i = 0; i < facts->networks.count; i++)
		if (!strncmp(facts->networks.words[i].text, name, strlen(name)))
			return true;
	return false;
}

static const struct evidence *network_seen(
	const struct log_facts *facts, const char *name)
{
	for (uint32_t i = 0; i < facts->networks.count; i++)
		if (!strncmp(facts->networks.words[i].text, name, strlen(name)))
			return &facts->networks.words[i].seen;
	return NULL;
}

static bool env_is(const struct log_facts *facts, const char *name, const char *value)
{
	char full[FACTS_NAME_BYTES];
	const char *text;

	snprintf(full, sizeof(full), "NCCL_%s", name);
	text = log_facts_env(facts, full);
	return text && !strcmp(text, value);
}

/* The plugin is there and gave up. One host alone does not care. */
static void add_ofi(const struct log_facts *facts, struct diagnosis *diagnosis)
{
	static const enum finding_id ids[] = {FIND_OFI_NO_PROVIDER, FIND_OFI_INIT_FAILED};
	bool several = facts_has_several_nodes(facts);

	for (int i = 0; i < 2; i++) {
		struct finding *finding;

		if (!facts->signs[ids[i]].count)
			continue;
		finding = diagnosis_add(diagnosis, ids[i], &facts->signs[ids[i]]);
		if (facts->chain.count && !facts->init_completes) {
			finding->severity = SEVERITY_FATAL;
		} else if (!several && facts->rank_count) {
			finding->severity = SEVERITY_NOTE;
			snprintf(finding->detail, sizeof(finding->detail),
				"This job stays on one host and loses nothing; the next "
				"one on "
				"several hosts would run over TCP.");
		}
	}
}

static void add_socket(const struct log_facts *facts, struct diagnosis *diagnosis)
{
	const struct evidence *missing = &facts->signs[FIND_NO_PLUGIN_SOCKET];
	bool forced = env_is(facts, "IB_DISABLE", "1") || env_is(facts, "NET", "Socket");
	struct finding *finding;

	if (!facts_has_several_nodes(facts) || !uses_network(facts, "Socket") ||
		facts->signs[FIND_OFI_INIT_FAILED].count)
		return;
	/* without a plugin and without InfiniBand the variable changes nothing */
	if (forced && !missing->count) {
		finding = diagnosis_add(
			diagnosis, FIND_NET_FORCED_SOCKET, network_seen(facts, "Socket"));
		snprintf(finding->detail, sizeof(finding->detail), "%s is set.",
			env_is(facts, "IB_DISABLE", "1") ? "NCCL_IB_DISABLE=1"
							 : "NCCL_NET=Socket");
		return;
	}
	if (forced) {
		finding = diagnosis_add(
			diagnosis, FIND_NET_FORCED_SOCKET, network_seen(facts, "Socket"));
		snprintf(finding->detail, sizeof(finding->detail),
			"NCCL_IB_DISABLE or NCCL_NET is set, and no plugin was found "
			"either.");
	}
	finding = diagnosis_add(diagnosis, FIND_NO_PLUGIN_SOCKET,
		missing->count ? missing : network_seen(facts, "Socket"));
	if (facts->ib_nic_count_max > 0)
		snprintf(finding->detail, sizeof(finding->detail),
			"InfiniBand devices were listed and not taken.");
}

/* Interfaces of different kinds in one set of sockets. */
static void add_mixed_interfaces(
	const struct log_facts *facts, struct diagnosis *diagnosis)
{
	static const char *const slow[] = {"docker", "veth", "br-", "virbr", "bond",
		"eno", "mgmt", "idrac", "usb", "pod-id-link", "cni", "flannel", "tunl",
		"ip6tnl"};
	const struct fact_words *ifaces = &facts->socket_ifaces;
	struct finding *finding;
	uint32_t slow_count = 0;
	size_t used = 0;

	if (!facts_has_several_nodes(facts) || !uses_network(facts, "Socket") ||
		facts->socket_iface_count < 2)
		return;
	for (uint32_t i = 0; i < ifaces->count; i++)
		for (size_t k = 0; k < sizeof(slow) / sizeof(slow[0]); k++)
			slow_count += !strncmp(
				ifaces->words[i].text, slow[k], strlen(slow[k]));
	if (!slow_count || slow_count == ifaces->count)
		return;
	finding = diagnosis_add(diagnosis, FIND_SOCKET_MULTI_IFACE, &facts->socket_seen);
	used = (size_t)snprintf(finding->detail, sizeof(finding->detail), "They are");
	for (uint32_t i = 0; i < ifaces->count && used < 200; i++)
		used += (size_t)snprintf(finding->detail + used,
			sizeof(finding->detail) - used, "%s %s", i ? "," : "",
			ifaces->words[i].text);
	snprintf(finding->detail + used, sizeof(finding->detail) - used, ".");
}

/* Instances whose EFA cannot reach GPU memory, whatever is installed. */
static bool is_g_type(const struct log_facts *facts)
{
	const char *platform = facts_platform(facts);

	if (platform)
		return platform[0] == 'g' || !strncmp(platform, "p3dn", 4);
	if (strstr(facts->signs[FIND_GDR_DISABLED_OFI].text, "requires RDMA"))
		return true;
	for (uint32_t i = 0; i < facts->gpus.count; i++)
		if (strstr(facts->gpus.words[i].text, "T4") ||
			strstr(facts->gpus.words[i].text, "A10G") ||
			strstr(facts->gpus.words[i].text, "L4"))
			return true;
	return false;
}

static bool has_geforce(const struct log_facts *facts)
{
	for (uint32_t i = 0; i < facts->gpus.count; i++)
		if (strstr(facts->gpus.words[i].text, "GeForce"))
			return true;
	return false;
}

/* GPUDirect by the channels that were made: all of a network's, not some of them. */
static void add_gdr(const struct log_facts *facts, struct diagnosis *diagnosis)
{
	const struct evidence *disabled = &facts->signs[FIND_GDR_DISABLED_OFI];
	bool several = facts_has_several_nodes(facts);
	struct finding *finding;

	for (uint32_t i = 0; i < facts->net_count; i++) {
		const struct fact_net *net = &facts->nets[i];
		bool ofi = strstr(net->name, "ibfabric") != NULL;
		bool ib = !strncmp(net->name, "IB", 2);

		if (!several || net->gdr_lines * 10 > net->lines || (!ofi && !ib))
			continue;
		if (ofi) {
			finding = diagnosis_add(diagnosis, FIND_GDR_DISABLED_OFI,
				disabled->count ? disabled : &net->plain);
			if (is_g_type(facts))
				finding->severity = SEVERITY_NOTE;
			return;
		}
		finding = diagnosis_add(diagnosis, FIND_GDR_MISSING_IB, &net->plain);
		if (has_geforce(facts)) {
			finding->severity = SEVERITY_NOTE;
			snprintf(finding->detail, sizeof(finding->detail),
				"GeForce GPUs have no GPUDirect RDMA.");
		}
		return;
	}
	if (!disabled->count)
		return;
	finding = diagnosis_add(diagnosis, FIND_GDR_DISABLED_OFI, disabled);
	if (!several || is_g_type(facts))
		finding->severity = SEVERITY_NOTE;
}

static void add_omnipath(const struct log_facts *facts, struct diagnosis *diagnosis)
{
	for (uint32_t i = 0; i < facts->ib_devices.count; i++)
		if (!strncmp(facts->ib_devices.words[i].text, "hfi1", 4) &&
			facts_has_several_nodes(facts)) {
			diagnosis_add(diagnosis, FIND_OPA_VIA_VERBS, &facts->ib_seen);
			return;
		}
}

/* How many GPUs a machine of this type has; 0 unknown. */
static uint32_t gpus_of(const char *platform)
{
	const struct instance_info *info = platform ? instance_find(platform) : NULL;

	return info ? info->gpu_count : 0;
}

/* One rank on every node of a machine that has more GPUs: the pods cut it up. */
static void add_split(const struct log_facts *facts, struct diagnosis *diagnosis)
{
	uint32_t gpus = gpus_of(facts_platform(facts));
	struct finding *finding;

	if (facts->node_count < 2 || facts->local_max != 1 || facts->rank_count < 2)
		return;
	if (gpus > 1) {
		finding = diagnosis_add(diagnosis, FIND_PODS_SPLIT_NODE, &facts->summary);
		snprintf(finding->detail, sizeof(finding->detail),
			"%d ranks on %d nodes, one on each; a %s has %u GPUs.",
			facts->rank_count, facts->node_count, facts_platform(facts),
			gpus);
		return;
	}
	/* GPUs at different places of the bus are of one machine, most likely */
	if (gpus || facts->bus_id_count < 2 || facts->host_count < 2)
		return;
	finding = diagnosis_add(diagnosis, FIND_PODS_SPLIT_NODE, &facts->summary);
	finding->severity = SEVERITY_NOTE;
	snprintf(finding->detail, sizeof(finding->detail),
		"%d ranks on %d nodes, one on each, and their GPUs have %u different bus "
		"ids: they may be of one machine.",
		facts->rank_count, facts->node_count, facts->bus_id_count);
}

static void add_nics(const struct log_facts *facts, struct diagnosis *diagnosis)
{
	for (uint32_t i = 0; i < facts->net_count; i++) {
		const struct fact_net *net = &facts->nets[i];
		int32_t nics = strstr(net->name, "ibfabric") ? facts->found_nics : 0;
		struct finding *finding;

		if (nics < 2 || net->devices != 1 || net->lines < 4 ||
			!facts_has_several_nodes(facts))
			continue;
		finding = diagnosis_add(diagnosis, FIND_NIC_UNDERUSED, &net->seen);
		snprintf(finding->detail, sizeof(finding->detail),
			"%d NICs were found and all %llu connections use number 0.", nics,
			(unsigned long long)net->lines);
		/* with few GPUs one NIC may be the right number */
		if (facts->local_max < 4)
			finding->severity = SEVERITY_NOTE;
		return;
	}
}

/* The names of interfaces that never reach another host. */
static void add_boot_interface(const struct log_facts *facts, struct diagnosis *diagnosis)
{
	static const char *const bad[] = {"docker", "veth", "br-", "virbr", "ip6tnl",
		"pod-id-link", "cni0", "flannel", "tunl", "usb"};

	if (!facts_has_several_nodes(facts) || facts->init_completes ||
		diagnosis_find(diagnosis, FIND_BOOTSTRAP_WRONG_IFACE))
		return;
	for (uint32_t i = 0; i < facts->boot_ifaces.count; i++)
		for (size_t k = 0; k < sizeof(bad) / sizeof(bad[0]); k++) {
			const struct fact_word *word = &facts->boot_ifaces.words[i];
			struct finding *finding;

			if (strncmp(word->text, bad[k], strlen(bad[k])) != 0)
				continue;
			finding = diagnosis_add(
				diagnosis, FIND_BOOTSTRAP_WRONG_IFACE, &word->seen);
			/* nobody failed yet, as far as the log goes */
			if (!facts->chain.count)
				finding->severity = SEVERITY_NOTE;
			snprintf(finding->detail, sizeof(finding->detail),
				"The interface is %s.", word->text);
			return;
		}
}

void diagnose_network(const struct log_facts *facts, struct diagnosis *diagnosis)
{
	add_ofi(facts, diagnosis);
	add_socket(facts, diagnosis);
	add_mixed_interfaces(facts, diagnosis);
	add_omnipath(facts, diagnosis);
	add_gdr(facts, diagnosis);
	add_split(facts, diagnosis);
	add_nics(facts, diagnosis);
	add_boot_interface(facts, diagnosis);
}
