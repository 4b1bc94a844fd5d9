#include "weft/graph_args.h"

#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/units.h"
#include "weft/option.h"

enum { CTAS_MAX = 64, PODS_MAX = 128, PAIR_BYTES = 32 };

enum flag {
	FLAG_NODES = OPTION_LONG,
	FLAG_RANK,
	FLAG_JSON,
	FLAG_COLLNET,
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
		return refuse(flag, "give a number of machines from 1 to 65536");
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
		       refuse("--rank", "give a rank, such as 0");
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
	default:
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

/* What makes no sense together: the sentence, or NULL. */
static const char *clash(const struct graph_args *args)
{
	if (args->better && args->json)
		return "--better has no JSON form; leave out --json";
	if (args->pods && (args->better || args->json))
		return "--pods prints a table of its own; leave out --better and --json";
	if (args->better && args->graph)
		return "with --graph nothing is searched, so nothing better can be "
		       "found; "
		       "leave one out";
	if ((args->pods || args->better) && (args->dump || args->rank >= 0))
		return "--pods and --better print only what they compare; leave out "
		       "--dump "
		       "and --rank";
	if (args->json && args->rank >= 0)
		return "--json has all ranks; leave out --rank";
	if (args->mnnvl_hosts > args->hosts)
		return "--mnnvl asks for more machines in an NVLink domain than there "
		       "are; "
		       "raise --nodes";
	return NULL;
}

static const struct option options[] = {
	{"nodes", required_argument, 0, FLAG_NODES},
	{"json", no_argument, 0, FLAG_JSON},
	{"rank", required_argument, 0, FLAG_RANK},
	{"collnet", no_argument, 0, FLAG_COLLNET},
	{"mnnvl", required_argument, 0, FLAG_MNNVL},
	{"no-nic-fusion", no_argument, 0, FLAG_NO_FUSION},
	{"no-nvml-p2p", no_argument, 0, FLAG_NO_P2P},
	{"ctas", required_argument, 0, FLAG_CTAS},
	{"graph", required_argument, 0, FLAG_GRAPH},
	{"dump", required_argument, 0, FLAG_DUMP},
	{"pods", required_argument, 0, FLAG_PODS},
	{"better", no_argument, 0, FLAG_BETTER},
	{0, 0, 0, 0},
};

static const struct option_set set = {"graph", ":", options};

bool graph_args_parse(struct graph_args *args, int argc, char **argv)
{
	const char *wrong;
	int flag;

	*args = (struct graph_args){.rank = -1};
	option_start();
	while ((flag = option_next(&set, argc, argv)) != -1) {
		if (flag == '?' || flag == ':')
			return option_refuse(&set, flag, argv);
		if (!parse_flag(args, flag))
			return false;
	}
	args->names = argv + optind;
	args->name_count = argc - optind;
	if (!args->hosts)
		args->hosts = args->name_count > 1 ? (uint32_t)args->name_count : 1;
	wrong = clash(args);
	if (wrong)
		fprintf(stderr, "weft graph: %s\n", wrong);
	return !wrong;
}
