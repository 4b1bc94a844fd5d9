/* weft params - the table of environment variables, and what is in force. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/param.h"
#include "weft/command.h"

enum { TEXT_BYTES = 64, WORD_BYTES = 24 };

static void usage(void)
{
	printf("usage: weft params [NAME]\n\n"
	       "Print every environment variable the library reads: the value in force "
	       "(from\n"
	       "the environment, ~/.nccl.conf or /etc/nccl.conf), its default, the range "
	       "of\n"
	       "numbers, and what it means. A star marks what is not at its default. "
	       "NAME\n"
	       "keeps the rows that contain it.\n\n"
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

static void print_row(enum param id)
{
	const struct param_info *info = param_info(id);
	char value[TEXT_BYTES], fallback[TEXT_BYTES], range[TEXT_BYTES];

	range_text(range, info);
	if (info->kind == PARAM_INT) {
		number_text(value, param_int(id));
		number_text(fallback, info->fallback);
	} else {
		const char *text = param_text(id);
		snprintf(value, sizeof(value), "%s", text ? text : "unset");
		snprintf(fallback, sizeof(fallback), "%s",
			info->text_fallback ? info->text_fallback : "unset");
	}
	printf("%c %-28s %-20s %-20s %-14s %s\n", strcmp(value, fallback) ? '*' : ' ',
		info->name, value, fallback, range, info->meaning);
}

int command_params(int argc, char **argv)
{
	int shown = 0;

	if (command_wants_help(argc, argv)) {
		usage();
		return EXIT_GOOD;
	}
	if (argc > 2) {
		fprintf(stderr,
			"weft params: one name at most; see weft params --help\n");
		return EXIT_USAGE;
	}
	if (argc == 2 && argv[1][0] == '-') {
		fprintf(stderr, "weft params: there is no option %s; there is --help\n",
			argv[1]);
		return EXIT_USAGE;
	}
	for (int id = 0; id < PARAM_COUNT; id++) {
		if (argc == 2 && !strcasestr(param_info((enum param)id)->name, argv[1]))
			continue;
		if (!shown++)
			printf("  %-28s %-20s %-20s %-14s %s\n", "name", "value",
				"default", "range", "meaning");
		print_row((enum param)id);
	}
	if (shown)
		return EXIT_GOOD;
	fprintf(stderr,
		"weft params: no variable has '%s' in its name; weft params "
		"lists them all\n",
		argv[1]);
	return EXIT_WRONG;
}
