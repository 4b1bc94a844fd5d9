/* weft sched time - one schedule in virtual time. The simulation itself is exec/sim. */
#include <stdio.h>

#include "common/units.h"
#include "exec/sim/sim.h"
#include "weft/command.h"
#include "weft/json_print.h"
#include "weft/sched.h"
#include "weft/time_args.h"

/* Shared memory, where the ranks are on several hosts: a look at a peer's line, and what
 * one core copies. */
static const struct sim_link inside = {.latency_ns = 200, .bytes_per_ns = 10};

/* The size is the larger buffer, as in the perf programs; bytes are the elements. */
static enum err simulate(const struct sched_kind *kind, const struct time_args *args,
	struct sim_report *report)
{
	const struct sim_link network = {.latency_ns = args->latency_s * 1e9,
		.bytes_per_ns = args->bandwidth * 1e-9};
	size_t share = coll_is_vector(kind->coll) ? 1 : args->rank_count;
	struct sim_args sim = {.kind = kind,
		.rank_count = args->rank_count,
		.key = {.coll = kind->coll,
			.type = DTYPE_UINT8,
			.root = args->root,
			.count = args->bytes / share},
		.op = REDOP_SUM,
		.hosts = args->hosts ? args->hosts->host : NULL,
		.link = args->hosts ? inside : network,
		.network = network};

	return sim_time(&sim, report);
}

static void print_report(const struct sched_kind *kind, const struct time_args *args,
	const struct sim_report *report)
{
	double us = (double)report->time_ps * 1e-6;
	char size[24];

	units_print_size(args->bytes, size, sizeof(size));
	printf("%s %s, %u ranks, %s: %.2f us", coll_name(kind->coll), kind->name,
		args->rank_count, size, us);
	if (report->time_ps)
		printf(", algbw %.3f GB/s", (double)args->bytes / us * 1e-3);
	printf("\n%llu messages over %u links, %llu bytes; the busiest link carries "
	       "%llu\n",
		(unsigned long long)report->message_count, report->link_count,
		(unsigned long long)report->message_bytes,
		(unsigned long long)report->link_byte_max);
	if (args->hosts)
		printf("between %u hosts %llu messages, %llu bytes\n",
			args->hosts->host_count,
			(unsigned long long)report->network_message_count,
			(unsigned long long)report->network_bytes);
}

static json_t *report_json(const struct sched_kind *kind, const struct time_args *args,
	const struct sim_report *report)
{
	return json_pack(
		"{s:s, s:s, s:i, s:i, s:i, s:I, s:f, s:f, s:f, s:I, s:i, s:I, s:I, s:I, "
		"s:I}",
		"collective", coll_name(kind->coll), "schedule", kind->name, "rankCount",
		(int)args->rank_count, "hostCount",
		args->hosts ? (int)args->hosts->host_count : 1, "root", (int)args->root,
		"bytes", (json_int_t)args->bytes, "latencyUs", args->latency_s * 1e6,
		"bandwidthGBs", args->bandwidth * 1e-9, "timeUs",
		(double)report->time_ps * 1e-6, "messages",
		(json_int_t)report->message_count, "links", (int)report->link_count,
		"messageBytes", (json_int_t)report->message_bytes, "busiestLinkBytes",
		(json_int_t)report->link_byte_max, "networkMessages",
		(json_int_t)report->network_message_count, "networkBytes",
		(json_int_t)report->network_bytes);
}

static int time_kind(const struct sched_kind *kind, const struct time_args *args)
{
	struct sim_report report;
	int status = EXIT_GOOD;

	if (!args->hosts && args->rank_count > kind->rank_max) {
		fprintf(stderr,
			"weft sched time: %s %s is written for %u ranks at most\n",
			coll_name(kind->coll), kind->name, kind->rank_max);
		return EXIT_USAGE;
	}
	if (simulate(kind, args, &report)) {
		fprintf(stderr, "weft sched time: %s\n", err_last());
		return EXIT_WRONG;
	}
	if (args->json)
		status = json_print("sched time", report_json(kind, args, &report));
	else
		print_report(kind, args, &report);
	sim_report_fini(&report);
	return status;
}

int sched_time(int argc, char **argv)
{
	const struct sched_kind *kind = NULL;
	struct time_args args;
	int status = EXIT_USAGE;

	if (time_args_parse(&args, argc, argv))
		kind = sched_find(args.coll, args.name);
	if (kind)
		status = time_kind(kind, &args);
	sched_hosts_destroy(args.hosts);
	return status;
}
