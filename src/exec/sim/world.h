/*
 * world.h - all ranks of a collective in virtual time; sim.c builds it and runs it.
 *
 * The past is kept for as many tiles as a lane can be ahead of one it talks to: with
 * `depth` slots per connection, `depth` tiles. Between hosts a sender may be ahead as far
 * as it likes, and all tiles are kept.
 */
#ifndef EXEC_SIM_WORLD_H
#define EXEC_SIM_WORLD_H

#include "exec/fold.h"
#include "exec/lane.h"
#include "exec/sim/agenda.h"
#include "exec/sim/wire.h"

enum { NOBODY = 0xffffffff };

/* One rank: its program with sizes, and where its spaces begin (NULL without data). */
struct sim_rank {
	struct shape shape;
	struct program *program; /* owned */
	char *in, *out;		 /* borrowed */
	char *tmp, *stage;	 /* within `memory` */
	char *memory;		 /* owned */
	uint32_t message_count;	 /* sends and sents of a tile */
	uint64_t *arrivals; /* owned: ps, [tile % window][message]: sends, then sents */
	char **letters;	    /* owned: bytes sent between hosts, [tile % window][sent] */
};

struct sim_lane {
	struct lane lane;
	uint32_t rank, index;
	uint32_t length;  /* moves per tile */
	uint64_t retired; /* moves done, over all tiles */
	uint64_t granted; /* moves whose messages are on the links */
	uint64_t finish_ps;
	uint64_t *retire_times; /* owned: ps, [position % (window * length)] */
	bool done;
	uint32_t waiters; /* first lane that waits for this one, or NOBODY */
	uint32_t next;	  /* on the same list */
};

struct world {
	const struct sim_args *args;
	uint32_t rank_count, lane_count;
	uint32_t window; /* tiles kept */
	bool with_data, out_of_memory;
	struct fold_rule rule;
	uint64_t now_ps;
	struct sim_rank *ranks;	  /* owned */
	struct sim_lane *lanes;	  /* owned: [rank * SCHED_LANES_MAX + lane] */
	struct sim_lane *current; /* being stepped */
	struct agenda agenda;
	struct sim_wires wires;
	uint32_t *senders[SCHED_LANES_MAX]; /* owned: lanes with messages to grant */
	uint32_t sender_count[SCHED_LANES_MAX];
};

/* Run everybody to the end. ERR_USAGE when nobody can go on and some are not done. */
enum err world_go(struct world *world);

#endif
