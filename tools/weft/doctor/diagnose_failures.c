/* What ended a job, or will. */
#include <stdio.h>
#include <string.h>

#include "weft/doctor/diagnose.h"

/* Findings that a sign in the log shows by itself. */
static const enum finding_id plain[] = {FIND_SHM_TOO_SMALL, FIND_SHM_UNLINKED,
	FIND_MEMLOCK, FIND_DUP_GPU, FIND_BOOTSTRAP_NO_IFACE, FIND_BOOTSTRAP_DUP_RANK,
	FIND_BOOTSTRAP_ALIEN, FIND_FABRIC_NOT_READY, FIND_NVLS_BIND, FIND_IMEX,
	FIND_CUMEM_HOST, FIND_DRIVER_OLD, FIND_OOM, FIND_HOST_OOM, FIND_GPU_ERROR,
	FIND_EFA_REG, FIND_EFA_ENOMEM, FIND_ROCE_GID, FIND_IB_OPEN_FAILED,
	FIND_XML_TOO_BIG, FIND_GIN_EXTERNAL, FIND_NET_NOT_FOUND, FIND_P2P_REFUSED,
	FIND_NO_TRANSPORT, FIND_COLL_MISMATCH, FIND_JOB_ENDED, FIND_EFA_UNREACHABLE,
	FIND_BOOTSTRAP_WRONG_IFACE, FIND_IB_RETRY, FIND_IB_OTHER, FIND_EFA_PEER_GONE,
	FIND_IB_FLUSH};

/* Those that a job may survive: fatal only where something failed after them. */
static bool may_be_survived(enum finding_id id)
{
	return id == FIND_IB_OPEN_FAILED || id == FIND_BOOTSTRAP_ALIEN ||
	       id == FIND_GIN_EXTERNAL || id == FIND_IMEX || id == FIND_NVLS_BIND ||
	       id == FIND_CUMEM_HOST || id == FIND_BOOTSTRAP_WRONG_IFACE ||
	       id == FIND_EFA_ENOMEM || id == FIND_IB_OTHER || id == FIND_SHM_UNLINKED ||
	       id == FIND_P2P_REFUSED;
}

static bool has_failed(const struct log_facts *facts)
{
	return facts->chain.count || facts->root_seen.count ||
	       facts->signs[FIND_WATCHDOG].count ||
	       facts->signs[FIND_EXIT_CASCADE].count ||
	       facts->signs[FIND_RANK_CRASHED].count;
}

static void add_plain(const struct log_facts *facts, struct diagnosis *diagnosis)
{
	for (size_t i = 0; i < sizeof(plain) / sizeof(plain[0]); i++) {
		const struct evidence *evidence = &facts->signs[plain[i]];
		struct finding *finding;

		if (!evidence->count)
			continue;
		finding = diagnosis_add(diagnosis, plain[i], evidence);
		if (may_be_survived(plain[i]) && facts->init_completes &&
			!has_failed(facts))
			finding->severity = plain[i] == FIND_IB_OPEN_FAILED
						    ? SEVERITY_PERFORMANCE
						    : SEVERITY_NOTE;
	}
}

/* A port that went down: the cause of what failed after it, or a flap. */
static void add_port(const struct log_facts *facts, struct diagnosis *diagnosis)
{
	const struct evidence *port = &facts->sign_detail[FIND_IB_OTHER];
	struct finding *finding = diagnosis_find(diagnosis, FIND_IB_RETRY);

	if (!port->count)
		return;
	if (finding) {
		size_t used = strlen(finding->detail);

		snprintf(finding->detail + used, sizeof(finding->detail) - used,
			"%sLine %llu tells of the port: %.160s.", used ? " " : "",
			(unsigned long long)port->line, port->text);
		return;
	}
	if (diagnosis_find(diagnosis, FIND_IB_OTHER))
		return;
	finding = diagnosis_add(diagnosis, FIND_IB_OTHER, port);
	if (facts->init_completes && !has_failed(facts))
		finding->severity = SEVERITY_NOTE;
	snprintf(finding->remedy, sizeof(finding->remedy),
		"ibstat and the cable of that port; its counters link_downed and "
		"symbol_error in /sys/class/infiniband/*/ports/*/counters");
}

static void explain_retry(const struct log_facts *facts, struct diagnosis *diagnosis)
{
	struct finding *finding = diagnosis_find(diagnosis, FIND_IB_RETRY);

	if (!finding)
		return;
	if (facts->peer[0])
		snprintf(finding->detail, sizeof(finding->detail),
			"The peer that did not answer is %s.", facts->peer);
	if (!facts->link_local_gid)
		return;
	snprintf(finding->detail + strlen(finding->detail),
		sizeof(finding->detail) - strlen(finding->detail),
		"%sThe addresses begin with fe80: they are only valid on one link, as "
		"those "
		"of RoCE NICs without an IP address.",
		finding->detail[0] ? " " : "");
	snprintf(finding->remedy, sizeof(finding->remedy),
		"on RoCE give every NIC an IP address (ip addr show must list one for "
		"each); "
		"on InfiniBand ask first whether the peer died, then ibstat and the "
		"cables");
}

/* On one host without NVLink, PCIe peer-to-peer is what hangs. */
static bool may_hang_in_pcie(const struct log_facts *facts)
{
	return !facts_has_several_nodes(facts) && facts->via_lines[VIA_P2P] &&
	       facts->has_system && !facts->has_nvlink;
}

/* A test that made its connections, printed the head of its table and nothing more. */
static void add_silence(const struct log_facts *facts, struct diagnosis *diagnosis)
{
	struct finding *finding;

	if (!facts->table_seen.count || facts->row_count || facts->average_count ||
		facts->init_completes < (uint64_t)facts->rank_count ||
		facts->rank_count < 2 || has_failed(facts) || !may_hang_in_pcie(facts))
		return;
	finding = diagnosis_add(diagnosis, FIND_ACS_HANG, &facts->via_seen[VIA_P2P]);
	snprintf(finding->detail, sizeof(finding->detail),
		"All %d ranks are connected, and the log ends before the first result. "
		"If "
		"the job still runs, look again later.",
		facts->rank_count);
}

static void add_watchdog(const struct log_facts *facts, struct diagnosis *diagnosis)
{
	const struct evidence *evidence = &facts->signs[FIND_WATCHDOG];
	struct finding *finding;
	size_t used = 0;

	if (!evidence->count)
		return;
	finding = diagnosis_add(diagnosis, FIND_WATCHDOG, evidence);
	/* of one rank's calls in several groups nothing follows */
	if (facts->seq_low >= 0 && facts->seq_low != facts->seq_high &&
		facts->seq_low_rank != facts->seq_high_rank)
		used = (size_t)snprintf(finding->detail, sizeof(finding->detail),
			"Rank %d waits in call %lld and rank %d in call %lld: the one "
			"behind "
			"is the one to look at.",
			facts->seq_low_rank, (long long)facts->seq_low,
			facts->seq_high_rank, (long long)facts->seq_high);
	else if (facts->seq_low >= 0 && facts->seq_low == facts->seq_high)
		used = (size_t)snprintf(finding->detail, sizeof(finding->detail),
			"All that say so wait in call %lld%s%s: look for the rank that "
			"says "
			"nothing, or for a network that moves nothing.",
			(long long)facts->seq_low, facts->operation[0] ? ", " : "",
			facts->operation);
	for (uint32_t i = 0; i < facts->providers.count; i++)
		if (!strncmp(facts->providers.words[i].text, "cxi", 3)) {
			snprintf(finding->detail + used, sizeof(finding->detail) - used,
				"%sThe network is Slingshot (provider cxi), which hangs "
				"so with "
				"its default settings.",
				used ? " " : "");
			snprintf(finding->remedy, sizeof(finding->remedy),
				"FI_CXI_RX_MATCH_MODE=software "
				"FI_CXI_RDZV_PROTO=alt_read "
				"FI_CXI_DEFAULT_CQ_SIZE=131072 "
				"FI_MR_CACHE_MONITOR=userfaultfd "
				"FI_CXI_DISABLE_HOST_REGISTER=1");
			return;
		}
	if (may_hang_in_pcie(facts))
		diagnosis_add(diagnosis, FIND_ACS_HANG, &facts->via_seen[VIA_P2P]);
}

/* An exception of the program's own that was there before what the other ranks say of it:
 * of the rank that the launcher saw end first, of another rank, or of another file. */
static bool own_came_first(
	const struct log_facts *facts, const struct diagnosis *diagnosis)
{
	const struct evidence *own = &facts->sign_detail[FIND_RANK_CRASHED];
	const struct evidence *watchdog = &facts->signs[FIND_WATCHDOG];
	const struct evidence *cascade = &facts->signs[FIND_EXIT_CASCADE];
	const struct evidence *symptom = watchdog->count ? watchdog : cascade;

	if (!own->count || !symptom->count)
		return false;
	for (uint32_t i = 0; i < diagnosis->count; i++)
		if (diagnosis->findings[i].severity == SEVERITY_FATAL &&
			diagnosis->findings[i].id != FIND_WATCHDOG)
			return false;
	if (own->file == symptom->file && evidence_order(own, symptom) > 0)
		return false;
	/* the watchdog ends a rank by signal 6 */
	if (facts->root_seen.count && facts->root_exit != -6)
		return true;
	if (own->file != symptom->file)
		return own->time < 0 || symptom->time < 0 || own->time <= symptom->time;
	return evidence_rank(facts, own) != evidence_rank(facts, symptom) ||
	       strstr(own->text, "MPI_ABORT");
}

/* What launchers say of the process that ended first. */
static void add_crash(const struct log_facts *facts, struct diagnosis *diagnosis)
{
	const struct evidence *evidence = &facts->signs[FIND_RANK_CRASHED];
	const struct evidence *own = &facts->sign_detail[FIND_RANK_CRASHED];
	struct finding *finding;

	if (facts->root_seen.count && facts->root_exit == -9) {
		finding = diagnosis_find(diagnosis, FIND_HOST_OOM);
		if (!finding)
			finding = diagnosis_add(
				diagnosis, FIND_HOST_OOM, &facts->root_seen);
		snprintf(finding->detail, sizeof(finding->detail),
			"The launcher saw rank %d end first, by signal 9.",
			facts->root_rank);
		return;
	}
	if (!evidence->count && !own_came_first(facts, diagnosis)) {
		/* an error of NCCL ends ranks, too; then it is told already */
		if (!facts->root_seen.count || diagnosis->count)
			return;
	}
	finding = diagnosis_add(diagnosis, FIND_RANK_CRASHED,
		evidence->count ? evidence
		: own->count	? own
				: &facts->root_seen);
	if (facts->root_rank >= 0)
		snprintf(finding->detail, sizeof(finding->detail),
			"The launcher saw rank %d end first, with exit code %d.",
			facts->root_rank, facts->root_exit);
	if (strstr(finding->evidence.text, "undefined symbol: nccl"))
		snprintf(finding->remedy, sizeof(finding->remedy),
			"the program was built for another NCCL than the one it finds: "
			"ldd and LD_LIBRARY_PATH or LD_PRELOAD say which one; take the "
			"one it was built with");
}

static void add_versions(const struct log_facts *facts, struct diagnosis *diagnosis)
{
	const struct evidence *evidence = &facts->signs[FIND_VERSION_MIX];
	const struct fact_words *versions = &facts->versions;
	struct finding *finding;

	if (evidence->count) {
		finding = diagnosis_add(diagnosis, FIND_VERSION_MIX, evidence);
		finding->severity = SEVERITY_FATAL;
		return;
	}
	for (uint32_t i = 1; i < versions->count; i++) {
		const struct fact_word *a = &versions->words[0], *b = &versions->words[i];

		if (a->host < 0 || b->host < 0 || a->host == b->host)
			continue;
		finding = diagnosis_add(diagnosis, FIND_VERSION_MIX, &b->seen);
		if (facts->signs[FIND_BOOTSTRAP_ALIEN].count && facts->chain.count)
			finding->severity = SEVERITY_FATAL;
		snprintf(finding->detail, sizeof(finding->detail),
			"%s has %s, %s has %s.", facts->hosts[a->host], a->text,
			facts->hosts[b->host], b->text);
		return;
	}
}

static void add_test_failures(const struct log_facts *facts, struct diagnosis *diagnosis)
{
	bool absurd = facts->average_zero > 0;
	struct finding *finding;

	if (facts->wrong) {
		finding = diagnosis_add(diagnosis, FIND_WRONG_RESULTS, NULL);
		snprintf(finding->detail, sizeof(finding->detail),
			"%llu elements were wrong.", (unsigned long long)facts->wrong);
	}
	for (uint32_t i = 0; i < facts->row_count; i++)
		absurd = absurd ||
			 (facts->rows[i].algbw > 0 && facts->rows[i].busbw <= 0);
	if (!absurd || (!facts->one_rank_comms && facts->rank0_devices < 2))
		return;
	finding = diagnosis_add(diagnosis, FIND_ONE_RANK_JOB, &facts->summary);
	if (facts->rank0_devices > 1)
		snprintf(finding->detail, sizeof(finding->detail),
			"%llu processes are all rank 0 of 1.",
			(unsigned long long)facts->rank0_devices);
}

/* Errors of the driver whose cure is known. */
static const struct {
	const char *said, *remedy;
} cuda_cures[] = {
	{"invalid device ordinal",
		"start as many ranks on a host as nvidia-smi -L lists GPUs, and look "
		"what CUDA_VISIBLE_DEVICES leaves of them"},
	{"no kernel image", "take a build that has code for this GPU: "
			    "torch.cuda.get_arch_list() against its compute capability"},
	{"Driver/library version mismatch",
		"the driver was updated under the kernel module that is loaded: reboot "
		"the "
		"host, or stop everything on the GPUs and reload the module"},
	{"no NVIDIA driver", "give the container the GPUs: docker run --gpus all, or "
			     "nvidia.com/gpu in the pod's limits; nvidia-smi must work "
			     "inside"},
};

/* What the driver said, where nothing better is known of it. */
static void add_cuda(const struct log_facts *facts, struct diagnosis *diagnosis)
{
	const struct evidence *evidence = &facts->signs[FIND_CUDA_ERROR];
	const struct evidence *own = &facts->sign_detail[FIND_CUDA_ERROR];
	struct finding *finding;

	if (!evidence->count || (facts->init_completes && !has_failed(facts)))
		evidence = own;
	if (!evidence->count || diagnosis_severity(diagnosis) == SEVERITY_FATAL)
		return;
	finding = diagnosis_add(diagnosis, FIND_CUDA_ERROR, evidence);
	for (size_t i = 0; i < sizeof(cuda_cures) / sizeof(cuda_cures[0]); i++)
		if (strstr(evidence->text, cuda_cures[i].said))
			snprintf(finding->remedy, sizeof(finding->remedy), "%s",
				cuda_cures[i].remedy);
}

/* A status of EFA's that says neither who is gone nor who is not reached. */
static void add_efa(const struct log_facts *facts, struct diagnosis *diagnosis)
{
	static const enum finding_id better[] = {
		FIND_EFA_PEER_GONE, FIND_EFA_UNREACHABLE, FIND_EFA_REG, FIND_EFA_ENOMEM};

	for (size_t i = 0; i < sizeof(better) / sizeof(better[0]); i++)
		if (facts->signs[better[i]].count)
			return;
	if (facts->signs[FIND_EFA_OTHER].count)
		diagnosis_add(diagnosis, FIND_EFA_OTHER, &facts->signs[FIND_EFA_OTHER]);
}

/* What launchers say of an end, and what may be a consequence of anything else. */
static void add_weak(const struct log_facts *facts, struct diagnosis *diagnosis)
{
	static const enum finding_id ids[] = {FIND_HOST_OOM, FIND_JOB_ENDED};
	const struct evidence *own = &facts->sign_detail[FIND_RANK_CRASHED];
	struct finding *finding;

	for (size_t i = 0; i < sizeof(ids) / sizeof(ids[0]); i++)
		if (diagnosis_severity(diagnosis) != SEVERITY_FATAL &&
			facts->sign_detail[ids[i]].count)
			diagnosis_add(diagnosis, ids[i], &facts->sign_detail[ids[i]]);
	if (!own->count || diagnosis_severity(diagnosis) == SEVERITY_FATAL ||
		facts->ended_well)
		return;
	finding = diagnosis_add(diagnosis, FIND_RANK_CRASHED, own);
	finding->severity = SEVERITY_NOTE;
	snprintf(finding->detail, sizeof(finding->detail),
		"No launcher says that a rank ended: if the job went on, this means "
		"nothing.");
}

/* Ranks that began to connect, and a log that ends before they have. */
static void add_unfinished(const struct log_facts *facts, struct diagnosis *diagnosis)
{
	struct finding *finding;

	if (!facts->init_starts || facts->init_completes ||
		diagnosis_severity(diagnosis) == SEVERITY_FATAL)
		return;
	finding = diagnosis_add(diagnosis, FIND_INIT_UNFINISHED, &facts->init_start_seen);
	if (facts->init_starts < (uint64_t)facts->rank_count)
		snprintf(finding->detail, sizeof(finding->detail),
			"Of %d ranks %llu began to connect, as far as the log goes.",
			facts->rank_count, (unsigned long long)facts->init_starts);
}

/* Errors that nothing in the catalogue explains. */
static void add_unknown(const struct log_facts *facts, struct diagnosis *diagnosis)
{
	const struct evidence *warning = &facts->signs[FIND_UNKNOWN_WARNING];
	const struct evidence *told = &facts->signs[FIND_UNKNOWN_ERROR];
	bool is_explained = diagnosis_severity(diagnosis) == SEVERITY_FATAL;
	struct finding *finding;

	if (warning->count) {
		finding = diagnosis_add(diagnosis, FIND_UNKNOWN_WARNING, warning);
		if (facts->chain.count && !is_explained)
			finding->severity = SEVERITY_FATAL;
	}
	if (!is_explained && !warning->count && (facts->chain.count || told->count) &&
		!facts->signs[FIND_EXIT_CASCADE].count &&
		!facts->signs[FIND_OFI_INIT_FAILED].count &&
		!facts->signs[FIND_OFI_NO_PROVIDER].count) {
		static const char *const codes[] = {"success", "a CUDA error",
			"a system error", "an internal error", "an invalid argument",
			"an invalid use", "a remote error"};

		finding = diagnosis_add(diagnosis, FIND_UNKNOWN_ERROR,
			facts->chain.count ? &facts->chain : told);
		if (facts->chain_code > 0 && facts->chain_code < 7)
			snprintf(finding->detail, sizeof(finding->detail), "It was %s.",
				codes[facts->chain_code]);
	}
}

static void add_cascade(const struct log_facts *facts, struct diagnosis *diagnosis)
{
	const struct evidence *cascade = &facts->signs[FIND_EXIT_CASCADE];

	if (!cascade->count || (facts->ended_well && !facts->chain.count))
		return;
	diagnosis_add(diagnosis, FIND_EXIT_CASCADE, cascade);
}

/* What launchers say of hosts and names while these come up means nothing once ranks have
 * met. */
static void add_start(const struct log_facts *facts, struct diagnosis *diagnosis)
{
	static const enum finding_id ids[] = {
		FIND_LAUNCH_FAILED, FIND_MASTER_UNREACHABLE};

	if (facts->init_completes || facts->row_count || facts->average_count)
		return;
	for (size_t i = 0; i < sizeof(ids) / sizeof(ids[0]); i++)
		if (facts->signs[ids[i]].count)
			diagnosis_add(diagnosis, ids[i], &facts->signs[ids[i]]);
}

void diagnose_failures(const struct log_facts *facts, struct diagnosis *diagnosis)
{

	add_plain(facts, diagnosis);
	explain_retry(facts, diagnosis);
	add_port(facts, diagnosis);
	add_start(facts, diagnosis);
	add_watchdog(facts, diagnosis);
	add_silence(facts, diagnosis);
	add_versions(facts, diagnosis);
	add_test_failures(facts, diagnosis);
	add_crash(facts, diagnosis);
}

void diagnose_rest(const struct log_facts *facts, struct diagnosis *diagnosis)
{
	add_efa(facts, diagnosis);
	add_cuda(facts, diagnosis);
	add_unknown(facts, diagnosis);
	add_cascade(facts, diagnosis);
	add_weak(facts, diagnosis);
	add_unfinished(facts, diagnosis);
}
