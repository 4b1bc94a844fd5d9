/* What programs and launchers write: nccl-tests' tables, torch's watchdog, exits. */
#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/env_names.h"
#include "weft/doctor/harvest.h"

enum { FIELDS_MAX = 24, ROW_BYTES_MAX = 512, DIGITS_MAX = 18, ROOT_PARAGRAPH = 10 };

static void note_row(struct log_facts *facts, uint64_t bytes, double algbw, double busbw)
{
	uint32_t i;

	for (i = 0; i < facts->row_count; i++)
		if (facts->rows[i].bytes == bytes)
			break;
	if (i == FACTS_ROWS_MAX)
		return;
	if (i == facts->row_count) {
		facts->rows[facts->row_count++] = (struct fact_row){.bytes = bytes};
	}
	if (algbw > facts->rows[i].algbw)
		facts->rows[i].algbw = algbw;
	if (busbw > facts->rows[i].busbw)
		facts->rows[i].busbw = busbw;
}

/* A field of a table's row. */
struct field {
	const char *text;
	size_t bytes;
};

static inline bool is_blank(char c)
{
	return c == ' ' || c == '\t' || c == '\r';
}

static int split(const char *text, size_t bytes, struct field *fields)
{
	const char *end = text + bytes;
	int count = 0;

	while (count < FIELDS_MAX) {
		while (text < end && is_blank(*text))
			text++;
		if (text == end || !*text)
			break;
		fields[count].text = text;
		while (text < end && *text && !is_blank(*text))
			text++;
		fields[count].bytes = (size_t)(text - fields[count].text);
		count++;
	}
	return count;
}

static bool is_type(const struct field *field)
{
	static const char *const types[] = {"float", "half", "double", "int8", "uint8",
		"int32", "uint32", "int64", "uint64", "bfloat16", "fp8_e4m3", "fp8_e5m2",
		"f8e4m3", "f8e5m2"};

	for (size_t i = 0; i < sizeof(types) / sizeof(types[0]); i++)
		if (field->bytes == strlen(types[i]) &&
			!memcmp(field->text, types[i], field->bytes))
			return true;
	return false;
}

static bool is_count(const struct field *field)
{
	for (size_t i = 0; i < field->bytes; i++)
		if (!is_digit(field->text[i]))
			return false;
	return true;
}

/* The size, the count and the type; launchers may have put words before them. */
static bool is_row(const struct field *fields)
{
	return is_count(&fields[0]) && is_count(&fields[1]) && is_type(&fields[2]);
}

static double real_of(const struct field *field)
{
	return text_real(field->text, field->text + field->bytes);
}

/* A count of wrong elements, where a row has one. */
static uint64_t wrong_of(const struct field *field)
{
	bool is_wrong = field->bytes && is_digit(field->text[0]) &&
			!memchr(field->text, '.', field->bytes) &&
			!memchr(field->text, 'e', field->bytes);

	return is_wrong && field->bytes <= DIGITS_MAX ? (uint64_t)real_of(field) : 0;
}

/* size count type redop [root] time algbw busbw wrong time algbw busbw wrong; early
 * versions have no root, and an error instead of a count of wrong elements. */
static bool take_row(struct log_facts *facts, const char *text, size_t bytes)
{
	struct field all[FIELDS_MAX], *fields;
	int count, first, skipped = 0;
	double algbw, busbw, size;

	if (bytes >= ROW_BYTES_MAX)
		return false;
	count = split(text, bytes, all);
	while (skipped + 2 < count && !is_row(all + skipped))
		skipped++;
	fields = all + skipped;
	count -= skipped;
	if (count < 7 || !is_row(fields))
		return false;
	/* algbw, busbw and wrong come three times four from the end, or after the root */
	first = count >= 13 ? 5 : 4;
	if (count == 9)
		first = 5;
	if (first + 2 >= count)
		return false;
	algbw = real_of(&fields[first + 1]);
	busbw = real_of(&fields[first + 2]);
	if (first + 6 < count && real_of(&fields[first + 6]) > busbw) {
		algbw = real_of(&fields[first + 5]);
		busbw = real_of(&fields[first + 6]);
	}
	size = real_of(&fields[0]);
	note_row(facts, size < 1e18 ? (uint64_t)size : UINT64_MAX, algbw, busbw);
	for (int k = first + 3; k < count && facts->header_has_wrong; k += 4)
		facts->wrong += wrong_of(&fields[k]);
	return true;
}

/* "#  Rank  0 Group  0 Pid  64904 on  mew0 device  0 [0000:17:00] NVIDIA A100" */
static void take_device(struct log_facts *facts, const struct fact_place *at)
{
	const struct record *record = at->record;
	const char *device = text_seek(record->text, record->bytes, " device ", 8);
	const char *end = record->text + record->bytes;
	const char *bracket = device ? memchr(device, ']', (size_t)(end - device)) : NULL;
	int64_t rank;

	if (!bracket || end - bracket < 3)
		return;
	fact_words_add(facts, &facts->gpus, bracket + 2, (size_t)(end - bracket - 2), at);
	if (text_has(record->text, record->bytes, "Rank  0 ") ||
		(text_number(record->text, record->bytes, "Rank ", &rank) && !rank))
		facts->rank0_devices++;
}

static void take_comment(struct log_facts *facts, const struct fact_place *at)
{
	const struct record *record = at->record;
	const char *text = record->text, *at_word;
	size_t bytes = record->bytes;

	if (text_has(text, bytes, "Rank ") && text_has(text, bytes, " Pid ")) {
		take_device(facts, at);
		return;
	}
	if (text_has(text, bytes, "#wrong"))
		facts->header_has_wrong = true;
	if (text_has(text, bytes, "algbw"))
		evidence_add(facts, &facts->table_seen, at);
	at_word = text_seek(text, bytes, "Collective test starting: ", 26);
	if (at_word) {
		const char *name = at_word + strlen("Collective test starting: ");
		size_t length = 0;

		while (name + length < text + bytes &&
			!isspace((unsigned char)name[length]))
			length++;
		fact_words_add(facts, &facts->tests, name, length, at);
	}
	at_word = text_seek(text, bytes, "Avg bus bandwidth", 17);
	if (at_word) {
		const char *colon = memchr(
			at_word, ':', (size_t)(text + bytes - at_word));
		double value = colon ? text_real(colon + 1, text + bytes) : 0;

		facts->average_count++;
		facts->average_zero += value <= 0;
		facts->average_busbw = value;
		facts->ended_well = true;
	}
	if (text_has(text, bytes, "Out of bounds values") &&
		text_has(text, bytes, "FAILED"))
		facts->wrong++;
}

/* "Watchdog caught collective operation timeout: WorkNCCL(SeqNum=7, OpType=ALLREDUCE" */
static void take_watchdog(struct log_facts *facts, const struct fact_place *at)
{
	const struct record *record = at->record;
	const char *type = text_find(record->text, record->bytes, "OpType=");
	int64_t seq, rank = -1;

	if (!text_number(record->text, record->bytes, "[Rank ", &rank) &&
		!text_number(record->text, record->bytes, ") Rank ", &rank) &&
		!text_number(record->text, record->bytes, "[rank", &rank))
		rank = record_launcher_rank(at->whole, at->whole_bytes);
	if (type && !facts->operation[0]) {
		size_t length = 0;

		type += strlen("OpType=");
		while (type + length < record->text + record->bytes &&
			isalnum((unsigned char)type[length]) && length < 32)
			length++;
		memcpy(facts->operation, type, length);
	}
	facts->watchdog_ranks++;
	if (!text_number(record->text, record->bytes, "SeqNum=", &seq))
		return;
	if (facts->seq_low < 0 || seq < facts->seq_low) {
		facts->seq_low = seq;
		facts->seq_low_rank = (int32_t)rank;
	}
	if (seq > facts->seq_high) {
		facts->seq_high = seq;
		facts->seq_high_rank = (int32_t)rank;
	}
}

/* "  exitcode  : -9 (pid: 4711)": the number after the word and its colon */
static bool number_behind(const struct record *record, const char *word, int32_t *number)
{
	const char *end = record->text + record->bytes;
	const char *found = text_find(record->text, record->bytes, word);
	const char *colon = found ? memchr(found, ':', (size_t)(end - found)) : NULL;
	double value = colon ? text_real(colon + 1, end) : 0;

	if (!colon || value > INT32_MAX || value < INT32_MIN)
		return false;
	*number = (int32_t)value;
	return true;
}

/* "  Process name: [[12345,1],3]" of mpirun's: rank 3 */
static bool process_rank(const struct record *record, int32_t *rank)
{
	const char *end = record->text + record->bytes;
	const char *comma = text_find(record->text, record->bytes, "Process name: [[")
				    ? memrchr(record->text, ',', record->bytes)
				    : NULL;
	double value = comma ? text_real(comma + 1, end) : -1;

	*rank = value >= 0 && value < INT32_MAX ? (int32_t)value : -1;
	return *rank >= 0;
}

/* torchrun and mpirun name the first failure in a paragraph of its own. */
static void take_root(struct log_facts *facts, const struct fact_place *at)
{
	const struct record *record = at->record;
	int32_t number;

	if (text_find(
		    record->text, record->bytes, "Root Cause (first observed failure)") ||
		text_find(
			record->text, record->bytes, "The first process to do so was")) {
		facts->root_lines = ROOT_PARAGRAPH;
		evidence_add(facts, &facts->root_seen, at);
		return;
	}
	if (facts->root_lines <= 0)
		return;
	facts->root_lines--;
	if (facts->root_rank < 0 && (number_behind(record, "rank  ", &number) ||
					    process_rank(record, &number)))
		facts->root_rank = number;
	if (number_behind(record, "exitcode", &number) ||
		number_behind(record, "Exit code:", &number))
		facts->root_exit = number;
}

/* "busbw: 36.4 Gbps", as some scripts have it */
static void take_gbps(struct log_facts *facts, const struct record *record)
{
	const char *word = text_find(record->text, record->bytes, "busbw:");
	double value;

	if (!word || !text_find(record->text, record->bytes, "Gbps"))
		return;
	value = text_real(word + strlen("busbw:"), record->text + record->bytes);
	if (value > facts->gbps_best && value < 1e6)
		facts->gbps_best = value;
}

static bool is_name_char(char c)
{
	return isalnum((unsigned char)c) || c == '_';
}

/* Is it for NCCL, its plugins or libfabric, or all but? In capitals, but for a letter:
 * what programs write of their own settings is in small ones. */
static bool is_export(const char *name, size_t bytes)
{
	char copy[FACTS_NAME_BYTES];
	const char *why;
	int small = 0;

	if (bytes < 4 || bytes >= sizeof(copy) || !strchr("NOFW", name[0]))
		return false;
	for (size_t i = 0; i < bytes; i++)
		small += islower((unsigned char)name[i]) != 0;
	snprintf(copy, sizeof(copy), "%.*s", (int)bytes, name);
	return small <= 1 &&
	       (env_name_is_ours(copy) || env_name_kind(copy, &why) == ENV_NAME_UNKNOWN);
}

/* As if NCCL had said it. */
static void take_export(struct log_facts *facts, const struct fact_place *at,
	const char *name, const char *equals)
{
	const char *value = equals + 1, *end = at->record->text + at->record->bytes;
	struct record record = *at->record;
	struct fact_place place = *at;
	char line[2 * FACTS_NAME_BYTES + 32];
	size_t bytes = 0;

	while (value + bytes < end && bytes < FACTS_NAME_BYTES - 1 &&
		!strchr(" \t\r\"',;", value[bytes]) && value[bytes])
		bytes++;
	record.text = line;
	record.bytes = (size_t)snprintf(line, sizeof(line),
		"%.*s set by environment to %.*s", (int)(equals - name), name, (int)bytes,
		value);
	place.record = &record;
	harvest_info(facts, &place);
}

/* NAME=VALUE of NCCL's and its plugins' variables, as in `mpirun -x` or an env dump. */
static void take_exports(struct log_facts *facts, const struct fact_place *at)
{
	const char *text = at->record->text, *end = text + at->record->bytes;
	const char *equals = text;

	while ((equals = memchr(equals, '=', (size_t)(end - equals)))) {
		const char *name = equals;

		while (name > text && is_name_char(name[-1]))
			name--;
		if ((name == text || isspace((unsigned char)name[-1])) &&
			is_export(name, (size_t)(equals - name)))
			take_export(facts, at, name, equals);
		equals++;
	}
}

/* mpirun's "[1,0]<stdout>:" and srun's "3: " stand before what the program wrote. */
static size_t mark_bytes(const char *text, size_t bytes)
{
	size_t at = 0;

	if (text_begins(text, bytes, "[1,")) {
		const char *end = text_seek(text, bytes < 40 ? bytes : 40, ">:", 2);

		return end ? (size_t)(end + 2 - text) : 0;
	}
	while (at < bytes && text[at] == ' ')
		at++;
	while (at < bytes && isdigit((unsigned char)text[at]) && at < 12)
		at++;
	return at + 1 < bytes && at && text[at] == ':' && text[at + 1] == ' ' ? at + 2
									      : 0;
}

/* "NCCL version 2.21.5+cuda12.4", bare or at the end of an exception */
static void take_version(struct log_facts *facts, const struct fact_place *at)
{
	static const char words[] = "NCCL version ";
	const char *end = at->record->text + at->record->bytes;
	const char *found = text_seek(
		at->record->text, at->record->bytes, words, sizeof(words) - 1);
	const char *from = found ? found + sizeof(words) - 1 : end;
	size_t length = 0;

	while (from + length < end && !isspace((unsigned char)from[length]))
		length++;
	if (length && isdigit((unsigned char)*from))
		fact_words_add(facts, &facts->versions, from, length, at);
}

void harvest_program(struct log_facts *facts, const struct fact_place *at, bool is_hooked)
{
	const struct record *record = at->record;
	size_t skip = mark_bytes(record->text, record->bytes);
	const char *text = record->text + skip;
	size_t bytes = record->bytes - skip, blank = 0;

	while (blank < bytes && text[blank] == ' ')
		blank++;
	if (blank == bytes)
		return;
	if (isdigit((unsigned char)text[blank]) && !is_hooked) {
		take_row(facts, text, bytes);
		return;
	}
	if (text[blank] == '#') {
		take_comment(facts, at);
		return;
	}
	if (!is_hooked || take_row(facts, text, bytes))
		return;
	/* behind the marks of launchers and collectors we do not know each of */
	if (text_seek(text, bytes, "# ", 2))
		take_comment(facts, at);
	take_version(facts, at);
	take_exports(facts, at);
	if (text_seek(text, bytes, "WorkNCCL(", 9))
		take_watchdog(facts, at);
	if (facts->root_lines > 0 || text_seek(text, bytes, "Root Cause", 10) ||
		text_seek(text, bytes, "to do so was", 12))
		take_root(facts, at);
	if (text_seek(text, bytes, "Gbps", 4))
		take_gbps(facts, record);
	if (text_seek(text, bytes, "\"status\": \"success\"", 19) &&
		text_seek(text, bytes, "run_stop", 8))
		facts->ended_well = true;
}
