/*
 * limits.h - what NCCL_ALGO, NCCL_PROTO and a tuner plugin have to say about a call on
 * host memory.
 *
 * NCCL's algorithms have counterparts among the schedules: Ring is ring, Tree is tree,
 * PAT is the logarithmic one (halving, bruck). The others need hardware and have none.
 * A list that names algorithms leaves only their counterparts; one that excludes some
 * leaves the measured table (choose.c), whose schedules NCCL has no name for. Protocols
 * are codecs the host engine does not have: the list is checked and changes nothing.
 */
#ifndef TUNE_LIMITS_H
#define TUNE_LIMITS_H

#include "base/dtype.h"
#include "sched/sched.h"
#include "tune/model.h"

struct limits;

/* From the environment; *limits stays NULL when nothing is set that could matter.
 * ERR_USAGE names the word that is none. */
enum err limits_read(struct limits **limits);

/* Load the plugin of NCCL_TUNER_PLUGIN for this communicator. The cluster must outlive
 * the limits. A plugin that cannot be loaded is warned of and has no say. */
void limits_plug(struct limits *limits, const struct cluster *cluster, uint64_t comm);

/* The schedule that is NCCL's algorithm; NULL where there is none. */
const char *limits_counterpart(enum coll coll, enum algo algo);

/* The algorithms that have one, the best for so many bytes first. */
enum { LIMITS_ALGOS = 3 };
const enum algo *limits_order(size_t bytes);

/* The schedule these limits ask for by name; NULL: what the table says. ERR_USAGE when
 * they leave none. The plugin is asked here, so one thread at a time. */
struct limits_call {
	enum coll coll;
	enum dtype type;
	uint32_t rank_count;
	size_t bytes; /* of the vector, or of one rank's block */
};
enum err limits_schedule(
	struct limits *limits, const struct limits_call *call, const char **name);

/* NCCL's name of the collective when the model knows it; false for the others. */
bool limits_func(enum coll coll, enum model_func *func);

/* The model the plugin was shown; NULL when no plugin is loaded. */
const struct model *limits_model(const struct limits *limits);
const struct model_rules *limits_rules(const struct limits *limits);

/* Fine with NULL. */
void limits_free(struct limits *limits);

#endif
