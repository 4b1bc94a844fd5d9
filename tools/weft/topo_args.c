#include <stdio.h>
#include <string.h>

#include "common/units.h"
#include "weft/option.h"
#include "weft/topo.h"

enum {
	FLAG_PATHS = OPTION_LONG,
	FLAG_EXPLAIN,
	FLAG_SVG,
	FLAG_JSON,
	FLAG_XML,
	FLAG_PLAIN,
	FLAG_WIDE,
	FLAG_NODES,
	FLAG_P2P,
	FLAG_LIST,
	FLAG_NET
};

enum { NODES_MAX = 1 << 20 };

static const struct option options[] = {
	{"paths", no_argument, 0, FLAG_PATHS},
	{"explain", required_argument, 0, FLAG_EXPLAIN},
	{"svg", required_argument, 0, FLAG_SVG},
	{"json", no_argument, 0, FLAG_JSON},
	{"xml", required_argument, 0, FLAG_XML},
	{"plain", no_argument, 0, FLAG_PLAIN},
	{"wide", no_argument, 0, FLAG_WIDE},
	{"nodes", required_argument, 0, FLAG_NODES},
	{"no-nvml-p2p", no_argument, 0, FLAG_P2P},
	{"list", no_argument, 0, FLAG_LIST},
	{"net", required_argument, 0, FLAG_NET},
	{0, 0, 0, 0},
};

/* In order ("-"), so that what follows --explain is still where it was. */
static const struct option_set set = {"topo", "-:", options};

/* --explain takes two words; getopt knows of one. */
static bool take_second(struct topo_args *args, int argc, char **argv)
{
	args->explain[0] = optarg;
	if (optind >= argc || argv[optind][0] == '-') {
		fprintf(stderr, "weft topo: --explain needs two names, such as "
				"--explain GPU0 GPU1\n");
		return false;
	}
	args->explain[1] = argv[optind++];
	return true;
}

static bool take_nodes(struct topo_args *args)
{
	int64_t nodes;

	if (!units_int(optarg, 1, NODES_MAX, &nodes)) {
		fprintf(stderr, "weft topo: --nodes '%s': give a number from 1 to %d\n",
			optarg, NODES_MAX);
		return false;
	}
	args->nodes = (uint32_t)nodes;
	return true;
}

static bool take_net(struct topo_args *args)
{
	if (net_choice_parse(optarg, &args->net))
		return true;
	fprintf(stderr, "weft topo: --net '%s': there are ofi, plain and socket\n",
		optarg);
	return false;
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
	case FLAG_WIDE:
		args->wide = true;
		return true;
	case FLAG_NODES:
		return take_nodes(args);
	case FLAG_P2P:
		args->no_nvml_p2p = true;
		return true;
	case FLAG_LIST:
		args->list = true;
		return true;
	case FLAG_NET:
		return take_net(args);
	default:
		return option_refuse(&set, flag, argv);
	}
}

static bool is_stdout(const char *path)
{
	return path && !strcmp(path, "-");
}

/* What makes no sense together: the sentence, or NULL. */
static const char *clash(const struct topo_args *args)
{
	bool tells = args->paths || args->explain[0];

	if (args->list && (args->machine || tells || args->svg || args->xml ||
				  args->plain || args->wide))
		return "--list is about all machines; leave out all but --json";
	if (args->nodes && !args->svg)
		return "--nodes is about the picture: add --svg FILE, or ask weft graph "
		       "about several machines";
	if (args->json && tells)
		return "--json has all paths and verdicts; leave out --paths and "
		       "--explain";
	if (is_stdout(args->svg) + is_stdout(args->xml) + args->json + tells > 1)
		return "two things would go to standard output; give --svg or --xml a "
		       "file";
	return NULL;
}

static bool take_machine(struct topo_args *args)
{
	if (args->machine)
		fprintf(stderr,
			"weft topo: one machine at a time: leave out '%s' or '%s'\n",
			args->machine, optarg);
	else
		args->machine = optarg;
	return args->machine == optarg;
}

bool topo_args_parse(struct topo_args *args, int argc, char **argv)
{
	const char *wrong;
	int flag;

	*args = (struct topo_args){0};
	option_start();
	while ((flag = option_next(&set, argc, argv)) != -1)
		if (flag == 1 ? !take_machine(args) : !take(args, flag, argc, argv))
			return false;
	for (; optind < argc; optind++) { /* after "--" */
		optarg = argv[optind];
		if (!take_machine(args))
			return false;
	}
	wrong = clash(args);
	if (wrong)
		fprintf(stderr, "weft topo: %s\n", wrong);
	return !wrong;
}
