/*
 * carry.h - a call whose moves are done elsewhere: its messages with other hosts.
 *
 * Kernels of the ranks run a staged schedule (exec/cuda/lists/haul.h). To the other ranks
 * the call is one like any other: it has a number and a sign, shows itself on the board,
 * and the first message to a rank is preceded by what the call is (remote.h). All that is
 * left for the engine is to send what lies in slots here when positions say so, to
 * receive into copies of others' slots, and to raise the copies of their positions.
 */
#ifndef EXEC_HOST_CARRY_H
#define EXEC_HOST_CARRY_H

#include <stdatomic.h>

#include "exec/cuda/lists/haul.h"
#include "exec/host/state.h"

/* Where a rank's slots and words are for this process. */
struct carry_end {
	char *stage;		/* our own; of a rank on another host the copy */
	struct dev_word *words; /* the same; of other ranks of this host not needed */
	struct dev_word *acks;	/* of a rank on another host */
};

/* What calls of a communicator have in common; positions grow from call to call. */
struct carry_room {
	struct carry_end *ends;	   /* borrowed: per rank */
	uint64_t *bases;	   /* borrowed: per channel, where its next call begins */
	const struct net_gpu *gpu; /* in whose memory stages are; NULL: the host's */
};

struct host_carry {
	const struct haul_list *list; /* borrowed */
	struct haul_shape shape;
	struct carry_room *room; /* borrowed */
	/* nothing but its sign, by which ranks carry alike, and by how many threads: each
	 * takes every so many-th channel */
	struct plan plan;
};

/* Others of this host know by it that this rank is in the same call, which waits for them
 * now. */
void carry_arrive(struct host_call *call);

/* As host_call_step() once the call is running: OK when this thread's share has been
 * carried, and this rank's kernel has come to its end there. */
enum err carry_step(struct host_call *call);

/* All threads have done their shares. */
void carry_end(const struct host_call *call);

/* Is there something yet to be carried to or from that rank, or, on this host, has it not
 * ended its part? */
bool carry_needs(const struct host_call *call, uint32_t rank);

/* What an engine keeps for it. */
struct carrier;
void carrier_free(struct carrier *carrier); /* NULL is fine */

#endif
