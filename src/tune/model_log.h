/*
 * model_log.h - what NCCL's log says of its model: the table, the matrix of what is
 * allowed, thresholds, and each choice. The line of channels is print_counts() of
 * graph/print.h.
 *
 * Rank 0 alone calls these, but for the thresholds, which every rank prints. The lines
 * are NCCL's, so scripts that read them go on.
 */
#ifndef TUNE_MODEL_LOG_H
#define TUNE_MODEL_LOG_H

#include "tune/model.h"

/* The table of latencies and bandwidths, three algorithms to a block, line by line. */
void model_table(
	const struct model *model, void (*line)(void *arg, const char *text), void *arg);

/* The same under TUNING. */
void model_log_table(const struct model *model);

/* Under ENV, and only when NCCL_ALGO or NCCL_PROTO is set: what they allow. */
void model_log_matrix(const struct model_rules *rules);

/* Under INIT. */
void model_log_thresholds(const struct model *model);

/* Under TUNING: one call and what it got. */
void model_log_choice(const struct model *model, const struct model_call *call,
	const struct model_choice *choice);

#endif
