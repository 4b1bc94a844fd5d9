/*
 * time_args.h - what `weft sched time` is asked: a schedule, a size and a network.
 */
#ifndef TOOLS_WEFT_TIME_ARGS_H
#define TOOLS_WEFT_TIME_ARGS_H

#include <stdbool.h>
#include <stdint.h>

struct sched_hosts;

struct time_args {
	const char *coll, *name; /* borrowed from argv */
	uint32_t rank_count, root;
	struct sched_hosts *hosts; /* the caller's to destroy, whatever came of it;
				      NULL: one */
	uint64_t bytes;
	double latency_s; /* of the network: between hosts, or between ranks */
	double bandwidth; /* bytes per second, each way */
	bool json;
};

/* Read `COLLECTIVE SCHEDULE -n N [--hosts SHAPE] [--root R] [--latency T]
 * [--bandwidth B] [--size S] [--json]`; argv[0] is skipped. False with a sentence on
 * stderr. */
bool time_args_parse(struct time_args *args, int argc, char **argv);

#endif
