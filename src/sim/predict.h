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
	double latency_us;
	double inner_us, outer_us; /* of the busiest link inside and between nodes */
	double ideal_us;	   /* of both together */
};

struct sim_answer {
	struct sim_terms terms;
	double time_us, algbw, busbw; /* GB/s */
	double low, high;	      /* busbw; the 90 % interval */
	double latency_us, ramp_us, transfer_us;
	uint32_t rows, sources; /* that the calibration rests on */
	bool is_own_class;	/* and not a parent's */
};

/* `bytes` as nccl-tests counts them; `stretch` is how much longer the network between
 * nodes takes than its NICs alone would (fabric.h); 1: not at all. */
enum err sim_terms_make(const struct sim_scene *scene, int coll, uint64_t bytes,
	double stretch, struct sim_terms *terms);

void sim_answer_make(const struct sim_calib *calib, const struct sim_terms *terms,
	uint64_t bytes, double bus_factor, struct sim_answer *answer);

enum err sim_predict(const struct sim_scene *scene, const struct sim_calib *calib,
	int coll, uint64_t bytes, struct sim_answer *answer);

#endif
