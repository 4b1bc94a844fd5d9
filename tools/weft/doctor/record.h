/*
 * record.h - one log line taken apart: who wrote it, when, at which level, and what.
 *
 * NCCL writes `host:pid:tid [dev] NCCL INFO text`, a WARN with its place in the source,
 * and launchers put their own marks in front. Ranks tear each other's lines, so a line
 * may hold several records, or one that begins in the middle of something else.
 */
#ifndef TOOLS_WEFT_DOCTOR_RECORD_H
#define TOOLS_WEFT_DOCTOR_RECORD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

enum record_level { RECORD_OTHER, RECORD_INFO, RECORD_WARN, RECORD_TRACE };

struct record {
	enum record_level level; /* OTHER: the line is none of NCCL's */
	const char *host;	 /* borrowed, not terminated; NULL: it does not say */
	size_t host_bytes;
	uint32_t host_hash; /* of the host's name */
	int64_t pid, tid;   /* -1: it does not say */
	int device;	    /* -1 likewise */
	const char *begin;  /* of all of it, with the host and the place in the source */
	const char *text;   /* after the level */
	size_t bytes;
};

/* The records of a line in order: `*from` is 0 at first and says where to go on. False:
 * no further one. A line without any is one record of level OTHER. */
bool record_next(const char *line, size_t bytes, size_t *from, struct record *record);

/* Seconds since 1970 of a timestamp in front of a line (WARN's own, a container's or a
 * CI's); -1: there is none. */
int64_t record_time(const char *line, size_t bytes);

/* The rank that a launcher wrote in front ([1,3]<stdout>:, "3: ", [rank3]:); -1. */
int record_launcher_rank(const char *line, size_t bytes);

/* Without the locale, which costs a call for each letter. */
static inline bool is_digit(char c)
{
	return c >= '0' && c <= '9';
}

/* Is this text in that one? Both ways of case. */
const char *text_find(const char *text, size_t bytes, const char *part);
static inline bool text_begins(const char *text, size_t bytes, const char *part)
{
	size_t length;

	/* mostly the first letter says no */
	if (!bytes || text[0] != part[0])
		return false;
	length = strlen(part);
	return bytes >= length && !memcmp(text, part, length);
}

/* As memmem(), which takes longer to begin than lines of this length are worth. */
const char *text_seek(const char *text, size_t bytes, const char *part, size_t length);

static inline bool text_has(const char *text, size_t bytes, const char *part)
{
	return text_seek(text, bytes, part, strlen(part)) != NULL;
}

/* The number after `part`, as `key` in "rank 3 nranks 8"; false: not there. */
bool text_number(const char *text, size_t bytes, const char *part, int64_t *number);

/* The number that a text begins with, after blanks; 0 when there is none. */
double text_real(const char *text, const char *end);

#endif
