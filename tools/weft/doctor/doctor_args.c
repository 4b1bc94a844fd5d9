#include "weft/doctor/doctor_args.h"

#include <stdio.h>
#include <stdlib.h>

#include "weft/option.h"

enum { NODES_MAX = 65536 };

enum {
	FLAG_JSON = OPTION_LONG,
	FLAG_EXPECT,
	FLAG_NODES,
	FLAG_ROOT,
	FLAG_CAPTURE,
	FLAG_SVG
};

static bool take_nodes(struct doctor_args *args)
{
	char *end;
	long nodes = strtol(optarg, &end, 10);

	if (*end || end == optarg || nodes < 1 || nodes > NODES_MAX) {
		fprintf(stderr, "weft doctor: --nodes '%s': give a number of 1 to %d\n",
			optarg, NODES_MAX);
		return false;
	}
	args->nodes = (uint32_t)nodes;
	return true;
}

static bool take(struct doctor_args *args, int flag)
{
	switch (flag) {
	case FLAG_JSON:
		args->json = true;
		return true;
	case FLAG_EXPECT:
		args->expect = optarg;
		return true;
	case FLAG_NODES:
		return take_nodes(args);
	case FLAG_ROOT:
		if (args->root_count < DOCTOR_ROOTS_MAX) {
			args->roots[args->root_count++] = optarg;
			return true;
		}
		fprintf(stderr, "weft doctor: --root at most %d times\n",
			DOCTOR_ROOTS_MAX);
		return false;
	case FLAG_CAPTURE:
		args->capture = optarg;
		return true;
	default:
		args->svg = optarg;
		return true;
	}
}

static bool parse(
	struct doctor_args *args, const struct option_set *set, int argc, char **argv)
{
	int flag;

	*args = (struct doctor_args){0};
	option_start();
	while ((flag = option_next(set, argc, argv)) != -1) {
		if (flag < OPTION_LONG)
			return option_refuse(set, flag, argv);
		if (!take(args, flag))
			return false;
	}
	args->logs = argv + optind;
	args->log_count = argc - optind;
	return true;
}

bool doctor_args_parse(struct doctor_args *args, int argc, char **argv)
{
	static const struct option options[] = {{"json", no_argument, 0, FLAG_JSON},
		{"expect", required_argument, 0, FLAG_EXPECT},
		{"nodes", required_argument, 0, FLAG_NODES},
		{"root", required_argument, 0, FLAG_ROOT},
		{"capture", required_argument, 0, FLAG_CAPTURE}, {0, 0, 0, 0}};
	static const struct option_set set = {"doctor", ":", options};

	if (!parse(args, &set, argc, argv))
		return false;
	if (args->log_count && (args->root_count || args->capture)) {
		fprintf(stderr,
			"weft doctor: --root and --capture are for a host, not for "
			"logs; leave out the one or the other\n");
		return false;
	}
	if (args->root_count > 1 && args->capture) {
		fprintf(stderr, "weft doctor: --capture writes one host; give --root "
				"once or not at all\n");
		return false;
	}
	if (!args->log_count && args->expect) {
		fprintf(stderr,
			"weft doctor: --expect compares a log with a machine; name "
			"a log, or - for standard input\n");
		return false;
	}
	if (args->nodes && !args->expect) {
		fprintf(stderr, "weft doctor: --nodes goes with --expect MACHINE\n");
		return false;
	}
	return true;
}

bool log_args_parse(struct doctor_args *args, int argc, char **argv)
{
	static const struct option options[] = {{"json", no_argument, 0, FLAG_JSON},
		{"svg", required_argument, 0, FLAG_SVG}, {0, 0, 0, 0}};
	static const struct option_set set = {"log", ":", options};

	if (!parse(args, &set, argc, argv))
		return false;
	if (!args->log_count) {
		fprintf(stderr, "weft log: name a log, or - for standard input\n");
		return false;
	}
	return true;
}
