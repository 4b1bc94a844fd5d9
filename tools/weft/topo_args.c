#include <getopt.h>
#include <stdio.h>
#include <string.h>

#include "weft/topo.h"

enum {
	FLAG_PATHS = 1000,
	FLAG_EXPLAIN,
	FLAG_SVG,
	FLAG_JSON,
	FLAG_XML,
	FLAG_PLAIN,
	FLAG_P2P,
	FLAG_LIST
};

static const struct option options[] = {
	{"paths", no_argument, 0, FLAG_PATHS},
	{"explain", required_argument, 0, FLAG_EXPLAIN},
	{"svg", required_argument, 0, FLAG_SVG},
	{"json", no_argument, 0, FLAG_JSON},
	{"xml", required_argument, 0, FLAG_XML},
	{"plain", no_argument, 0, FLAG_PLAIN},
	{"no-nvml-p2p", no_argument, 0, FLAG_P2P},
	{"list", no_argument, 0, FLAG_LIST},
	{0, 0, 0, 0},
};

/* --explain takes two words; getopt knows of one. */
static bool take_second(struct topo_args *args, int argc, char **argv)
{
	args->explain[0] = optarg;
	if (optind >= argc || argv[optind][0] == '-') {
		fprintf(stderr, "weft topo: --explain needs two names, such as "
				"--explain GPU0 GPU1; see weft topo --help\n");
		return false;
	}
	args->explain[1] = argv[optind++];
	return true;
}

static bool take(struct topo_args *args, int flag, int argc, char **argv)
{
	switch (flag) {
	case FLAG_PATHS:
		args->paths = true;
		return true;
	case FLAG_EXPLAIN:
		return take_second(args, argc, argv);
	case FLAG_SVG:
		args->svg = optarg;
		return true;
	case FLAG_JSON:
		args->json = true;
		return true;
	case FLAG_XML:
		args->xml = optarg;
		return true;
	case FLAG_PLAIN:
		args->plain = true;
		return true;
	case FLAG_P2P:
		args->no_nvml_p2p = true;
		return true;
	case FLAG_LIST:
		args->list = true;
		return true;
	default:
		fprintf(stderr,
			"weft topo: %s is no option of it, or lacks its value; see "
			"weft topo --help\n",
			argv[optind - 1]);
		return false;
	}
}

bool topo_args_parse(struct topo_args *args, int argc, char **argv)
{
	int flag;

	*args = (struct topo_args){0};
	optind = 0; /* from the start, whoever parsed before */
	opterr = 0;
	for (;;) {
		/* In order, so that what follows --explain is still where it was. */
		flag = getopt_long(argc, argv, "-", options, NULL);
		if (flag < 0)
			break;
		if (flag != 1) {
			if (!take(args, flag, argc, argv))
				return false;
			continue;
		}
		if (args->machine) {
			fprintf(stderr,
				"weft topo: one machine at a time: '%s' is one too "
				"many\n",
				optarg);
			return false;
		}
		args->machine = optarg;
	}
	if (optind < argc) {
		fprintf(stderr, "weft topo: '%s' is one too many\n", argv[optind]);
		return false;
	}
	return true;
}
