/*
 * cases.h - rows of a table become questions: a model, a layout, a cluster, a stack.
 *
 * Columns by name, as in tables of published training runs; what a row leaves open is
 * filled by the rules of cases.c, each with a reason. Rows with one machine and number of
 * nodes share one net.
 */
#ifndef TRAIN_CASES_H
#define TRAIN_CASES_H

#include "sim/table.h"
#include "train/calib.h"

struct train_case {
	uint32_t row;
	struct train_model model;
	struct train_layout layout;
	struct calib_who who; /* texts are the table's or static */
	struct train_work work;
	double step_s;	     /* measured; 0: not known */
	double memory_bytes; /* the same */
	uint32_t source;
	bool is_audited;
	bool is_partial; /* a part of the run is not known: sequence, batch or layout */
};

struct train_cases {
	struct sim_table table;	  /* owned */
	struct train_case *cases; /* owned */
	uint32_t count;
	const char **sources; /* owned; texts are the table's */
	uint32_t source_count;
};

/* ERR_USAGE names the first row that is wrong; nothing is left to free then. */
enum err train_cases_read(const char *path, struct train_cases *cases);
enum err train_cases_parse(
	const char *text, size_t bytes, const char *name, struct train_cases *cases);
void train_cases_free(struct train_cases *cases);

/* The stack that a source's words mean: "mosaicml/llm-foundry .." is llm-foundry. */
const char *stack_of_source(const char *source);

#endif
