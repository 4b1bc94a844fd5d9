/*
 * wire.h - the links of a simulation: when a message that leaves now arrives.
 */
#ifndef EXEC_SIM_WIRE_H
#define EXEC_SIM_WIRE_H

#include "exec/sim/sim.h"

struct wire {
	bool known; /* the numbers below have been asked for */
	uint64_t latency_ps;
	double ps_per_byte;
	uint64_t free_ps; /* the last message has left */
	uint32_t hops[SIM_HOPS_MAX], hop_count;
	uint64_t message_count, message_bytes;
};

/* When a link that pairs share is taken: spans in order of time, none touching the next.
 * Those that are over are dropped. */
struct shared_link {
	struct busy_span {
		uint64_t from_ps, to_ps;
	} * spans; /* owned */
	uint32_t count, room;
};

struct sim_wires {
	const struct sim_args *args; /* borrowed */
	struct wire *wires;	     /* owned: [from * rank_count + to] */
	struct shared_link *shared;  /* owned: as many as the arguments say */
	/* what they carried, all together and the busiest */
	uint32_t used_count;
	uint64_t message_count, message_bytes, message_max, byte_max;
	uint64_t network_count, network_bytes; /* between hosts */
};

enum err wires_init(struct sim_wires *wires, const struct sim_args *args);
void wires_fini(struct sim_wires *wires);

/* At least 1. */
uint64_t wire_latency(struct sim_wires *wires, uint32_t from, uint32_t to);

/* Put a message on the link at `now_ps`; calls for one link come in order of time. The
 * instant it arrives. */
uint64_t wire_send(struct sim_wires *wires, uint32_t from, uint32_t to, uint64_t now_ps,
	size_t bytes);

#endif
