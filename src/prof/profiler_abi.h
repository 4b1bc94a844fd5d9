/*
 * profiler_abi.h - what a profiler plugin for NCCL looks like in memory: for the files of
 * this room alone.
 *
 * A plugin exports one object per version it speaks: ncclProfiler_v1 to _v7. All have the
 * same five functions, of which only init() has changed what it takes. What an event is
 * told by has changed more, but from version 4 on members were only added behind others,
 * so four layouts serve all versions. Results are ncclResult_t.
 */
#ifndef PROF_PROFILER_ABI_H
#define PROF_PROFILER_ABI_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/plugin_log.h"

enum { PROFILER_VERSION_MIN = 1, PROFILER_VERSION_MAX = 7 };

/* ---- a collective ---- */

struct descr_coll_v1 {
	const char *comm_name;
	uint64_t comm, sequence;
	uint8_t func;
	const void *in;
	void *out;
	size_t count;
	int root;
	uint8_t type;
	uint32_t op;
	size_t traffic_bytes;
	uint8_t channels, warps, algo, proto;
	int is_collnet, is_nvls;
};

struct descr_coll_v2 {
	const char *comm_name;
	uint64_t comm, sequence;
	const char *func;
	const void *in;
	void *out;
	size_t count;
	int root;
	const char *type;
	size_t traffic_bytes;
	uint8_t channels, warps;
	const char *algo, *proto;
};

struct descr_coll_v3 {
	const char *comm_name;
	uint64_t comm, sequence;
	const char *func;
	const void *in;
	void *out;
	size_t count;
	int root;
	const char *type;
	uint8_t channels, warps;
	const char *algo, *proto;
};

struct descr_coll_v4 {
	uint64_t sequence;
	const char *func;
	const void *in;
	void *out;
	size_t count;
	int root;
	const char *type;
	uint8_t channels, warps;
	const char *algo, *proto;
	void *group;	     /* from 5 on */
	const char *variant; /* from 7 on */
	bool is_symmetric;
	uint64_t tag;
};

/* ---- a send or a receive ---- */

struct descr_p2p_v1 {
	const char *comm_name;
	uint64_t comm;
	uint8_t func;
	void *data;
	uint8_t type;
	size_t count;
	int peer;
};

struct descr_p2p_v2 { /* and 3 */
	const char *comm_name;
	uint64_t comm;
	const char *func;
	void *data;
	const char *type;
	size_t count;
	int peer;
};

struct descr_p2p_v4 {
	const char *func;
	void *data;
	const char *type;
	size_t count;
	int peer;
	uint8_t channels;
	void *group;  /* from 5 on */
	uint64_t tag; /* from 7 on */
};

/* ---- what the user calls; from 5 on ---- */

struct descr_group_api {
	bool is_captured;
	int depth;
};

struct descr_coll_api {
	const char *func;
	size_t count;
	const char *type;
	int root;
	void *stream;
	bool is_captured;
	uint64_t tag; /* from 7 on */
};

struct descr_p2p_api {
	const char *func;
	size_t count;
	const char *type;
	void *stream;
	bool is_captured;
	uint64_t tag; /* from 7 on */
};

struct descr_launch {
	void *stream;
};

/* ---- what goes to and comes from other hosts ---- */

struct descr_proxy_op {
	int pid;
	uint8_t channel;
	int peer, steps, step_bytes, is_send;
};

struct descr_proxy_step {
	int step;
};

struct descr_net { /* from 2 on */
	int64_t id;
	void *details;
};

/* What goes with a state: `steps` is looked at up to version 3. */
struct profiler_progress {
	union {
		size_t bytes;
		void *details; /* from 4 on */
	};
	int steps;
};

/* ---- an event ---- */

struct profiler_descr {
	union {
		uint8_t v1; /* up to 4 */
		uint64_t v5;
	} kind;
	void *parent;
	int rank;
	union {
		struct descr_coll_v1 coll_v1;
		struct descr_coll_v2 coll_v2;
		struct descr_coll_v3 coll_v3;
		struct descr_coll_v4 coll_v4;
		struct descr_p2p_v1 p2p_v1;
		struct descr_p2p_v2 p2p_v2;
		struct descr_p2p_v4 p2p_v4;
		struct descr_group_api group_api;
		struct descr_coll_api coll_api;
		struct descr_p2p_api p2p_api;
		struct descr_launch launch;
		struct descr_proxy_op proxy_op;
		struct descr_proxy_step proxy_step;
		struct descr_net net;
		char largest[112]; /* of an event that we do not tell of */
	} of;
};
_Static_assert(offsetof(struct profiler_descr, of) == 24, "as plugins are compiled");
_Static_assert(sizeof(struct profiler_descr) == 136, "the same");
_Static_assert(offsetof(struct descr_coll_v4, group) == 80, "the same");
_Static_assert(sizeof(struct descr_coll_v4) == 112, "the same");
_Static_assert(sizeof(struct descr_p2p_v4) == 56, "the same");
_Static_assert(sizeof(struct descr_proxy_op) == 24, "the same");
_Static_assert(offsetof(struct descr_coll_api, tag) == 48, "the same");
_Static_assert(offsetof(struct descr_p2p_api, tag) == 40, "the same");

struct profiler_abi {
	const char *name;
	union {
		int (*v1)(void **context, int *wishes);
		int (*v4)(void **context, int *wishes, const char *comm_name,
			uint64_t comm, int hosts, int ranks, int rank, plugin_log *log);
		int (*v5)(void **context, uint64_t comm, int *wishes,
			const char *comm_name, int hosts, int ranks, int rank,
			plugin_log *log);
	} init;
	int (*start)(void *context, void **event, struct profiler_descr *descr);
	int (*stop)(void *event);
	int (*state)(void *event, int state, void *args);
	int (*finalize)(void *context);
};
_Static_assert(sizeof(struct profiler_abi) == 48, "as plugins are compiled");

#endif
