#include "weft/doctor/record.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/hash.h"

enum { MARK_BYTES = 10, PREFIX_LOOK = 400, DIGITS_MAX = 18 };

static const struct {
	char name[6];
	enum record_level level;
} levels[] = {
	{"INFO ", RECORD_INFO},
	{"WARN ", RECORD_WARN},
	{"TRACE", RECORD_TRACE},
	{"CALL ", RECORD_TRACE},
	{"ATTN ", RECORD_WARN},
};

static inline char small(char c)
{
	return (char)(c >= 'A' && c <= 'Z' ? c | 0x20 : c);
}

const char *text_find(const char *text, size_t bytes, const char *part)
{
	size_t length = strlen(part), same;
	char first = small(part[0]);

	for (size_t i = 0; i + length <= bytes; i++) {
		if (small(text[i]) != first)
			continue;
		for (same = 1; same < length; same++)
			if (small(text[i + same]) != small(part[same]))
				break;
		if (same >= length)
			return text + i;
	}
	return NULL;
}

const char *text_seek(const char *text, size_t bytes, const char *part, size_t length)
{
	/* blanks are everywhere: look for what comes after one */
	size_t skip = length > 1 && part[0] == ' ';
	const char *at = text + skip, *end;
	size_t last = length - skip - 1, middle = last / 2;

	if (length > bytes)
		return NULL;
	end = at + (bytes - length) + 1;
	while (at < end && (at = memchr(at, part[skip], (size_t)(end - at)))) {
		/* mostly two more letters say no */
		if (at[last] == part[skip + last] && at[middle] == part[skip + middle] &&
			!memcmp(at - skip, part, length))
			return at - skip;
		at++;
	}
	return NULL;
}

static bool read_number(const char **at, const char *end, int64_t *number)
{
	const char *digit = *at;
	int64_t value = 0;

	while (digit < end && is_digit(*digit) && digit - *at < DIGITS_MAX)
		value = value * 10 + (*digit++ - '0');
	if (digit == *at)
		return false;
	*at = digit;
	*number = value;
	return true;
}

bool text_number(const char *text, size_t bytes, const char *part, int64_t *number)
{
	const char *end = text + bytes;
	size_t length = strlen(part);
	const char *at = text;

	while ((at = text_seek(at, (size_t)(end - at), part, length))) {
		bool is_word = at == text || !isalnum((unsigned char)part[0]) ||
			       !isalnum((unsigned char)at[-1]);

		at += length;
		if (is_word && read_number(&at, end, number))
			return true;
	}
	return false;
}

/* The next "NCCL LEVEL " at or after `at`; NULL. By its first letter: memmem() costs more
 * than lines of this length are worth. */
static const char *find_mark(const char *at, const char *end, enum record_level *level)
{
	while (end - at > MARK_BYTES &&
		(at = memchr(at, 'N', (size_t)(end - at - MARK_BYTES)))) {
		if (memcmp(at, "NCCL ", 5) != 0) {
			at++;
			continue;
		}
		for (size_t i = 0; i < sizeof(levels) / sizeof(levels[0]); i++)
			if (!memcmp(at + 5, levels[i].name, 5)) {
				*level = levels[i].level;
				return at;
			}
		at += 5;
	}
	return NULL;
}

/* Digits that end just before `at`; NULL when there are none. */
static const char *number_before(const char *at, const char *begin, int64_t *number)
{
	const char *first = at;
	int64_t value = 0, scale = 1;

	for (; first > begin && is_digit(first[-1]) && at - first < 12; scale *= 10)
		value += scale * (*--first - '0');
	*number = value;
	return first < at ? first : NULL;
}

/* Without the locale, which costs a call for each letter of each line. */
static const bool is_of_host[256] = {['0' ... '9'] = true,
	['A' ... 'Z'] = true,
	['a' ... 'z'] = true,
	['-'] = true,
	['_'] = true,
	['.'] = true};

static uint32_t name_hash(const char *name, size_t bytes)
{
	uint64_t hash = bytes, part;

	for (; bytes >= sizeof(part); name += sizeof(part), bytes -= sizeof(part)) {
		memcpy(&part, name, sizeof(part));
		hash = hash_spread(hash ^ hash >> 32 ^ part);
	}
	part = 0;
	memcpy(&part, name, bytes);
	return (uint32_t)(hash_spread(hash ^ hash >> 32 ^ part) >> 32);
}

/* Does `host:pid:tid` end just before `at`? Returns where the host begins. */
static const char *whose(const char *at, const char *begin, struct record *record)
{
	const char *pid, *tid = number_before(at, begin, &record->tid);
	const char *host;

	if (!tid || tid - 1 <= begin || tid[-1] != ':')
		return NULL;
	pid = number_before(tid - 1, begin, &record->pid);
	if (!pid || pid - 1 <= begin || pid[-1] != ':')
		return NULL;
	host = pid - 1;
	while (host > begin && is_of_host[(unsigned char)host[-1]])
		host--;
	if (host == pid - 1)
		return NULL;
	record->host = host;
	record->host_bytes = (size_t)(pid - 1 - host);
	record->host_hash = name_hash(host, record->host_bytes);
	return host;
}

/* Read `host:pid:tid [dev] ` and a place in the source backwards from the mark. Returns
 * where the record begins. */
static const char *read_prefix(const char *mark, const char *begin, struct record *record)
{
	const char *at = mark, *first;
	int64_t device;

	if (at - begin > PREFIX_LOOK)
		begin = at - PREFIX_LOOK;
	for (; at > begin; at--) {
		if (at[-1] != ' ')
			continue;
		first = at - 1;
		if (first > begin && first[-1] == ']') {
			const char *bracket = number_before(first - 1, begin, &device);

			if (bracket && bracket - 1 > begin && bracket[-1] == '[' &&
				bracket[-2] == ' ') {
				record->device = (int)device;
				first = bracket - 2;
			}
		}
		first = whose(first, begin, record);
		if (first)
			return first;
		record->device = -1;
		/* an INFO has nothing between */
		if (record->level == RECORD_INFO)
			break;
	}
	record->pid = record->tid = -1;
	record->host = NULL;
	return mark;
}

bool record_next(const char *line, size_t bytes, size_t *from, struct record *record)
{
	const char *end = line + bytes, *at = line + *from, *next;
	enum record_level level = RECORD_OTHER;
	const char *mark = *from < bytes ? find_mark(at, end, &level) : NULL;
	struct record other;

	*record = (struct record){.level = level, .pid = -1, .tid = -1, .device = -1};
	if (!mark) {
		bool whole = *from == 0;

		record->begin = record->text = line;
		record->bytes = bytes;
		*from = bytes ? bytes : 1;
		return whole;
	}
	record->begin = read_prefix(mark, at, record);
	record->text = mark + MARK_BYTES;
	while (record->text < end && *record->text == ' ')
		record->text++;
	record->bytes = (size_t)(end - record->text);
	next = find_mark(record->text, end, &level);
	if (next) {
		/* a second record in this line begins where its own prefix does */
		other = (struct record){.level = level, .device = -1};
		next = read_prefix(next, record->text, &other);
		record->bytes = (size_t)(next - record->text);
		*from = (size_t)(next - line);
	} else {
		*from = bytes;
	}
	while (record->bytes && isspace((unsigned char)record->text[record->bytes - 1]))
		record->bytes--;
	return true;
}

/* "2025-11-19 18:02:33" or with a T between; -1. */
static int64_t read_time(const char *text, size_t bytes)
{
	struct tm tm = {0};
	const char *at = text, *end = text + bytes;
	int64_t parts[6];
	static const char between[] = "--T::";

	for (int i = 0; i < 6; i++) {
		if (!read_number(&at, end, &parts[i]))
			return -1;
		if (i == 5)
			break;
		if (at == end || (*at != between[i] && !(i == 2 && *at == ' ')))
			return -1;
		at++;
	}
	if (parts[0] < 1990 || parts[0] > 2200 || parts[1] < 1 || parts[1] > 12)
		return -1;
	tm.tm_year = (int)parts[0] - 1900;
	tm.tm_mon = (int)parts[1] - 1;
	tm.tm_mday = (int)(parts[2] % 100);
	tm.tm_hour = (int)(parts[3] % 100);
	tm.tm_min = (int)(parts[4] % 100);
	tm.tm_sec = (int)(parts[5] % 100);
	return (int64_t)timegm(&tm);
}

int64_t record_time(const char *line, size_t bytes)
{
	size_t look = bytes < 160 ? bytes : 160;

	for (size_t i = 0; i + 19 <= look; i++) {
		int64_t time;

		if (!is_digit(line[i]) || line[i + 4] != '-' ||
			(i && is_digit(line[i - 1])))
			continue;
		time = read_time(line + i, bytes - i);
		if (time >= 0)
			return time;
	}
	return -1;
}

int record_launcher_rank(const char *line, size_t bytes)
{
	const char *end = line + bytes, *at = line;
	int64_t rank;

	while (at < end && *at == ' ')
		at++;
	if (text_begins(at, (size_t)(end - at), "[1,")) {
		at += 3;
		if (read_number(&at, end, &rank) &&
			text_begins(at, (size_t)(end - at), "]<std"))
			return (int)(rank & 0xffffff);
		return -1;
	}
	if (text_begins(at, (size_t)(end - at), "[rank") ||
		text_begins(at, (size_t)(end - at), "[Rank ")) {
		at += 5 + (at[1] == 'R');
		return read_number(&at, end, &rank) && at < end && *at == ']'
			       ? (int)(rank & 0xffffff)
			       : -1;
	}
	if (read_number(&at, end, &rank) && end - at > 2 && at[0] == ':' && at[1] == ' ')
		return (int)(rank & 0xffffff);
	return -1;
}

/* Digits and at most one point, as tables have them: exact, as both parts of the quotient
 * are. False: it is written in another way. */
static bool plain_real(const char *text, size_t bytes, double *value)
{
	static const double scales[] = {1, 1e1, 1e2, 1e3, 1e4, 1e5, 1e6, 1e7, 1e8, 1e9,
		1e10, 1e11, 1e12, 1e13, 1e14, 1e15};
	uint64_t digits = 0;
	size_t behind = 0, points = 0;

	if (!bytes || bytes < 1 + (text[0] == '.') || bytes > 15)
		return false;
	for (size_t i = 0; i < bytes; i++) {
		if (is_digit(text[i])) {
			digits = digits * 10 + (uint64_t)(text[i] - '0');
			behind += points;
		} else if (text[i] == '.' && !points) {
			points = 1;
		} else {
			return false;
		}
	}
	*value = (double)digits / scales[behind];
	return true;
}

double text_real(const char *text, const char *end)
{
	char copy[40];
	size_t bytes = 0;
	double value;

	while (text < end && (*text == ' ' || *text == '\t'))
		text++;
	while (text + bytes < end && bytes + 1 < sizeof(copy) &&
		(isxdigit((unsigned char)text[bytes]) ||
			(text[bytes] && strchr("+-.eE", text[bytes]))))
		bytes++;
	if (plain_real(text, bytes, &value))
		return value;
	memcpy(copy, text, bytes);
	copy[bytes] = 0;
	return strtod(copy, NULL);
}
