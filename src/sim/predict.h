/*
 * predict.h - how long one call takes on a site, and how sure that is.
 */
#ifndef SIM_PREDICT_H
#define SIM_PREDICT_H

#include "sim/calib.h"

/* Before calibration: what is done, over what, and the two times of calib.h. */
struct sim_terms {
	enum sim_method method;
	enum sim_wire wire;
	enum sim_wire net;	   /* that the hops go over */
	double latency_us;	   /* without the network's own */
	double hops;		   /* how often the network's own comes on top */
	double inner_us, outer_us; /* of the busiest link inside and between nodes */
	double least_us;	   /* that no method between nodes does without */
	double ideal_us;	   /* of both together */
	double cut, width;	   /* of struct sim_load */
};

struct sim_answer {
	struct sim_terms terms;
	double time_us, algbw, busbw; /* GB/s */
	double low, high;	      /* busbw; the 90 % interval */
	double latency_us, ramp_us, transfer_us;
	uint32_t rows, sources; /* that the calibration rests on */
	bool is_own_class;	/* and not a parent's */
};

/* How much longer the wires take than those of a sound machine on one switch would
 * (traffic.h); by the kind of traffic between nodes. 1: no longer. */
enum sim_traffic { SIM_TRAFFIC_RING, SIM_TRAFFIC_TREE, SIM_TRAFFIC_ALL, SIM_TRAFFIC_ONE };
enum { SIM_TRAFFICS = SIM_TRAFFIC_ONE + 1 };
struct sim_strain {
	double inner, outer[SIM_TRAFFICS];
};
enum sim_traffic sim_traffic_of(int coll, enum sim_method method);

/* `bytes` as nccl-tests counts them; NULL: no strain. */
enum err sim_terms_make(const struct sim_scene *scene, int coll, uint64_t bytes,
	const struct sim_strain *strain, struct sim_terms *terms);

/* What keeps a sound machine's bytes between nodes from being faster. */
enum sim_bound { SIM_BOUND_NICS, SIM_BOUND_PCI, SIM_BOUND_THREADS };
enum sim_bound sim_outer_bound(const struct sim_scene *scene);

/* Measured above this much of what the network between nodes can carry: its description
 * is wrong. No interval goes higher. */
extern const double SIM_ABOVE_WIRE;

void sim_answer_make(const struct sim_calib *calib, const struct sim_terms *terms,
	uint64_t bytes, double bus_factor, struct sim_answer *answer);

enum err sim_predict(const struct sim_scene *scene, const struct sim_calib *calib,
	int coll, uint64_t bytes, struct sim_answer *answer);

#endif
