/*
 * graph_json.h - a decision as JSON: one object per area, named as NCCL names things.
 *
 * The parts are public so that a comparison can look at one area; graph_json() puts them
 * together. Floats are written as `%.9g` of the float would, whole ones as integers.
 */
#ifndef TOOLS_WEFT_GRAPH_JSON_H
#define TOOLS_WEFT_GRAPH_JSON_H

#include <jansson.h>

#include "weft/graph_job.h"

/* Flags for json_dump*() with which the text is as short as it is exact. */
enum { GRAPH_JSON_FLAGS = JSON_COMPACT | JSON_REAL_PRECISION(9) };

/* All of it, or NULL after err_set(); the caller's reference. The job has been run. */
json_t *graph_json(const struct graph_job *job);

/* graph_better.c: where the job's decision has better graphs than `bounded`, found before
 * with NCCL's budgets. The caller's; NULL after err_set(). */
json_t *graph_better_json(const struct graph_job *job, const struct decision *bounded);

/* One line on standard output; takes the reference. NULL, of which err_last() tells, is a
 * failure. */
enum err graph_json_print(json_t *top);

/* The parts; graph_json_topo.c, graph_json.c, graph_json_model.c. */
json_t *graph_json_system(const struct topo *topo, bool collnet);
json_t *graph_json_paths(const struct topo *topo);
json_t *graph_json_graphs(const struct graph_job *job);
json_t *graph_json_comm(const struct cluster *cluster);
json_t *graph_json_channels(const struct cluster *cluster);
json_t *graph_json_nvls(const struct cluster *cluster);
json_t *graph_json_tuning(const struct model *model);
json_t *graph_json_choices(const struct model *model);
json_t *graph_json_run(const struct graph_job *job);

/* Values that all parts write. */
json_t *graph_json_float(float value);
json_t *graph_json_ints(const int *values, int count);

#endif
