/*
 * calib.h - what a class of wire makes of an ideal: the calibration, as data.
 *
 * For a call the scene gives two times: the latency of its method by NCCL's model, L, and
 * the time the busiest link needs at full rate, I. A row of the table turns them into
 *
 *     T = k L + X + r L s / (1 + s)      X = I / e,   s = sqrt(X / z)
 *
 * latency, transfer, and a ramp: chunks in flight grow with the call until they reach
 * their largest size. Four numbers for each class and method, nothing for any single
 * measurement. What a class lacks its parent has; spread is the half width of the 90 %
 * interval, as a logarithm, for calls under 1 MiB and above.
 */
#ifndef SIM_CALIB_H
#define SIM_CALIB_H

#include "sim/scene.h"

enum { SIM_PARAMS = 4, SIM_SIZE_CLASSES = 2 };

struct sim_params {
	double value[SIM_PARAMS]; /* k, r, z (us), e */
	double spread[SIM_SIZE_CLASSES];
	uint32_t rows, sources; /* that it rests on; 0: not known */
};

struct sim_calib {
	struct sim_params cells[SIM_WIRES][SIM_METHODS];
};

/* One row of the table in the tree. */
struct sim_calib_row {
	const char *wire, *method;
	double value[SIM_PARAMS], spread[SIM_SIZE_CLASSES];
	uint32_t rows, sources;
	const char *origin; /* whose measurements */
};
extern const struct sim_calib_row sim_calib_rows[];
extern const uint32_t sim_calib_row_count;

void sim_calib_load(struct sim_calib *calib);

/* What holds for a class and method: its own row, or that of the nearest parent, or of a
 * method like it. `depth` counts the steps that took. */
const struct sim_params *sim_calib_find(const struct sim_calib *calib, enum sim_wire wire,
	enum sim_method method, int *depth);

/* Microseconds by the formula. */
double sim_params_time(const struct sim_params *params, double latency, double ideal);

/* The start of all fits. */
void sim_params_default(enum sim_method method, struct sim_params *params);

#endif
