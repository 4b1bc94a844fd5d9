#include "weft/tune_args.h"

#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "base/dtype.h"
#include "common/names.h"
#include "common/units.h"
#include "sched/sched.h"
#include "tune/model.h"
#include "weft/option.h"

enum flag {
	FLAG_RANKS = 'n',
	FLAG_JSON = MACHINE_FLAGS_END,
	FLAG_TYPE,
	FLAG_OP,
	FLAG_COLL,
	FLAG_ALGO,
	FLAG_PROTO,
	FLAG_TABLE,
	FLAG_HOSTS
};

bool tune_args_want(const struct tune_args *args, const char *name)
{
	return !args->coll || names_match(args->coll, name);
}

/* Machines have the five that NCCL's model knows, this host all of ours. */
static const char *coll_at(const struct tune_args *args, int i)
{
	if (args->machines.name_count)
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
		args->machines.name_count ? "NCCL's model has no such collective"
					  : "there is no such collective");
	for (int i = 0; (name = coll_at(args, i)); i++)
		fprintf(stderr, " %s", name);
	fprintf(stderr, "\n");
	return false;
}

static bool parse_ranks(struct tune_args *args)
{
	int64_t ranks;

	if (!units_int(optarg, 1, TUNE_RANKS_MAX, &ranks))
		return machine_args_refuse(
			&args->machines, "-n", "give a number from 1 to 1024");
	args->ranks = (uint32_t)ranks;
	return true;
}

static bool parse_type(struct tune_args *args)
{
	for (int t = 0; t < DTYPE_COUNT; t++)
		if (names_match(optarg, dtype_name((enum dtype)t))) {
			args->type = t;
			return true;
		}
	return machine_args_refuse(&args->machines, "--type",
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
	return machine_args_refuse(
		&args->machines, "--op", "give sum, prod, max, min, avg or mulsum");
}

static bool parse_value(struct tune_args *args, int flag)
{
	switch (flag) {
	case FLAG_RANKS:
		return parse_ranks(args);
	case FLAG_TYPE:
		args->is_typed = true;
		return parse_type(args);
	case FLAG_OP:
		args->is_typed = true;
		return parse_op(args);
	case FLAG_HOSTS:
		args->hosts = optarg;
		return true;
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
	enum machine_took took = machine_args_take(&args->machines, flag);

	if (took != MACHINE_OTHER)
		return took == MACHINE_TOOK;
	switch (flag) {
	case FLAG_JSON:
		args->json = true;
		return true;
	case FLAG_TABLE:
		args->table = true;
		return true;
	default:
		return parse_value(args, flag);
	}
}

/* Does anything but -n, --hosts, --coll and --json stand there? */
static bool is_about_machines(const struct tune_args *args)
{
	return args->machines.is_given || args->is_typed || args->algo || args->proto ||
	       args->table;
}

/* What belongs to machines and what to this host. */
static bool agrees(const struct tune_args *args)
{
	if (args->machines.name_count && (args->ranks || args->hosts))
		fprintf(stderr, "weft tune: -n and --hosts count ranks on host memory, "
				"and machines have one per GPU; leave them out\n");
	else if (args->ranks && args->hosts)
		fprintf(stderr, "weft tune: --hosts says how many ranks there are; leave "
				"out -n\n");
	else if (!args->machines.name_count && is_about_machines(args))
		fprintf(stderr, "weft tune: on host memory only -n, --hosts, --coll "
				"and --json are taken; name a machine, or 'this'\n");
	else
		return check_coll(args);
	return false;
}

static const struct option options[] = {
	{"coll", required_argument, 0, FLAG_COLL},
	{"type", required_argument, 0, FLAG_TYPE},
	{"op", required_argument, 0, FLAG_OP},
	{"algo", required_argument, 0, FLAG_ALGO},
	{"proto", required_argument, 0, FLAG_PROTO},
	{"table", no_argument, 0, FLAG_TABLE},
	{"hosts", required_argument, 0, FLAG_HOSTS},
	{"json", no_argument, 0, FLAG_JSON},
	{0, 0, 0, 0},
};

bool tune_args_parse(struct tune_args *args, int argc, char **argv)
{
	struct option all[MACHINE_OPTIONS_MAX];
	const struct option_set set = {"tune", ":n:", all};
	int flag;

	*args = (struct tune_args){.type = DTYPE_FLOAT32, .op = REDOP_SUM};
	machine_args_init(&args->machines, set.command);
	machine_args_options(options, all);
	option_start();
	while ((flag = option_next(&set, argc, argv)) != -1) {
		if (flag == '?' || flag == ':')
			return option_refuse(&set, flag, argv);
		if (!parse_flag(args, flag))
			return false;
	}
	return machine_args_finish(&args->machines, argc, argv) && agrees(args);
}
