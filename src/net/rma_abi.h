/*
 * rma_abi.h - what a one-sided plugin for NCCL looks like in memory.
 *
 * A plugin exports one object per version it speaks: ncclRmaPlugin_v13 to _v16. Version
 * 13 is the GIN interface of the same number under another name, so an object called
 * ncclGinPlugin_v13 serves as well, where its devices are of the kind that a host drives.
 * All have the same functions in the same order, but that 16 has one more behind the
 * third; what changed besides is what some of them take. Results are ncclResult_t, 0 for
 * success; what is asked for and cannot be done now succeeds and leaves no request.
 */
#ifndef NET_RMA_ABI_H
#define NET_RMA_ABI_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/plugin_log.h"

enum {
	RMA_VERSION_MIN = 13,
	RMA_VERSION_MAX = 16,
	RMA_GIN_VERSION = 13, /* the same object under the other name */
	RMA_HOST_DRIVEN = 2   /* the type of such a device there */
};

/* How a signal is put, and what memory may be signalled in. */
enum rma_signal_op { RMA_SIGNAL_INC = 1, RMA_SIGNAL_ADD = 2 };
enum rma_memory_flag { RMA_ORDERED = 1, RMA_NEVER_RESET = 2 };

struct rma_config_v13 {
	int signals, counters, contexts, queue_depth, traffic_class;
};

struct rma_config_v14 {
	int contexts, traffic_class, rank_stride;
};

/* What stands in front in all versions. */
struct rma_abi_head {
	const char *name;
	int (*init)(void **plugin, uint64_t comm, plugin_log *log);
	int (*devices)(int *count);
};

/* .. and behind that. */
struct rma_abi_tail {
	int (*properties)(int device, void *props); /* struct plugin_props_v12 */
	int (*listen)(void *plugin, int device, void *handle, void **listener);
	int (*connect)(void *plugin, void **handles, int rank_count, int rank,
		void *listener, void **group);
	union {
		int (*v13)(void *group, struct rma_config_v13 *config, void **context,
			void **in_gpu);
		int (*v14)(void *group, struct rma_config_v14 *config, void **context);
	} create_context;
	union {
		int (*v13)(void *group, void *data, size_t bytes, int memory,
			uint64_t flags, void **known, void **in_gpu);
		int (*v14)(void *group, void *data, size_t bytes, int memory,
			uint64_t flags, void **known);
	} reg;
	void (*reg_dmabuf)(void); /* of GPUs: not used */
	int (*dereg)(void *group, void *known);
	int (*destroy_context)(void *context);
	int (*close_group)(void *group);
	int (*close_listen)(void *listener);
	union {
		int (*v13)(void *context, int number, uint64_t from, void *from_known,
			size_t bytes, uint64_t to, void *to_known, uint32_t rank,
			void **request);
		int (*v15)(void *context, int number, uint64_t from, void *from_known,
			size_t bytes, uint64_t to, void *to_known, uint32_t rank,
			uint32_t wishes, void **request);
	} put;
	union {
		int (*v13)(void *context, int number, uint64_t from, void *from_known,
			size_t bytes, uint64_t to, void *to_known, uint32_t rank,
			uint64_t signal, void *signal_known, uint64_t value, uint32_t op,
			void **request);
		int (*v14)(void *context, int number, uint64_t from, void *from_known,
			size_t bytes, uint64_t to, void *to_known, uint32_t rank,
			uint64_t signal, void *signal_known, uint64_t value, uint32_t op,
			bool is_strong, void **request);
		int (*v15)(void *context, int number, uint64_t from, void *from_known,
			size_t bytes, uint64_t to, void *to_known, uint32_t rank,
			uint64_t signal, void *signal_known, uint64_t value, uint32_t op,
			bool is_strong, uint32_t wishes, void **request);
	} put_signal;
	void (*get)(void);   /* not used */
	void (*flush)(void); /* of GPUs: not used */
	int (*test)(void *group, void *request, int *done);
	int (*progress)(void *context);			     /* may be NULL, .. */
	int (*query_error)(void *context, bool *has_failed); /* .. and this */
	int (*finalize)(void *plugin);
};

struct rma_abi_v13 {
	struct rma_abi_head head;
	struct rma_abi_tail tail;
};

struct rma_abi_v16 {
	struct rma_abi_head head;
	void (*group_properties)(void); /* for kernels: not used */
	struct rma_abi_tail tail;
};
_Static_assert(sizeof(struct rma_abi_v13) == 168, "as plugins of version 13 to 15 are");
_Static_assert(sizeof(struct rma_abi_v16) == 176, "as plugins of version 16 are");

#endif
