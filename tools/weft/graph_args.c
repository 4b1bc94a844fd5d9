#include "weft/graph_args.h"

#include <getopt.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/units.h"

enum { CTAS_MAX = 64, PODS_MAX = 128, PAIR_BYTES = 32 };

enum flag {
	FLAG_NODES = 'n',
	FLAG_RANK = 'r',
	FLAG_JSON = 'j',
	FLAG_COLLNET = 256,
	FLAG_MNNVL,
	FLAG_NO_FUSION,
	FLAG_NO_P2P,
	FLAG_PODS,
	FLAG_BETTER,
	FLAG_DUMP,
	FLAG_GRAPH,
	FLAG_CTAS
};

static bool refuse(const char *what, const char *how)
{
	fprintf(stderr, "weft graph: %s '%s': %s\n", what, optarg, how);
	return false;
}

/* "4x2", "1:16": two whole numbers with `between`. */
static bool pair(char between, int64_t highest, uint32_t *a, uint32_t *b)
{
	char text[PAIR_BYTES], *second;
	int64_t x, y;

	if (strlen(optarg) >= sizeof(text))
		return false;
	snprintf(text, sizeof(text), "%s", optarg);
	second = strchr(text, between);
	if (!second)
		return false;
	*second++ = 0;
	if (!units_int(text, 1, highest, &x) || !units_int(second, 1, highest, &y))
		return false;
	*a = (uint32_t)x;
	*b = (uint32_t)y;
	return true;
}

static bool count(uint32_t *value, const char *flag)
{
	int64_t number;

	if (!units_int(optarg, 1, GRAPH_HOSTS_MAX, &number))
		return refuse(flag, "give a number of hosts from 1 to 65536");
	*value = (uint32_t)number;
	return true;
}

static bool parse_value(struct graph_args *args, int flag)
{
	switch (flag) {
	case FLAG_NODES:
		return count(&args->hosts, "--nodes");
	case FLAG_MNNVL:
		return count(&args->mnnvl_hosts, "--mnnvl");
	case FLAG_RANK:
		return units_int(optarg, 0, INT32_MAX, &args->rank) ||
		       refuse("--rank", "give a rank");
	case FLAG_PODS:
		return pair('x', PODS_MAX, &args->pods, &args->gpus_per_pod) ||
		       refuse("--pods",
			       "give pods per machine and GPUs per pod, such as 4x2");
	case FLAG_CTAS:
		return (pair(':', CTAS_MAX, &args->min_ctas, &args->max_ctas) &&
			       args->min_ctas <= args->max_ctas) ||
		       refuse("--ctas", "give the least and most channels, such as 8:16");
	case FLAG_DUMP:
		args->dump = optarg;
		return true;
	case FLAG_GRAPH:
		args->graph = optarg;
		return true;
	default: /* getopt has said what is wrong */
		return false;
	}
}

static bool parse_flag(struct graph_args *args, int flag)
{
	switch (flag) {
	case FLAG_JSON:
		args->json = true;
		return true;
	case FLAG_BETTER:
		args->better = true;
		return true;
	case FLAG_COLLNET:
		args->collnet = true;
		return true;
	case FLAG_NO_FUSION:
		args->no_nic_fusion = true;
		return true;
	case FLAG_NO_P2P:
		args->no_nvml_p2p = true;
		return true;
	default:
		return parse_value(args, flag);
	}
}

/* What makes no sense together. */
static bool agrees(const struct graph_args *args)
{
	if (args->better && args->json)
		fprintf(stderr, "weft graph: --better has no JSON form\n");
	else if (args->pods && (args->better || args->json))
		fprintf(stderr, "weft graph: --pods prints a table of its own; leave "
				"--better and --json away\n");
	else if (args->better && args->graph)
		fprintf(stderr, "weft graph: with --graph nothing is searched, so "
				"nothing better is found\n");
	else
		return true;
	return false;
}

bool graph_args_parse(struct graph_args *args, int argc, char **argv)
{
	static const struct option options[] = {
		{"nodes", required_argument, 0, FLAG_NODES},
		{"rank", required_argument, 0, FLAG_RANK},
		{"json", no_argument, 0, FLAG_JSON},
		{"collnet", no_argument, 0, FLAG_COLLNET},
		{"mnnvl", required_argument, 0, FLAG_MNNVL},
		{"no-nic-fusion", no_argument, 0, FLAG_NO_FUSION},
		{"no-nvml-p2p", no_argument, 0, FLAG_NO_P2P},
		{"pods", required_argument, 0, FLAG_PODS},
		{"better", no_argument, 0, FLAG_BETTER},
		{"dump", required_argument, 0, FLAG_DUMP},
		{"graph", required_argument, 0, FLAG_GRAPH},
		{"ctas", required_argument, 0, FLAG_CTAS},
		{0, 0, 0, 0},
	};
	int flag;

	*args = (struct graph_args){.rank = -1};
	optind =
		0; /* a fresh start for GNU getopt, which then sorts names behind flags */
	while ((flag = getopt_long(argc, argv, "n:r:j", options, NULL)) != -1)
		if (!parse_flag(args, flag))
			return false;
	args->names = argv + optind;
	args->name_count = argc - optind;
	if (!args->hosts)
		args->hosts = args->name_count > 1 ? (uint32_t)args->name_count : 1;
	return agrees(args);
}
