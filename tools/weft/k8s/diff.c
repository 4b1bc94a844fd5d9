/* A unified diff of two texts, for people who want to see before they let write. */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "weft/k8s/edit.h"

enum { CONTEXT = 3, TABLE_MAX = 16 << 20 };

struct text_lines {
	const char **at; /* owned; where each begins, and one more for the end */
	uint32_t count;
};

static bool split(const char *text, struct text_lines *lines)
{
	uint32_t room = 2;

	for (const char *at = text; *at; at++)
		room += *at == '\n';
	lines->at = calloc(room, sizeof(*lines->at));
	lines->count = 0;
	if (!lines->at)
		return false;
	while (*text) {
		const char *end = strchr(text, '\n');

		lines->at[lines->count++] = text;
		text = end ? end + 1 : text + strlen(text);
	}
	lines->at[lines->count] = text;
	return true;
}

static bool same(
	const struct text_lines *a, uint32_t i, const struct text_lines *b, uint32_t j)
{
	size_t n = (size_t)(a->at[i + 1] - a->at[i]);

	return n == (size_t)(b->at[j + 1] - b->at[j]) && !memcmp(a->at[i], b->at[j], n);
}

/* marks[i] of either side: the line is in both. The middle part, which differs, by the
 * longest common subsequence. */
struct matching {
	const struct text_lines *a, *b;
	uint32_t *partner; /* of a's line: b's line + 1; 0 none */
};

static bool match_middle(struct matching *m, uint32_t low, uint32_t a_end, uint32_t b_end)
{
	uint32_t rows = a_end - low + 1, columns = b_end - low + 1;
	uint32_t *table;

	if (rows == 1 || columns == 1 || (uint64_t)rows * columns > TABLE_MAX)
		return true; /* all of it is replaced */
	table = calloc((size_t)rows * columns, sizeof(*table));
	if (!table)
		return false;
	for (uint32_t i = rows - 1; i-- > 0;)
		for (uint32_t j = columns - 1; j-- > 0;) {
			uint32_t down = table[(i + 1) * columns + j];
			uint32_t right = table[i * columns + j + 1];

			if (same(m->a, low + i, m->b, low + j))
				table[i * columns + j] = 1 +
							 table[(i + 1) * columns + j + 1];
			else
				table[i * columns + j] = down > right ? down : right;
		}
	for (uint32_t i = 0, j = 0; i + 1 < rows && j + 1 < columns;) {
		if (same(m->a, low + i, m->b, low + j)) {
			m->partner[low + i] = low + j + 1;
			i++;
			j++;
		} else if (table[(i + 1) * columns + j] >= table[i * columns + j + 1]) {
			i++;
		} else {
			j++;
		}
	}
	free(table);
	return true;
}

static bool match(struct matching *m)
{
	uint32_t low = 0, a_end = m->a->count, b_end = m->b->count;

	while (low < a_end && low < b_end && same(m->a, low, m->b, low)) {
		m->partner[low] = low + 1;
		low++;
	}
	while (a_end > low && b_end > low && same(m->a, a_end - 1, m->b, b_end - 1)) {
		a_end--;
		b_end--;
		m->partner[a_end] = b_end + 1;
	}
	return match_middle(m, low, a_end, b_end);
}

static void put(FILE *out, char sign, const struct text_lines *lines, uint32_t i)
{
	size_t n = (size_t)(lines->at[i + 1] - lines->at[i]);

	fputc(sign, out);
	fwrite(lines->at[i], 1, n, out);
	if (!n || lines->at[i][n - 1] != '\n')
		fputs("\n\\ No newline at end of file\n", out);
}

/* One hunk: a's lines from..to against b's. */
struct hunk {
	uint32_t a, a_end, b, b_end;
};

static void print_hunk(FILE *out, const struct matching *m, const struct hunk *hunk)
{
	uint32_t i = hunk->a, j = hunk->b;
	uint32_t a_count = hunk->a_end - hunk->a, b_count = hunk->b_end - hunk->b;

	fprintf(out, "@@ -%u,%u +%u,%u @@\n", hunk->a + (a_count > 0), a_count,
		hunk->b + (b_count > 0), b_count);
	while (i < hunk->a_end || j < hunk->b_end) {
		if (i < hunk->a_end && !m->partner[i]) {
			put(out, '-', m->a, i++);
		} else if (i < hunk->a_end && m->partner[i] == j + 1) {
			put(out, ' ', m->a, i++);
			j++;
		} else {
			put(out, '+', m->b, j++);
		}
	}
}

/* From one difference on, as long as the next is near; i and j move behind it. */
static struct hunk take_hunk(const struct matching *m, uint32_t *i, uint32_t *j)
{
	struct hunk hunk = {.a = *i > CONTEXT ? *i - CONTEXT : 0};
	uint32_t quiet = 0;

	hunk.b = *j - (*i - hunk.a);
	while ((*i < m->a->count || *j < m->b->count) && quiet <= 2 * CONTEXT) {
		bool in_both = *i < m->a->count && m->partner[*i] == *j + 1;

		quiet = in_both ? quiet + 1 : 0;
		if (in_both || (*i < m->a->count && !m->partner[*i]))
			++*i;
		else
			++*j;
		*j += in_both;
	}
	hunk.a_end = *i - (quiet > CONTEXT ? quiet - CONTEXT : 0);
	hunk.b_end = *j - (quiet > CONTEXT ? quiet - CONTEXT : 0);
	return hunk;
}

static void print_all(FILE *out, const char *path, const struct matching *m)
{
	uint32_t i = 0, j = 0, hunks = 0;

	while (i < m->a->count || j < m->b->count) {
		struct hunk hunk;

		if (i < m->a->count && m->partner[i] == j + 1) {
			i++;
			j++;
			continue;
		}
		if (!hunks++)
			fprintf(out, "--- %s\n+++ %s\n", path, path);
		hunk = take_hunk(m, &i, &j);
		print_hunk(out, m, &hunk);
	}
}

char *edit_diff(const char *path, const char *before, const char *after)
{
	struct text_lines a = {0}, b = {0};
	struct matching m = {&a, &b, NULL};
	char *text = NULL;
	size_t bytes = 0;
	FILE *out = open_memstream(&text, &bytes);
	bool is_good = out && split(before, &a) && split(after, &b);

	if (is_good)
		m.partner = calloc(a.count + 1, sizeof(*m.partner));
	is_good = is_good && m.partner && match(&m);
	if (is_good)
		print_all(out, path, &m);
	if (out && fclose(out))
		is_good = false;
	free(m.partner);
	free(a.at);
	free(b.at);
	if (is_good)
		return text;
	free(text);
	return NULL;
}
