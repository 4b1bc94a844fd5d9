/*
 * tiles.h - the library's own schedules over a fabric, tile by tile in virtual time.
 *
 * Where ranks are few, this is what `weft sim` asks of a network; traffic.h says the same
 * of many, by flows and by counting.
 */
#ifndef SIM_TILES_H
#define SIM_TILES_H

#include "sim/traffic.h"

/* Ranks here are NICs: a schedule has as many drivers on each. */
enum { TILES_NICS_MAX = 64 };

struct tiles_report {
	double time_us;
	const char *schedule;	    /* its name in `weft sched list` */
	uint32_t nics, each, tiles; /* so many of it through each NIC */
};

/* Is there a schedule for that kind of traffic, for so few NICs? */
bool tiles_can(const struct fabric *fabric, enum sim_traffic kind);

/* `bytes` as traffic_measure() counts them. */
enum err tiles_measure(const struct fabric *fabric, enum sim_traffic kind, double bytes,
	struct tiles_report *report);

/* The strain of rings, where they can be run; the rest stays as it is. Pairs are left to
 * flows: NCCL has all of them under way at once, and the schedule goes round by round. */
enum err tiles_strain(const struct fabric *fabric, struct sim_strain *strain);

#endif
