/*
 * json.h - the results as a JSON file, in nccl-tests' layout (version 3).
 */
#ifndef TOOLS_PERF_JSON_H
#define TOOLS_PERF_JSON_H

#include "perf/report.h"

/* Begin the file's object. Names the file on stdout; NULL, with a line on stderr, when it
 * cannot be made. An existing file is kept: the name gets a number. */
struct json_log *json_open(const struct run *run);

void json_row(struct json_log *log, const struct row *row);

/* Write the file and free the log. False, with a line on stderr, when not all of it could
 * be written. */
bool json_close(struct json_log *log, uint64_t bad_count, double average);

#endif
