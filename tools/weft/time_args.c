#include "weft/time_args.h"

#include <stddef.h>
#include <stdio.h>

#include "base/param.h"
#include "common/units.h"
#include "weft/hosts_args.h"
#include "weft/option.h"

enum { RANKS = 8, RANKS_MAX = 1 << 16 };

/* Beyond these no time in picoseconds, of all bytes one after the other, fits 64 bits. */
static const double latency_max = 1, bandwidth_min = 10e6, bandwidth_max = 1e15;
static const uint64_t size_max = UINT64_C(1) << 40;

static bool refuse(const char *what, const char *how)
{
	fprintf(stderr, "weft sched time: %s '%s': %s\n", what, optarg, how);
	return false;
}

static bool parse_flag(struct time_args *args, int flag)
{
	int64_t number;

	switch (flag) {
	case 'n':
		if (!units_int(optarg, 1, RANKS_MAX, &number))
			return refuse("-n", "give a number of ranks");
		args->rank_count = (uint32_t)number;
		return true;
	case 'r':
		if (!units_int(optarg, 0, RANKS_MAX, &number))
			return refuse("--root", "give a rank");
		args->root = (uint32_t)number;
		return true;
	case 'l':
		return (units_time(optarg, &args->latency_s) &&
			       args->latency_s <= latency_max) ||
		       refuse("--latency",
			       "give a time such as 500ns, 1us or 2ms, at most 1s");
	case 'b':
		return (units_rate(optarg, &args->bandwidth) &&
			       args->bandwidth >= bandwidth_min &&
			       args->bandwidth <= bandwidth_max) ||
		       refuse("--bandwidth", "give a rate such as 10GB/s or 400Gb/s, "
					     "10MB/s to 1000TB/s");
	case 's':
		return (units_size(optarg, &args->bytes) && args->bytes <= size_max) ||
		       refuse("--size", "give bytes such as 8, 64K or 1M, at most 1024G");
	case 'h':
		return hosts_args_take("sched time", &args->hosts);
	case 'j':
		args->json = true;
		return true;
	default:
		return false;
	}
}

/* Where no network is given: a plain one, or between hosts what schedules are chosen by.
 */
static void network_default(struct time_args *args)
{
	if (args->latency_s < 0)
		args->latency_s = args->hosts
					  ? (double)param_int(PARAM_NET_LATENCY) * 1e-6
					  : 1e-6;
	if (args->bandwidth <= 0)
		args->bandwidth = args->hosts
					  ? (double)param_int(PARAM_NET_MB_PER_SEC) * 1e6
					  : 10e9;
}

bool time_args_parse(struct time_args *args, int argc, char **argv)
{
	static const struct option options[] = {
		{"ranks", required_argument, 0, 'n'},
		{"root", required_argument, 0, 'r'},
		{"latency", required_argument, 0, 'l'},
		{"bandwidth", required_argument, 0, 'b'},
		{"size", required_argument, 0, 's'},
		{"hosts", required_argument, 0, 'h'},
		{"json", no_argument, 0, 'j'},
		{0, 0, 0, 0},
	};
	static const struct option_set set = {"sched time", ":n:", options};
	int64_t ranks;
	int flag;

	*args = (struct time_args){.bytes = 1 << 20, .latency_s = -1};
	option_start();
	while ((flag = option_next(&set, argc, argv)) != -1) {
		if (flag == '?' || flag == ':')
			return option_refuse(&set, flag, argv);
		if (!parse_flag(args, flag))
			return false;
	}
	if (argc - optind != 2) {
		fprintf(stderr,
			"weft sched time: give a collective and a schedule, such as "
			"'all_reduce ring'\n");
		return false;
	}
	ranks = args->rank_count;
	if (!hosts_args_count(set.command, args->hosts, &ranks, RANKS))
		return false;
	args->rank_count = (uint32_t)ranks;
	network_default(args);
	if (args->root >= args->rank_count) {
		fprintf(stderr,
			"weft sched time: root %u of %u ranks; the last one is %u\n",
			args->root, args->rank_count, args->rank_count - 1);
		return false;
	}
	args->coll = argv[optind];
	args->name = argv[optind + 1];
	return true;
}
