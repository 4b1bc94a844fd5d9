#include "weft/k8s/edit.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { STEP = 2 };

static void add(struct finding *finding, size_t start, size_t end, char *text)
{
	if (!text || finding->edit_count == FINDING_EDITS_MAX) {
		free(text);
		return;
	}
	finding->edits[finding->edit_count++] = (struct edit){
		.start = start, .end = end, .text = text};
}

void edit_bytes(struct finding *finding, size_t start, size_t end, const char *text)
{
	add(finding, start, end, strdup(text));
}

/* Would YAML take this text, without quotes, for a string? */
static bool is_plain_string(const char *text)
{
	static const char *const words[] = {"true", "false", "null", "yes", "no", "on",
		"off", "y", "n", "~", "True", "False", "TRUE", "FALSE", "Yes", "No"};

	if (!*text || strchr("-?:,[]{}#&*!|>'\"%@`0123456789.+ ", *text))
		return false;
	for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); i++)
		if (!strcmp(text, words[i]))
			return false;
	for (const char *at = text; *at; at++)
		if ((unsigned char)*at < ' ' ||
			(*at == ':' && (!at[1] || at[1] == ' ')) ||
			(*at == '#' && at > text && at[-1] == ' ') ||
			strchr("{}[],", *at))
			return false;
	return text[strlen(text) - 1] != ' ';
}

static void print_scalar(FILE *out, json_t *value, bool is_flow)
{
	char *text;

	if (json_is_string(value) && !is_flow &&
		is_plain_string(json_string_value(value))) {
		fputs(json_string_value(value), out);
		return;
	}
	text = json_dumps(value, JSON_ENCODE_ANY);
	fputs(text ? text : "null", out);
	free(text);
}

static void print_block(FILE *out, json_t *value, size_t indent);

static void print_below(FILE *out, json_t *value, size_t indent)
{
	bool is_empty = json_is_object(value) ? !json_object_size(value)
					      : !json_array_size(value);

	if (!json_is_object(value) && !json_is_array(value)) {
		fputc(' ', out);
		print_scalar(out, value, false);
	} else if (is_empty) {
		fputs(json_is_object(value) ? " {}" : " []", out);
	} else {
		fprintf(out, "\n%*s", (int)indent, "");
		print_block(out, value, indent);
	}
}

/* The first line stands at the cursor, which is at `indent`; no newline after the last.
 * NOLINTNEXTLINE(misc-no-recursion): what we write ourselves is flat. */
static void print_block(FILE *out, json_t *value, size_t indent)
{
	const char *key;
	json_t *item;
	size_t i, count = 0;

	if (json_is_object(value)) {
		json_object_foreach(value, key, item)
		{
			if (count++)
				fprintf(out, "\n%*s", (int)indent, "");
			fputs(key, out);
			fputc(':', out);
			print_below(out, item, indent + (json_is_array(item) ? 0 : STEP));
		}
	} else if (json_is_array(value)) {
		json_array_foreach(value, i, item)
		{
			if (count++)
				fprintf(out, "\n%*s", (int)indent, "");
			fputs("- ", out);
			if (json_is_object(item) || json_is_array(item))
				print_block(out, item, indent + STEP);
			else
				print_scalar(out, item, false);
		}
	} else {
		print_scalar(out, value, false);
	}
}

/* Blanks before the first byte of the line that `at` is on. */
static size_t line_begin(const struct doc_file *file, size_t at)
{
	while (at && file->text[at - 1] != '\n')
		at--;
	return at;
}

static size_t line_end(const struct doc_file *file, size_t at)
{
	while (at < file->bytes && file->text[at] != '\n' && file->text[at] != '\r')
		at++;
	return at;
}

/* Behind the line break. */
static size_t next_line(const struct doc_file *file, size_t at)
{
	at = line_end(file, at);
	if (at < file->bytes && file->text[at] == '\r')
		at++;
	if (at < file->bytes && file->text[at] == '\n')
		at++;
	return at;
}

void edit_scalar(const struct doc_file *file, struct finding *finding,
	const struct node *node, const char *text)
{
	char quote = node->start < file->bytes ? file->text[node->start] : 0;
	char *quoted;

	if (node->kind != NODE_SCALAR || node->is_block)
		return;
	if (quote != '"' && quote != '\'')
		quote = 0;
	if (quote == '\'' && strchr(text, '\''))
		return;
	if (quote ? asprintf(&quoted, "%c%s%c", quote, text, quote) < 0
		  : asprintf(&quoted, "%s", text) < 0)
		return;
	add(finding, node->start, node->end, quoted);
}

static char *as_text(json_t *value, bool is_flow, size_t indent, const char *before)
{
	char *text = NULL;
	size_t bytes = 0;
	FILE *out = open_memstream(&text, &bytes);

	if (!out)
		return NULL;
	fputs(before, out);
	if (is_flow) {
		char *flow = json_dumps(value, JSON_ENCODE_ANY | JSON_PRESERVE_ORDER);

		fputs(flow ? flow : "null", out);
		free(flow);
	} else {
		print_block(out, value, indent);
	}
	fclose(out);
	return text;
}

void edit_value(const struct doc_file *file, struct finding *finding,
	const struct node *node, json_t *value)
{
	add(finding, node->start, node_tail(file, node), as_text(value, true, 0, ""));
	json_decref(value);
}

/* "\n" and blanks up to the column of the first key or dash. */
static char *fresh_line(const struct doc_file *file, size_t column, const char *after)
{
	const char *eol = memmem(file->text, file->bytes, "\r\n", 2) ? "\r\n" : "\n";
	char *text;

	return asprintf(&text, "%s%*s%s", eol, (int)column, "", after) < 0 ? NULL : text;
}

/* In the text of a new value all line breaks are as in the file. */
static char *with_breaks(const struct doc_file *file, char *text)
{
	size_t lines = 0, used = 0;
	char *out;

	if (!text || !memmem(file->text, file->bytes, "\r\n", 2))
		return text;
	for (const char *at = text; *at; at++)
		lines += *at == '\n';
	out = malloc(strlen(text) + lines + 1);
	for (const char *at = text; out && *at; at++) {
		if (*at == '\n' && (at == text || at[-1] != '\r'))
			out[used++] = '\r';
		out[used++] = *at;
	}
	if (out)
		out[used] = 0;
	free(text);
	return out;
}

/* At the end of a map or list in brackets. */
static void add_flow(const struct doc_file *file, struct finding *finding,
	const struct node *parent, const char *key, json_t *value)
{
	char *before, *quoted = NULL;
	size_t at = parent->end;

	if (!at || at > file->bytes || !strchr("]}", file->text[at - 1]))
		return;
	at--;
	while (at > parent->start && isspace((unsigned char)file->text[at - 1]))
		at--;
	if (key && asprintf(&quoted, "\"%s\"", key) < 0)
		return;
	if (asprintf(&before, "%s%s%s", parent->count ? ", " : "", quoted ? quoted : "",
		    quoted ? ": " : "") >= 0) {
		add(finding, at, at, as_text(value, true, 0, before));
		free(before);
	}
	free(quoted);
}

/* Where a block map or list can go on: behind the last value's line. */
static size_t block_end(const struct doc_file *file, const struct node *parent)
{
	return line_end(file, node_tail(file, parent));
}

void edit_add(const struct doc_file *file, struct finding *finding,
	const struct node *map, const char *key, json_t *value)
{
	json_t *pair;
	char *before;
	size_t column;

	if (!value || !map || map->kind != NODE_MAP) {
		json_decref(value);
		return;
	}
	if (map->is_flow || !map->count) {
		add_flow(file, finding, map, key, value);
		json_decref(value);
		return;
	}
	column = map->start - line_begin(file, map->start);
	pair = json_pack("{s:o}", key, value);
	before = fresh_line(file, column, "");
	if (pair && before) {
		size_t at = block_end(file, map);

		add(finding, at, at,
			with_breaks(file, as_text(pair, false, column, before)));
	}
	free(before);
	json_decref(pair);
}

/* Of a block list, where the dash of its first item stands. */
static size_t dash_of(const struct doc_file *file, const struct node *item)
{
	size_t at = item->start;

	while (at && (isspace((unsigned char)file->text[at - 1])))
		at--;
	return at && file->text[at - 1] == '-' ? at - 1 : item->start;
}

void edit_append(const struct doc_file *file, struct finding *finding,
	const struct node *list, json_t *value)
{
	json_t *items;
	char *before;
	size_t column, dash;

	if (!value || !list || list->kind != NODE_LIST) {
		json_decref(value);
		return;
	}
	if (list->is_flow || !list->count) {
		add_flow(file, finding, list, NULL, value);
		json_decref(value);
		return;
	}
	dash = dash_of(file, list->items[0]);
	column = dash - line_begin(file, dash);
	items = json_pack("[o]", value);
	before = fresh_line(file, column, "");
	if (items && before) {
		size_t at = block_end(file, list);

		add(finding, at, at,
			with_breaks(file, as_text(items, false, column, before)));
	}
	free(before);
	json_decref(items);
}

static int index_of(const struct node *parent, const struct node *node)
{
	for (uint32_t i = 0; i < parent->count; i++)
		if (parent->items[i] == node)
			return (int)i;
	return -1;
}

static void remove_flow(const struct doc_file *file, struct finding *finding,
	const struct node *parent, uint32_t i)
{
	const struct node *first = parent->keys[i] ? parent->keys[i] : parent->items[i];
	size_t from = first->start, to = node_tail(file, parent->items[i]);

	if (i + 1 < parent->count) {
		to = (parent->keys[i + 1] ? parent->keys[i + 1] : parent->items[i + 1])
			     ->start;
	} else if (i) {
		from = node_tail(file, parent->items[i - 1]);
	}
	add(finding, from, to, strdup(""));
}

void edit_remove(
	const struct doc_file *file, struct finding *finding, const struct node *node)
{
	const struct node *parent = node->parent;
	int i = parent ? index_of(parent, node) : -1;
	size_t from, to;

	while (i >= 0 && parent->count == 1 && parent->parent) {
		node = parent;
		parent = node->parent;
		i = index_of(parent, node);
	}
	if (i < 0)
		return;
	if (parent->is_flow) {
		remove_flow(file, finding, parent, (uint32_t)i);
		return;
	}
	from = parent->kind == NODE_MAP ? parent->keys[i]->start : dash_of(file, node);
	to = next_line(file, node_tail(file, node));
	/* The first key after a dash leaves its place to the second. */
	if (parent->kind == NODE_MAP && !i && parent->count > 1 &&
		strspn(file->text + line_begin(file, from), " ") !=
			from - line_begin(file, from))
		to = parent->keys[1]->start;
	else
		from = line_begin(file, from);
	add(finding, from, to, strdup(""));
}

/* All edits that are wanted, in the order of the text. */
struct wanted {
	const struct edit *edit;
	uint32_t order;
};

/* Lines that are added at one place: those further in come first, or they would end up in
 * another map; of two alike an item ends a list before the next key begins. */
static size_t depth_of(const char *text)
{
	size_t eol = strspn(text, "\r\n"), blanks = strspn(text + eol, " ");

	return eol ? 2 * blanks + (text[eol + blanks] == '-') : 0;
}

static int by_start(const void *a, const void *b)
{
	const struct wanted *x = a, *y = b;
	size_t x_depth = depth_of(x->edit->text), y_depth = depth_of(y->edit->text);

	if (x->edit->start != y->edit->start)
		return x->edit->start < y->edit->start ? -1 : 1;
	if (x_depth != y_depth)
		return x_depth > y_depth ? -1 : 1;
	return x->order < y->order ? -1 : x->order > y->order;
}

static bool touches(const struct edit *a, const struct edit *b)
{
	if (a->start == a->end && b->start == b->end)
		return false;
	return a->start < b->end && b->start < a->end;
}

static bool is_free(
	const struct wanted *taken, uint32_t count, const struct finding *finding)
{
	for (uint32_t i = 0; i < finding->edit_count; i++)
		for (uint32_t j = 0; j < count; j++)
			if (touches(&finding->edits[i], taken[j].edit) ||
				(finding->edits[i].start == taken[j].edit->start &&
					finding->edits[i].end == taken[j].edit->end &&
					!strcmp(finding->edits[i].text,
						taken[j].edit->text)))
				return false;
	return true;
}

static char *rewrite(
	const struct doc_file *file, const struct wanted *taken, uint32_t count)
{
	char *text = NULL;
	size_t bytes = 0, at = 0;
	FILE *out = open_memstream(&text, &bytes);

	if (!out)
		return NULL;
	for (uint32_t i = 0; i < count; i++) {
		const struct edit *edit = taken[i].edit;

		if (edit->start < at || edit->end > file->bytes)
			continue;
		fwrite(file->text + at, 1, edit->start - at, out);
		fputs(edit->text, out);
		at = edit->end;
	}
	fwrite(file->text + at, 1, file->bytes - at, out);
	return fclose(out) ? NULL : text;
}

char *edit_apply(const struct doc_file *file, const struct finding *from,
	const struct finding *to, uint32_t *count)
{
	uint32_t used = 0;
	struct wanted *taken = calloc(
		(size_t)(to - from) * FINDING_EDITS_MAX + 1, sizeof(struct wanted));
	char *text;

	*count = 0;
	if (!taken)
		return NULL;
	for (const struct finding *at = from; at < to; at++) {
		if (!at->edit_count || !is_free(taken, used, at))
			continue;
		for (uint32_t i = 0; i < at->edit_count; i++, used++)
			taken[used] = (struct wanted){&at->edits[i], used};
		++*count;
	}
	qsort(taken, used, sizeof(*taken), by_start);
	text = rewrite(file, taken, used);
	free(taken);
	return text;
}
