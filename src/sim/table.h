/*
 * table.h - comma separated values with a header line, from a file nobody has checked.
 *
 * Fields may stand in double quotes, doubled inside; lines end in \n or \r\n. A file is
 * refused as a whole: too long, a line with more or fewer fields than the header, a quote
 * that does not end.
 */
#ifndef SIM_TABLE_H
#define SIM_TABLE_H

#include <stddef.h>
#include <stdint.h>

#include "base/err.h"

enum { TABLE_COLUMNS_MAX = 32, TABLE_ROWS_MAX = 1000000 };

struct sim_table {
	char *text;    /* owned: the fields, each ended by a zero */
	char **fields; /* owned: [row * column_count + column]; row 0 is the header */
	uint32_t column_count, row_count; /* rows without the header */
};

enum err table_parse(
	const char *text, size_t bytes, const char *name, struct sim_table *table);
enum err table_read(const char *path, struct sim_table *table);
void table_free(struct sim_table *table);

/* The number of the column called so; -1. */
int table_column(const struct sim_table *table, const char *name);

/* Row 0 is the first after the header. "" for column -1. */
const char *table_at(const struct sim_table *table, uint32_t row, int column);

#endif
