/*
 * fit.h - the calibration from measurements.
 *
 * All levels of calib.h are fitted together: the sum of the logarithms of errors, each
 * cut where it would weigh too much, and of how far a row is from 1, so that what little
 * evidence a row has moves it little.
 */
#ifndef TRAIN_FIT_H
#define TRAIN_FIT_H

#include "train/cases.h"

enum { FIT_NO_SOURCE = 0xffffffff };

/* From all cases with a measurement but those of the source `without`. `start` may be
 * NULL, or an earlier fit to begin with. */
enum err train_fit(const struct train_cases *cases, uint32_t without,
	const struct train_calib *start, struct train_calib *calib);

/* The logarithm of predicted over measured. */
double train_error(const struct train_calib *calib, const struct train_case *c);

/* Spreads from errors of sources left out, memory habits from the cases. */
void train_fit_spreads(
	const struct train_cases *cases, const double *errors, struct train_calib *calib);
void train_fit_memory(
	const struct train_cases *cases, uint32_t without, struct train_calib *calib);

#endif
