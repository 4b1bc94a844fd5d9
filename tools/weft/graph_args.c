#include "weft/graph_args.h"

#include <stddef.h>
#include <string.h>

#include "common/units.h"

enum { PODS_MAX = 128, NICS_MAX = 640 };

enum flag {
	FLAG_RANK = MACHINE_FLAGS_END,
	FLAG_JSON,
	FLAG_PODS,
	FLAG_NICS,
	FLAG_BETTER,
	FLAG_DUMP,
	FLAG_GRAPH,
	FLAG_SVG,
	FLAG_CHANNEL
};

/* "4x2" */
static bool pods(struct graph_args *args)
{
	int64_t count, gpus;

	if (!units_pair(optarg, PODS_MAX, &count, &gpus))
		return machine_args_refuse(&args->machines, "--pods",
			"give pods per machine and GPUs per pod, such as 4x2");
	args->pods = (uint32_t)count;
	args->gpus_per_pod = (uint32_t)gpus;
	return true;
}

static bool nics(struct graph_args *args)
{
	int64_t count;

	if (!units_int(optarg, 1, NICS_MAX, &count))
		return machine_args_refuse(&args->machines, "--nics-per-pod",
			"give how many NICs a pod gets, such as 1");
	args->nics_per_pod = (uint32_t)count;
	return true;
}

static bool parse_value(struct graph_args *args, int flag)
{
	switch (flag) {
	case FLAG_RANK:
		return units_int(optarg, 0, INT32_MAX, &args->rank) ||
		       machine_args_refuse(
			       &args->machines, "--rank", "give a rank, such as 0");
	case FLAG_CHANNEL:
		return units_int(optarg, 0, GRAPH_CHANNELS_MAX - 1, &args->channel) ||
		       machine_args_refuse(
			       &args->machines, "--channel", "give a channel, such as 0");
	case FLAG_PODS:
		return pods(args);
	case FLAG_NICS:
		return nics(args);
	case FLAG_DUMP:
		args->dump = optarg;
		return true;
	case FLAG_GRAPH:
		args->graph = optarg;
		return true;
	case FLAG_SVG:
		args->svg = optarg;
		return true;
	default:
		return false;
	}
}

static bool parse_flag(struct graph_args *args, int flag)
{
	enum machine_took took = machine_args_take(&args->machines, flag);

	if (took != MACHINE_OTHER)
		return took == MACHINE_TOOK;
	switch (flag) {
	case FLAG_JSON:
		args->json = true;
		return true;
	case FLAG_BETTER:
		args->better = true;
		return true;
	default:
		return parse_value(args, flag);
	}
}

/* What makes no sense together: the sentence, or NULL. */
static const char *clash(const struct graph_args *args)
{
	if (args->pods && args->better)
		return "--pods and --better are two questions; leave one out";
	if (args->nics_per_pod && !args->pods)
		return "--nics-per-pod says what pods get; say how many with --pods";
	if (args->better && args->graph)
		return "with --graph nothing is searched, so nothing better can be "
		       "found; leave one out";
	if ((args->pods || args->better) && (args->dump || args->rank >= 0 || args->svg))
		return "--pods and --better tell only what they compare; leave out "
		       "--dump, --rank and --svg";
	if (args->json && args->rank >= 0)
		return "--json has all ranks; leave out --rank";
	if (args->svg && args->json)
		return "--svg draws and --json lists; leave one out";
	if (args->channel >= 0 && !args->svg)
		return "--channel says what --svg draws; add --svg";
	return NULL;
}

static const struct option options[] = {
	{"json", no_argument, 0, FLAG_JSON},
	{"rank", required_argument, 0, FLAG_RANK},
	{"graph", required_argument, 0, FLAG_GRAPH},
	{"dump", required_argument, 0, FLAG_DUMP},
	{"svg", required_argument, 0, FLAG_SVG},
	{"channel", required_argument, 0, FLAG_CHANNEL},
	{"pods", required_argument, 0, FLAG_PODS},
	{"nics-per-pod", required_argument, 0, FLAG_NICS},
	{"better", no_argument, 0, FLAG_BETTER},
	{0, 0, 0, 0},
};

bool graph_args_parse(struct graph_args *args, int argc, char **argv)
{
	struct option all[MACHINE_OPTIONS_MAX];
	const struct option_set set = {"graph", ":", all};
	const char *wrong;
	int flag;

	*args = (struct graph_args){.rank = -1, .channel = -1};
	machine_args_init(&args->machines, set.command);
	machine_args_options(options, all);
	option_start();
	while ((flag = option_next(&set, argc, argv)) != -1) {
		if (flag == '?' || flag == ':')
			return option_refuse(&set, flag, argv);
		if (!parse_flag(args, flag))
			return false;
	}
	if (!machine_args_finish(&args->machines, argc, argv))
		return false;
	wrong = clash(args);
	if (wrong)
		fprintf(stderr, "weft graph: %s\n", wrong);
	return !wrong;
}
