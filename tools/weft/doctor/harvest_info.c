/* What NCCL's INFO lines say of the job: sizes, networks, settings, the machine. */
#include <ctype.h>
#include <string.h>

#include "weft/doctor/harvest.h"

struct part {
	const char *text;
	size_t bytes;
};

static const char *has(const char *text, size_t bytes, const char *words)
{
	return text_seek(text, bytes, words, strlen(words));
}

static struct part after(const struct record *record, const char *words)
{
	size_t length = strlen(words);
	const char *at = text_seek(record->text, record->bytes, words, length);
	struct part part = {NULL, 0};

	if (at) {
		part.text = at + length;
		part.bytes = (size_t)(record->text + record->bytes - part.text);
	}
	return part;
}

static size_t word_bytes(struct part part, const char *ends)
{
	size_t bytes = 0;

	while (bytes < part.bytes && !strchr(ends, part.text[bytes]) && part.text[bytes])
		bytes++;
	return bytes;
}

static bool number_after(const struct record *record, const char *words, int32_t *number)
{
	int64_t value;

	if (!text_number(record->text, record->bytes, words, &value) || value > 1 << 24)
		return false;
	*number = (int32_t)value;
	return true;
}

/* A list takes the word after these words; true when they are there. */
static bool list_word(struct log_facts *facts, struct fact_words *list, const char *words,
	const char *ends, const struct fact_place *at)
{
	struct part part = after(at->record, words);
	size_t bytes = part.text ? word_bytes(part, ends) : 0;

	if (bytes && bytes < FACTS_NAME_BYTES)
		fact_words_add(facts, list, part.text, bytes, at);
	return part.text != NULL;
}

static void keep_bus_id(struct log_facts *facts, const struct record *record)
{
	struct part part = after(record, " busId ");
	uint32_t id = 0;

	for (size_t i = 0; i < part.bytes && isxdigit((unsigned char)part.text[i]); i++) {
		char low = (char)tolower((unsigned char)part.text[i]);

		id = id << 4 | (uint32_t)(low <= '9' ? low - '0' : low - 'a' + 10);
	}
	for (uint32_t i = 0; i < facts->bus_id_count; i++)
		if (facts->bus_ids[i] == id)
			return;
	if (part.text && facts->bus_id_count < FACTS_WORDS_MAX)
		facts->bus_ids[facts->bus_id_count++] = id;
}

/* "comm 0x.. rank 3 nranks 8 cudaDev .. - Init START" and its relatives. */
static void take_init(struct log_facts *facts, const struct fact_place *at)
{
	const struct record *record = at->record;
	struct fact_proc *proc = at->proc >= 0 ? &facts->procs[at->proc] : NULL;
	struct fact_member member;
	int32_t rank, rank_count;

	if (has(record->text, record->bytes, "Init START")) {
		facts->init_starts++;
		evidence_add(facts, &facts->init_start_seen, at);
	}
	if (has(record->text, record->bytes, "Init COMPLETE"))
		facts->init_completes++;
	if (has(record->text, record->bytes, "Destroy COMPLETE"))
		facts->destroys++;
	if (has(record->text, record->bytes, "Abort COMPLETE"))
		facts->aborts++;
	if (!log_facts_member(record, &member))
		return;
	log_facts_add_member(facts, &member);
	rank = member.rank;
	rank_count = member.rank_count;
	keep_bus_id(facts, record);
	if (rank_count > facts->rank_count) {
		facts->rank_count = rank_count;
		facts->node_count = facts->local_max = facts->local_min = 0;
	}
	if (!proc)
		return;
	proc->comm_ranks = rank_count;
	if (rank_count >= proc->rank_count) {
		if (rank_count == 1 && proc->rank_count == 0)
			facts->one_rank_comms++;
		proc->rank = rank;
		proc->rank_count = rank_count;
	}
}

/* "comm .. rank 0 nRanks 16 nNodes 2 localRanks 8 localRank 0 MNNVL 0" */
static void take_summary(struct log_facts *facts, const struct fact_place *at)
{
	int32_t ranks, nodes, local;

	take_init(facts, at);
	if (!number_after(at->record, " nRanks ", &ranks) ||
		!number_after(at->record, " nNodes ", &nodes) ||
		!number_after(at->record, " localRanks ", &local) ||
		ranks != facts->rank_count)
		return;
	evidence_add(facts, &facts->summary, at);
	if (nodes > facts->node_count)
		facts->node_count = nodes;
	if (local > facts->local_max)
		facts->local_max = local;
	if (!facts->local_min || local < facts->local_min)
		facts->local_min = local;
}

static void take_env(struct log_facts *facts, const struct fact_place *at)
{
	const struct record *record = at->record;
	static const char words[] = " set by environment to ";
	/* the blank at the end may be gone with nothing after it */
	const char *mark = has(record->text, record->bytes, " set by environment to");
	size_t name = mark ? (size_t)(mark - record->text) : 0, value = 0;
	const char *from = mark ? mark + sizeof(words) - 1 : NULL;
	struct fact_env *env;
	uint32_t i;

	if (!mark || !name || name >= FACTS_NAME_BYTES || memchr(record->text, ' ', name))
		return;
	if (from < record->text + record->bytes)
		value = (size_t)(record->text + record->bytes - from);
	/* some versions end the sentence, but no path ends so */
	if (value && from[value - 1] == '.' && !memchr(from, '/', value))
		value--;
	if (value >= FACTS_NAME_BYTES)
		value = FACTS_NAME_BYTES - 1;
	for (i = 0; i < facts->env_count; i++)
		if (!strncmp(facts->envs[i].name, record->text, name) &&
			!facts->envs[i].name[name])
			break;
	if (i == FACTS_ENVS_MAX)
		return;
	env = &facts->envs[i];
	if (i == facts->env_count) {
		facts->env_count++;
		memcpy(env->name, record->text, name);
		memcpy(env->value, from, value);
	} else if (!env->differs &&
		   (strncmp(env->value, from, value) || env->value[value])) {
		env->differs = true;
		memcpy(env->other, from, value);
		env->other[value] = 0;
	}
	evidence_add(facts, &env->seen, at);
}

static void take_boot_address(struct log_facts *facts, struct part part)
{
	const char *colon = memchr(part.text, ':', part.bytes);
	const char *end = part.text + part.bytes, *dot;
	uint32_t network, i;

	/* an IPv4 address; of others we know no networks */
	if (!colon || colon + 1 >= end || !isdigit((unsigned char)colon[1]))
		return;
	dot = memchr(colon, '.', (size_t)(end - colon));
	if (!dot)
		return;
	network = (uint32_t)text_real(colon + 1, dot) << 8 |
		  (uint32_t)text_real(
			  dot + 1, memchr(dot + 1, '.', (size_t)(end - dot - 1)) ?: end);
	for (i = 0; i < facts->boot_networks; i++)
		if (facts->boot_addresses[i] == network)
			return;
	if (i < FACTS_WORDS_MAX)
		facts->boot_addresses[facts->boot_networks++] = network;
}

/* How many "[0]name" there are; the names without numbers' end go on a list. */
static int32_t take_devices(struct log_facts *facts, struct fact_words *list,
	struct part part, const struct fact_place *at)
{
	int32_t count = 0;

	for (size_t i = 0; i + 3 < part.bytes; i++) {
		struct part name;
		size_t bytes;

		if (part.text[i] != '[' || !isdigit((unsigned char)part.text[i + 1]))
			continue;
		while (i < part.bytes && part.text[i] != ']')
			i++;
		if (i + 1 >= part.bytes)
			break;
		name = (struct part){part.text + i + 1, part.bytes - i - 1};
		bytes = word_bytes(name, ": ;<");
		count++;
		if (bytes && bytes < FACTS_NAME_BYTES)
			fact_words_add(facts, list, name.text, bytes, at);
	}
	return count;
}

static void take_network(struct log_facts *facts, const struct fact_place *at)
{
	const struct record *record = at->record;
	struct part part;

	if (list_word(facts, &facts->networks, "Using network ", "", at))
		return;
	part = after(record, "NET/IB : Using ");
	if (part.text) {
		int32_t count = take_devices(facts, &facts->ib_devices, part, at);

		evidence_add(facts, &facts->ib_seen, at);
		if (facts->ib_nic_count_min < 0 || count < facts->ib_nic_count_min)
			facts->ib_nic_count_min = count;
		if (count > facts->ib_nic_count_max)
			facts->ib_nic_count_max = count;
		return;
	}
	part = after(record, "NET/Socket : Using ");
	if (part.text) {
		int32_t count = take_devices(facts, &facts->socket_ifaces, part, at);

		evidence_add(facts, &facts->socket_seen, at);
		if (count > facts->socket_iface_count)
			facts->socket_iface_count = count;
	}
}

static void take_ofi(struct log_facts *facts, const struct fact_place *at)
{
	int32_t nics;

	list_word(facts, &facts->plugins, "Initializing aws-ofi-nccl ", " ", at);
	list_word(facts, &facts->plugins, "NET/OFI Using aws-ofi-nccl ", " ", at);
	list_word(facts, &facts->libfabrics, "Using Libfabric version ", " ", at);
	if (has(at->record->text, at->record->bytes, "P4d platform"))
		fact_words_add(facts, &facts->platforms, "p4d.24xlarge", 12, at);
	else if (has(at->record->text, at->record->bytes, "P3dn platform"))
		fact_words_add(facts, &facts->platforms, "p3dn.24xlarge", 13, at);
	else
		list_word(facts, &facts->platforms, "Running on ", " ", at);
	list_word(facts, &facts->platforms, "for platform : ", " ,", at);
	list_word(facts, &facts->providers, "elected provider is ", " ,", at);
	list_word(facts, &facts->providers, "elected Provider is ", " ,", at);
	list_word(facts, &facts->protocols, "Using transport protocol ", " ", at);
	if (number_after(at->record, "(found ", &nics)) {
		evidence_add(facts, &facts->nics_seen, at);
		if (nics > facts->found_nics)
			facts->found_nics = nics;
	}
}

/* The block "=== System": what hangs on which GPU, and how fast. */
static void take_link(struct log_facts *facts, const struct record *record)
{
	struct part gpu = after(record, "] - GPU/"), link = after(record, "+ NVL[");
	struct part to;
	size_t bytes;

	if (gpu.text && !link.text) {
		bytes = word_bytes(gpu, " (");
		if (bytes < sizeof(facts->gpu_above)) {
			memset(facts->gpu_above, 0, sizeof(facts->gpu_above));
			memcpy(facts->gpu_above, gpu.text, bytes);
		}
		return;
	}
	to = after(record, "] - ");
	if (!link.text || !to.text)
		return;
	facts->has_nvlink = true;
	bytes = word_bytes(to, " (");
	for (uint32_t i = 0; i < facts->link_count; i++)
		if (!strcmp(facts->links[i].from, facts->gpu_above) &&
			!strncmp(facts->links[i].to, to.text, bytes))
			return;
	if (facts->link_count < FACTS_LINKS_MAX && bytes < sizeof(facts->links[0].to)) {
		struct fact_link *made = &facts->links[facts->link_count++];

		memcpy(made->from, facts->gpu_above, sizeof(made->from));
		memcpy(made->to, to.text, bytes);
		made->bw = text_real(link.text, link.text + link.bytes);
	}
}

static void take_system(struct log_facts *facts, const struct fact_place *at)
{
	struct part bw = after(at->record, "=== System : maxBw ");

	if (bw.text) {
		double value = text_real(bw.text, bw.text + bw.bytes);

		facts->has_system = true;
		evidence_add(facts, &facts->system_seen, at);
		if (value > facts->max_bw && value < 1e5)
			facts->max_bw = value;
	}
}

static void take_channels(struct log_facts *facts, const struct fact_place *at)
{
	int32_t ranks = at->proc >= 0 ? facts->procs[at->proc].comm_ranks : 0;
	int32_t count = (int32_t)text_real(
		at->record->text, at->record->text + at->record->bytes);

	if (count < 1 || count > 1024 || (ranks && ranks < facts->coll_channels_ranks))
		return;
	if (ranks > facts->coll_channels_ranks)
		facts->channels_seen = (struct evidence){0};
	evidence_add(facts, &facts->channels_seen, at);
	if (ranks > facts->coll_channels_ranks || count > facts->coll_channels_max)
		facts->coll_channels_max = count;
	facts->coll_channels_ranks = ranks;
	number_after(at->record, " collnet channels, ", &facts->nvls_channels);
}

/* Lines that begin with a name tell by it what they are. */
static bool take_named(struct log_facts *facts, const struct fact_place *at)
{
	const struct record *record = at->record;
	const char *text = record->text;
	size_t bytes = record->bytes;

	if (text_begins(text, bytes, "Bootstrap")) {
		struct part part = after(record, ": Using ");

		if (part.text) {
			/* early versions list all: "[0]eth0:10.0.0.1<0> [1].." */
			if (!take_devices(facts, &facts->boot_ifaces, part, at))
				list_word(
					facts, &facts->boot_ifaces, ": Using ", ":", at);
			take_boot_address(facts, part);
		}
		return true;
	}
	if (text_begins(text, bytes, "NET/OFI") || text_begins(text, bytes, "TUNER")) {
		take_ofi(facts, at);
		return true;
	}
	if (text_begins(text, bytes, "NET/") ||
		text_begins(text, bytes, "Using network")) {
		take_network(facts, at);
		return true;
	}
	if (text_begins(text, bytes, "NCCL version ")) {
		list_word(facts, &facts->versions, "NCCL version ", " ", at);
		return true;
	}
	if (text_begins(text, bytes, "Pattern ")) {
		facts->has_nvlink = facts->has_nvlink || has(text, bytes, "type NVL");
		return true;
	}
	return false;
}

void harvest_info(struct log_facts *facts, const struct fact_place *at)
{
	const struct record *record = at->record;
	const char *text = record->text;
	size_t bytes = record->bytes;
	char first = bytes ? text[0] : 0;

	switch (first) {
	case '+':
		take_link(facts, record);
		break;
	case '=':
		take_system(facts, at);
		break;
	case 'c': /* comm .. */
	case 'n': /* ncclCommInitRank .. */
	case '[': /* [Rank 0] .. */
		if (has(text, bytes, " nNodes "))
			take_summary(facts, at);
		else if (has(text, bytes, "Init START") || has(text, bytes, " COMPLETE"))
			take_init(facts, at);
		break;
	default:
		if (isdigit((unsigned char)first)) {
			if (has(text, bytes, " coll channels"))
				take_channels(facts, at);
		} else if (isupper((unsigned char)first) && !take_named(facts, at)) {
			take_env(facts, at);
		}
	}
}
