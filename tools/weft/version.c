/* weft version - of Weft, of the NCCL it says it is, and of those it decides like. */
#include <stdio.h>
#include <weft.h>

#include "topo/rules.h"
#include "weft/command.h"
#include "weft/json_print.h"
#include "weft/option.h"

enum { FLAG_JSON = OPTION_LONG, TEXT_BYTES = 32 };

static void usage(void)
{
	printf("usage: weft version [--json]\n\n"
	       "Three versions: Weft's own, the NCCL that the library says it is "
	       "(programs\n"
	       "ask before they use what is new; WEFT_REPORT_VERSION makes it say "
	       "another),\n"
	       "and those whose decisions weft graph and weft tune reproduce.\n\n"
	       "  --json  for programs\n\n"
	       "example: weft version\n");
}

static bool parse(bool *json, int argc, char **argv)
{
	static const struct option options[] = {
		{"json", no_argument, 0, FLAG_JSON}, {0, 0, 0, 0}};
	static const struct option_set set = {"version", ":", options};
	int flag;

	*json = false;
	option_start();
	while ((flag = option_next(&set, argc, argv)) != -1) {
		if (flag != FLAG_JSON)
			return option_refuse(&set, flag, argv);
		*json = true;
	}
	if (optind < argc)
		fprintf(stderr, "weft version: it takes no arguments; leave out '%s'\n",
			argv[optind]);
	return optind == argc;
}

/* 23203 is 2.32.3; before 2.9 the hundreds were the minor version. */
static bool reported(char text[TEXT_BYTES])
{
	int version, major;

	if (ncclGetVersion(&version))
		return false;
	major = version < 10000 ? 1000 : 10000;
	snprintf(text, TEXT_BYTES, "%d.%d.%d", version / major, version % major / 100,
		version % 100);
	return true;
}

static void print_text(const char *reports)
{
	printf("weft %s\nreports NCCL %s\nmodels NCCL", WEFT_VERSION, reports);
	for (int i = 0; i <= NCCL_RULES_NEWEST; i++)
		printf("%s %s", i ? "," : "", nccl_rules_version((enum nccl_rules)i));
	printf("\n");
}

static json_t *version_json(const char *reports)
{
	json_t *list = json_array();

	for (int i = 0; i <= NCCL_RULES_NEWEST; i++)
		json_array_append_new(
			list, json_string(nccl_rules_version((enum nccl_rules)i)));
	return json_pack("{s:s, s:s, s:o}", "weft", WEFT_VERSION, "reports", reports,
		"models", list);
}

int command_version(int argc, char **argv)
{
	char reports[TEXT_BYTES];
	bool json;

	if (command_wants_help(argc, argv)) {
		usage();
		return EXIT_GOOD;
	}
	if (!parse(&json, argc, argv))
		return EXIT_USAGE;
	if (!reported(reports)) {
		fprintf(stderr, "weft version: the library does not tell its version\n");
		return EXIT_WRONG;
	}
	if (json)
		return json_print("version", version_json(reports));
	print_text(reports);
	return EXIT_GOOD;
}
