#include "sim/table.h"

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

enum { FILE_BYTES_MAX = 64 << 20 };

struct reader {
	const char *at, *end, *name;
	char *out; /* where the next field goes */
	uint32_t line;
	struct sim_table *table;
	uint32_t room, used; /* of table->fields */
};

static enum err wrong(const struct reader *reader, const char *what)
{
	return err_set(ERR_USAGE, "%s, line %u: %s", reader->name, reader->line, what);
}

static enum err field_keep(struct reader *reader, char *field)
{
	if (reader->used == reader->room) {
		uint32_t room = reader->room ? 2 * reader->room : 256;
		char **moved = realloc(
			reader->table->fields, room * sizeof(*reader->table->fields));

		if (!moved)
			return err_set(ERR_SYSTEM, "no memory for %s", reader->name);
		reader->table->fields = moved;
		reader->room = room;
	}
	reader->table->fields[reader->used++] = field;
	return OK;
}

static enum err quoted(struct reader *reader)
{
	for (reader->at++; reader->at < reader->end; reader->at++) {
		if (*reader->at != '"') {
			*reader->out++ = *reader->at;
			continue;
		}
		if (reader->at + 1 < reader->end && reader->at[1] == '"') {
			*reader->out++ = *reader->at++;
			continue;
		}
		reader->at++;
		return OK;
	}
	return wrong(reader, "a quote begins that does not end");
}

/* Up to the comma or the end of the line, which stays. */
static enum err field_read(struct reader *reader)
{
	char *begin = reader->out;
	enum err e = OK;

	if (reader->at < reader->end && *reader->at == '"')
		e = quoted(reader);
	while (!e && reader->at < reader->end && *reader->at != ',' &&
		*reader->at != '\n') {
		if (!*reader->at)
			return wrong(reader, "a byte of zero; this is no text");
		if (*reader->at != '\r')
			*reader->out++ = *reader->at;
		reader->at++;
	}
	if (e)
		return e;
	*reader->out++ = 0;
	return field_keep(reader, begin);
}

static enum err line_read(struct reader *reader, uint32_t *count)
{
	*count = 0;
	for (;;) {
		enum err e = field_read(reader);

		if (e)
			return e;
		if (++*count > TABLE_COLUMNS_MAX)
			return wrong(reader, "more than 32 columns");
		if (reader->at == reader->end)
			return OK;
		if (*reader->at++ == '\n')
			return OK;
	}
}

static enum err lines_read(struct reader *reader)
{
	struct sim_table *table = reader->table;

	for (reader->line = 1; reader->at < reader->end; reader->line++) {
		uint32_t count;
		enum err e;

		if (*reader->at == '\n' || *reader->at == '\r') { /* an empty line */
			reader->at++;
			continue;
		}
		e = line_read(reader, &count);
		if (e)
			return e;
		if (!table->column_count)
			table->column_count = count;
		else if (count != table->column_count)
			return wrong(reader, "not as many fields as the first line has");
		else if (++table->row_count > TABLE_ROWS_MAX)
			return wrong(reader, "more than a million rows");
	}
	if (!table->column_count)
		return err_set(ERR_USAGE, "%s is empty; it needs a line of column names",
			reader->name);
	return OK;
}

enum err table_parse(
	const char *text, size_t bytes, const char *name, struct sim_table *table)
{
	struct reader reader = {
		.at = text, .end = text + bytes, .name = name, .table = table};
	enum err e;

	*table = (struct sim_table){0};
	if (bytes > FILE_BYTES_MAX)
		return err_set(ERR_USAGE, "%s has more than 64 MiB", name);
	table->text = malloc(2 * bytes + 2);
	if (!table->text)
		return err_set(ERR_SYSTEM, "no memory for %s", name);
	reader.out = table->text;
	if (bytes >= 3 && !memcmp(text, "\xef\xbb\xbf", 3))
		reader.at += 3; /* a byte order mark, as spreadsheets write it */
	e = lines_read(&reader);
	if (e)
		table_free(table);
	return e;
}

/* All of a file; the caller's. */
static enum err file_read(FILE *file, const char *path, char **text, size_t *bytes)
{
	size_t room = 1 << 16;
	char *moved;

	*bytes = 0;
	for (*text = NULL; *bytes <= FILE_BYTES_MAX; room *= 2) {
		moved = realloc(*text, room);
		if (!moved)
			return err_set(ERR_SYSTEM, "no memory for %s", path);
		*text = moved;
		*bytes += fread(*text + *bytes, 1, room - *bytes, file);
		if (*bytes < room)
			break;
	}
	if (ferror(file))
		return err_set(ERR_SYSTEM, "%s cannot be read", path);
	return OK;
}

enum err table_read(const char *path, struct sim_table *table)
{
	FILE *file = fopen(path, "re");
	char *text = NULL;
	size_t bytes = 0;
	enum err e;

	*table = (struct sim_table){0};
	if (!file)
		return err_set(ERR_SYSTEM, "%s cannot be opened: %m", path);
	e = file_read(file, path, &text, &bytes);
	fclose(file);
	if (!e)
		e = table_parse(text, bytes, path, table);
	free(text);
	return e;
}

void table_free(struct sim_table *table)
{
	free(table->text);
	free(table->fields);
	*table = (struct sim_table){0};
}

int table_column(const struct sim_table *table, const char *name)
{
	for (uint32_t i = 0; i < table->column_count; i++)
		if (!strcasecmp(table->fields[i], name))
			return (int)i;
	return -1;
}

const char *table_at(const struct sim_table *table, uint32_t row, int column)
{
	if (column < 0 || row >= table->row_count)
		return "";
	return table->fields[(row + 1) * table->column_count + (uint32_t)column];
}
