/*
 * fit.h - the calibration from measurements: four numbers a class and method.
 *
 * A class is fitted to its rows and, as strongly as a few rows would, to what its parent
 * came to, whose rows are those of all its children. So a class with little evidence is
 * like its kin, and one with none is its parent.
 */
#ifndef SIM_FIT_H
#define SIM_FIT_H

#include "sim/calib.h"

struct sim_sample {
	enum sim_wire wire;
	enum sim_method method;
	uint64_t bytes;
	double latency_us, ideal_us, time_us;
	uint32_t source;
};

enum { SIM_NO_SOURCE = 0xffffffff };

/* From all samples but those of the source `without`. Spreads are left at their default:
 * sim_fit_spreads() sets them from how far a source is from what the others say of it. */
void sim_fit(const struct sim_sample *samples, uint32_t count, uint32_t without,
	struct sim_calib *calib);

/* `errors` are logarithms of predicted over measured time, each with its source left
 * out. */
void sim_fit_spreads(const struct sim_sample *samples, uint32_t count,
	const double *errors, struct sim_calib *calib);

#endif
