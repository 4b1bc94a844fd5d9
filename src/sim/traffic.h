/*
 * traffic.h - what a collective puts on a fabric, and how long that takes.
 *
 * The edges are those of NCCL's schedules: every ring goes from node to node in order,
 * one for each NIC; trees are the double binary tree of graph/cluster.h; all-to-all is
 * every pair. Few enough flows are run (flow.h); more are counted: the time is that of
 * the link with the most bytes for its rate, which is the same where the flows that meet
 * on it are alike.
 */
#ifndef SIM_TRAFFIC_H
#define SIM_TRAFFIC_H

#include "sim/fabric.h"
#include "sim/predict.h"

enum traffic_way { TRAFFIC_AUTO, TRAFFIC_RUN, TRAFFIC_COUNT };
enum { TRAFFIC_FLOWS_RUN = 4096, TRAFFIC_BUSIEST = 4 };

struct traffic_report {
	double time_us;
	double ideal_us; /* on one switch, all NICs sound */
	bool was_run;
	uint32_t flow_count;
	double bytes; /* all that was sent */
	struct {
		uint32_t link;
		double share; /* of the time that it is busy */
	} busiest[TRAFFIC_BUSIEST];
	uint32_t busiest_count;
};

/* `bytes` of a call as the pattern counts them: what a node sends along a ring; what a
 * tree reduces; what a node sends to all others; what each sends to node 0. */
enum err traffic_measure(struct fabric *fabric, enum sim_traffic kind, double bytes,
	enum traffic_way way, struct traffic_report *report);

/* What the same takes on one switch, all NICs sound. */
double traffic_ideal(const struct fabric *fabric, enum sim_traffic kind, double bytes);

/* The flows themselves, for a timeline; the caller frees `flows`. ERR_USAGE when there
 * are more than TRAFFIC_FLOWS_RUN. */
enum err traffic_flows(const struct fabric *fabric, enum sim_traffic kind, double bytes,
	struct sim_flow **flows, uint32_t *count);

/* All four patterns on a fabric. */
enum err traffic_strain(struct fabric *fabric, struct sim_strain *strain);

#endif
