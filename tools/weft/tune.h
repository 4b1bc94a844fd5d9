/*
 * tune.h - the parts of `weft tune` that print.
 */
#ifndef TOOLS_WEFT_TUNE_H
#define TOOLS_WEFT_TUNE_H

#include "weft/graph_job.h"
#include "weft/tune_args.h"

/* tune_text.c, tune_json.c: what the model of a finished job chooses. */
void tune_text(const struct graph_job *job, const struct tune_args *args);
enum err tune_json(const struct graph_job *job, const struct tune_args *args);

/* tune_host.c: which schedule our own calls get on this host's memory. */
enum err tune_host(const struct tune_args *args);

#endif
