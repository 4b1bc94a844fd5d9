/* nvidia-smi's table for people: grouped, folded to the terminal, coloured. */
#include <stdlib.h>
#include <string.h>

#include "common/terminal.h"
#include "weft/topo.h"

enum { WIDE_COLUMNS = 200, TAB = 8, LABEL_BYTES = 24, GAP = 2, LEGEND_INDENT = 9 };

/* Parts that stand in one row and one column: a GPU, or NICs first to last. */
struct entry {
	uint32_t first, last;
	char label[LABEL_BYTES];
};

struct table {
	const struct matrix *matrix;
	struct entry *entries; /* owned */
	uint32_t count;
	int label_width;
	bool looks; /* colours */
};

static struct matrix_cell cell_of(const struct matrix *matrix, uint32_t a, uint32_t b)
{
	return *matrix_at(matrix, a, b);
}

static bool same_cell(struct matrix_cell a, struct matrix_cell b)
{
	return a.level == b.level && a.links == b.links;
}

/* Do two NICs stand alike to everything else? */
static bool alike(const struct matrix *matrix, uint32_t a, uint32_t b)
{
	for (uint32_t i = 0; i < matrix->gpu_count + matrix->nic_count; i++)
		if (i != a && i != b &&
			!same_cell(cell_of(matrix, a, i), cell_of(matrix, b, i)))
			return false;
	return true;
}

static bool fits(const struct matrix *matrix, const struct entry *entry, uint32_t next)
{
	for (uint32_t i = entry->first; i <= entry->last; i++)
		if (i < matrix->gpu_count || !alike(matrix, i, next))
			return false;
	return true;
}

static enum err table_init(struct table *table, const struct matrix *matrix, bool group)
{
	uint32_t parts = matrix->gpu_count + matrix->nic_count;

	*table = (struct table){.matrix = matrix};
	table->entries = calloc(parts, sizeof(*table->entries));
	if (!table->entries)
		return err_set(ERR_SYSTEM, "no memory for a table");
	for (uint32_t i = 0; i < parts; i++) {
		struct entry *last = &table->entries[table->count ? table->count - 1 : 0];
		const struct matrix_part *part = &matrix->parts[i];
		int bytes;

		if (group && table->count && fits(matrix, last, i)) {
			last->last = i;
			bytes = snprintf(last->label, LABEL_BYTES, "NIC%d-%d",
				matrix->parts[last->first].number, part->number);
		} else {
			last = &table->entries[table->count++];
			*last = (struct entry){.first = i, .last = i};
			bytes = snprintf(last->label, LABEL_BYTES, "%s%d",
				i < matrix->gpu_count ? "GPU" : "NIC", part->number);
		}
		table->label_width = bytes > table->label_width ? bytes
								: table->label_width;
	}
	return OK;
}

/* Between the members of a group, what any two of them have. */
static struct matrix_cell entry_cell(
	const struct table *table, const struct entry *row, const struct entry *column)
{
	if (row == column && row->last > row->first)
		return cell_of(table->matrix, row->first, row->last);
	return cell_of(table->matrix, row->first, column->first);
}

static enum terminal_look look_of(const struct table *table, struct matrix_cell cell)
{
	if (!table->looks || cell.level == MATRIX_SELF)
		return LOOK_PLAIN;
	if (cell.level == MATRIX_PHB || cell.level == MATRIX_NODE)
		return LOOK_FAIR;
	return cell.level == MATRIX_SYS ? LOOK_BAD : LOOK_GOOD;
}

static const char *look(const struct table *table, enum terminal_look look)
{
	return table->looks ? terminal_look(look) : "";
}

static int column_width(const struct table *table, uint32_t column)
{
	int width = (int)strlen(table->entries[column].label);

	for (uint32_t i = 0; i < table->count; i++) {
		char text[MATRIX_CELL_MAX];

		matrix_cell_text(
			entry_cell(table, &table->entries[i], &table->entries[column]),
			text);
		width = (int)strlen(text) > width ? (int)strlen(text) : width;
	}
	return width;
}

static void print_cells(
	const struct table *table, uint32_t row, uint32_t first, uint32_t end)
{
	for (uint32_t c = first; c < end; c++) {
		struct matrix_cell cell = entry_cell(
			table, &table->entries[row], &table->entries[c]);
		char text[MATRIX_CELL_MAX];

		matrix_cell_text(cell, text);
		printf("%*s%s%-*s%s", GAP, "", look(table, look_of(table, cell)),
			column_width(table, c), text, look(table, LOOK_PLAIN));
	}
}

/* The columns after those of the parts, which only GPUs have. */
static int affinity_width(const struct table *table)
{
	int cpus = (int)strlen("CPU Affinity");

	for (uint32_t i = 0; i < table->matrix->gpu_count; i++) {
		const char *text = table->matrix->parts[i].cpus;

		cpus = text && (int)strlen(text) > cpus ? (int)strlen(text) : cpus;
	}
	return cpus;
}

static void print_affinity(const struct table *table, uint32_t row)
{
	const struct matrix_part *part = &table->matrix->parts[table->entries[row].first];

	if (table->entries[row].first < table->matrix->gpu_count)
		printf("%*s%-*s%*s%-13s%*s%s", GAP, "", affinity_width(table),
			part->cpus ? part->cpus : "N/A", GAP, "", part->numa, GAP, "",
			part->gpu_numa);
}

static void print_block(
	const struct table *table, uint32_t first, uint32_t end, bool affinity)
{
	printf("%*s%s", table->label_width, "", look(table, LOOK_UNDERLINE));
	for (uint32_t c = first; c < end; c++)
		printf("%*s%-*s", GAP, "", column_width(table, c),
			table->entries[c].label);
	if (affinity)
		printf("%*s%-*s%*s%-13s%*s%s", GAP, "", affinity_width(table),
			"CPU Affinity", GAP, "", "NUMA Affinity", GAP, "", "GPU NUMA ID");
	printf("%s\n", look(table, LOOK_PLAIN));
	for (uint32_t row = 0; row < table->count; row++) {
		if (first == end && table->entries[row].first >= table->matrix->gpu_count)
			continue;
		printf("%-*s", table->label_width, table->entries[row].label);
		print_cells(table, row, first, end);
		if (affinity)
			print_affinity(table, row);
		printf("\n");
	}
}

/* As many columns at a time as fit; 0 columns: all at once. */
static void print_blocks(const struct table *table, int columns)
{
	int tail = 2 * GAP + 2 * 13 + GAP + affinity_width(table);
	uint32_t first = 0, end;
	bool whole = false;

	while (!whole) {
		int width = table->label_width;

		for (end = first; end < table->count; end++) {
			int more = GAP + column_width(table, end);

			if (columns && width + more > columns && end > first)
				break;
			width += more;
		}
		whole = end == table->count &&
			(!columns || width + tail <= columns || first == end);
		print_block(table, first, end, whole);
		if (!whole)
			printf("\n");
		first = end;
	}
}

static void print_folded(char *text, int indent)
{
	char *rest = text, *line;

	while ((line = strsep(&rest, "\n")))
		if (rest)
			terminal_fold(stdout, line, 0, indent);
}

static enum err print_legends(const struct table *table)
{
	char *text = NULL;
	size_t bytes = 0;
	FILE *file = open_memstream(&text, &bytes);

	if (!file)
		return err_set(ERR_SYSTEM, "no memory for a legend");
	matrix_print_legend(file);
	if (table->matrix->nic_count)
		fprintf(file, "\nNIC Legend:\n\n");
	for (uint32_t i = 0; i < table->count; i++) {
		const struct entry *entry = &table->entries[i];

		if (entry->first < table->matrix->gpu_count)
			continue;
		fprintf(file, "  %s:", entry->label);
		for (uint32_t p = entry->first; p <= entry->last; p++)
			fprintf(file, " %s", table->matrix->parts[p].name);
		fprintf(file, "\n");
	}
	if (fclose(file)) {
		free(text);
		return err_set(ERR_SYSTEM, "no memory for a legend");
	}
	print_folded(text, LEGEND_INDENT);
	free(text);
	return OK;
}

static enum err print_grouped(const struct matrix *matrix, bool group, bool looks)
{
	struct table table;
	enum err e = table_init(&table, matrix, group);

	if (e)
		return e;
	table.looks = looks;
	print_blocks(&table, terminal_columns());
	e = print_legends(&table);
	if (!e && table.count < matrix->gpu_count + matrix->nic_count)
		printf("\nNICs in one column have the same way to everything else; "
		       "where it meets\nits own row stands the way between them. "
		       "--wide has a column for each.\n");
	free(table.entries);
	return e;
}

/* Of nvidia-smi's text, with its tabs. */
static int table_columns(const struct matrix *matrix)
{
	int columns = TAB * (int)(1 + matrix->gpu_count + matrix->nic_count) + 4 * TAB;
	int widest = 0;

	for (uint32_t i = 0; i < matrix->gpu_count; i++) {
		const char *cpus = matrix->parts[i].cpus;
		int bytes = cpus ? (int)strlen(cpus) : 0;

		widest = bytes > widest ? bytes : widest;
	}
	return columns + (widest / TAB + 1) * TAB;
}

enum err topo_matrix(const struct matrix *matrix, const struct topo_args *args)
{
	int columns = terminal_columns();
	bool looks = !args->plain && terminal_has_colours();
	bool fits_in = table_columns(matrix) <= (columns ? columns : WIDE_COLUMNS);

	if (args->wide || (fits_in && !looks)) {
		matrix_print(stdout, matrix, looks);
		return OK;
	}
	return print_grouped(matrix, !fits_in, looks);
}
