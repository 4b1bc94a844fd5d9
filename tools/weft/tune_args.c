#include "weft/tune_args.h"

#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include "base/dtype.h"
#include "common/names.h"
#include "common/units.h"
#include "sched/sched.h"
#include "tune/model.h"
#include "weft/option.h"

enum flag {
	FLAG_RANKS = 'n',
	FLAG_NODES = OPTION_LONG,
	FLAG_JSON,
	FLAG_TYPE,
	FLAG_OP,
	FLAG_MNNVL,
	FLAG_COLL,
	FLAG_ALGO,
	FLAG_PROTO,
	FLAG_TABLE,
	FLAG_COLLNET,
	FLAG_NO_FUSION,
	FLAG_NO_P2P
};

static bool refuse(const char *flag, const char *how)
{
	fprintf(stderr, "weft tune: %s '%s': %s\n", flag, optarg, how);
	return false;
}

bool tune_args_want(const struct tune_args *args, const char *name)
{
	return !args->coll || names_match(args->coll, name);
}

/* Machines have the five that NCCL's model knows, this host all of ours. */
static const char *coll_at(const struct tune_args *args, int i)
{
	if (args->name_count)
		return i < MODEL_FUNCS ? model_func_name((enum model_func)i) : NULL;
	return i < COLL_COUNT ? coll_name((enum coll)i) : NULL;
}

static bool check_coll(const struct tune_args *args)
{
	const char *name;

	for (int i = 0; (name = coll_at(args, i)); i++)
		if (tune_args_want(args, name))
			return true;
	fprintf(stderr, "weft tune: --coll '%s': %s; there are", args->coll,
		args->name_count ? "NCCL's model has no such collective"
				 : "there is no such collective");
	for (int i = 0; (name = coll_at(args, i)); i++)
		fprintf(stderr, " %s", name);
	fprintf(stderr, "\n");
	return false;
}

static bool number(const char *flag, int64_t highest, uint32_t *value)
{
	int64_t given;

	if (!units_int(optarg, 1, highest, &given)) {
		fprintf(stderr, "weft tune: %s '%s': give a number from 1 to %d\n", flag,
			optarg, (int)highest);
		return false;
	}
	*value = (uint32_t)given;
	return true;
}

static bool parse_type(struct tune_args *args)
{
	for (int t = 0; t < DTYPE_COUNT; t++)
		if (names_match(optarg, dtype_name((enum dtype)t))) {
			args->type = t;
			return true;
		}
	return refuse("--type",
		"give int8, uint8, int32, uint32, int64, uint64, half, float, double, "
		"bfloat16, f8e4m3 or f8e5m2");
}

static bool parse_op(struct tune_args *args)
{
	for (int o = 0; o < REDOP_COUNT; o++)
		if (names_match(optarg, redop_name((enum redop)o))) {
			args->op = o;
			return true;
		}
	return refuse("--op", "give sum, prod, max, min, avg or mulsum");
}

static bool parse_value(struct tune_args *args, int flag)
{
	switch (flag) {
	case FLAG_RANKS:
		return number("-n", TUNE_RANKS_MAX, &args->ranks);
	case FLAG_NODES:
		return number("--nodes", TUNE_HOSTS_MAX, &args->hosts);
	case FLAG_MNNVL:
		return number("--mnnvl", TUNE_HOSTS_MAX, &args->mnnvl_hosts);
	case FLAG_TYPE:
		args->is_typed = true;
		return parse_type(args);
	case FLAG_OP:
		args->is_typed = true;
		return parse_op(args);
	case FLAG_COLL:
		args->coll = optarg;
		return true;
	case FLAG_ALGO:
		args->algo = optarg;
		return true;
	case FLAG_PROTO:
		args->proto = optarg;
		return true;
	default:
		return false;
	}
}

static bool parse_flag(struct tune_args *args, int flag)
{
	switch (flag) {
	case FLAG_JSON:
		args->json = true;
		return true;
	case FLAG_TABLE:
		args->table = true;
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

/* Does anything but -n, --coll and --json stand there? */
static bool is_about_machines(const struct tune_args *args)
{
	return args->hosts || args->mnnvl_hosts || args->is_typed || args->algo ||
	       args->proto || args->table || args->collnet || args->no_nic_fusion ||
	       args->no_nvml_p2p;
}

/* What belongs to machines and what to this host. */
static bool agrees(const struct tune_args *args)
{
	uint32_t hosts = args->hosts ? args->hosts : (uint32_t)args->name_count;

	if (args->name_count && args->ranks)
		fprintf(stderr, "weft tune: -n counts ranks on this host, and machines "
				"have one per GPU; leave out -n\n");
	else if (!args->name_count && is_about_machines(args))
		fprintf(stderr, "weft tune: on this host's memory only -n, --coll and "
				"--json are taken; name a machine, or 'this'\n");
	else if (args->mnnvl_hosts > hosts)
		fprintf(stderr, "weft tune: --mnnvl asks for more machines in an NVLink "
				"domain than there are; raise --nodes\n");
	else
		return check_coll(args);
	return false;
}

static const struct option options[] = {
	{"nodes", required_argument, 0, FLAG_NODES},
	{"coll", required_argument, 0, FLAG_COLL},
	{"type", required_argument, 0, FLAG_TYPE},
	{"op", required_argument, 0, FLAG_OP},
	{"algo", required_argument, 0, FLAG_ALGO},
	{"proto", required_argument, 0, FLAG_PROTO},
	{"collnet", no_argument, 0, FLAG_COLLNET},
	{"mnnvl", required_argument, 0, FLAG_MNNVL},
	{"no-nic-fusion", no_argument, 0, FLAG_NO_FUSION},
	{"no-nvml-p2p", no_argument, 0, FLAG_NO_P2P},
	{"table", no_argument, 0, FLAG_TABLE},
	{"json", no_argument, 0, FLAG_JSON},
	{0, 0, 0, 0},
};

static const struct option_set set = {"tune", ":n:", options};

bool tune_args_parse(struct tune_args *args, int argc, char **argv)
{
	int flag;

	*args = (struct tune_args){.type = DTYPE_FLOAT32, .op = REDOP_SUM};
	option_start();
	while ((flag = option_next(&set, argc, argv)) != -1) {
		if (flag == '?' || flag == ':')
			return option_refuse(&set, flag, argv);
		if (!parse_flag(args, flag))
			return false;
	}
	args->names = argv + optind;
	args->name_count = argc - optind;
	if (!agrees(args))
		return false;
	if (!args->hosts)
		args->hosts = args->name_count > 1 ? (uint32_t)args->name_count : 1;
	return true;
}
