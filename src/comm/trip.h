/*
 * trip.h - a call of a relay (relay.h): which of its buffers go to a berth in host
 * memory, where they lie there, in how many parts they come and go, and what its stream
 * does.
 */
#ifndef COMM_TRIP_H
#define COMM_TRIP_H

#include "comm/straight.h"
#include "exec/cuda/ferry.h"
#include "exec/cuda/haul.h"
#include "plan/plan.h"

/* A buffer of a call: of how many bytes, and where in the berth it is, if it is device
 * memory. */
struct passenger {
	size_t bytes, at;
	bool is_aboard;
};

/* How buffers are cut: every chunk alike, into so many parts. */
struct trip_parts {
	size_t chunk_bytes, part_bytes;
	uint32_t parts;
};

/* A call, and its copy whose buffers are in the berth. */
struct trip {
	const struct comm_call *call;
	struct comm_call relayed;
	struct passenger in, out, scalar;
	struct trip_parts cut;
	size_t piece_bytes; /* of a message, for the network; 0: it travels whole */
	uint32_t loaded, unloaded; /* parts, so far */
	struct cuda_berth *berth;
	struct p2p_trial trial; /* of its buffer; data is NULL: none */
	bool is_hauled;		/* kernels run it (haul_trip.h); the next two are its */
	struct haul_call haul;
	struct host_carry carry;
	bool is_straight; /* its buffer is the network's, and not in the berth */
	bool is_alone;	  /* the only one of its group */
	bool is_kept;	  /* it is captured into a graph */
	bool is_behind;	  /* another of its communicator is before it in the group */
};

/* How long its buffers are and where; whether it goes straight. What is refused is
 * refused here. In the context of its berths, as all below. */
enum err trip_measure(struct trip *trip, struct straight *straight);

/* Where they will be in the berth: its bytes. */
size_t trip_place(struct trip *trip);

/* In how many parts. Chunks are the plan's, and parts are whole tiles of it: what the
 * engine does first comes first. What has no plan is refused by the thread that runs it.
 * A message between hosts is one chunk, whatever memory it is in. `planner`: for who
 * enqueues; NULL is replaced where it is needed. */
void trip_cut(struct trip *trip, struct planner **planner);

/* The berth is this one: there the relayed call has its buffers. */
void trip_board(struct trip *trip, struct cuda_berth *berth);

/* Everything of a group is handed over before a stream waits for any of it: first what
 * brings nothing, then, again and again until all are loaded, the next part of each
 * message. Collectives run one after the other, so each brings all of its parts at once.
 */
enum err trip_begin(struct trip *trip);
enum err trip_load(struct trip *trip);
bool trip_is_loaded(const struct trip *trip);

/* Then the same on the way back: the parts of results, and the end of it. */
enum err trip_unload(struct trip *trip);
bool trip_is_unloaded(const struct trip *trip);
enum err trip_end(struct trip *trip);

/* .. or both by a kernel, with others of its stream. False: not this one. */
bool trip_load_ferry(const struct trip *trip, struct ferry_args *args);

#endif
