/*
 * lines.h - the lines of a log, one after the other, in memory that does not grow.
 *
 * A file, or standard input under the name "-". Lines end with a newline; what is longer
 * than LINE_BYTES_MAX is cut, and the rest is dropped. UTF-16 with a byte order mark is
 * read as well (whatever is not ASCII in it becomes '?'); what is no text at all, or
 * compressed, is refused with a sentence.
 */
#ifndef TOOLS_WEFT_DOCTOR_LINES_H
#define TOOLS_WEFT_DOCTOR_LINES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"

enum { LINE_BYTES_MAX = 1 << 16 };

struct lines;

struct line {
	const char *text; /* borrowed until the next call; not terminated */
	size_t bytes;	  /* without the newline */
	uint64_t number;  /* from 1 */
};

enum err lines_open(struct lines **lines, const char *path);
void lines_close(struct lines *lines);

/* ERR_AGAIN: that was all. */
enum err lines_next(struct lines *lines, struct line *line);

/* Bytes read so far. */
uint64_t lines_bytes(const struct lines *lines);

#endif
