#include "weft/doctor/diagnose.h"

#include <stdlib.h>
#include <string.h>

struct finding *diagnosis_add(
	struct diagnosis *diagnosis, enum finding_id id, const struct evidence *evidence)
{
	struct finding *finding;

	if (diagnosis->count < FINDINGS_MAX)
		diagnosis->count++;
	finding = &diagnosis->findings[diagnosis->count - 1];
	*finding = (struct finding){
		.id = id, .severity = catalogue_info(id)->severity, .cause = FIND_COUNT};
	if (evidence)
		finding->evidence = *evidence;
	return finding;
}

struct finding *diagnosis_find(struct diagnosis *diagnosis, enum finding_id id)
{
	for (uint32_t i = 0; i < diagnosis->count; i++)
		if (diagnosis->findings[i].id == id)
			return &diagnosis->findings[i];
	return NULL;
}

int evidence_order(const struct evidence *a, const struct evidence *b)
{
	if (a->time >= 0 && b->time >= 0 && a->time != b->time && a->line && b->line)
		return a->time < b->time ? -1 : 1;
	if (a->file != b->file)
		return a->file < b->file ? -1 : 1;
	return a->line < b->line ? -1 : a->line > b->line;
}

static int in_order(const void *left, const void *right)
{
	const struct finding *a = left, *b = right;
	enum depth a_depth = catalogue_info(a->id)->depth;
	enum depth b_depth = catalogue_info(b->id)->depth;
	int time;

	if (a->severity != b->severity)
		return a->severity > b->severity ? -1 : 1;
	if ((a->cause == FIND_COUNT) != (b->cause == FIND_COUNT))
		return a->cause == FIND_COUNT ? -1 : 1;
	if (a_depth != b_depth)
		return a_depth < b_depth ? -1 : 1;
	time = a->severity == SEVERITY_FATAL ? evidence_order(&a->evidence, &b->evidence)
					     : 0;
	return time ? time : (int)a->id - (int)b->id;
}

void diagnosis_sort(struct diagnosis *diagnosis)
{
	qsort(diagnosis->findings, diagnosis->count, sizeof(diagnosis->findings[0]),
		in_order);
}

enum severity diagnosis_severity(const struct diagnosis *diagnosis)
{
	enum severity worst = SEVERITY_NOTE;

	for (uint32_t i = 0; i < diagnosis->count; i++)
		if (diagnosis->findings[i].severity > worst)
			worst = diagnosis->findings[i].severity;
	return worst;
}

bool facts_has_several_nodes(const struct log_facts *facts)
{
	uint32_t hosts = 0;

	if (facts->node_count)
		return facts->node_count > 1;
	if (facts->rank_count == 1)
		return false;
	/* a host of a line or two is a torn name */
	for (uint32_t i = 0; i < facts->host_count; i++)
		hosts += facts->host_lines[i] > 2;
	return facts->via_lines[VIA_NET] > 0 || (hosts > 1 && facts->rank_count > 1);
}

const char *facts_platform(const struct log_facts *facts)
{
	return facts->platforms.count ? facts->platforms.words[0].text : NULL;
}

/* What follows from what, when both are there. */
static const struct {
	enum finding_id effect, cause;
} chains[] = {
	{FIND_SHM_INSTEAD_OF_P2P, FIND_P2P_LEVEL},
	{FIND_SHM_INSTEAD_OF_P2P, FIND_P2P_DISABLED},
	{FIND_NO_PLUGIN_SOCKET, FIND_NET_FORCED_SOCKET},
	{FIND_NO_PLUGIN_SOCKET, FIND_OFI_INIT_FAILED},
	{FIND_OFI_INIT_FAILED, FIND_OFI_NO_PROVIDER},
	{FIND_GDR_MISSING_IB, FIND_OPA_VIA_VERBS},
	{FIND_CHANNEL_COUNT_LOW, FIND_OPA_VIA_VERBS},
	{FIND_CHANNEL_COUNT_LOW, FIND_TOPO_FILE_DEGRADED},
	{FIND_CHANNEL_COUNT_LOW, FIND_PODS_SPLIT_NODE},
	{FIND_NIC_UNDERUSED, FIND_PODS_SPLIT_NODE},
	{FIND_TOPO_FILE_UNREADABLE, FIND_TOPO_FILE_EMPTY},
	{FIND_TOPO_VIRTUAL, FIND_TOPO_FILE_EMPTY},
	{FIND_SOCKET_MULTI_IFACE, FIND_NO_PLUGIN_SOCKET},
	{FIND_BOOTSTRAP_ALIEN, FIND_VERSION_MIX},
	{FIND_MASTER_UNREACHABLE, FIND_LAUNCH_FAILED},
	{FIND_IB_FLUSH, FIND_IB_RETRY},
	{FIND_IB_FLUSH, FIND_IB_OTHER},
	{FIND_WATCHDOG, FIND_ACS_HANG},
};

static void link_causes(struct diagnosis *diagnosis)
{
	for (size_t i = 0; i < sizeof(chains) / sizeof(chains[0]); i++) {
		struct finding *effect = diagnosis_find(diagnosis, chains[i].effect);

		if (effect && effect->cause == FIND_COUNT &&
			diagnosis_find(diagnosis, chains[i].cause))
			effect->cause = chains[i].cause;
	}
}

/* The first failure explains the others of lesser depth. */
static void fold_cascades(struct diagnosis *diagnosis)
{
	const struct finding *first = &diagnosis->findings[0];
	enum depth depth = diagnosis->count ? catalogue_info(first->id)->depth
					    : DEPTH_CAUSE;

	if (!diagnosis->count || first->severity != SEVERITY_FATAL)
		return;
	for (uint32_t i = 1; i < diagnosis->count; i++) {
		struct finding *finding = &diagnosis->findings[i];

		if (finding->severity == SEVERITY_FATAL && finding->cause == FIND_COUNT &&
			catalogue_info(finding->id)->depth > depth)
			finding->cause = first->id;
	}
}

void diagnose(const struct log_facts *facts, struct diagnosis *diagnosis)
{
	memset(diagnosis, 0, sizeof(*diagnosis));
	diagnose_failures(facts, diagnosis);
	diagnose_network(facts, diagnosis);
	diagnose_node(facts, diagnosis);
	diagnose_settings(facts, diagnosis);
	diagnose_rest(facts, diagnosis);
	link_causes(diagnosis);
	diagnosis_sort(diagnosis);
	fold_cascades(diagnosis);
}
