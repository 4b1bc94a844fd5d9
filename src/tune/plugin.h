/*
 * plugin.h - NCCL's tuner plugins: shared objects that know a machine better than the
 * model does.
 *
 * NCCL_TUNER_PLUGIN names the file, or the suffix of libnccl-tuner-SUFFIX.so; unset it is
 * libnccl-tuner.so, if there is one. The newest version that the file speaks is used, 6
 * down to 2. A plugin that fails is warned of once and then left alone: the model
 * chooses.
 */
#ifndef TUNE_PLUGIN_H
#define TUNE_PLUGIN_H

#include "tune/model.h"

struct tuner;

/* The plugin of one communicator, or NULL when there is none. It may rewrite
 * rules->constants, so call this before model_make(). */
struct tuner *tuner_open(
	const struct cluster *cluster, uint64_t comm, struct model_rules *rules);

/* As model_choose(), after the plugin has had its say: it may prefer what the model has
 * a cost for, but not allow what the model has ruled out. A NULL tuner has no say. Not
 * safe for two threads with the same tuner. */
enum err tuner_choose(struct tuner *tuner, const struct model *model,
	const struct model_call *call, struct model_choice *choice);

/* For an engine that does not run NCCL's algorithms: the plugin's choice, if it changed a
 * cost at all; *forced is false, and the choice untouched, when it left the model's as
 * they were or there is no plugin. */
enum err tuner_force(struct tuner *tuner, const struct model *model,
	const struct model_call *call, struct model_choice *choice, bool *forced);

/* Fine with NULL. */
void tuner_close(struct tuner *tuner);

/* For tools and tests: the plugin's own name and the version in use. */
const char *tuner_name(const struct tuner *tuner);
int tuner_version(const struct tuner *tuner);

#endif
