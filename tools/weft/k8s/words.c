#include "weft/k8s/words.h"

#include <stdlib.h>
#include <string.h>

static void place(const struct doc_file *file, struct word *word)
{
	uint32_t low = 0, high = file->line_count;

	while (low + 1 < high) {
		uint32_t middle = (low + high) / 2;

		if (file->lines[middle] <= word->start)
			low = middle;
		else
			high = middle;
	}
	word->line = low + 1;
	word->column = 1;
	for (size_t i = file->lines[low]; i < word->start; i++)
		word->column += ((unsigned char)file->text[i] & 0xc0) != 0x80;
}

/* `from` is where in the file the node's text was read up to. */
static void add(const struct doc_file *file, struct words *words, const struct node *node,
	size_t *from, const char *text)
{
	struct word *word;
	size_t bytes = strlen(text);
	const char *seen;

	if (words->count == WORDS_MAX || !bytes)
		return;
	word = &words->list[words->count++];
	if (bytes >= WORD_BYTES)
		bytes = WORD_BYTES - 1;
	memcpy(word->text, text, bytes);
	word->text[bytes] = 0;
	word->node = node;
	word->line = node->line;
	word->column = node->column;
	word->start = word->end = node->start;
	if (*from >= node->end || node->end > file->bytes)
		return;
	seen = memmem(file->text + *from, node->end - *from, text, bytes);
	if (!seen)
		return;
	word->start = (size_t)(seen - file->text);
	word->end = *from = word->start + bytes;
	place(file, word);
}

/* Comments of a script are no words, and neither are the ends of its lines. */
static void split(
	const struct doc_file *file, struct words *words, const struct node *node)
{
	const char *at = node->text;
	size_t from = node->start;

	while (*at) {
		char word[WORD_BYTES];
		size_t used = 0;
		char quote = 0;

		at += strspn(at, " \t\r\n;&|()");
		if (*at == '#') {
			at += strcspn(at, "\n");
			continue;
		}
		for (; *at && (quote || !strchr(" \t\r\n;&|()", *at)); at++) {
			if (quote ? *at == quote : (*at == '"' || *at == '\'')) {
				quote = quote ? 0 : *at;
				continue;
			}
			if (*at == '\\' && (at[1] == '\n' || at[1] == '\r'))
				break;
			if (used + 1 < sizeof(word))
				word[used++] = *at;
		}
		word[used] = 0;
		at += *at == '\\';
		if (strcmp(word, "\\") != 0)
			add(file, words, node, &from, word);
	}
}

static void read_list(
	const struct doc_file *file, const struct node *list, struct words *words)
{
	if (!list)
		return;
	if (list->kind == NODE_SCALAR)
		split(file, words, list);
	for (uint32_t i = 0; list->kind == NODE_LIST && i < list->count; i++)
		if (list->items[i]->kind == NODE_SCALAR)
			split(file, words, list->items[i]);
}

void words_read(
	const struct doc_file *file, const struct node *container, struct words *words)
{
	words->count = 0;
	words->list = calloc(WORDS_MAX, sizeof(*words->list));
	if (!words->list || !container)
		return;
	read_list(file, node_get(container, "command"), words);
	read_list(file, node_get(container, "args"), words);
}

void words_free(struct words *words)
{
	free(words->list);
	*words = (struct words){0};
}

const struct word *words_program(const struct words *words, const char *name)
{
	for (uint32_t i = 0; i < words->count; i++) {
		const char *slash = strrchr(words->list[i].text, '/');

		if (!strcmp(slash ? slash + 1 : words->list[i].text, name))
			return &words->list[i];
	}
	return NULL;
}

/* Does the word begin with the option, whose dashes inside may be underscores? What
 * follows is in *rest. */
static bool is_option(const char *word, const char *name, size_t bytes, const char **rest)
{
	for (size_t i = 0; i < bytes; i++)
		if (word[i] != name[i] && !(i > 1 && name[i] == '-' && word[i] == '_'))
			return false;
	*rest = word + bytes;
	return !**rest || **rest == '=';
}

static const struct word *option_value(
	const struct words *words, uint32_t i, const char *names, const char **value)
{
	while (*names) {
		size_t bytes = strcspn(names, " ");
		const char *rest;

		if (is_option(words->list[i].text, names, bytes, &rest)) {
			if (*rest) {
				*value = rest + 1;
				return &words->list[i];
			}
			if (i + 1 < words->count) {
				*value = words->list[i + 1].text;
				return &words->list[i + 1];
			}
		}
		names += bytes + (names[bytes] == ' ');
	}
	return NULL;
}

const struct word *words_option(const struct words *words, const struct word *from,
	const char *names, const char **value)
{
	uint32_t i = from ? (uint32_t)(from - words->list) + 1 : 0;
	bool is_begun = false;

	for (; i < words->count; i++) {
		const struct word *found = option_value(words, i, names, value);

		if (found)
			return found;
		/* Behind the program that is started the options are its own. */
		if (from && is_begun && words->list[i].text[0] != '-' &&
			(strstr(words->list[i].text, "_perf") ||
				strstr(words->list[i].text, ".py") ||
				!strcmp(words->list[i].text, "python") ||
				!strcmp(words->list[i].text, "python3")))
			return NULL;
		is_begun = true;
	}
	return NULL;
}
