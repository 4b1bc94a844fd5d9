/*
 * rma_speak.h - one way to speak to a one-sided plugin, whatever its version: for the
 * rma*.c files alone.
 *
 * Nothing here logs or judges: results are the plugin's own, 0 for success.
 */
#ifndef NET_RMA_SPEAK_H
#define NET_RMA_SPEAK_H

#include <stdatomic.h>

#include "net/rma.h"
#include "net/rma_abi.h"

/* A shared object that was loaded. There is one for each file, and it stays. */
struct rma_file {
	const struct rma_abi_head *head; /* both in the library */
	const struct rma_abi_tail *tail;
	int version;
	char name[PLUGIN_NAME_BYTES]; /* as the plugin calls itself */
	atomic_bool is_stuck;	      /* a function has not returned */
};

/* What it is when `version` is that of the object at `symbol`. */
void rma_speak_at(struct rma_file *file, const void *symbol, int version);

/* Does it have all functions that we call? */
bool rma_speak_is_whole(const struct rma_file *file);

int rma_speak_device(const struct rma_file *file, int index, struct plugin_device *device,
	int *device_type);

/* One context, for any traffic. */
int rma_speak_context(const struct rma_file *file, void *group, void **context);

int rma_speak_reg(const struct rma_file *file, void *group,
	const struct rma_memory *memory, void **known);

int rma_speak_put(const struct rma_file *file, void *context, const struct rma_put *put,
	void **request);

#endif
