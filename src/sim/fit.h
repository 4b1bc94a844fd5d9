/*
 * fit.h - the calibration from measurements.
 *
 * All parts of calib.h are found together: those that give the measured times back and
 * stray least from 1. How far a part may stray for the price of one row that is off is
 * written in fit.c; what few rows speak for stays near its parent.
 */
#ifndef SIM_FIT_H
#define SIM_FIT_H

#include "sim/calib.h"

struct sim_sample {
	enum sim_wire wire, net;
	enum sim_method method;
	uint64_t bytes;
	struct sim_load load;
	double time_us;
	uint32_t source;
};

enum { SIM_NO_SOURCE = 0xffffffff };

/* From all samples but those of the source `without`. The search begins at `start`, a
 * fit to nearly the same samples, or at the defaults where it is NULL. Spreads stay 0:
 * sim_fit_spreads() sets them from how far a source is from what the others say of it. */
enum err sim_fit(const struct sim_sample *samples, uint32_t count, uint32_t without,
	const struct sim_calib *start, struct sim_calib *calib);

/* `errors` are logarithms of predicted over measured time, each with its source left
 * out. */
void sim_fit_spreads(const struct sim_sample *samples, uint32_t count,
	const double *errors, struct sim_calib *calib);

#endif
