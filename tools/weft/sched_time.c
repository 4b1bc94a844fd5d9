/* weft sched time - one schedule in virtual time. The simulation itself is exec/sim. */
#include <stdio.h>

#include "common/units.h"
#include "exec/sim/sim.h"
#include "weft/command.h"
#include "weft/sched.h"
#include "weft/time_args.h"

/* The size is the larger buffer, as in the perf programs; bytes are the elements. */
static enum err simulate(const struct sched_kind *kind, const struct time_args *args,
	struct sim_report *report)
{
	size_t share = coll_is_vector(kind->coll) ? 1 : args->rank_count;
	struct sim_args sim = {.kind = kind,
		.rank_count = args->rank_count,
		.key = {.coll = kind->coll,
			.type = DTYPE_UINT8,
			.root = args->root,
			.count = args->bytes / share},
		.op = REDOP_SUM,
		.link = {.latency_ns = args->latency_s * 1e9,
			.bytes_per_ns = args->bandwidth * 1e-9}};

	return sim_time(&sim, report);
}

static void print_report(const struct time_args *args, const struct sim_report *report)
{
	double us = (double)report->time_ps * 1e-6;
	char size[24];

	units_print_size(args->bytes, size, sizeof(size));
	printf("%s %s, %u ranks, %s: %.2f us", args->coll, args->name, args->rank_count,
		size, us);
	if (report->time_ps)
		printf(", algbw %.3f GB/s", (double)args->bytes / us * 1e-3);
	printf("\n%llu messages over %u links, %llu bytes; the busiest link carries "
	       "%llu\n",
		(unsigned long long)report->message_count, report->link_count,
		(unsigned long long)report->message_bytes,
		(unsigned long long)report->link_byte_max);
}

int sched_time(int argc, char **argv)
{
	const struct sched_kind *kind;
	struct time_args args;
	struct sim_report report;

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
	if (simulate(kind, &args, &report)) {
		fprintf(stderr, "weft sched time: %s\n", err_last());
		return EXIT_WRONG;
	}
	print_report(&args, &report);
	sim_report_fini(&report);
	return EXIT_GOOD;
}
