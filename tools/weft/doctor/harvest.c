#include "weft/doctor/harvest.h"

#include <assert.h>
#include <ctype.h>
#include <stdio.h>
#include <string.h>

#include "base/hash.h"
#include "weft/doctor/signs.h"

enum { FOUND_MAX = 64 };

/* A word that a sign asks for beside its own: its number, + 1. */
static uint16_t add_detail(const char *word, const char **list, uint32_t *count)
{
	if (!word)
		return 0;
	assert(*count < WORDS_MAX);
	list[*count] = word;
	return (uint16_t)++ * count;
}

static enum err prepare_words(struct harvest *harvest)
{
	uint32_t count, detail_count = 0;
	const struct sign *signs = signs_list(&count);
	const char *list[HARVEST_SIGNS_MAX], *details[WORDS_MAX];
	enum err e;

	assert(count <= HARVEST_SIGNS_MAX);
	for (uint32_t i = 0; i < count; i++) {
		list[i] = signs[i].word;
		harvest->also[i] = add_detail(signs[i].also, details, &detail_count);
		harvest->unless[i] = add_detail(signs[i].unless, details, &detail_count);
	}
	e = words_create(&harvest->words, list, count);
	return e ? e : words_create(&harvest->details, details, detail_count);
}

enum err harvest_init(struct harvest *harvest)
{
	enum err e;

	*harvest = (struct harvest){0};
	e = prepare_words(harvest);
	if (!e)
		e = jobs_init(&harvest->jobs);
	if (e)
		harvest_fini(harvest);
	else
		harvest->facts = harvest->jobs.facts[0];
	return e;
}

void harvest_fini(struct harvest *harvest)
{
	words_destroy(harvest->words);
	words_destroy(harvest->details);
	jobs_fini(&harvest->jobs);
	*harvest = (struct harvest){0};
}

static bool level_fits(const struct sign *sign, const struct record *record)
{
	if (sign->flags & SIGN_WARN)
		return record->level == RECORD_WARN;
	if (sign->flags & SIGN_NCCL)
		return record->level != RECORD_OTHER;
	if (sign->flags & SIGN_APP)
		return record->level == RECORD_OTHER;
	return true;
}

/* A WARN tells its place in the source before its text. */
static const char *searched(const struct record *record, size_t *bytes)
{
	const char *from = record->level == RECORD_WARN ? record->begin : record->text;

	*bytes = (size_t)(record->text + record->bytes - from);
	return from;
}

/* What else is in a line with signs. */
struct details {
	uint64_t present[(WORDS_MAX + 63) / 64];
};

static bool has_detail(const struct details *details, uint16_t which)
{
	return details->present[(which - 1) / 64] >> (which - 1) % 64 & 1;
}

static void find_details(const struct harvest *harvest, const struct record *record,
	struct details *details)
{
	uint16_t found[WORDS_MAX];
	size_t bytes;
	const char *text = searched(record, &bytes);
	uint32_t count = words_find(harvest->details, text, bytes, found, WORDS_MAX);

	for (uint32_t i = 0; i < count; i++)
		details->present[found[i] / 64] |= 1ull << found[i] % 64;
}

static bool sign_fits(const struct harvest *harvest, uint16_t which,
	const struct record *record, const struct details *details)
{
	uint16_t also = harvest->also[which], unless = harvest->unless[which];
	uint32_t count;

	return level_fits(&signs_list(&count)[which], record) &&
	       (!also || has_detail(details, also)) &&
	       (!unless || !has_detail(details, unless));
}

/* The ends of a failing transfer: which peer, and whether its addresses are only local to
 * the link, as those of a NIC without an IP address. */
static void note_transfer(struct log_facts *facts, const struct record *record)
{
	size_t bytes = 0, room = sizeof(facts->peer) - 1;
	const char *peer;

	if (text_has(record->text, record->bytes, "localGid fe80::") ||
		text_has(record->text, record->bytes, "localGid  fe80::"))
		facts->link_local_gid = true;
	peer = facts->peer[0] ? NULL
			      : text_find(record->text, record->bytes, "from peer ");
	if (!peer)
		return;
	peer += strlen("from peer ");
	while (bytes < room && peer + bytes < record->text + record->bytes &&
		!isspace((unsigned char)peer[bytes]) && peer[bytes] != '<')
		bytes++;
	memcpy(facts->peer, peer, bytes);
}

/* The good bits of a product are the upper ones: they must reach the lower. */
static uint64_t mix(uint64_t hash, uint64_t part)
{
	uint64_t product = hash_spread(hash ^ part);

	return product ^ product >> 32;
}

/* Eight bytes at a time, in two rows that do not wait for each other: much less than
 * looking for words takes. Never 0. */
static uint64_t hash_of(const char *text, size_t bytes)
{
	uint64_t hash = mix(HASH_START, bytes), other = HASH_START, parts[2];

	for (; bytes >= sizeof(parts); text += sizeof(parts), bytes -= sizeof(parts)) {
		memcpy(parts, text, sizeof(parts));
		hash = mix(hash, parts[0]);
		other = mix(other, parts[1]);
	}
	parts[0] = parts[1] = 0;
	memcpy(parts, text, bytes);
	return mix(mix(hash, parts[0]), mix(other, parts[1])) | 1;
}

static bool is_benign(const struct harvest *harvest, const uint16_t *found,
	uint32_t count, const struct record *record, const struct details *details)
{
	uint32_t all;
	const struct sign *signs = signs_list(&all);

	for (uint32_t i = 0; i < count; i++)
		if ((signs[found[i]].flags & SIGN_BENIGN) &&
			sign_fits(harvest, found[i], record, details))
			return true;
	return false;
}

/* A sign that stands for something, once for each finding of a line. */
static void take_sign(struct log_facts *facts, const struct sign *sign, uint64_t *done,
	const struct fact_place *at)
{
	uint64_t bit = 1ull << (sign->finding & 63);

	if (sign->flags & SIGN_DETAIL) {
		evidence_add(facts, &facts->sign_detail[sign->finding], at);
		return;
	}
	if (done[sign->finding / 64] & bit)
		return;
	done[sign->finding / 64] |= bit;
	evidence_add(facts, &facts->signs[sign->finding], at);
	if (sign->finding == FIND_IB_RETRY || sign->finding == FIND_IB_OTHER)
		note_transfer(facts, at->record);
}

/* True: a sign of the catalogue, or benign. */
static bool take_signs(struct harvest *harvest, const struct fact_place *at)
{
	const struct record *record = at->record;
	uint32_t count;
	const struct sign *signs = signs_list(&count);
	uint16_t found[FOUND_MAX];
	uint64_t done[(FIND_COUNT + 63) / 64] = {0};
	bool taken = false;
	struct details details = {0};
	bool is_asked = false;
	size_t bytes;
	const char *text = searched(record, &bytes);
	uint64_t hash = hash_of(text, bytes);
	uint64_t *quiet = &harvest->quiet[hash % HARVEST_QUIET];

	if (*quiet == hash)
		return false;
	count = words_find(harvest->words, text, bytes, found, FOUND_MAX);
	if (!count) {
		*quiet = hash;
		return false;
	}
	for (uint32_t i = 0; i < count; i++) {
		if (signs[found[i]].flags & SIGN_HOOK)
			harvest->is_hooked = true;
		is_asked |= harvest->also[found[i]] || harvest->unless[found[i]];
	}
	if (is_asked)
		find_details(harvest, record, &details);
	if (is_benign(harvest, found, count, record, &details)) {
		harvest->facts->benign++;
		return true;
	}
	for (uint32_t i = 0; i < count; i++) {
		const struct sign *sign = &signs[found[i]];

		if (sign->finding == FIND_COUNT ||
			!sign_fits(harvest, found[i], record, &details))
			continue;
		taken = true;
		take_sign(harvest->facts, sign, done, at);
	}
	return taken;
}

/* "transport.cc:33", "ib_plugin.c:196" or "include/shm.h:41" */
static bool is_place(const char *text, size_t bytes)
{
	const char *colon = memrchr(text, ':', bytes);
	const char *dot = colon ? memrchr(text, '.', (size_t)(colon - text)) : NULL;

	return dot && colon - dot <= 4 && dot > text &&
	       (dot[1] == 'c' || dot[1] == 'h') && colon + 1 < text + bytes &&
	       isdigit((unsigned char)colon[1]);
}

/* "transport.cc:33 -> 2": an error on its way up. */
static bool is_chain(const struct record *record, int64_t *code)
{
	const char *arrow = memchr(record->text, ' ', record->bytes);
	size_t name = arrow ? (size_t)(arrow - record->text) : 0, left;

	if (!arrow || !text_begins(arrow, record->bytes - name, " -> ") ||
		!is_place(record->text, name))
		return false;
	/* closing sockets at the end of a job looks like this, too */
	if (text_begins(record->text, name, "misc/socket.cc") ||
		text_begins(record->text, name, "proxy.cc"))
		return false;
	arrow += 4;
	left = (size_t)(record->text + record->bytes - arrow);
	if (!left || !isdigit((unsigned char)*arrow) ||
		(left > 1 && isdigit((unsigned char)arrow[1])))
		return false;
	*code = *arrow - '0';
	return *code > 0 && *code != 7;
}

/* "AllReduce: opCount 3 sendbuff ..": one line a call, by far the most of some logs. */
static bool is_call(const struct record *record)
{
	const char *colon = record->bytes
				    ? memchr(record->text, ':',
					      record->bytes < 24 ? record->bytes : 24)
				    : NULL;

	return colon && text_begins(colon, (size_t)(record->text + record->bytes - colon),
				": opCount ");
}

static void take_nccl(struct harvest *harvest, const struct fact_place *at)
{
	struct log_facts *facts = harvest->facts;
	const struct record *record = at->record;
	struct fact_proc *proc = at->proc >= 0 ? &facts->procs[at->proc] : NULL;
	bool known;
	int64_t code;

	if (record->level == RECORD_INFO) {
		if (text_begins(record->text, record->bytes, "Channel ") ||
			text_begins(record->text, record->bytes, "Ring ")) {
			harvest_channel(facts, at);
			return;
		}
		if (text_begins(record->text, record->bytes, "Trees ") ||
			text_begins(record->text, record->bytes, "Tree ") ||
			is_call(record))
			return;
		harvest_info(facts, at);
		if (is_chain(record, &code)) {
			evidence_add(facts, &facts->chain, at);
			facts->chain_code = facts->chain_code ? facts->chain_code
							      : (int32_t)code;
			if (proc)
				proc->chained = true;
			return;
		}
	}
	known = take_signs(harvest, at);
	if (record->level != RECORD_WARN)
		return;
	if (proc && known)
		proc->warned = true;
	if (!known)
		evidence_add(facts, &facts->signs[FIND_UNKNOWN_WARNING], at);
}

/* An exception repeats NCCL's last warning in a line of its own, which is all there is
 * when NCCL was told to be silent. */
static void take_last_error(struct harvest *harvest, const struct fact_place *at)
{
	struct record record = *at->record;
	struct fact_place place = *at;

	if (record.level != RECORD_OTHER)
		return;
	record.level = RECORD_WARN;
	place.record = &record;
	take_signs(harvest, &place);
}

static bool ends_with(const struct record *record, const char *words)
{
	size_t bytes = record->bytes, length = strlen(words);

	while (bytes && isspace((unsigned char)record->text[bytes - 1]))
		bytes--;
	return bytes >= length && !memcmp(record->text + bytes - length, words, length);
}

static void take_record(struct harvest *harvest, struct fact_place *at)
{
	struct log_facts *facts = harvest->facts;
	const struct record *record = at->record;

	if (facts->is_last_error) {
		facts->is_last_error = false;
		take_last_error(harvest, at);
	}
	if (record->level == RECORD_OTHER) {
		facts->is_last_error = ends_with(record, "Last error:");
		harvest->is_hooked = facts->root_lines > 0;
		take_signs(harvest, at);
		/* XLA puts it into its own sentence */
		if (harvest->is_hooked &&
			text_has(record->text, record->bytes, "Last NCCL warning"))
			take_last_error(harvest, at);
		harvest_program(facts, at, harvest->is_hooked);
		return;
	}
	facts->nccl_line_count++;
	at->proc = log_facts_proc(facts, record);
	if (record->level != RECORD_TRACE)
		take_nccl(harvest, at);
}

/* The records of a line from the first one, which is there, to the last. */
static void take_line(struct harvest *harvest, const struct line *line, size_t from,
	struct record *record)
{
	bool is_counted = false;

	do {
		struct fact_place at = {.line = line->number,
			.whole = line->text,
			.whole_bytes = line->bytes,
			.record = record,
			.proc = -1};

		harvest->facts = jobs_of(&harvest->jobs, record);
		if (!is_counted) {
			harvest->facts->line_count++;
			if (!harvest->facts->line_first)
				harvest->facts->line_first = line->number;
			harvest->facts->line_last = line->number;
		}
		is_counted = true;
		take_record(harvest, &at);
	} while (record_next(line->text, line->bytes, &from, record));
}

static void take_held(struct harvest *harvest)
{
	struct line line;
	size_t at = 0;

	while (jobs_release(&harvest->jobs, &at, &line)) {
		struct record record;
		size_t from = 0;

		if (record_next(line.text, line.bytes, &from, &record))
			take_line(harvest, &line, from, &record);
	}
}

/* Docker keeps each line as {"log":"text\\n","stream":"stdout",..}: the text of it. */
static struct line unwrapped(const struct line *line)
{
	static const char before[] = "{\"log\":\"", after[] = "\",\"stream\":";
	struct line inner = *line;
	const char *end;

	if (!text_begins(line->text, line->bytes, before))
		return inner;
	inner.text += sizeof(before) - 1;
	inner.bytes -= sizeof(before) - 1;
	end = memmem(inner.text, inner.bytes, after, sizeof(after) - 1);
	if (end)
		inner.bytes = (size_t)(end - inner.text);
	if (inner.bytes >= 2 && !memcmp(inner.text + inner.bytes - 2, "\\n", 2))
		inner.bytes -= 2;
	return inner;
}

void harvest_line(struct harvest *harvest, const struct line *wrapped)
{
	struct line inner = unwrapped(wrapped), *line = &inner;
	struct record record;
	size_t from = 0;

	if (!record_next(line->text, line->bytes, &from, &record))
		return;
	switch (jobs_look(&harvest->jobs, line, &record, from)) {
	case JOBS_HELD:
		return;
	case JOBS_FULL:
		take_held(harvest);
		break;
	case JOBS_DECIDED:
		take_held(harvest);
		return;
	case JOBS_TAKE:
		break;
	}
	take_line(harvest, line, from, &record);
}

void harvest_end(struct harvest *harvest)
{
	take_held(harvest);
}

static uint64_t told(const struct harvest *harvest)
{
	uint64_t sum = 0;

	for (uint32_t i = 0; i < harvest->jobs.count; i++)
		sum += log_facts_told(harvest->jobs.facts[i]);
	return sum;
}

static enum err tells_nothing(const char *name, uint64_t bytes)
{
	return err_set(ERR_USAGE,
		bytes ? "%s holds nothing of NCCL, its plugins, torchrun or nccl-tests; "
			"name another file, or run the job with NCCL_DEBUG=INFO"
		      : "%s is empty; name another file, or run the job with "
			"NCCL_DEBUG=INFO",
		name);
}

enum err harvest_log(struct harvest *harvest, const char *path)
{
	const char *name = strcmp(path, "-") ? path : "standard input";
	uint64_t before = told(harvest), bytes;
	struct lines *lines;
	struct line line;
	enum err e = jobs_file(&harvest->jobs, name);

	if (!e)
		e = lines_open(&lines, path);
	if (e)
		return e;
	while (!(e = lines_next(lines, &line)))
		harvest_line(harvest, &line);
	harvest_end(harvest);
	bytes = lines_bytes(lines);
	harvest->facts->byte_count += bytes;
	lines_close(lines);
	if (e != ERR_AGAIN)
		return e;
	return told(harvest) > before ? OK : tells_nothing(name, bytes);
}

bool harvest_logs(struct harvest *harvest, const char *command, char *const *paths,
	int count, int *bad)
{
	int silent = 0;

	*bad = 0;
	for (int i = 0; i < count; i++) {
		enum err e = harvest_log(harvest, paths[i]);

		if (!e)
			continue;
		fprintf(stderr, "weft %s: %s\n", command, err_last());
		silent += e == ERR_USAGE;
		*bad += e != ERR_USAGE;
	}
	return *bad + silent < count;
}
