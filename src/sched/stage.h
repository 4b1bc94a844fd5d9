/*
 * stage.h - which sends of a rank go through its stage, and through which slots.
 *
 * Sends over the same connections share `depth` slots: a group. Most groups are one
 * connection; a fan's is several. Groups are numbered in the order of their first staged
 * send, lane after lane. A number is counted when somebody asks for it: a rank asks each
 * peer for one or two, however many the peer has.
 */
#ifndef SCHED_STAGE_H
#define SCHED_STAGE_H

#include "sched/lower.h"

enum { STAGE_NEVER = 0xffffffff };

/* A group of several connections. */
struct stage_fan_group {
	uint32_t first, period; /* as those of one connection */
	uint16_t fan;		/* connections .. */
	uint8_t tx;		/* .. from this one on */
};

/* A staged send to several connections. */
struct stage_fan {
	uint32_t event;
	uint32_t group; /* in the lane's fan_groups */
	uint32_t index; /* among those of the group */
};

struct stage_lane {
	/* of the groups of one connection: event of the first staged message, or
	 * STAGE_NEVER, and how many there are in a tile */
	uint32_t first[PROG_PEERS_MAX], period[PROG_PEERS_MAX];
	uint32_t conn_count;	/* that many are valid */
	struct stage_fan *fans; /* owned; by event */
	uint32_t fan_count, fan_room;
	struct stage_fan_group *fan_groups; /* owned */
	uint32_t fan_group_count, fan_group_room;
	uint32_t group_count; /* of one connection or several */
	uint32_t slot;	      /* the first of this lane */
	uint32_t chunks;      /* of the largest staged message; 0: none is staged */
};

struct stage {
	uint32_t depth;
	struct stage_lane lanes[SCHED_LANES_MAX];
	uint32_t slot_count; /* over all lanes */
};

/* Settle the stage of args->rank; `stage` is zeroed, or of another rank. The schedules
 * fit (fit.h) and are borrowed. Call stage_fini() also after a failure. */
enum err stage_fill(
	struct stage *stage, const struct sched *scheds, const struct lower_args *args);
void stage_fini(struct stage *stage);

/* Where the first of some staged messages of an instruction lies: of those that go over
 * connection `conn` alone the one after `earlier` others, of a fan the one of `event`.
 * The place's rank is left to the caller. */
struct stage_message {
	const struct insn *insn; /* borrowed */
	uint32_t conn, earlier, event;
};
struct place stage_place(
	const struct stage *stage, uint32_t lane, const struct stage_message *message);

#endif
