#include "weft/machine_args.h"

#include <stdlib.h>
#include <string.h>

#include "base/param.h"
#include "common/units.h"

enum { CTAS_MAX = 64, PAIR_BYTES = 32 };

enum flag {
	FLAG_NODES = OPTION_LONG,
	FLAG_NCCL,
	FLAG_COLLNET,
	FLAG_MNNVL,
	FLAG_NO_FUSION,
	FLAG_NO_P2P,
	FLAG_CTAS,
	FLAG_NET
};

static const struct option shared[] = {
	{"nodes", required_argument, 0, FLAG_NODES},
	{"nccl", required_argument, 0, FLAG_NCCL},
	{"collnet", no_argument, 0, FLAG_COLLNET},
	{"mnnvl", required_argument, 0, FLAG_MNNVL},
	{"no-nic-fusion", no_argument, 0, FLAG_NO_FUSION},
	{"no-nvml-p2p", no_argument, 0, FLAG_NO_P2P},
	{"ctas", required_argument, 0, FLAG_CTAS},
	{"net", required_argument, 0, FLAG_NET},
};

void machine_args_usage(FILE *file)
{
	fputs("  --nodes N         so many machines; several names take turns\n"
	      "  --nccl VERSION    by the rules of NCCL 2.30 or 2.32; the newest unless "
	      "said\n"
	      "  --collnet         as if a CollNet plugin were on every NIC\n"
	      "  --mnnvl K         NVLink domains of K machines\n"
	      "  --no-nic-fusion   every port of a NIC is a device of its own\n"
	      "  --no-nvml-p2p     as if NVML said no to P2P, as on GeForce\n"
	      "  --ctas MIN:MAX    as NCCL_MIN_CTAS and NCCL_MAX_CTAS\n"
	      "  --net NET         ofi: with the libfabric plugin of AWS; plain: "
	      "without\n"
	      "                    one; socket: TCP; unless said ofi for instance types "
	      "of\n"
	      "                    AWS\n",
		file);
}

void machine_args_init(struct machine_args *args, const char *command)
{
	*args = (struct machine_args){.command = command, .nccl = NCCL_RULES_NEWEST};
}

void machine_args_options(const struct option *own, struct option *all)
{
	size_t count = sizeof(shared) / sizeof(shared[0]);

	memcpy(all, shared, sizeof(shared));
	while (own->name && count < MACHINE_OPTIONS_MAX - 1)
		all[count++] = *own++;
	all[count] = (struct option){0};
}

bool machine_args_refuse(
	const struct machine_args *args, const char *flag, const char *how)
{
	fprintf(stderr, "weft %s: %s '%s': %s\n", args->command, flag, optarg, how);
	return false;
}

static bool count(struct machine_args *args, uint32_t *value, const char *flag)
{
	int64_t number;

	if (!units_int(optarg, 1, MACHINE_HOSTS_MAX, &number))
		return machine_args_refuse(
			args, flag, "give a number of machines from 1 to 65536");
	*value = (uint32_t)number;
	return true;
}

/* "1:16" */
static bool ctas(struct machine_args *args)
{
	char text[PAIR_BYTES], *second;
	int64_t least = 0, most = 0;

	snprintf(text, sizeof(text), "%s", optarg);
	second = strchr(text, ':');
	if (second)
		*second++ = 0;
	if (!second || !units_int(text, 1, CTAS_MAX, &least) ||
		!units_int(second, least, CTAS_MAX, &most))
		return machine_args_refuse(
			args, "--ctas", "give the least and most channels, such as 8:16");
	args->min_ctas = (uint32_t)least;
	args->max_ctas = (uint32_t)most;
	return true;
}

static bool take(struct machine_args *args, int flag)
{
	switch (flag) {
	case FLAG_NODES:
		return count(args, &args->hosts, "--nodes");
	case FLAG_MNNVL:
		return count(args, &args->mnnvl_hosts, "--mnnvl");
	case FLAG_NCCL:
		return nccl_rules_named(optarg, &args->nccl) ||
		       machine_args_refuse(args, "--nccl",
			       "the rules of NCCL 2.30 and 2.32 are known; give one of "
			       "them");
	case FLAG_CTAS:
		return ctas(args);
	case FLAG_NET:
		return net_choice_parse(optarg, &args->net) ||
		       machine_args_refuse(
			       args, "--net", "there are ofi, plain and socket");
	case FLAG_COLLNET:
		args->collnet = true;
		return true;
	case FLAG_NO_FUSION:
		args->no_nic_fusion = true;
		return true;
	default:
		args->no_nvml_p2p = true;
		return true;
	}
}

enum machine_took machine_args_take(struct machine_args *args, int flag)
{
	if (flag < OPTION_LONG || flag > FLAG_NET)
		return MACHINE_OTHER;
	args->is_given = true;
	return take(args, flag) ? MACHINE_TOOK : MACHINE_REFUSED;
}

bool machine_args_finish(struct machine_args *args, int argc, char **argv)
{
	args->names = argv + optind;
	args->name_count = argc - optind;
	if (!args->hosts)
		args->hosts = args->name_count > 1 ? (uint32_t)args->name_count : 1;
	if (args->mnnvl_hosts <= args->hosts)
		return true;
	fprintf(stderr,
		"weft %s: --mnnvl asks for more machines in an NVLink domain than there "
		"are; raise --nodes\n",
		args->command);
	return false;
}

void machine_args_apply(const struct machine_args *args, struct graph_job *job)
{
	struct decide_args *decide = &job->args;

	decide->host_count = args->hosts;
	decide->mnnvl_hosts = param_int(PARAM_MNNVL_ENABLE) ? args->mnnvl_hosts : 0;
	decide->collnet = args->collnet;
	decide->rules.nccl = args->nccl;
	if (args->max_ctas) {
		decide->channels.min_ctas = args->min_ctas;
		decide->channels.max_ctas = args->max_ctas;
	}
	if (args->no_nic_fusion)
		decide->rules.merge_nics = false;
	if (args->no_nvml_p2p)
		decide->rules.nvml_p2p_ok = false;
}

enum err machine_args_load(
	const struct machine_args *args, struct net_assumed *net, struct graph_job *job)
{
	int count = args->name_count;
	enum err e = net_assume(args->net, count, args->names, net);
	char **names;

	if (e)
		return e;
	names = calloc((size_t)count + 1, sizeof(*names));
	if (!names)
		return err_set(ERR_SYSTEM, "no memory for %d machines", count);
	for (int i = 0; i < count; i++)
		names[i] = (char *)(uintptr_t)net_assumed_machine(net, args->names[i]);
	if (!count && net_assumed_machine(net, "this") == net->here)
		names[count++] = net->here;
	net_assumed_rules(net, &job->args.rules);
	e = graph_job_load(job, count, names);
	free(names);
	for (uint32_t i = 0; i < job->machines.count && !e; i++)
		e = net_assumed_tree(net, job->machines.trees[i]);
	return e;
}
