#include "weft/doctor/lines.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { CHUNK_BYTES = 1 << 18, SAMPLE_BYTES = 4096, ZEROS_PER_CENT = 5 };

enum encoding { PLAIN, UTF16_LITTLE, UTF16_BIG };

struct lines {
	int fd;
	char path[256];
	char *buffer; /* owned; LINE_BYTES_MAX + CHUNK_BYTES + 1 */
	size_t start, end;
	uint64_t number, bytes;
	enum encoding encoding;
	bool at_end, is_skipping; /* skipping: the rest of a line that was cut */
	bool is_sampled, has_half;
	unsigned char half; /* the first byte of a UTF-16 unit that was torn */
};

static const struct {
	const char *magic;
	size_t bytes;
	const char *tool;
} packers[] = {
	{"\x1f\x8b", 2, "zcat"},
	{"\x28\xb5\x2f\xfd", 4, "zstdcat"},
	{"\xfd\x37zXZ", 5, "xzcat"},
	{"BZh", 3, "bzcat"},
	{"PK\x03\x04", 4, "unzip -p"},
};

enum err lines_open(struct lines **result, const char *path)
{
	struct lines *lines = calloc(1, sizeof(*lines));
	struct stat about;

	if (!lines || !(lines->buffer = malloc(LINE_BYTES_MAX + CHUNK_BYTES + 1))) {
		free(lines);
		return err_set(ERR_SYSTEM, "no memory to read %s", path);
	}
	snprintf(lines->path, sizeof(lines->path), "%s",
		strcmp(path, "-") ? path : "standard input");
	lines->fd = strcmp(path, "-") ? open(path, O_RDONLY | O_CLOEXEC) : 0;
	if (lines->fd < 0) {
		enum err e = err_set(ERR_ARGUMENT, "cannot read %s: %s", path,
			errno == ENOENT
				? "there is no such file; name a log, or - for standard "
				  "input"
				: strerror(errno));
		free(lines->buffer);
		free(lines);
		return e;
	}
	if (!fstat(lines->fd, &about) && S_ISDIR(about.st_mode)) {
		lines_close(lines);
		return err_set(ERR_ARGUMENT, "%s is a folder; name the logs in it", path);
	}
	*result = lines;
	return OK;
}

void lines_close(struct lines *lines)
{
	if (!lines)
		return;
	if (lines->fd > 0)
		close(lines->fd);
	free(lines->buffer);
	free(lines);
}

uint64_t lines_bytes(const struct lines *lines)
{
	return lines->bytes;
}

/* Look at the first bytes: what kind of file is this? */
static enum err sample(struct lines *lines, const char *text, size_t bytes)
{
	size_t zeros = 0, look = bytes < SAMPLE_BYTES ? bytes : SAMPLE_BYTES;

	lines->is_sampled = true;
	if (bytes >= 2 && !memcmp(text, "\xff\xfe", 2))
		lines->encoding = UTF16_LITTLE;
	else if (bytes >= 2 && !memcmp(text, "\xfe\xff", 2))
		lines->encoding = UTF16_BIG;
	if (lines->encoding != PLAIN)
		return OK;
	for (size_t i = 0; i < sizeof(packers) / sizeof(packers[0]); i++)
		if (bytes >= packers[i].bytes &&
			!memcmp(text, packers[i].magic, packers[i].bytes))
			return err_set(ERR_ARGUMENT,
				"%s is compressed; try: %s FILE | weft doctor -",
				lines->path, packers[i].tool);
	for (size_t i = 0; i < look; i++)
		zeros += !text[i];
	if (zeros * 100 > look * ZEROS_PER_CENT)
		return err_set(ERR_ARGUMENT,
			"%s is not text: %zu of its first %zu bytes are zero; name a log",
			lines->path, zeros, look);
	return OK;
}

/* Units of two bytes become one; in place, as it only shrinks. */
static size_t narrow(struct lines *lines, char *text, size_t bytes)
{
	size_t out = 0;

	for (size_t i = 0; i < bytes; i++) {
		unsigned char byte = (unsigned char)text[i], high, low;

		if (!lines->has_half) {
			lines->half = byte;
			lines->has_half = true;
			continue;
		}
		lines->has_half = false;
		high = lines->encoding == UTF16_BIG ? lines->half : byte;
		low = lines->encoding == UTF16_BIG ? byte : lines->half;
		if (high == 0xfe && low == 0xff)
			continue;
		text[out++] = high || low >= 0x80 ? '?' : (char)low;
	}
	return out;
}

static enum err refill(struct lines *lines)
{
	ssize_t got;
	char *at;

	if (lines->start) {
		memmove(lines->buffer, lines->buffer + lines->start,
			lines->end - lines->start);
		lines->end -= lines->start;
		lines->start = 0;
	}
	at = lines->buffer + lines->end;
	do
		got = read(lines->fd, at, CHUNK_BYTES);
	while (got < 0 && errno == EINTR);
	if (got < 0)
		return err_set(ERR_SYSTEM, "cannot read %s: %m", lines->path);
	lines->at_end = got == 0;
	lines->bytes += (uint64_t)got;
	if (!lines->is_sampled && got > 0) {
		enum err e = sample(lines, at, (size_t)got);

		if (e)
			return e;
	}
	lines->end += lines->encoding == PLAIN ? (size_t)got
					       : narrow(lines, at, (size_t)got);
	return OK;
}

/* What is in the buffer without a newline is a line when there is no more to come, or
 * when it is too long to wait for one. */
static bool take_rest(struct lines *lines, struct line *line)
{
	size_t left = lines->end - lines->start;

	if (!left || (!lines->at_end && left < LINE_BYTES_MAX))
		return false;
	line->text = lines->buffer + lines->start;
	line->bytes = left;
	lines->start = lines->end;
	return true;
}

enum err lines_next(struct lines *lines, struct line *line)
{
	for (;;) {
		char *text = lines->buffer + lines->start;
		size_t left = lines->end - lines->start;
		char *newline = left ? memchr(text, '\n', left) : NULL;
		bool is_rest, found = true;

		line->text = text;
		line->bytes = newline ? (size_t)(newline - text) : 0;
		is_rest = !newline;
		if (newline)
			lines->start += line->bytes + 1;
		else
			found = take_rest(lines, line);
		if (found) {
			bool skip = lines->is_skipping;

			lines->is_skipping = is_rest && !lines->at_end;
			if (skip)
				continue;
			if (line->bytes > LINE_BYTES_MAX)
				line->bytes = LINE_BYTES_MAX;
			line->number = ++lines->number;
			return OK;
		}
		if (lines->at_end)
			return ERR_AGAIN;
		enum err e = refill(lines);

		if (e)
			return e;
	}
}
