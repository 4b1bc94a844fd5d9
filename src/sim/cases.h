/*
 * cases.h - rows of a table become questions: a site, a collective, a size.
 *
 * Columns by name: platform, nodes, gpus, collective, bytes, nccl_version, net; case and
 * source, and time_us or busbw_GBps where the answer is known. Rows with one site share
 * one scene.
 */
#ifndef SIM_CASES_H
#define SIM_CASES_H

#include "sim/fit.h"
#include "sim/predict.h"
#include "sim/table.h"

struct sim_case {
	uint32_t row; /* of the table */
	uint32_t group;
	int coll;
	uint64_t bytes;
	struct sim_terms terms;
	double bus_factor;
	double time_us; /* measured; 0: not known */
	uint32_t source;
	const char *wrong; /* why it cannot be right; NULL: it can */
};

struct sim_group {
	struct sim_site site;
	uint32_t first_row;
	char taken[160];
};

struct sim_cases {
	struct sim_table table; /* owned */
	struct sim_case *cases; /* owned */
	uint32_t count;
	struct sim_group *groups; /* owned */
	uint32_t group_count;
	const char **sources; /* owned; the texts are the table's */
	uint32_t source_count;
};

/* ERR_USAGE names the first row that is wrong; nothing is left to free then. */
enum err sim_cases_read(const char *path, struct sim_cases *cases);
enum err sim_cases_parse(
	const char *text, size_t bytes, const char *name, struct sim_cases *cases);
void sim_cases_free(struct sim_cases *cases);

/* Those with an answer that can be right; `samples` has room for all. */
uint32_t sim_cases_samples(const struct sim_cases *cases, struct sim_sample *samples);

#endif
