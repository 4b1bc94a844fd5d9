/*
 * plugin_abi.h - what a tuner plugin for NCCL looks like in memory, version by version.
 *
 * A plugin exports one object per version it speaks: ncclTunerPlugin_v2 to _v6. Results
 * are ncclResult_t, 0 for success; algorithms, protocols and functions are numbered as in
 * model.h. A cost table is float[algorithms][protocols] behind a wrong type.
 */
#ifndef TUNE_PLUGIN_ABI_H
#define TUNE_PLUGIN_ABI_H

#include <stddef.h>
#include <stdint.h>

#include "base/plugin_log.h"
#include "tune/model.h"

typedef int plugin_init_old(size_t ranks, size_t nodes, plugin_log *log, void **context);
typedef int plugin_end(void *context);

/* 2: the plugin names algorithm and protocol, or leaves them at -1. */
struct plugin_v2 {
	const char *name;
	plugin_init_old *init;
	int (*ask)(void *context, int func, size_t bytes, int collnet, int nvls,
		int pipe_ops, int *algo, int *proto, int *channels);
	plugin_end *end;
};

/* 3: it rewrites costs. */
struct plugin_v3 {
	const char *name;
	plugin_init_old *init;
	int (*ask)(void *context, int func, size_t bytes, int pipe_ops, float **costs,
		int algos, int protos, int *channels);
	plugin_end *end;
};

/* 4: it is told whether buffers are registered. */
typedef int plugin_ask(void *context, int func, size_t bytes, int pipe_ops, float **costs,
	int algos, int protos, int registered, int *channels);

struct plugin_v4 {
	const char *name;
	plugin_init_old *init;
	plugin_ask *ask;
	plugin_end *end;
};

/* 5: it may also change the model's constants. */
struct plugin_domains {
	int count, ranks_min, ranks_max; /* NVLink domains */
};

struct plugin_v5 {
	const char *name;
	int (*init)(void **context, uint64_t comm, size_t ranks, size_t nodes,
		plugin_log *log, struct plugin_domains *domains,
		struct model_constants *constants);
	plugin_ask *ask;
	plugin_end *end;
};

/* 6: it may choose the chunk size; `chunk` may be NULL. Begins as 5. */
struct plugin_v6 {
	struct plugin_v5 v5;
	int (*chunk)(void *context, int func, size_t bytes, int algo, int proto,
		int channels, size_t *chunk_bytes);
};

#endif
