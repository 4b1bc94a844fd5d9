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

/* What is left out: a source by its number, nothing, or one of so many parts of the
 * models (a stack's runs of one model are in one part): FIT_FOLD + which. */
enum { FIT_FOLDS = 8 };
static const uint32_t FIT_NO_SOURCE = 0xffffffff, FIT_FOLD = 0x80000000;

bool fit_is_left_out(const struct train_case *c, uint32_t without);

/* From all cases with a measurement but those that are left out. */
enum err train_fit(
	const struct train_cases *cases, uint32_t without, struct train_calib *calib);

/* The logarithm of predicted over measured. */
double train_error(const struct train_calib *calib, const struct train_case *c);

/* Spreads: of a stack from errors of models left out, of what is wider from errors of
 * sources left out, because there the stack asked about is not among those fitted. Memory
 * habits are fitted for each stack; of no stack in particular they stay what calib.c
 * says. */
void train_fit_spreads(const struct train_cases *cases, const double *rows_out,
	const double *sources_out, struct train_calib *calib);
void train_fit_memory(
	const struct train_cases *cases, uint32_t without, struct train_calib *calib);

#endif
