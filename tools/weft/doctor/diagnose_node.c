/* What is slow inside a host. */
#include <stdio.h>
#include <string.h>

#include "weft/doctor/diagnose.h"

/* Two NVLinks or more; one alone makes no more than two channels. */
enum { WIDE_GBPS = 40 };

static bool has_geforce(const struct log_facts *facts)
{
	for (uint32_t i = 0; i < facts->gpus.count; i++)
		if (strstr(facts->gpus.words[i].text, "GeForce"))
			return true;
	return false;
}

static const struct fact_env *env_find(const struct log_facts *facts, const char *name)
{
	for (uint32_t i = 0; i < facts->env_count; i++)
		if (!strncmp(facts->envs[i].name, "NCCL_", 5) &&
			!strcmp(facts->envs[i].name + 5, name))
			return &facts->envs[i];
	return NULL;
}

/* Variables that forbid the direct way between GPUs. */
static void add_p2p(const struct log_facts *facts, struct diagnosis *diagnosis)
{
	const struct fact_env *level = env_find(facts, "P2P_LEVEL");
	const struct fact_env *disable = env_find(facts, "P2P_DISABLE");
	bool is_alone = facts->local_max == 1;
	struct finding *finding;

	if (level && !facts->has_nvlink && !is_alone &&
		(facts->has_system || facts->via_lines[VIA_SHM]) &&
		!facts->via_lines[VIA_P2P] &&
		(!strcmp(level->value, "NVL") || !strcmp(level->value, "LOC") ||
			!strcmp(level->value, "0"))) {
		finding = diagnosis_add(diagnosis, FIND_P2P_LEVEL, &level->seen);
		snprintf(finding->detail, sizeof(finding->detail),
			"NCCL_P2P_LEVEL=%s, and no NVLink in the topology.",
			level->value);
	}
	if (!disable || strcmp(disable->value, "1") != 0)
		return;
	finding = diagnosis_add(diagnosis, FIND_P2P_DISABLED, &disable->seen);
	if (is_alone || (has_geforce(facts) && !facts->has_nvlink)) {
		finding->severity = SEVERITY_NOTE;
		snprintf(finding->detail, sizeof(finding->detail), "%s",
			is_alone ? "There is one rank per node, so it changes nothing "
				   "here."
				 : "GeForce GPUs cannot do it anyway.");
	}
}

static void add_shm(const struct log_facts *facts, struct diagnosis *diagnosis)
{
	uint64_t shm = facts->via_lines[VIA_SHM], p2p = facts->via_lines[VIA_P2P];
	bool forbidden = diagnosis_find(diagnosis, FIND_P2P_LEVEL) ||
			 diagnosis_find(diagnosis, FIND_P2P_DISABLED);
	struct finding *finding;

	if (!shm || shm <= p2p)
		return;
	finding = diagnosis_add(
		diagnosis, FIND_SHM_INSTEAD_OF_P2P, &facts->via_seen[VIA_SHM]);
	snprintf(finding->detail, sizeof(finding->detail),
		"%llu connections through host memory, %llu direct.",
		(unsigned long long)shm, (unsigned long long)p2p);
	/* across PCIe it is NCCL's own choice on most machines */
	if (!forbidden && (!facts->has_nvlink || p2p))
		finding->severity = SEVERITY_NOTE;
}

static bool is_switch(const struct fact_link *link)
{
	return !strncmp(link->to, "NVS", 3);
}

/* A link and its way back, or two GPUs' links to the switches, should be equal. */
static bool links_differ(const struct log_facts *facts, const struct fact_link **a,
	const struct fact_link **b)
{
	for (uint32_t i = 0; i < facts->link_count; i++)
		for (uint32_t k = i + 1; k < facts->link_count; k++) {
			const struct fact_link *one = &facts->links[i];
			const struct fact_link *two = &facts->links[k];
			bool is_back = !strncmp(one->to, "GPU/", 4) &&
				       !strncmp(two->to, "GPU/", 4) &&
				       !strcmp(one->to + 4, two->from) &&
				       !strcmp(two->to + 4, one->from);
			bool is_same = is_switch(one) && is_switch(two);
			double difference = one->bw - two->bw;

			if ((!is_back && !is_same) || (difference < 1 && difference > -1))
				continue;
			*a = one;
			*b = two;
			return true;
		}
	return false;
}

static void add_links(const struct log_facts *facts, struct diagnosis *diagnosis)
{
	const struct fact_link *a, *b;
	const struct fact_env *file = env_find(facts, "TOPO_FILE");
	bool is_single = !facts_has_several_nodes(facts);
	bool is_joined = facts->link_count && is_switch(&facts->links[0]);
	struct finding *finding;

	if (links_differ(facts, &a, &b)) {
		finding = diagnosis_add(
			diagnosis, FIND_TOPO_FILE_DEGRADED, &facts->system_seen);
		snprintf(finding->detail, sizeof(finding->detail),
			"GPU/%s to %s has %.1f GB/s, GPU/%s to %s has %.1f.%s%s", a->from,
			a->to, a->bw, b->from, b->to, b->bw,
			file && file->value[0] ? " The topology file is " : "",
			file ? file->value : "");
		return;
	}
	/* NVLink everywhere, and yet few channels */
	if (!facts->has_nvlink || !is_single || facts->rank_count < 2 ||
		facts->coll_channels_max > 2 || !facts->coll_channels_max ||
		(!is_joined && (facts->rank_count > 2 || !facts->link_count ||
				       facts->links[0].bw < WIDE_GBPS)))
		return;
	finding = diagnosis_add(
		diagnosis, FIND_TOPO_FILE_DEGRADED, &facts->channels_seen);
	snprintf(finding->detail, sizeof(finding->detail),
		"The GPUs have NVLink and NCCL made %d channels.",
		facts->coll_channels_max);
}

static void add_channels(const struct log_facts *facts, struct diagnosis *diagnosis)
{
	bool several = facts_has_several_nodes(facts);
	struct finding *finding;

	if (facts->rank_count < 2 || !facts->coll_channels_max ||
		!(several ? facts->coll_channels_max < facts->ib_nic_count_max
			  : facts->has_nvlink && facts->coll_channels_max <= 2))
		return;
	finding = diagnosis_add(diagnosis, FIND_CHANNEL_COUNT_LOW, &facts->channels_seen);
	if (several)
		snprintf(finding->detail, sizeof(finding->detail),
			"%d channels, and %d NICs were found.", facts->coll_channels_max,
			facts->ib_nic_count_max);
	else
		snprintf(finding->detail, sizeof(finding->detail),
			"%d channels between GPUs with NVLink.",
			facts->coll_channels_max);
}

void diagnose_node(const struct log_facts *facts, struct diagnosis *diagnosis)
{
	add_p2p(facts, diagnosis);
	add_shm(facts, diagnosis);
	add_links(facts, diagnosis);
	add_channels(facts, diagnosis);
}
