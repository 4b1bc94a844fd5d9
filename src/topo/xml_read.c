/*
 * xml_read.c - files into trees, by way of expat, with every limit of xml.h enforced.
 *
 * What a file may be wrong in is told with its line. What the elements mean is not looked
 * at here, but for the root's version.
 */
#include "topo/xml.h"

#include <errno.h>
#include <expat.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum {
	WRITER_MS = 300, /* for somebody to open a fifo's other end */
	WORD_MS = 60000	 /* for him to write more */
};

struct reader {
	XML_Parser parser;	  /* owned */
	const char *name;	  /* of the file */
	const char *root;	  /* the element that must be the outermost */
	struct xml_node *tree;	  /* owned until handed out */
	struct xml_node *current; /* the innermost open element */
	uint32_t node_count;
	int depth;
	enum err err; /* the first thing that was wrong */
};

/* expat may call once more after it was told to stop: every handler looks at `err`. */
static void stop(struct reader *reader, enum err e)
{
	reader->err = e;
	XML_StopParser(reader->parser, XML_FALSE);
}

static int line_now(const struct reader *reader)
{
	XML_Size line = XML_GetCurrentLineNumber(reader->parser);

	return line > INT_MAX ? INT_MAX : (int)line;
}

static enum err check_root(
	const struct reader *reader, const char *name, const char **attrs)
{
	int line = line_now(reader);

	if (strcmp(name, reader->root) != 0)
		return err_set(ERR_USAGE,
			"%.256s:%d: the outermost element is <%.64s>; give a file of "
			"NCCL's with <%.64s>",
			reader->name, line, name, reader->root);
	for (; attrs[0]; attrs += 2) {
		if (strcmp(attrs[0], "version") != 0)
			continue;
		if (!strcmp(attrs[1], "1"))
			return OK;
		return err_set(ERR_USAGE,
			"%.256s:%d: <%.64s> has version \"%.64s\"; only \"1\" can be "
			"read: dump it with NCCL",
			reader->name, line, name, attrs[1]);
	}
	return err_set(ERR_USAGE,
		"%.256s:%d: <%.64s> has no version; write version=\"1\"", reader->name,
		line, name);
}

/* Letters beyond ASCII are refused: expat's idea of which may be in a name depends on the
 * encoding, so what was read could not be written. */
static enum err check_name(const struct reader *reader, const char *name)
{
	const char *at = name;

	while (*at && !(*at & 0x80))
		at++;
	if (*at)
		return err_set(ERR_USAGE,
			"%.256s:%d: name \"%.64s\" is not ASCII; correct it",
			reader->name, line_now(reader), name);
	if (at - name > XML_VALUE_MAX)
		return err_set(ERR_USAGE, "%.256s:%d: a name is over %d bytes",
			reader->name, line_now(reader), XML_VALUE_MAX);
	return OK;
}

static enum err check_attrs(
	const struct reader *reader, const char *name, const char **attrs)
{
	int attr_count = 0;
	enum err e = OK;

	for (; attrs[0] && !e; attrs += 2) {
		e = check_name(reader, attrs[0]);
		if (!e && strlen(attrs[1]) > XML_VALUE_MAX)
			e = err_set(ERR_USAGE,
				"%.256s:%d: attribute %.64s of <%.64s> is over %d bytes",
				reader->name, line_now(reader), attrs[0], name,
				XML_VALUE_MAX);
		attr_count++;
	}
	if (!e && attr_count > XML_ATTRS_MAX)
		e = err_set(ERR_USAGE,
			"%.256s:%d: <%.64s> has %d attributes, more than %d",
			reader->name, line_now(reader), name, attr_count, XML_ATTRS_MAX);
	return e;
}

static enum err check_start(
	const struct reader *reader, const char *name, const char **attrs)
{
	enum err e = check_name(reader, name);

	if (!e && !reader->tree)
		e = check_root(reader, name, attrs);
	if (e)
		return e;
	if (reader->depth == XML_DEPTH_MAX)
		return err_set(ERR_USAGE, "%.256s:%d: elements nest deeper than %d",
			reader->name, line_now(reader), XML_DEPTH_MAX);
	if (reader->node_count == XML_NODES_MAX)
		return err_set(ERR_USAGE, "%.256s:%d: more than %d elements",
			reader->name, line_now(reader), XML_NODES_MAX);
	return check_attrs(reader, name, attrs);
}

static void XMLCALL on_start(void *data, const char *name, const char **attrs)
{
	struct reader *reader = data;
	struct xml_node *node;
	enum err e;

	if (reader->err)
		return;
	e = check_start(reader, name, attrs);
	if (e) {
		stop(reader, e);
		return;
	}
	node = xml_add(reader->current, name);
	if (!node) {
		stop(reader, ERR_SYSTEM);
		return;
	}
	if (!reader->tree)
		reader->tree = node;
	reader->current = node;
	reader->depth++;
	reader->node_count++;
	node->line = line_now(reader);
	for (; attrs[0] && !e; attrs += 2)
		e = xml_attr_set(node, attrs[0], attrs[1]);
	if (e)
		stop(reader, e);
}

static void XMLCALL on_end(void *data, const char *name)
{
	struct reader *reader = data;

	(void)name;
	if (reader->err)
		return;
	reader->current = reader->current->parent;
	reader->depth--;
}

static void XMLCALL on_text(void *data, const char *text, int bytes)
{
	struct reader *reader = data;

	for (int i = 0; i < bytes && !reader->err; i++)
		if (!memchr(" \t\r\n", text[i], 4))
			stop(reader,
				err_set(ERR_USAGE,
					"%.256s:%d: text inside <%.64s>; only elements "
					"belong there",
					reader->name, line_now(reader),
					reader->current->name));
}

/* Nothing here needs a document type, and entities are how small files become huge. */
static void XMLCALL on_doctype(void *data, const char *doctype, const char *system_id,
	const char *public_id, int has_internal_subset)
{
	struct reader *reader = data;

	(void)system_id;
	(void)public_id;
	(void)has_internal_subset;
	if (!reader->err)
		stop(reader,
			err_set(ERR_USAGE,
				"%.256s:%d: document type %.64s; remove <!DOCTYPE ...>",
				reader->name, line_now(reader), doctype));
}

/* Length of the UTF-8 sequence at `text`, 0 when it is none. Which of them XML takes is
 * expat's business. */
static size_t sequence_bytes(const unsigned char *text, size_t bytes)
{
	size_t count = text[0] < 0x80	 ? 1
		       : text[0] >= 0xf0 ? 4
		       : text[0] >= 0xe0 ? 3
		       : text[0] >= 0xc0 ? 2
					 : 0;

	if (count > bytes)
		return 0;
	for (size_t i = 1; i < count; i++)
		if ((text[i] & 0xc0) != 0x80)
			return 0;
	return count;
}

static bool is_utf8(const char *text, size_t bytes)
{
	size_t at = 0;

	while (at < bytes) {
		size_t count = sequence_bytes(
			(const unsigned char *)text + at, bytes - at);

		if (!count)
			return false;
		at += count;
	}
	return true;
}

/* NCCL ends a comment at the first `-->` and takes any dashes before it, as in
 * `<!-- ---- socket 0 ---- -->`; XML takes none. Those dashes become spaces, so lines and
 * columns stay. */
static void blank_dashes(char *text, size_t bytes)
{
	const char *end = text + bytes;
	char *at = text;

	while ((at = memmem(at, (size_t)(end - at), "<!--", 4))) {
		const char *close = memmem(at + 4, (size_t)(end - at - 4), "-->", 3);

		if (!close)
			return;
		for (at += 4; at < close; at++)
			if (*at == '-')
				*at = ' ';
		at += 3;
	}
}

static enum err reader_result(const struct reader *reader, enum XML_Status status)
{
	enum XML_Error code = XML_GetErrorCode(reader->parser);

	if (reader->err)
		return reader->err;
	if (status == XML_STATUS_OK)
		return OK;
	if (code == XML_ERROR_NO_MEMORY)
		return err_set(ERR_SYSTEM, "no memory to read %.256s", reader->name);
	return err_set(ERR_USAGE,
		"%.256s:%d: %s; the file is damaged or no XML: correct or replace it",
		reader->name, line_now(reader), XML_ErrorString(code));
}

/* As xml_parse(), of text that may be changed. */
static enum err parse(char *text, size_t bytes, const char *name, const char *root,
	struct xml_node **tree)
{
	struct reader reader = {.name = name, .root = root};
	enum err e;

	blank_dashes(text, bytes);
	reader.parser = XML_ParserCreate(is_utf8(text, bytes) ? "UTF-8" : "ISO-8859-1");
	if (!reader.parser)
		return err_set(ERR_SYSTEM, "no memory to read %.256s", name);
	XML_SetUserData(reader.parser, &reader);
	XML_SetElementHandler(reader.parser, on_start, on_end);
	XML_SetCharacterDataHandler(reader.parser, on_text);
	XML_SetStartDoctypeDeclHandler(reader.parser, on_doctype);
	e = reader_result(&reader, XML_Parse(reader.parser, text, (int)bytes, XML_TRUE));
	XML_ParserFree(reader.parser);
	if (e)
		xml_free(reader.tree);
	else
		*tree = reader.tree;
	return e;
}

static enum err too_big(const char *name)
{
	return err_set(ERR_USAGE,
		"%.256s is larger than %d MB; this is another kind of file", name,
		XML_FILE_MAX >> 20);
}

enum err xml_parse(const char *text, size_t bytes, const char *name, const char *root,
	struct xml_node **tree)
{
	char *copy;
	enum err e;

	if (bytes > XML_FILE_MAX)
		return too_big(name);
	copy = malloc(bytes + 1);
	if (!copy)
		return err_set(ERR_SYSTEM, "no memory to read %.256s", name);
	if (bytes)
		memcpy(copy, text, bytes);
	e = parse(copy, bytes, name, root, tree);
	free(copy);
	return e;
}

/* read(), but nobody waits for ever: who writes into a pipe must do so in time. */
static ssize_t read_some(int fd, char *to, size_t bytes)
{
	struct pollfd wait = {.fd = fd, .events = POLLIN};
	ssize_t got;

	do {
		got = read(fd, to, bytes);
		if (got < 0 && errno == EAGAIN && poll(&wait, 1, WORD_MS) == 0) {
			errno = ETIMEDOUT;
			return -1;
		}
	} while (got < 0 && (errno == EINTR || errno == EAGAIN));
	return got;
}

/* A fifo that nobody writes into is opened at once, not some day, and is empty unless
 * somebody comes. */
static int open_soon(const char *path)
{
	struct pollfd wait = {.events = POLLIN};

	wait.fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
	if (wait.fd >= 0)
		(void)poll(&wait, 1, WRITER_MS);
	return wait.fd;
}

/* Read to the end, or one byte more than XML_FILE_MAX. Files of /proc and pipes have no
 * size to ask for. The text is the caller's. */
static enum err read_all(int fd, const char *path, char **text, size_t *bytes)
{
	size_t capacity = 1 << 16, count = 0;
	char *buffer = malloc(capacity);
	ssize_t got = 1;
	enum err e;

	if (!buffer)
		return err_set(ERR_SYSTEM, "no memory to read %.256s", path);
	while (got > 0 && count <= XML_FILE_MAX) {
		if (count == capacity) {
			char *larger = realloc(buffer, 2 * capacity);

			if (!larger)
				break;
			buffer = larger;
			capacity *= 2;
		}
		got = read_some(fd, buffer + count, capacity - count);
		count += got > 0 ? (size_t)got : 0;
	}
	if (got == 0) {
		*text = buffer;
		*bytes = count;
		return OK;
	}
	e = got < 0 ? err_set(ERR_SYSTEM, "cannot read %.256s: %m; name another file",
			      path)
	    : count > XML_FILE_MAX
		    ? too_big(path)
		    : err_set(ERR_SYSTEM, "no memory to read %.256s", path);
	free(buffer);
	return e;
}

enum err xml_read(const char *path, const char *root, struct xml_node **tree)
{
	int fd = open_soon(path);
	size_t bytes = 0;
	char *text = NULL;
	enum err e;

	if (fd < 0)
		return err_set(
			ERR_SYSTEM, "cannot open %.256s: %m; name another file", path);
	e = read_all(fd, path, &text, &bytes);
	close(fd);
	if (e)
		return e;
	e = bytes > XML_FILE_MAX ? too_big(path) : parse(text, bytes, path, root, tree);
	free(text);
	return e;
}
