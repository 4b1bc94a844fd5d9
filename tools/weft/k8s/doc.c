#include "weft/k8s/doc.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <yaml.h>

#include "common/units.h"

enum { CHUNK_BYTES = 32 << 10, ANCHORS_MAX = 1024, PATH_PART_BYTES = 128 };

struct node_chunk {
	struct node_chunk *next;
	size_t used, size;
	_Alignas(16) char bytes[];
};

/* Memory that lives as long as the file. */
static void *take(struct doc_file *file, size_t bytes)
{
	struct node_chunk *chunk = file->chunks;
	size_t size = bytes > CHUNK_BYTES ? bytes : CHUNK_BYTES;
	void *at;

	bytes = (bytes + 15) & ~(size_t)15;
	if (!chunk || chunk->size - chunk->used < bytes) {
		size = (size + 15) & ~(size_t)15;
		chunk = calloc(1, sizeof(*chunk) + size);
		if (!chunk)
			return NULL;
		chunk->size = size;
		chunk->next = file->chunks;
		file->chunks = chunk;
	}
	at = chunk->bytes + chunk->used;
	chunk->used += bytes;
	return at;
}

/* How many bytes a line break at `at` has, by libyaml's rules; 0 for none. */
static size_t break_bytes(const char *at, const char *end)
{
	size_t left = (size_t)(end - at);

	if (left > 1 && at[0] == '\r' && at[1] == '\n')
		return 2;
	if (left && (at[0] == '\r' || at[0] == '\n'))
		return 1;
	if (left > 1 && !memcmp(at, "\xc2\x85", 2))
		return 2;
	if (left > 2 &&
		(!memcmp(at, "\xe2\x80\xa8", 3) || !memcmp(at, "\xe2\x80\xa9", 3)))
		return 3;
	return 0;
}

static enum err find_lines(struct doc_file *file)
{
	const char *end = file->text + file->bytes;
	uint32_t room = 0;

	free(file->lines);
	file->lines = NULL;
	file->line_count = 0;
	for (const char *at = file->text;;) {
		if (file->line_count == room) {
			size_t *lines;

			room = room ? 2 * room : 256;
			lines = realloc(file->lines, room * sizeof(*lines));
			if (!lines)
				return err_set(ERR_SYSTEM,
					"no memory for the lines of %s", file->path);
			file->lines = lines;
		}
		file->lines[file->line_count++] = (size_t)(at - file->text);
		while (at < end && !break_bytes(at, end))
			at++;
		if (at >= end)
			return OK;
		at += break_bytes(at, end);
	}
}

size_t doc_line_start(const struct doc_file *file, uint32_t line)
{
	if (!line)
		return 0;
	return line <= file->line_count ? file->lines[line - 1] : file->bytes;
}

/* libyaml counts characters; edits need bytes. Places are asked for one after the other,
 * so the way goes on from the last one: a file may be one line of megabytes. */
static size_t byte_of(struct doc_file *file, const yaml_mark_t *mark)
{
	size_t at = doc_line_start(file, (uint32_t)mark->line + 1), column = 0;

	if (!mark->line && file->bytes >= 3 && !memcmp(file->text, "\xef\xbb\xbf", 3))
		at = 3;
	if (file->last.line == mark->line + 1 && file->last.column <= mark->column) {
		at = file->last.byte;
		column = file->last.column;
	}
	for (; column < mark->column && at < file->bytes; column++) {
		at++;
		while (at < file->bytes && ((unsigned char)file->text[at] & 0xc0) == 0x80)
			at++;
	}
	file->last.line = mark->line + 1;
	file->last.column = column;
	file->last.byte = at;
	return at;
}

/* What is open while events come. */
struct reader {
	struct doc_file *file;
	yaml_parser_t parser;
	struct node *open[DOC_DEPTH_MAX];
	struct node *pending[DOC_DEPTH_MAX]; /* a map's key that waits for its value */
	uint32_t depth;
	struct node *root;
	struct {
		const char *name;
		struct node *node;
	} anchors[ANCHORS_MAX];
	uint32_t anchor_count;
	struct doc_fault *fault; /* a limit of ours that was passed */
};

static bool refuse(struct reader *reader, const yaml_mark_t *mark, const char *text)
{
	struct doc_file *file = reader->file;
	struct doc_fault *fault;

	reader->fault = &file->faults[0];
	if (file->fault_count < DOC_FAULTS_MAX)
		reader->fault = &file->faults[file->fault_count++];
	fault = reader->fault;
	fault->line = (uint32_t)mark->line + 1;
	fault->column = (uint32_t)mark->column + 1;
	fault->start = byte_of(file, mark);
	snprintf(fault->text, sizeof(fault->text), "%s", text);
	return false;
}

static bool grow(struct doc_file *file, struct node *node)
{
	uint32_t room = node->room ? 2 * node->room : 4;
	struct node **items = take(file, room * sizeof(struct node *));
	struct node **keys = take(file, room * sizeof(struct node *));

	if (!items || !keys)
		return false;
	if (node->count) {
		memcpy(items, node->items, node->count * sizeof(struct node *));
		memcpy(keys, node->keys, node->count * sizeof(struct node *));
	}
	node->items = items;
	node->keys = keys;
	node->room = room;
	return true;
}

/* Into what is open, as key, value or item. */
static bool place(struct reader *reader, struct node *node, const yaml_mark_t *mark)
{
	struct node *parent;
	struct node **pending;

	if (!reader->depth) {
		reader->root = node;
		return true;
	}
	parent = reader->open[reader->depth - 1];
	pending = &reader->pending[reader->depth - 1];
	parent->weight += node->weight;
	if (parent->weight > DOC_UNFOLDED_MAX)
		return refuse(
			reader, mark, "the aliases unfold to more than a million values");
	if (!node->parent)
		node->parent = parent;
	if (parent->kind == NODE_MAP && !*pending) {
		*pending = node;
		return true;
	}
	if (parent->count == parent->room && !grow(reader->file, parent))
		return refuse(reader, mark, "no memory for so many values");
	if (parent->kind == NODE_MAP && !node->key)
		node->key = *pending;
	parent->keys[parent->count] = parent->kind == NODE_MAP ? *pending : NULL;
	parent->items[parent->count++] = node;
	*pending = NULL;
	return true;
}

static struct node *make(struct reader *reader, const yaml_event_t *event)
{
	struct doc_file *file = reader->file;
	struct node *node;

	if (file->node_count >= DOC_NODES_MAX) {
		refuse(reader, &event->start_mark, "more than 200000 values");
		return NULL;
	}
	node = take(file, sizeof(*node));
	if (!node) {
		refuse(reader, &event->start_mark, "no memory for so many values");
		return NULL;
	}
	file->node_count++;
	*node = (struct node){.text = "",
		.weight = 1,
		.start = byte_of(file, &event->start_mark),
		.end = byte_of(file, &event->end_mark),
		.line = (uint32_t)event->start_mark.line + 1,
		.column = (uint32_t)event->start_mark.column + 1};
	return node;
}

/* An anchor is a name for what was read completely: nothing can hold itself. */
static bool name_anchor(struct reader *reader, const yaml_char_t *name, struct node *node)
{
	size_t bytes;
	char *copy;

	if (!name || reader->anchor_count == ANCHORS_MAX)
		return true;
	bytes = strlen((const char *)name) + 1;
	copy = take(reader->file, bytes);
	if (!copy)
		return true;
	memcpy(copy, name, bytes);
	reader->anchors[reader->anchor_count].name = copy;
	reader->anchors[reader->anchor_count++].node = node;
	return true;
}

static bool on_alias(struct reader *reader, const yaml_event_t *event)
{
	const char *name = (const char *)event->data.alias.anchor;

	for (uint32_t i = reader->anchor_count; i > 0; i--) {
		struct node *node = reader->anchors[i - 1].node;

		if (strcmp(reader->anchors[i - 1].name, name) != 0)
			continue;
		for (uint32_t d = 0; d < reader->depth; d++)
			if (reader->open[d] == node)
				return refuse(reader, &event->start_mark,
					"an alias stands inside what it names");
		return place(reader, node, &event->start_mark);
	}
	return refuse(reader, &event->start_mark, "an alias names no anchor before it");
}

static bool on_scalar(struct reader *reader, const yaml_event_t *event)
{
	struct node *node = make(reader, event);
	yaml_scalar_style_t style = event->data.scalar.style;
	char *text;

	if (!node)
		return false;
	text = take(reader->file, event->data.scalar.length + 1);
	if (!text)
		return refuse(reader, &event->start_mark, "no memory for a long text");
	memcpy(text, event->data.scalar.value, event->data.scalar.length);
	text[event->data.scalar.length] = 0;
	node->text = text;
	node->is_plain = style == YAML_PLAIN_SCALAR_STYLE;
	node->is_block = style == YAML_LITERAL_SCALAR_STYLE ||
			 style == YAML_FOLDED_SCALAR_STYLE;
	return name_anchor(reader, event->data.scalar.anchor, node) &&
	       place(reader, node, &event->start_mark);
}

static bool on_open(struct reader *reader, const yaml_event_t *event, bool is_map)
{
	struct node *node = make(reader, event);

	if (!node)
		return false;
	if (reader->depth == DOC_DEPTH_MAX)
		return refuse(reader, &event->start_mark, "nested more than 64 deep");
	node->kind = is_map ? NODE_MAP : NODE_LIST;
	node->is_flow =
		is_map ? event->data.mapping_start.style == YAML_FLOW_MAPPING_STYLE
		       : event->data.sequence_start.style == YAML_FLOW_SEQUENCE_STYLE;
	name_anchor(reader,
		is_map ? event->data.mapping_start.anchor
		       : event->data.sequence_start.anchor,
		node);
	reader->open[reader->depth] = node;
	reader->pending[reader->depth] = NULL;
	reader->depth++;
	return true;
}

static bool on_close(struct reader *reader, const yaml_event_t *event)
{
	struct node *node = reader->open[--reader->depth];

	node->end = byte_of(reader->file, &event->end_mark);
	return place(reader, node, &event->end_mark);
}

static bool keep_root(struct reader *reader)
{
	struct doc_file *file = reader->file;
	struct node **docs;

	reader->anchor_count = 0;
	if (!reader->root ||
		(reader->root->kind == NODE_SCALAR && !*reader->root->text)) {
		reader->root = NULL;
		return true;
	}
	docs = realloc(file->docs, (file->doc_count + 1) * sizeof(*docs));
	if (!docs)
		return false;
	file->docs = docs;
	file->docs[file->doc_count++] = reader->root;
	reader->root = NULL;
	return true;
}

static bool on_event(struct reader *reader, const yaml_event_t *event)
{
	switch (event->type) {
	case YAML_ALIAS_EVENT:
		return on_alias(reader, event);
	case YAML_SCALAR_EVENT:
		return on_scalar(reader, event);
	case YAML_SEQUENCE_START_EVENT:
		return on_open(reader, event, false);
	case YAML_MAPPING_START_EVENT:
		return on_open(reader, event, true);
	case YAML_SEQUENCE_END_EVENT:
	case YAML_MAPPING_END_EVENT:
		return on_close(reader, event);
	case YAML_DOCUMENT_END_EVENT:
		return keep_root(reader);
	default:
		return true;
	}
}

static void parser_fault(struct reader *reader, yaml_mark_t *where)
{
	const yaml_parser_t *parser = &reader->parser;
	char text[160];

	*where = parser->problem_mark;
	if (parser->error == YAML_READER_ERROR)
		snprintf(text, sizeof(text), "%s at byte %zu",
			parser->problem ? parser->problem : "not UTF-8",
			parser->problem_offset);
	else if (parser->context)
		snprintf(text, sizeof(text), "%s (line %zu): %s", parser->context,
			parser->context_mark.line + 1,
			parser->problem ? parser->problem : "no memory");
	else
		snprintf(text, sizeof(text), "%s",
			parser->problem ? parser->problem : "no memory");
	/* Of a key that never came the key's line is to blame. */
	if (parser->error == YAML_SCANNER_ERROR && parser->context &&
		strstr(parser->context, "simple key"))
		*where = parser->context_mark;
	refuse(reader, where, text);
}

static void forget_docs(struct doc_file *file)
{
	while (file->chunks) {
		struct node_chunk *next = file->chunks->next;

		free(file->chunks);
		file->chunks = next;
	}
	free(file->docs);
	file->docs = NULL;
	file->doc_count = 0;
	file->node_count = 0;
}

/* One pass over `text`. False when it ended before the end; `line` (from 1) is then the
 * one to blame, 0 when no other pass would get further. */
static bool read_once(struct doc_file *file, const char *text, uint32_t *line)
{
	struct reader *reader = calloc(1, sizeof(*reader));
	bool is_good = true, is_done = false;
	yaml_mark_t where = {0};

	*line = 0;
	if (!reader || !yaml_parser_initialize(&reader->parser)) {
		free(reader);
		return false;
	}
	reader->file = file;
	yaml_parser_set_encoding(&reader->parser, YAML_UTF8_ENCODING);
	yaml_parser_set_input_string(
		&reader->parser, (const unsigned char *)text, file->bytes);
	while (is_good && !is_done) {
		yaml_event_t event;

		if (!yaml_parser_parse(&reader->parser, &event)) {
			parser_fault(reader, &where);
			if (reader->parser.error != YAML_READER_ERROR)
				*line = (uint32_t)where.line + 1;
			is_good = false;
			break;
		}
		is_done = event.type == YAML_STREAM_END_EVENT;
		is_good = on_event(reader, &event);
		yaml_event_delete(&event);
	}
	yaml_parser_delete(&reader->parser);
	free(reader);
	return is_good;
}

/* The line is taken for empty; true when there was something on it. */
static bool blank_line(const struct doc_file *file, char *text, uint32_t line)
{
	size_t from = doc_line_start(file, line), to = doc_line_start(file, line + 1);
	bool is_changed = false;

	for (size_t i = from; i < to; i++)
		if (text[i] != '\n' && text[i] != '\r' && text[i] != ' ') {
			text[i] = ' ';
			is_changed = true;
		}
	return is_changed;
}

/* Faults on lines that follow each other are one mistake. */
static void fold_faults(struct doc_file *file)
{
	uint32_t kept = 0, last = 0;

	for (uint32_t i = 0; i < file->fault_count; i++) {
		uint32_t line = file->faults[i].line;

		if (!i || line > last + 1 || line + 1 < last)
			file->faults[kept++] = file->faults[i];
		last = line;
	}
	file->fault_count = kept;
}

static enum err read_docs(struct doc_file *file)
{
	char *text = malloc(file->bytes + 1);
	uint32_t line;

	if (!text)
		return err_set(ERR_SYSTEM, "no memory for %s", file->path);
	memcpy(text, file->text, file->bytes + 1);
	while (!read_once(file, text, &line)) {
		if (!line || file->fault_count == DOC_FAULTS_MAX ||
			!blank_line(file, text, line))
			break;
		forget_docs(file);
	}
	free(text);
	fold_faults(file);
	return OK;
}

static enum err check_text(const struct doc_file *file)
{
	const unsigned char *text = (const unsigned char *)file->text;

	if (file->bytes > 1 && ((text[0] == 0xff && text[1] == 0xfe) ||
				       (text[0] == 0xfe && text[1] == 0xff)))
		return err_set(ERR_USAGE,
			"%s is UTF-16 and manifests are UTF-8; convert it with iconv -f "
			"UTF-16 -t UTF-8",
			file->path);
	if (memchr(text, 0, file->bytes))
		return err_set(ERR_USAGE,
			"%s is a binary file, not a manifest: it has bytes of value 0",
			file->path);
	return OK;
}

enum err doc_parse(
	const char *path, const char *text, size_t bytes, struct doc_file *file)
{
	size_t at = 0;
	enum err e;

	*file = (struct doc_file){.bytes = bytes};
	file->path = strdup(path);
	file->text = malloc(bytes + 1);
	if (!file->path || !file->text)
		return err_set(ERR_SYSTEM, "no memory for %s", path);
	if (bytes)
		memcpy(file->text, text, bytes);
	file->text[bytes] = 0;
	if (bytes > DOC_BYTES_MAX)
		return err_set(ERR_USAGE,
			"%s is larger than %d MiB; give a manifest alone", path,
			DOC_BYTES_MAX >> 20);
	e = check_text(file);
	if (!e)
		e = find_lines(file);
	if (e)
		return e;
	while (at < bytes && strchr(" \t\r\n", text[at]))
		at++;
	file->is_json = at < bytes && (text[at] == '{' || text[at] == '[');
	return read_docs(file);
}

static enum err read_all(int fd, const char *path, char **text, size_t *bytes)
{
	size_t room = 1 << 16, used = 0;
	char *buffer = malloc(room);

	while (buffer && used <= DOC_BYTES_MAX) {
		ssize_t n = read(fd, buffer + used, room - used);

		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0) {
			free(buffer);
			return err_set(ERR_SYSTEM, "cannot read %s: %m", path);
		}
		if (!n)
			break;
		used += (size_t)n;
		if (used == room) {
			char *larger = realloc(buffer, room *= 2);

			if (!larger)
				free(buffer);
			buffer = larger;
		}
	}
	if (!buffer)
		return err_set(ERR_SYSTEM, "no memory for %s", path);
	*text = buffer;
	*bytes = used;
	return OK;
}

enum err doc_read(const char *path, struct doc_file *file)
{
	bool is_input = !strcmp(path, "-");
	int fd = is_input ? STDIN_FILENO : open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
	size_t bytes = 0;
	char *text = NULL;
	struct stat stat;
	enum err e;

	*file = (struct doc_file){0};
	if (fd < 0)
		return err_set(ERR_SYSTEM, "cannot open %s: %m", path);
	if (!is_input && !fstat(fd, &stat) && S_ISDIR(stat.st_mode)) {
		close(fd);
		return err_set(ERR_USAGE, "%s is a folder; name the files in it", path);
	}
	e = read_all(fd, path, &text, &bytes);
	if (!is_input)
		close(fd);
	if (e)
		return e;
	e = doc_parse(is_input ? "standard input" : path, text, bytes, file);
	free(text);
	return e;
}

void doc_free(struct doc_file *file)
{
	forget_docs(file);
	free(file->lines);
	free(file->text);
	free(file->path);
	*file = (struct doc_file){0};
}

static int find_key(const struct node *map, const char *key)
{
	/* The last one counts, as for the API server's own reader. */
	for (uint32_t i = map->count; i > 0; i--)
		if (map->keys[i - 1]->kind == NODE_SCALAR &&
			!strcmp(map->keys[i - 1]->text, key))
			return (int)i - 1;
	return -1;
}

static struct node *merged(const struct node *map, const char *key)
{
	int at = find_key(map, "<<");
	const struct node *from = at < 0 ? NULL : map->items[at];

	if (!from || from == map)
		return NULL;
	if (from->kind == NODE_MAP)
		at = find_key(from, key);
	if (from->kind == NODE_MAP)
		return at < 0 ? NULL : from->items[at];
	for (uint32_t i = 0; from->kind == NODE_LIST && i < from->count; i++) {
		if (from->items[i]->kind != NODE_MAP)
			continue;
		at = find_key(from->items[i], key);
		if (at >= 0)
			return from->items[i]->items[at];
	}
	return NULL;
}

struct node *node_get(const struct node *map, const char *key)
{
	int at;

	if (!map || map->kind != NODE_MAP)
		return NULL;
	at = find_key(map, key);
	return at < 0 ? merged(map, key) : map->items[at];
}

struct node *node_key(const struct node *map, const char *key)
{
	int at = map && map->kind == NODE_MAP ? find_key(map, key) : -1;

	return at < 0 ? NULL : map->keys[at];
}

struct node *node_at(const struct node *node, const char *path)
{
	const struct node *at = node;

	while (at && *path) {
		char part[PATH_PART_BYTES];
		size_t bytes = strcspn(path, "/");
		int64_t index;

		snprintf(part, sizeof(part), "%.*s", (int)bytes, path);
		if (at->kind == NODE_LIST)
			at = units_int(part, 0, (int64_t)at->count - 1, &index)
				     ? at->items[index]
				     : NULL;
		else
			at = node_get(at, part);
		path += bytes + (path[bytes] == '/');
	}
	return (struct node *)at;
}

const char *node_text(const struct node *node)
{
	if (!node || node->kind != NODE_SCALAR)
		return NULL;
	if (node->is_plain &&
		(!*node->text || !strcmp(node->text, "null") || !strcmp(node->text, "~")))
		return NULL;
	return node->text;
}

bool node_is(const struct node *node, const char *text)
{
	const char *own = node_text(node);

	return own && !strcmp(own, text);
}

bool node_true(const struct node *node)
{
	return node_is(node, "true") || node_is(node, "True") || node_is(node, "yes") ||
	       node_is(node, "on");
}

bool node_int(const struct node *node, int64_t *value)
{
	const char *text = node_text(node);

	return text && units_int(text, -INT32_MAX, INT32_MAX, value);
}

const struct node *node_or(const struct node *node, const struct node *instead)
{
	return node ? node : instead;
}

size_t node_tail(const struct doc_file *file, const struct node *node)
{
	size_t end;

	while (node->kind != NODE_SCALAR && !node->is_flow && node->count &&
		node->items[node->count - 1]->start > node->start)
		node = node->items[node->count - 1];
	end = node->end;
	/* A block text ends where the next thing begins. */
	if (node->is_block)
		while (end > node->start && strchr(" \t\r\n", file->text[end - 1]))
			end--;
	if (node->kind != NODE_SCALAR && !node->is_flow)
		while (end > node->start && strchr(" \t\r\n", file->text[end - 1]))
			end--;
	return end;
}
