/*
 * match.h - the messages of a whole schedule: which send meets which receive.
 *
 * Between two ranks, on one lane, the first send meets the first receive, and so on.
 * match_create() flattens every rank's program into events (one instruction, one
 * repetition), pairs them into messages and settles how each message travels. It is
 * pure arithmetic over the schedules of all ranks; lower.c turns it into one rank's
 * moves.
 */
#ifndef SCHED_MATCH_H
#define SCHED_MATCH_H

#include "sched/lower.h"

enum how { HOW_STAGED, HOW_LENT, HOW_LANDED };

struct message {
	uint16_t from, to;
	uint8_t how;	   /* enum how */
	uint32_t sent;	   /* event of the sender, index within its lane */
	uint32_t received; /* event of the receiver, index within its lane */
	uint32_t next;	   /* next message of the same connection, or NO_MESSAGE */
};

enum { NO_MESSAGE = 0xffffffff };

struct event {
	uint16_t insn, turn;
	uint32_t send_first, send_count; /* messages[] it sends: consecutive */
	uint32_t recv_first, recv_count; /* received[] entries: indexes of messages */
	uint16_t group;	 /* connection group it stages through; valid when staged */
	uint16_t staged; /* its index among the group's staged messages, +1; 0: not staged
			  */
};

struct group {
	uint8_t tx;
	uint16_t fan;
	uint16_t period;  /* staged messages per tile */
	uint16_t slot;	  /* first slot in the rank's stage */
	uint32_t *events; /* owned: the staging events in order, `period` of them */
};

struct lane_match {
	struct event *events; /* owned */
	uint32_t event_count;
	struct group *groups; /* owned */
	uint32_t group_count;
};

struct match {
	const struct sched *scheds; /* borrowed: one per rank */
	uint32_t rank_count, depth;
	enum lower_mode mode;
	struct lane_match *lanes; /* owned: [rank * SCHED_LANES_MAX + lane] */
	struct message *messages; /* owned */
	uint32_t message_count, message_room;
	uint32_t *received; /* owned */
	uint32_t received_count;
	uint32_t slot_chunks; /* chunks of the largest staged message */
};

/* ERR_USAGE with a sentence when the schedules do not fit together. */
enum err match_create(
	const struct sched *scheds, const struct lower_args *args, struct match **match);
void match_destroy(struct match *match);

static inline struct lane_match *match_lane(
	const struct match *match, uint32_t rank, uint32_t lane)
{
	return &match->lanes[rank * SCHED_LANES_MAX + lane];
}

static inline const struct insn *match_insn(
	const struct match *match, uint32_t rank, uint32_t lane, uint32_t event)
{
	const struct event *e = &match_lane(match, rank, lane)->events[event];

	return &match->scheds[rank].lanes[lane].insns[e->insn];
}

/* First chunk an event reads or writes: (base + turn * stride) modulo the space. */
uint16_t match_chunk(const struct sched *sched, const struct insn *insn, enum space space,
	uint16_t base, uint32_t turn);

/* Slots a rank's stage needs, over all its lanes. */
uint32_t match_slots(const struct match *match, uint32_t rank);

#endif
