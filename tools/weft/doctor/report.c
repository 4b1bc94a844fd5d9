#include "weft/doctor/report.h"

#include <string.h>

#include "common/terminal.h"

enum { LABEL = 12, INDENT = 4 };

static void line(FILE *file, const char *label, const char *text)
{
	fprintf(file, "%-*s", LABEL, label);
	terminal_fold(file, text, LABEL, LABEL);
}

static size_t list(char *text, size_t room, const struct fact_words *words)
{
	size_t used = 0;

	text[0] = 0;
	for (uint32_t i = 0; i < words->count && used + FACTS_NAME_BYTES < room; i++)
		used += (size_t)snprintf(text + used, room - used, "%s%s", i ? ", " : "",
			words->words[i].text);
	return used;
}

static void print_software(FILE *file, const struct log_facts *facts)
{
	char text[1024];
	size_t used = 0;

	if (facts->versions.count) {
		used += (size_t)snprintf(text, sizeof(text), "NCCL ");
		used += list(text + used, sizeof(text) - used, &facts->versions);
	}
	if (facts->plugins.count) {
		used += (size_t)snprintf(text + used, sizeof(text) - used,
			"%saws-ofi-nccl ", used ? ", " : "");
		used += list(text + used, sizeof(text) - used, &facts->plugins);
	}
	if (facts->libfabrics.count) {
		used += (size_t)snprintf(text + used, sizeof(text) - used, "%slibfabric ",
			used ? ", " : "");
		used += list(text + used, sizeof(text) - used, &facts->libfabrics);
	}
	if (used)
		line(file, "software", text);
}

static void print_job(FILE *file, const struct log_facts *facts)
{
	char text[1024] = "";
	size_t used = 0;

	if (facts->rank_count)
		used += (size_t)snprintf(text, sizeof(text), "%d rank%s",
			facts->rank_count, facts->rank_count == 1 ? "" : "s");
	if (facts->node_count)
		used += (size_t)snprintf(text + used, sizeof(text) - used,
			" on %d node%s, %d on each", facts->node_count,
			facts->node_count == 1 ? "" : "s", facts->local_max);
	else if (used && facts->host_count > 1)
		used += (size_t)snprintf(text + used, sizeof(text) - used,
			" on at least %u hosts", facts->host_count);
	if (facts->one_rank_comms > 1 && facts->rank_count == 1)
		used += (size_t)snprintf(text + used, sizeof(text) - used, ", %d times",
			facts->one_rank_comms);
	if (used)
		line(file, "job", text);
	used = 0;
	for (uint32_t i = 0; i < facts->host_count && used + FACTS_NAME_BYTES < 400; i++)
		if (facts->host_lines[i] > 2 || facts->host_count <= 2)
			used += (size_t)snprintf(text + used, sizeof(text) - used, "%s%s",
				used ? ", " : "", facts->hosts[i]);
	if (used && facts->host_count > 8)
		snprintf(text + used, sizeof(text) - used, " .. (%u in all)",
			facts->host_count);
	if (used)
		line(file, "hosts", text);
}

static void print_machine(FILE *file, const struct log_facts *facts)
{
	char text[1024];

	if (facts->platforms.count) {
		list(text, sizeof(text), &facts->platforms);
		line(file, "machine", text);
	}
	if (facts->gpus.count) {
		list(text, sizeof(text), &facts->gpus);
		line(file, "GPUs", text);
	}
}

static void print_network(FILE *file, const struct log_facts *facts)
{
	char text[1024];
	size_t used;

	if (facts->networks.count) {
		used = list(text, sizeof(text), &facts->networks);
		if (facts->providers.count) {
			used += (size_t)snprintf(
				text + used, sizeof(text) - used, ", provider ");
			used += list(text + used, sizeof(text) - used, &facts->providers);
		}
		if (facts->found_nics)
			snprintf(text + used, sizeof(text) - used, ", %d NICs",
				facts->found_nics);
		else if (facts->ib_nic_count_max > 0)
			snprintf(text + used, sizeof(text) - used, ", %d NICs",
				facts->ib_nic_count_max);
		line(file, "network", text);
	}
	if (facts->boot_ifaces.count) {
		list(text, sizeof(text), &facts->boot_ifaces);
		line(file, "bootstrap", text);
	}
}

static void print_transports(FILE *file, const struct log_facts *facts)
{
	static const char *const kinds[] = {
		"P2P/direct", "P2P/IPC", "P2P/CUMEM", "P2P/indirect", "P2P/MNNVL"};
	char text[1024] = "";
	size_t used = 0;

	for (int i = 0; i < 5; i++)
		if (facts->p2p_kinds[i])
			used += (size_t)snprintf(text + used, sizeof(text) - used,
				"%s%llu %s", used ? ", " : "",
				(unsigned long long)facts->p2p_kinds[i], kinds[i]);
	if (facts->via_lines[VIA_SHM])
		used += (size_t)snprintf(text + used, sizeof(text) - used, "%s%llu SHM",
			used ? ", " : "", (unsigned long long)facts->via_lines[VIA_SHM]);
	for (uint32_t i = 0; i < facts->net_count && used < 800; i++) {
		const struct fact_net *net = &facts->nets[i];

		used += (size_t)snprintf(text + used, sizeof(text) - used,
			"%s%llu NET/%s (%llu with GPUDirect, %d NIC%s)", used ? ", " : "",
			(unsigned long long)net->lines, net->name,
			(unsigned long long)net->gdr_lines,
			__builtin_popcountll(net->devices),
			__builtin_popcountll(net->devices) == 1 ? "" : "s");
	}
	if (used)
		line(file, "transports", text);
	if (facts->coll_channels_max) {
		snprintf(text, sizeof(text), "%d", facts->coll_channels_max);
		line(file, "channels", text);
	}
}

static void print_results(FILE *file, const struct log_facts *facts)
{
	const struct fact_row *best = NULL, *last = NULL;
	char text[256];

	for (uint32_t i = 0; i < facts->row_count; i++) {
		if (!best || facts->rows[i].busbw > best->busbw)
			best = &facts->rows[i];
		if (!last || facts->rows[i].bytes > last->bytes)
			last = &facts->rows[i];
	}
	if (best) {
		snprintf(text, sizeof(text),
			"%u sizes%s%s; %.2f GB/s bus bandwidth at %llu bytes, at most "
			"%.2f",
			facts->row_count, facts->tests.count ? " of " : "",
			facts->tests.count ? facts->tests.words[0].text : "", last->busbw,
			(unsigned long long)last->bytes, best->busbw);
		line(file, "results", text);
	} else if (facts->gbps_best > 0) {
		snprintf(text, sizeof(text), "%.1f Gb/s at most, as the script counts",
			facts->gbps_best);
		line(file, "results", text);
	}
}

void report_job(
	FILE *file, const struct log_facts *facts, uint32_t number, uint32_t count)
{
	fprintf(file, "%s%sjob %u of %u%s, lines %llu to %llu\n\n",
		number > 1 ? "\n" : "", terminal_look(LOOK_BOLD), number, count,
		terminal_look(LOOK_PLAIN), (unsigned long long)facts->line_first,
		(unsigned long long)facts->line_last);
}

void report_facts(FILE *file, const struct log_facts *facts)
{
	char text[256];

	snprintf(text, sizeof(text), "%u file%s, %llu line%s, %llu of NCCL",
		facts->file_count, facts->file_count == 1 ? "" : "s",
		(unsigned long long)facts->line_count, facts->line_count == 1 ? "" : "s",
		(unsigned long long)facts->nccl_line_count);
	line(file, "log", text);
	print_software(file, facts);
	print_job(file, facts);
	print_machine(file, facts);
	print_network(file, facts);
	print_transports(file, facts);
	print_results(file, facts);
}

static const char *look_of(enum severity severity)
{
	return terminal_look(severity == SEVERITY_FATAL		? LOOK_BAD
			     : severity == SEVERITY_PERFORMANCE ? LOOK_FAIR
								: LOOK_SOFT);
}

static void paragraph(FILE *file, const char *label, const char *text)
{
	int column = INDENT + (int)strlen(label);

	if (!text || !text[0])
		return;
	fprintf(file, "%*s%s", INDENT, "", label);
	terminal_fold(file, text, column, INDENT + 2);
}

static void print_evidence(
	FILE *file, const struct log_facts *facts, const struct evidence *evidence)
{
	char text[2 * FACTS_TEXT_BYTES + 160], who[160] = "";
	int32_t rank;

	if (!evidence->line || !facts)
		return;
	rank = evidence_rank(facts, evidence);
	if (evidence->proc >= 0) {
		const struct fact_proc *proc = &facts->procs[evidence->proc];

		snprintf(who, sizeof(who), ", %s pid %lld", facts->hosts[proc->host],
			(long long)proc->pid);
	}
	if (rank >= 0)
		snprintf(who + strlen(who), sizeof(who) - strlen(who), ", rank %d", rank);
	snprintf(text, sizeof(text), "%s:%llu%s%s", facts->files[evidence->file],
		(unsigned long long)evidence->line, who, evidence->count > 1 ? "" : ":");
	if (evidence->count > 1)
		snprintf(text + strlen(text), sizeof(text) - strlen(text),
			" (%llu such lines):", (unsigned long long)evidence->count);
	paragraph(file, "seen: ", text);
	paragraph(file, "  ", evidence->text);
}

static void print_finding(FILE *file, const struct log_facts *facts,
	const struct finding *finding, uint32_t number)
{
	const struct finding_info *info = catalogue_info(finding->id);

	fprintf(file, "\n%u. %s%s%s %s%s%s: %s\n", number, look_of(finding->severity),
		severity_name(finding->severity), terminal_look(LOOK_PLAIN),
		terminal_look(LOOK_BOLD), info->name, terminal_look(LOOK_PLAIN),
		info->title);
	if (finding->cause != FIND_COUNT)
		paragraph(file, "follows from: ", catalogue_info(finding->cause)->name);
	print_evidence(file, facts, &finding->evidence);
	paragraph(file, "", finding->detail);
	paragraph(file, "why: ", info->explanation);
	paragraph(file, "do: ", finding->remedy[0] ? finding->remedy : info->remedy);
	paragraph(file, "gain: ", finding->gain[0] ? finding->gain : info->cost);
}

/* Who failed first, in one line above all findings. */
static void print_first(
	FILE *file, const struct log_facts *facts, const struct diagnosis *diagnosis)
{
	const struct finding *first = &diagnosis->findings[0];
	int32_t rank;

	if (!facts || !diagnosis->count || first->severity != SEVERITY_FATAL)
		return;
	rank = facts->root_rank >= 0 ? facts->root_rank
				     : evidence_rank(facts, &first->evidence);
	if (rank >= 0)
		fprintf(file, "\nfirst failure: rank %d, %s\n", rank,
			catalogue_info(first->id)->title);
	else if (first->evidence.proc >= 0)
		fprintf(file, "\nfirst failure: on %s, %s\n",
			facts->hosts[facts->procs[first->evidence.proc].host],
			catalogue_info(first->id)->title);
}

void report_findings(
	FILE *file, const struct log_facts *facts, const struct diagnosis *diagnosis)
{
	print_first(file, facts, diagnosis);
	for (uint32_t i = 0; i < diagnosis->count; i++)
		print_finding(file, facts, &diagnosis->findings[i], i + 1);
	if (!diagnosis->count)
		fprintf(file, "\nnothing is wrong, as far as %s\n",
			facts ? "this log tells" : "this process can see");
}
