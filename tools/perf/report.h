/*
 * report.h - what the user sees: nccl-tests' table, with a few lines of ours on top.
 *
 * Only worker 0 reports. With --plain nothing but nccl-tests' lines comes out.
 */
#ifndef TOOLS_PERF_REPORT_H
#define TOOLS_PERF_REPORT_H

#include "perf/run.h"

/* One measurement. `wrong` < 0: not checked. */
struct result {
	double time_us, algbw, busbw, wrong;
};

struct row {
	uint64_t bytes, count;
	const char *type, *redop;
	int root; /* -1: the collective has none */
	struct result out_of_place, in_place;
};

struct json_log;

struct report {
	const struct run *run;
	struct json_log *json; /* owned; NULL without -J */
	double busbw_sum;
	uint64_t busbw_count;
	uint64_t bad_count; /* measurements with any wrong element */
};

/* The lines above the table. */
void report_open(struct report *report, const struct worker *worker);

/* The table's head; printed again for each sweep of -d all, -o all. */
void report_head(const struct report *report);

void report_row(struct report *report, const struct row *row);

/* The lines below the table, and the JSON file. Returns TEST_OK, TEST_FAILED for wrong
 * data or too little bandwidth, or TEST_INTERNAL where only the file was not written. */
int report_close(struct report *report, const struct worker *worker);

/* A number in `width` columns: as many of two decimals as fit, else exponent form. */
void report_number(char *text, size_t text_size, double value, int width);

/* NCCL_TESTS_MIN_BW; 0 when it is not set. */
double report_min_bandwidth(void);

#endif
