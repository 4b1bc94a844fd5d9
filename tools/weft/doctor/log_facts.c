#include "weft/doctor/log_facts.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/err.h"

enum err log_facts_create(struct log_facts **result)
{
	struct log_facts *facts = calloc(1, sizeof(*facts));

	if (!facts)
		return err_set(ERR_SYSTEM, "no memory to read logs");
	facts->files = calloc(FACTS_FILES_MAX, sizeof(*facts->files));
	facts->hosts = calloc(FACTS_HOSTS_MAX, sizeof(*facts->hosts));
	facts->host_slots = calloc(FACTS_HOST_SLOTS, sizeof(*facts->host_slots));
	facts->host_lines = calloc(FACTS_HOSTS_MAX, sizeof(*facts->host_lines));
	facts->procs = calloc(FACTS_PROCS_MAX, sizeof(*facts->procs));
	facts->edges = calloc(FACTS_EDGES_MAX, sizeof(*facts->edges));
	facts->pids = calloc(FACTS_PROCS_MAX, sizeof(*facts->pids));
	facts->members = calloc(FACTS_MEMBERS_MAX, sizeof(*facts->members));
	if (!facts->files || !facts->hosts || !facts->host_slots || !facts->host_lines ||
		!facts->procs || !facts->edges || !facts->pids || !facts->members) {
		log_facts_destroy(facts);
		return err_set(ERR_SYSTEM, "no memory to read logs");
	}
	facts->seq_low = facts->seq_high = -1;
	facts->root_rank = -1;
	facts->ib_nic_count_min = -1;
	*result = facts;
	return OK;
}

void log_facts_destroy(struct log_facts *facts)
{
	if (!facts)
		return;
	free(facts->files);
	free(facts->hosts);
	free(facts->host_slots);
	free(facts->host_lines);
	free(facts->procs);
	free(facts->edges);
	free(facts->pids);
	free(facts->members);
	free(facts);
}

enum err log_facts_file(struct log_facts *facts, const char *name)
{
	if (facts->file_count == FACTS_FILES_MAX)
		return err_set(ERR_ARGUMENT,
			"more than %d logs; join them: cat LOG... | weft doctor -",
			FACTS_FILES_MAX);
	snprintf(facts->files[facts->file_count++], FACTS_TEXT_BYTES, "%s", name);
	return OK;
}

uint64_t log_facts_told(const struct log_facts *facts)
{
	uint64_t told = facts->nccl_line_count + facts->benign + facts->env_count +
			facts->versions.count + facts->tests.count + facts->gpus.count +
			facts->row_count + facts->table_seen.count +
			facts->root_seen.count + facts->watchdog_ranks +
			(uint64_t)facts->average_count + (facts->gbps_best > 0) +
			facts->ended_well;

	for (int i = 0; i < FIND_COUNT; i++)
		told += facts->signs[i].count + facts->sign_detail[i].count;
	return told;
}

/* Printable, with what terminals would obey left out. */
static void copy_text(char *to, size_t room, const char *text, size_t bytes)
{
	size_t out = 0;

	for (size_t i = 0; i < bytes && out + 1 < room; i++) {
		unsigned char c = (unsigned char)text[i];

		if (c == 0x1b) {
			while (i + 1 < bytes && !isalpha((unsigned char)text[i]))
				i++;
			continue;
		}
		to[out++] = c < 0x20 || c == 0x7f ? ' ' : (char)c;
	}
	/* not in the middle of a character */
	while (out && out + 1 == room && (to[out - 1] & 0xc0) == 0x80)
		out--;
	if (out && out + 2 >= room && (to[out - 1] & 0xc0) == 0xc0)
		out--;
	to[out] = 0;
}

void evidence_add(
	struct log_facts *facts, struct evidence *evidence, const struct fact_place *at)
{
	if (evidence->count++)
		return;
	evidence->file = facts->file_count ? facts->file_count - 1 : 0;
	evidence->line = at->line;
	evidence->proc = at->proc;
	evidence->time = record_time(at->whole, at->whole_bytes);
	evidence->rank = record_launcher_rank(at->whole, at->whole_bytes);
	copy_text(evidence->text, sizeof(evidence->text), at->record->text,
		at->record->bytes);
}

struct fact_word *fact_words_add(struct log_facts *facts, struct fact_words *words,
	const char *text, size_t bytes, const struct fact_place *at)
{
	char name[FACTS_NAME_BYTES];
	int32_t host = at->proc >= 0 ? facts->procs[at->proc].host : -1;
	struct fact_word *word;
	uint32_t i;

	copy_text(name, sizeof(name), text, bytes);
	for (i = 0; i < words->count; i++)
		if (!strcmp(words->words[i].text, name))
			break;
	if (i == FACTS_WORDS_MAX)
		return NULL;
	word = &words->words[i];
	if (i == words->count) {
		words->count++;
		memcpy(word->text, name, sizeof(name));
		word->host = host;
	}
	if (host >= 0 && word->host >= 0 && host != word->host)
		word->several_hosts = true;
	evidence_add(facts, &word->seen, at);
	return word;
}

static uint32_t mix(uint64_t value)
{
	value ^= value >> 33;
	value *= 0xff51afd7ed558ccdull;
	value ^= value >> 33;
	return (uint32_t)value;
}

static bool pid_is_known(const struct log_facts *facts, int32_t host, int64_t pid)
{
	for (uint32_t i = 0; i < FACTS_PROCS_MAX; i++)
		if (facts->procs[i].is_used && facts->procs[i].pid == pid &&
			facts->procs[i].host == host)
			return true;
	return false;
}

/* A torn line may glue the end of another one to the host: "-1node7". */
static int32_t glued_host(const struct log_facts *facts, const struct record *record)
{
	for (uint32_t i = 0; i < facts->host_count; i++) {
		size_t bytes = strlen(facts->hosts[i]);

		if (bytes < record->host_bytes &&
			!memcmp(record->host + record->host_bytes - bytes,
				facts->hosts[i], bytes) &&
			pid_is_known(facts, (int32_t)i, record->pid))
			return (int32_t)i;
	}
	return -1;
}

/* Where a host stands in the table, or would: there are always free places. */
static uint16_t *host_slot(const struct log_facts *facts, const struct record *record)
{
	for (uint32_t slot = record->host_hash % FACTS_HOST_SLOTS;;
		slot = (slot + 1) % FACTS_HOST_SLOTS) {
		uint16_t host = facts->host_slots[slot];

		if (!host || (!memcmp(facts->hosts[host - 1], record->host,
				      record->host_bytes) &&
				     !facts->hosts[host - 1][record->host_bytes]))
			return &facts->host_slots[slot];
	}
}

int32_t log_facts_find_host(const struct log_facts *facts, const struct record *record)
{
	if (!record->host || record->host_bytes >= FACTS_NAME_BYTES)
		return -1;
	return *host_slot(facts, record) - 1;
}

int32_t log_facts_host(struct log_facts *facts, const struct record *record)
{
	int32_t host = log_facts_find_host(facts, record);

	if (host >= 0 || !record->host || record->host_bytes >= FACTS_NAME_BYTES)
		return host;
	host = glued_host(facts, record);
	if (host >= 0 || facts->host_count == FACTS_HOSTS_MAX)
		return host;
	memcpy(facts->hosts[facts->host_count], record->host, record->host_bytes);
	*host_slot(facts, record) = (uint16_t)++facts->host_count;
	return (int32_t)facts->host_count - 1;
}

int32_t log_facts_proc(struct log_facts *facts, const struct record *record)
{
	int32_t host = log_facts_host(facts, record);
	uint32_t slot;

	if (host < 0)
		return -1;
	facts->host_lines[host]++;
	slot = mix((uint64_t)record->pid << 20 ^ (uint64_t)host << 6 ^
		   (uint64_t)(record->device + 1));
	for (uint32_t k = 0; k < 64; k++) {
		uint32_t i = (slot + k) % FACTS_PROCS_MAX;
		struct fact_proc *proc = &facts->procs[i];

		if (proc->is_used && proc->pid == record->pid && proc->host == host &&
			proc->device == record->device)
			return (int32_t)i;
		if (proc->is_used)
			continue;
		if (facts->proc_count > FACTS_PROCS_MAX * 3 / 4)
			return -1;
		facts->proc_count++;
		log_facts_add_pid(facts, host, record->pid);
		*proc = (struct fact_proc){.is_used = true,
			.pid = record->pid,
			.host = host,
			.device = record->device,
			.rank = -1,
			.rank_count = 0};
		return (int32_t)i;
	}
	return -1;
}

struct fact_edge *log_facts_edge(
	struct log_facts *facts, int32_t from, int32_t to, int32_t comm_ranks)
{
	uint32_t slot = mix(
		(uint64_t)from << 40 ^ (uint64_t)to << 16 ^ (uint64_t)comm_ranks);

	for (uint32_t k = 0; k < 64; k++) {
		struct fact_edge *edge = &facts->edges[(slot + k) % FACTS_EDGES_MAX];

		if (edge->is_used && edge->from == from && edge->to == to &&
			edge->comm_ranks == comm_ranks)
			return edge;
		if (edge->is_used)
			continue;
		if (facts->edge_count > FACTS_EDGES_MAX * 3 / 4)
			return NULL;
		facts->edge_count++;
		*edge = (struct fact_edge){.is_used = true,
			.from = from,
			.to = to,
			.comm_ranks = comm_ranks};
		return edge;
	}
	return NULL;
}

const char *log_facts_env(const struct log_facts *facts, const char *name)
{
	for (uint32_t i = 0; i < facts->env_count; i++)
		if (!strcmp(facts->envs[i].name, name))
			return facts->envs[i].value;
	return NULL;
}

int32_t evidence_rank(const struct log_facts *facts, const struct evidence *evidence)
{
	const struct fact_proc *own;

	if (evidence->proc < 0 || !evidence->count)
		return evidence->rank;
	own = &facts->procs[evidence->proc];
	if (own->rank >= 0)
		return own->rank;
	/* helper threads may have no device, or another one */
	for (uint32_t i = 0; i < FACTS_PROCS_MAX; i++) {
		const struct fact_proc *proc = &facts->procs[i];

		if (proc->is_used && proc->pid == own->pid && proc->host == own->host &&
			proc->rank >= 0)
			return proc->rank;
	}
	return evidence->rank;
}
