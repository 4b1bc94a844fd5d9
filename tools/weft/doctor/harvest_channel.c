/* Channel lines: who talks to whom, by what. */
#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#include "weft/doctor/harvest.h"

struct reader {
	const char *at, *end;
};

static inline bool skip(struct reader *reader, const char *text)
{
	if (!text_begins(reader->at, (size_t)(reader->end - reader->at), text))
		return false;
	reader->at += strlen(text);
	return true;
}

static void skip_blanks(struct reader *reader)
{
	while (reader->at < reader->end && *reader->at == ' ')
		reader->at++;
}

static bool number(struct reader *reader, int32_t *value)
{
	const char *first = reader->at;
	int64_t sum = 0;

	while (reader->at < reader->end && is_digit(*reader->at) &&
		reader->at - first < 9)
		sum = sum * 10 + (*reader->at++ - '0');
	*value = (int32_t)sum;
	return reader->at > first;
}

/* "3[1a000]"; NCCL before 2.5 has no bracket between hosts */
static bool endpoint(struct reader *reader, int32_t *rank)
{
	if (!number(reader, rank))
		return false;
	if (!skip(reader, "["))
		return reader->at + 1 < reader->end && reader->at[0] == ' ' &&
		       (reader->at[1] == '-' || reader->at[1] == '[' ||
			       reader->at[1] == 'v');
	while (reader->at < reader->end && isxdigit((unsigned char)*reader->at))
		reader->at++;
	return skip(reader, "]");
}

static struct fact_net *find_net(struct log_facts *facts, const char *name, size_t bytes)
{
	struct fact_net *net;

	if (!bytes || bytes >= sizeof(facts->nets[0].name))
		return NULL;
	for (uint32_t i = 0; i < facts->net_count; i++)
		if (!strncmp(facts->nets[i].name, name, bytes) &&
			!facts->nets[i].name[bytes])
			return &facts->nets[i];
	if (facts->net_count == FACTS_NETS_MAX)
		return NULL;
	net = &facts->nets[facts->net_count++];
	memcpy(net->name, name, bytes);
	return net;
}

/* "NET/AWS Libfabric/0(3)/GDRDMA/Shared", after "NET/". */
static void take_net(struct log_facts *facts, struct reader *reader,
	struct fact_edge *edge, const struct fact_place *at)
{
	const char *name = reader->at;
	const char *slash = memchr(name, '/', (size_t)(reader->end - name));
	struct fact_net *net = slash ? find_net(facts, name, (size_t)(slash - name))
				     : NULL;
	int32_t device;
	bool gdr;

	if (!net)
		return;
	reader->at = slash + 1;
	if (!number(reader, &device))
		return;
	/* "/GD" is what a torn line leaves of it */
	gdr = text_seek(slash, (size_t)(reader->end - slash), "/GD", 3) != NULL;
	net->lines++;
	net->gdr_lines += gdr;
	if (device < 64)
		net->devices |= 1ull << device;
	evidence_add(facts, &net->seen, at);
	if (!gdr)
		evidence_add(facts, &net->plain, at);
	if (edge) {
		edge->net = (uint16_t)(net - facts->nets + 1);
		edge->gdr = edge->gdr || gdr;
	}
}

static void count_p2p(struct log_facts *facts, const struct reader *reader)
{
	static const char *const kinds[] = {
		"direct pointer", "IPC", "CUMEM", "indirect", "MNNVL"};

	for (int i = 0; i < 5; i++)
		if (text_begins(reader->at, (size_t)(reader->end - reader->at), kinds[i]))
			facts->p2p_kinds[i]++;
}

static void take_via(struct log_facts *facts, struct reader *reader, int32_t ranks[2],
	const struct fact_place *at)
{
	static const struct {
		const char *name;
		enum via via;
	} vias[] = {{"P2P/", VIA_P2P}, {"SHM/", VIA_SHM}, {"NET/", VIA_NET},
		{"COLLNET", VIA_COLLNET}, {"NVLS", VIA_NVLS}, {"direct shared", VIA_SHM}};
	int32_t comm = at->proc >= 0 ? facts->procs[at->proc].comm_ranks : 0;
	struct fact_edge *edge;

	for (size_t i = 0; i < sizeof(vias) / sizeof(vias[0]); i++) {
		if (!skip(reader, vias[i].name))
			continue;
		facts->via_lines[vias[i].via]++;
		evidence_add(facts, &facts->via_seen[vias[i].via], at);
		edge = log_facts_edge(facts, ranks[0], ranks[1], comm);
		if (edge)
			edge->counts[vias[i].via]++;
		if (vias[i].via == VIA_NET)
			take_net(facts, reader, edge, at);
		if (vias[i].via == VIA_P2P)
			count_p2p(facts, reader);
		return;
	}
}

/* Copy "  0   7  6" as "0 7 6" and count; 0: there is something else in it. */
static uint32_t copy_ring(struct reader *reader, char ring[FACTS_TEXT_BYTES])
{
	uint32_t count = 0;
	bool is_cut = false;
	size_t used = 0;
	int32_t rank;

	for (skip_blanks(reader); reader->at < reader->end; skip_blanks(reader)) {
		const char *first = reader->at;
		size_t digits;

		if (skip(reader, ".."))
			break;
		if (!number(reader, &rank))
			return 0;
		digits = (size_t)(reader->at - first);
		count++;
		is_cut = is_cut || used + digits + 4 > FACTS_TEXT_BYTES;
		if (is_cut)
			continue;
		memcpy(ring + used, first, digits);
		ring[used + digits] = ' ';
		used += digits + 1;
	}
	if (is_cut)
		memcpy(ring + used, "..", 3);
	else if (used)
		ring[used - 1] = 0;
	return count;
}

/* "Channel 00/24 : 0 1 2 3" is a ring. Of each number the longest is kept: it is of the
 * largest communicator, whose size old versions tell only afterwards. */
static void take_ring(struct log_facts *facts, int32_t channel, struct reader *reader)
{
	char ring[FACTS_TEXT_BYTES] = "";
	uint32_t count;

	if (channel >= FACTS_RINGS_MAX)
		return;
	count = copy_ring(reader, ring);
	if (count <= facts->ring_ranks[channel])
		return;
	memcpy(facts->rings[channel], ring, sizeof(ring));
	facts->ring_ranks[channel] = count;
	if (facts->ring_count <= (uint32_t)channel)
		facts->ring_count = (uint32_t)channel + 1;
}

void harvest_channel(struct log_facts *facts, const struct fact_place *at)
{
	struct reader reader = {at->record->text, at->record->text + at->record->bytes};
	struct reader ring;
	int32_t channel, total = 0, ranks[2];
	bool is_channel = skip(&reader, "Channel ");

	if ((!is_channel && !skip(&reader, "Ring ")) || !number(&reader, &channel))
		return;
	if (skip(&reader, "/") && !number(&reader, &total))
		return;
	skip_blanks(&reader);
	if (!skip(&reader, ":"))
		return;
	skip_blanks(&reader);
	ring = reader;
	if (!endpoint(&reader, &ranks[0])) {
		if (is_channel && total && total <= 1024)
			take_ring(facts, channel, &ring);
		return;
	}
	if (!skip(&reader, " -> ") || !endpoint(&reader, &ranks[1]))
		return;
	skip_blanks(&reader);
	if (!skip(&reader, "[send] "))
		skip(&reader, "[receive] ");
	if (skip(&reader, "via "))
		take_via(facts, &reader, ranks, at);
}
