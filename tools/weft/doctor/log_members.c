/* Which processes were seen, and which ranks of which communicators they took. */
#include <ctype.h>
#include <string.h>

#include "weft/doctor/log_facts.h"

enum { PROBES = 64 };

/* One value in a table of `room` places, 0 being a free one: its place, or the free one
 * where it would go; -1: neither is near. */
static int64_t place_of(const uint64_t *table, uint32_t room, uint64_t value)
{
	uint64_t mixed = value * 0x9e3779b97f4a7c15ull;

	for (uint32_t i = 0; i < PROBES; i++) {
		uint32_t at = ((uint32_t)(mixed >> 32) + i) % room;

		if (!table[at] || table[at] == value)
			return at;
	}
	return -1;
}

static bool has(const uint64_t *table, uint32_t room, uint64_t value)
{
	int64_t at = place_of(table, room, value);

	return at >= 0 && table[at] == value;
}

static bool add(uint64_t *table, uint32_t room, uint64_t value)
{
	int64_t at = place_of(table, room, value);

	if (at < 0 || table[at] == value)
		return false;
	table[at] = value;
	return true;
}

static uint64_t pid_value(int32_t host, int64_t pid)
{
	return ((uint64_t)host << 44 ^ (uint64_t)pid) + 1;
}

bool log_facts_has_pid(const struct log_facts *facts, const struct record *record)
{
	int32_t host = log_facts_find_host(facts, record);

	return host >= 0 &&
	       has(facts->pids, FACTS_PROCS_MAX, pid_value(host, record->pid));
}

void log_facts_add_pid(struct log_facts *facts, int32_t host, int64_t pid)
{
	add(facts->pids, FACTS_PROCS_MAX, pid_value(host, pid));
}

static uint64_t hex_after(const struct record *record, const char *words)
{
	const char *at = text_seek(record->text, record->bytes, words, strlen(words));
	const char *end = record->text + record->bytes;
	uint64_t value = 0;

	if (!at)
		return 0;
	for (at += strlen(words); at < end && isxdigit((unsigned char)*at); at++) {
		int low = tolower((unsigned char)*at);

		value = value << 4 | (uint64_t)(low <= '9' ? low - '0' : low - 'a' + 10);
	}
	return value;
}

bool log_facts_member(const struct record *record, struct fact_member *member)
{
	int64_t rank, count;

	if (!text_number(record->text, record->bytes, " rank ", &rank) ||
		(!text_number(record->text, record->bytes, " nranks ", &count) &&
			!text_number(record->text, record->bytes, " nRanks ", &count)) ||
		count < 1 || count > 1 << 24 || rank >= count)
		return false;
	*member = (struct fact_member){.rank = (int32_t)rank,
		.rank_count = (int32_t)count,
		.comm = hex_after(record, "commId 0x")};
	return true;
}

static uint64_t member_value(const struct fact_member *member)
{
	return ((uint64_t)member->rank_count << 32 | (uint32_t)member->rank) + 1;
}

void log_facts_add_member(struct log_facts *facts, const struct fact_member *member)
{
	if (facts->member_count < FACTS_MEMBERS_MAX * 3 / 4)
		facts->member_count += add(
			facts->members, FACTS_MEMBERS_MAX, member_value(member));
	if (member->comm && facts->comm_count < FACTS_COMMS_MAX &&
		!log_facts_has_comm(facts, member->comm))
		facts->comms[facts->comm_count++] = member->comm;
	if (facts->size_count < FACTS_SIZES_MAX &&
		!log_facts_has_size(facts, member->rank_count))
		facts->sizes[facts->size_count++] = member->rank_count;
}

bool log_facts_has_member(const struct log_facts *facts, const struct fact_member *member)
{
	return has(facts->members, FACTS_MEMBERS_MAX, member_value(member));
}

bool log_facts_has_comm(const struct log_facts *facts, uint64_t comm)
{
	for (uint32_t i = 0; i < facts->comm_count; i++)
		if (facts->comms[i] == comm)
			return true;
	return false;
}

bool log_facts_has_size(const struct log_facts *facts, int32_t rank_count)
{
	for (uint32_t i = 0; i < facts->size_count; i++)
		if (facts->sizes[i] == rank_count)
			return true;
	return false;
}
