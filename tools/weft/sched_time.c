/* weft sched time - one schedule in virtual time. The simulation itself is exec/sim. */
#include <stdio.h>

#include "common/units.h"
#include "exec/sim/sim.h"
#include "weft/command.h"
#include "weft/sched.h"
#include "weft/time_args.h"

/* Seconds, or a negative number after saying what went wrong. */
static double simulate(const struct sched_kind *kind, const struct time_args *args)
{
	struct sim_args sim = {.kind = kind,
		.rank_count = args->rank_count,
		.key = {.coll = kind->coll,
			.type = DTYPE_UINT8,
			.root = args->root,
			.count = args->bytes},
		.link = {.latency_ns = args->latency_s * 1e9,
			.bytes_per_ns = args->bandwidth / 1e9}};
	struct sim_report report;
	double seconds;

	if (sim_time(&sim, &report)) {
		fprintf(stderr, "weft sched time: %s\n", err_last());
		return -1;
	}
	seconds = (double)report.time_ps / 1e12;
	sim_report_fini(&report);
	return seconds;
}

int sched_time(int argc, char **argv)
{
	const struct sched_kind *kind;
	struct time_args args;
	char size[24];
	double seconds;

	if (!time_args_parse(&args, argc, argv))
		return EXIT_USAGE;
	kind = sched_find(args.coll, args.name);
	if (!kind)
		return EXIT_USAGE;
	if (args.rank_count > kind->rank_max) {
		fprintf(stderr,
			"weft sched time: %s %s is written for %u ranks at most\n",
			args.coll, args.name, kind->rank_max);
		return EXIT_USAGE;
	}
	units_print_size(args.bytes, size, sizeof(size));
	seconds = simulate(kind, &args);
	if (seconds < 0)
		return EXIT_WRONG;
	printf("%s %s, %u ranks, %s: %.2f us, %.3f GB/s\n", args.coll, args.name,
		args.rank_count, size, seconds * 1e6, (double)args.bytes / seconds / 1e9);
	return EXIT_GOOD;
}
