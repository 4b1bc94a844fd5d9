/*
 * plugin_abi.h - what a network plugin for NCCL looks like in memory.
 *
 * A plugin exports one object per version it speaks: ncclNetPlugin_v6 to _v12. In all of
 * them the same functions stand in the same order; what changed is what some of them
 * take, and each new one stands behind the last. So one layout serves all versions, with
 * a union where a function has changed. Results are ncclResult_t, 0 for success; a call
 * that cannot be done now succeeds and leaves NULL.
 */
#ifndef NET_PLUGIN_ABI_H
#define NET_PLUGIN_ABI_H

#include <stddef.h>
#include <stdint.h>

#include "base/plugin_log.h"

enum {
	PLUGIN_VERSION_MIN = 6,
	PLUGIN_VERSION_MAX = 12,
	PLUGIN_HANDLE_BYTES = 128,
	PLUGIN_PARTS_OLD = 4, /* devices of a virtual one, up to version 11 */
	PLUGIN_PARTS_MAX = 8,
	PLUGIN_REQUESTS_MAX = 32, /* under way on one connection */
};

enum plugin_memory { PLUGIN_HOST = 1, PLUGIN_CUDA = 2, PLUGIN_DMABUF = 4 };

/* How a plugin tells a profiler of what it does; from 10 on. */
typedef int plugin_event(
	void **event, int kind, void *parent, int64_t plugin, void *details);

/* How a communicator wants its traffic treated; from 10 on. */
struct plugin_wish {
	int traffic_class;
};

enum { PLUGIN_TRAFFIC_ANY = -1 };

/* ---- what a device is, version by version ---- */

/* What they all begin with. */
struct plugin_props_who {
	char *name, *pci_path;
	uint64_t guid;
};

/* What they all have further on. */
struct plugin_props_link {
	int speed_mbps, port;
	float latency_us;
	int comms_max, recvs_max;
};

struct plugin_props_v6 {
	struct plugin_props_who who;
	int memory; /* enum plugin_memory, or-ed */
	struct plugin_props_link link;
};

struct plugin_props_v7 {
	struct plugin_props_v6 v6;
	int device_type, device_version;
};

struct plugin_props_v8 {
	struct plugin_props_who who;
	int memory, is_reg_global;
	struct plugin_props_link link;
	int device_type, device_version;
};

/* 9 and 10 end with `collective_bytes_max`. */
struct plugin_props_v11 {
	struct plugin_props_who who;
	int memory, is_reg_global, must_flush;
	struct plugin_props_link link;
	int device_type, device_version;
	int part_count, parts[PLUGIN_PARTS_OLD];
	size_t message_bytes_max, collective_bytes_max;
	int multi_request_max;
};

struct plugin_props_v12 {
	struct plugin_props_who who;
	int memory, is_reg_global, must_flush;
	struct plugin_props_link link;
	int device_type, device_version;
	int part_count, parts[PLUGIN_PARTS_MAX];
	size_t message_bytes_max, collective_bytes_max;
	int multi_request_max;
	int16_t rail, plane;
};
_Static_assert(sizeof(struct plugin_props_v6) == 48, "as plugins are compiled");
_Static_assert(sizeof(struct plugin_props_v8) == 64, "as plugins are compiled");
_Static_assert(offsetof(struct plugin_props_v11, message_bytes_max) == 88, "the same");
_Static_assert(offsetof(struct plugin_props_v12, message_bytes_max) == 104, "the same");
_Static_assert(sizeof(struct plugin_props_v12) == 128, "the same");

/* ---- the functions ---- */

struct plugin_abi {
	const char *name;
	union {
		int (*v6)(plugin_log *log);
		int (*v10)(plugin_log *log, plugin_event *event);
		int (*v11)(void **context, uint64_t comm, struct plugin_wish *wish,
			plugin_log *log, plugin_event *event);
	} init;
	int (*devices)(int *count);
	int (*properties)(int device, void *props);
	union {
		int (*v6)(int device, void *handle, void **listener);
		int (*v11)(void *context, int device, void *handle, void **listener);
	} listen;
	union {
		int (*v6)(int device, void *handle, void **sender);
		int (*v7)(int device, void *handle, void **sender, void **in_gpu);
		int (*v10)(int device, struct plugin_wish *wish, void *handle,
			void **sender, void **in_gpu);
		int (*v11)(void *context, int device, void *handle, void **sender,
			void **in_gpu);
	} connect;
	union {
		int (*v6)(void *listener, void **receiver);
		int (*v7)(void *listener, void **receiver, void **in_gpu);
	} accept;
	union {
		int (*v6)(void *comm, void *data, int bytes, int memory, void **known);
		int (*v8)(void *comm, void *data, size_t bytes, int memory, void **known);
	} reg;
	int (*reg_dmabuf)(void *comm, void *data, size_t bytes, int memory,
		uint64_t offset, int fd, void **known);
	int (*dereg)(void *comm, void *known);
	union {
		int (*v6)(void *sender, void *data, int bytes, int tag, void *known,
			void **request);
		int (*v9)(void *sender, void *data, size_t bytes, int tag, void *known,
			void **request);
		int (*v10)(void *sender, void *data, size_t bytes, int tag, void *known,
			void *event, void **request);
	} isend;
	union {
		int (*v6)(void *receiver, int count, void **data, int *bytes, int *tags,
			void **known, void **request);
		int (*v9)(void *receiver, int count, void **data, size_t *bytes,
			int *tags, void **known, void **request);
		int (*v10)(void *receiver, int count, void **data, size_t *bytes,
			int *tags, void **known, void **events, void **request);
	} irecv;
	int (*iflush)(void *receiver, int count, void **data, int *bytes, void **known,
		void **request);
	int (*test)(void *request, int *done, int *bytes);
	int (*close_send)(void *sender);
	int (*close_recv)(void *receiver);
	int (*close_listen)(void *listener);
	/* from 7 on */
	int (*device_known)(void *comm, void *known, void **in_gpu);
	int (*consumed)(void *receiver, int count, void *request);
	/* from 9 on */
	int (*make_virtual)(int *device, void *parts);
	/* from 11 on */
	int (*finalize)(void *context);
	int (*set_attributes)(void *context, void *attributes);
};
_Static_assert(sizeof(struct plugin_abi) == 176, "as plugins of version 12 are");

#endif
