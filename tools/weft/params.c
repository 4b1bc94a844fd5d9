/* weft params - the table of environment variables, and what is in force. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/param.h"
#include "common/terminal.h"
#include "weft/command.h"
#include "weft/json_print.h"
#include "weft/option.h"

enum { TEXT_BYTES = 64, WORD_BYTES = 24, FLAG_JSON = OPTION_LONG };

/* Columns before the meaning; on a narrow terminal it stands on lines of its own, with
 * default and range behind it. */
enum { MEANING_COLUMN = 88, MEANING_INDENT = 4, MEANING_ROOM = 40, LINE_BYTES = 512 };

static bool is_narrow(void)
{
	int columns = terminal_columns();

	return columns && columns < MEANING_COLUMN + MEANING_ROOM;
}

struct params_args {
	const char *part; /* of names; NULL: all */
	bool json;
};

static void usage(void)
{
	printf("usage: weft params [--json] [NAME]\n\n"
	       "Print every environment variable the library reads: the value in force "
	       "(from\n"
	       "the environment, ~/.nccl.conf or /etc/nccl.conf), its default, the range "
	       "of\n"
	       "numbers, and what it means. A star marks what is not at its default. "
	       "NAME\n"
	       "keeps the rows that contain it.\n\n"
	       "  --json  for programs\n\n"
	       "example: NCCL_ALGO=ring weft params ALGO\n");
}

/* The lowest int means "not set" in NCCL's interface. */
static void number_text(char *text, int64_t value)
{
	if (value <= INT32_MIN)
		snprintf(text, WORD_BYTES, "unset");
	else
		snprintf(text, WORD_BYTES, "%" PRId64, value);
}

static void range_text(char *text, const struct param_info *info)
{
	char lowest[WORD_BYTES], highest[WORD_BYTES];

	if (info->kind == PARAM_TEXT) {
		snprintf(text, TEXT_BYTES, "text");
		return;
	}
	snprintf(lowest, sizeof(lowest), "%" PRId64, info->lowest);
	snprintf(highest, sizeof(highest), "%" PRId64, info->highest);
	snprintf(text, TEXT_BYTES, "%s..%s", info->lowest <= INT32_MIN ? "" : lowest,
		info->highest >= INT32_MAX ? "" : highest);
}

/* A text that is in force, or that it is not to be seen; NULL: unset. */
static const char *shown_text(enum param id)
{
	const char *text = param_text(id);

	return text && param_info(id)->is_private ? "(not shown)" : text;
}

struct row {
	char value[TEXT_BYTES], fallback[TEXT_BYTES], range[TEXT_BYTES];
};

static void row_fill(enum param id, struct row *row)
{
	const struct param_info *info = param_info(id);

	range_text(row->range, info);
	if (info->kind == PARAM_INT) {
		number_text(row->value, param_int(id));
		number_text(row->fallback, info->fallback);
	} else {
		const char *text = shown_text(id);

		snprintf(row->value, TEXT_BYTES, "%s", text ? text : "unset");
		snprintf(row->fallback, TEXT_BYTES, "%s",
			info->text_fallback ? info->text_fallback : "unset");
	}
}

static void print_narrow(const struct param_info *info, const struct row *row)
{
	char line[LINE_BYTES];

	printf("%-30s %s%s\n%*s", info->name, row->value,
		strcmp(row->value, row->fallback) ? terminal_look(LOOK_PLAIN) : "",
		MEANING_INDENT, "");
	snprintf(line, sizeof(line), "%s (default %s, %s)", info->meaning, row->fallback,
		row->range);
	terminal_fold(stdout, line, MEANING_INDENT, MEANING_INDENT);
}

static void print_row(enum param id)
{
	const struct param_info *info = param_info(id);
	struct row row;
	bool changed;

	row_fill(id, &row);
	changed = strcmp(row.value, row.fallback);
	printf("%s%c ", changed ? terminal_look(LOOK_BOLD) : "", changed ? '*' : ' ');
	if (is_narrow()) {
		print_narrow(info, &row);
		return;
	}
	printf("%-28s %-20s %-20s %-14s%s ", info->name, row.value, row.fallback,
		row.range, changed ? terminal_look(LOOK_PLAIN) : "");
	terminal_fold(stdout, info->meaning, MEANING_COLUMN, MEANING_COLUMN);
}

static void print_head(void)
{
	if (is_narrow())
		printf("  %-30s value\n    meaning (default, range)\n", "name");
	else
		printf("  %-28s %-20s %-20s %-14s %s\n", "name", "value", "default",
			"range", "meaning");
}

static json_t *number_json(int64_t value)
{
	return value <= INT32_MIN ? json_null() : json_integer(value);
}

static json_t *row_json(enum param id)
{
	static const char *const origins[] = {"default", "environment", "file"};
	const struct param_info *info = param_info(id);
	json_t *row = json_pack("{s:s, s:s}", "name", info->name, "kind",
		info->kind == PARAM_INT ? "number" : "text");

	if (info->kind == PARAM_INT) {
		json_object_set_new(row, "value", number_json(param_int(id)));
		json_object_set_new(row, "default", number_json(info->fallback));
		json_object_set_new(row, "lowest", number_json(info->lowest));
		json_object_set_new(row, "highest",
			info->highest >= INT32_MAX ? json_null()
						   : json_integer(info->highest));
	} else {
		json_object_set_new(row, "value", json_pack("s?", shown_text(id)));
		json_object_set_new(row, "default", json_pack("s?", info->text_fallback));
	}
	json_object_set_new(row, "from", json_string(origins[param_origin(id)]));
	json_object_set_new(row, "meaning", json_string(info->meaning));
	return row;
}

static bool parse(struct params_args *args, int argc, char **argv)
{
	static const struct option options[] = {
		{"json", no_argument, 0, FLAG_JSON}, {0, 0, 0, 0}};
	static const struct option_set set = {"params", ":", options};
	int flag;

	*args = (struct params_args){0};
	option_start();
	while ((flag = option_next(&set, argc, argv)) != -1) {
		if (flag != FLAG_JSON)
			return option_refuse(&set, flag, argv);
		args->json = true;
	}
	if (argc - optind > 1) {
		fprintf(stderr,
			"weft params: one name at most; see weft params --help\n");
		return false;
	}
	args->part = optind < argc ? argv[optind] : NULL;
	return true;
}

static bool is_wanted(const struct params_args *args, int id)
{
	return !args->part || strcasestr(param_info((enum param)id)->name, args->part);
}

static int print_json(const struct params_args *args)
{
	json_t *rows = json_array();

	for (int id = 0; id < PARAM_COUNT; id++)
		if (is_wanted(args, id))
			json_array_append_new(rows, row_json((enum param)id));
	return json_print("params", rows);
}

static int print_table(const struct params_args *args)
{
	int shown = 0;

	for (int id = 0; id < PARAM_COUNT; id++) {
		if (!is_wanted(args, id))
			continue;
		if (!shown++)
			print_head();
		print_row((enum param)id);
	}
	if (shown)
		return EXIT_GOOD;
	fprintf(stderr,
		"weft params: no variable has '%s' in its name; weft params "
		"lists them all\n",
		args->part);
	return EXIT_WRONG;
}

int command_params(int argc, char **argv)
{
	struct params_args args;

	if (command_wants_help(argc, argv)) {
		usage();
		return EXIT_GOOD;
	}
	if (!parse(&args, argc, argv))
		return EXIT_USAGE;
	return args.json ? print_json(&args) : print_table(&args);
}
