/*
 * profiler.h - NCCL's profiler plugins: shared objects that are told what is done.
 *
 * NCCL_PROFILER_PLUGIN names one, as base/plugin_file.h says; unset it is
 * libnccl-profiler.so, if there is one. The newest version that it speaks is used, 7 down
 * to 1. One that does not start, or fails later, is warned of once, and the job goes on
 * without.
 *
 *	GROUP_API	what the user's group, or a call that is none's, takes
 *	  COLL_API	the call of a collective ..
 *	    COLL	.. and what it does
 *	      PROXY_OP	what goes one way between it and a rank on another host
 *	        PROXY_STEP	.. message by message
 *	          NET_PLUGIN	.. as a network plugin tells it
 *	  P2P_API	the same of a send or a receive
 *	    P2P
 *	  KERNEL_LAUNCH	work is put on a GPU's stream
 *	GROUP		the collectives and transfers that are run as one
 *
 * Up to version 4 there is nothing of the API, and GROUP is the parent of COLL and P2P.
 */
#ifndef PROF_PROFILER_H
#define PROF_PROFILER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/dtype.h"

/* Bits of a plugin's wishes, which are NCCL's. */
enum prof_kind {
	PROF_GROUP = 1 << 0,
	PROF_COLL = 1 << 1,
	PROF_P2P = 1 << 2,
	PROF_PROXY_OP = 1 << 3,
	PROF_PROXY_STEP = 1 << 4,
	PROF_NET_PLUGIN = 1 << 7,
	PROF_GROUP_API = 1 << 8,
	PROF_COLL_API = 1 << 9,
	PROF_P2P_API = 1 << 10,
	PROF_KERNEL_LAUNCH = 1 << 11
};

/* Numbers are NCCL's, here and below. */
enum prof_state {
	/* of a PROXY_OP: up to version 3 so many bytes and messages of it are over .. */
	PROF_WAY_SENT = 3,
	PROF_WAY_RECEIVED = 7,
	PROF_WAY_MOVES = 19, /* .. from version 4 on it has begun */
	/* of a PROXY_STEP: the network has it; it has come */
	PROF_STEP_SENDS = 9,
	PROF_STEP_RECEIVES = 10,
	PROF_STEP_CAME = 11,
	PROF_NET_TELLS = 21, /* of a NET_PLUGIN */
	/* of a GROUP_API: ncclGroupStart has returned, ncclGroupEnd is called */
	PROF_GROUP_STARTED = 23,
	PROF_GROUP_ENDS = 24
};

/* What goes with a state. */
struct prof_progress {
	size_t bytes;
	int steps;
	void *details; /* of PROF_NET_TELLS instead */
};

enum prof_func {
	PROF_BROADCAST = 0,
	PROF_REDUCE = 1,
	PROF_ALL_GATHER = 2,
	PROF_REDUCE_SCATTER = 3,
	PROF_ALL_REDUCE = 4,
	PROF_SEND = 6,
	PROF_RECV = 7,
	PROF_ALL_TO_ALL = 8,
	PROF_SCATTER = 9,
	PROF_GATHER = 10,
	PROF_FUNC_COUNT
};

/* What a collective, a send or a receive is; the same for its call. */
struct prof_call {
	enum prof_func func;
	enum dtype type;
	const void *in;
	void *out; /* of a send or a receive, one of the two */
	size_t count;
	int root; /* or the peer */
	uint32_t op;
	uint64_t sequence; /* of collectives of this kind on this communicator */
	uint64_t tag;	   /* the user's; 0: none */
	size_t traffic_bytes;
	const char *algo, *proto; /* as NCCL writes them, for ever; NULL: not known */
	void *stream;
	bool is_captured; /* in a graph */
};

/* What a PROXY_OP is. */
struct prof_way {
	int pid, channel, peer;
	int steps; /* messages */
	size_t step_bytes;
	bool is_send;
};

struct prof_event {
	enum prof_kind kind;
	void *parent; /* of the kind above it; NULL: there is none */
	void *group;  /* of a COLL or P2P: its GROUP */
	int depth;    /* of a GROUP_API: 1 for a call that is in no group of the user's */
	const struct prof_call *call; /* borrowed; not of groups */
	const struct prof_way *way;   /* borrowed: of a PROXY_OP */
	int step;		      /* of a PROXY_STEP */
	int64_t net_id;		      /* of a NET_PLUGIN, as the network plugin says */
	void *net_details;
};

struct profiler;

struct profiler_args {
	uint64_t comm;	  /* the same for all its ranks */
	const char *name; /* the user's for it; "": none */
	int host_count, rank_count, rank;
	/* called first in the thread that starts the plugin, so that it finds the
	 * caller's device there; or NULL */
	void (*enter)(void *where);
	void *where;
};

/* NULL when there is none. */
struct profiler *profiler_open(const struct profiler_args *args);
void profiler_close(struct profiler *profiler); /* NULL is fine */

/* Would it be told of such an event now? */
bool profiler_wants(const struct profiler *profiler, enum prof_kind kind);

/* The plugin's handle; NULL when it does not want such events, now or ever. A kind is
 * wanted where one is that it would be the parent of. Any thread. */
void *profiler_start(struct profiler *profiler, const struct prof_event *event);
void profiler_state(struct profiler *profiler, void *event, enum prof_state state,
	const struct prof_progress *progress);		    /* NULL: there is none */
void profiler_stop(struct profiler *profiler, void *event); /* NULL is fine */

/* For tests: the version in use. */
int profiler_version(const struct profiler *profiler);

#endif
