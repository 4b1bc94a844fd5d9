/*
 * graph.h - the answers of `weft graph`, one file each: graph_text.c, graph_pods.c,
 * graph_better.c, graph_svg.c. Each prints on standard output, or into the file it is
 * given.
 */
#ifndef TOOLS_WEFT_GRAPH_H
#define TOOLS_WEFT_GRAPH_H

#include "weft/graph_args.h"
#include "weft/graph_job.h"

/* "dgx-h100 x 2: " */
void graph_text_names(const struct graph_job *job);

/* "dgx-h100 x 2: 16 ranks on 2 nodes, 8 GPUs each" */
void graph_text_head(const struct graph_job *job);

/* NCCL's log lines for all of it. */
void graph_text(const struct graph_job *job, const struct graph_args *args);

/* The machine whole against the machine in pods, side by side. */
enum err graph_pods(struct graph_job *job, const struct graph_args *args);

/* Search with a far larger budget, and say where that finds more. */
enum err graph_better(struct graph_job *job, const struct graph_args *args);

/* Rings and trees drawn over the machine of rank 0 (graph_svg.c). */
enum err graph_svg(const struct graph_job *job, const struct graph_args *args);

/* "ring", "CollNet chain". */
const char *graph_title(enum graph_id id);

#endif
