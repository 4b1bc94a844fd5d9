/*
 * flow.h - flows over shared links in virtual time, max-min fair.
 *
 * A flow has bytes to carry and a path of links. At every instant each flow gets as much
 * as it can without taking from one that has less; when a flow ends, its share goes to
 * the others. Same flows, same times: nothing depends on chance or on addresses.
 */
#ifndef SIM_FLOW_H
#define SIM_FLOW_H

#include <stdint.h>

#include "base/err.h"

enum { FLOW_HOPS_MAX = 8 };

struct sim_flow {
	double bytes;
	double start_us; /* what leaves later shares nothing before */
	uint32_t hops[FLOW_HOPS_MAX];
	uint32_t hop_count; /* 0: takes no time */
	double end_us;	    /* result */
};

struct flow_link {
	double rate;	/* bytes per us; 0: dead, and nothing may go there */
	double bytes;	/* result: what went over it */
	double busiest; /* result: the most it carried at once, of its rate */
};

/* ERR_USAGE when a flow goes over a dead link. */
enum err flow_run(struct sim_flow *flows, uint32_t flow_count, struct flow_link *links,
	uint32_t link_count, double *end_us);

#endif
