/*
 * match.h - the messages of one rank: which send meets which receive.
 *
 * match_create() flattens one rank's schedule into events (one instruction, one
 * repetition) and finds, in the schedules of the ranks it has connections with, the other
 * end of each of its messages. It is pure arithmetic; lower.c turns it into moves.
 */
#ifndef SCHED_MATCH_H
#define SCHED_MATCH_H

#include "sched/pair.h"
#include "sched/stage.h"

/* As the rank sees it. */
struct message {
	uint16_t peer;
	uint8_t how;	    /* enum how */
	uint16_t chunk;	    /* as sent.chunk, of one between hosts */
	uint32_t event;	    /* the peer's, index within its lane */
	struct place place; /* received: where it can be read, unless it lands; sent:
			       where it lands, if it does */
};

struct event {
	uint16_t insn, turn;
	uint32_t send_first, send_count; /* into match.sent */
	uint32_t recv_first, recv_count; /* into match.received */
	bool staged;	   /* it writes a slot, for its own host or to send from there */
	struct place slot; /* valid when staged */
};

struct lane_match {
	struct event *events; /* owned */
	uint32_t event_count;
	uint32_t *order;       /* owned: staged events, by group and message */
	uint32_t *group_first; /* owned: into order */
};

struct match {
	const struct sched *scheds; /* borrowed: one per rank */
	struct lower_args args;	    /* hosts borrowed */
	uint32_t rank, depth;	    /* of args */
	struct lane_match lanes[SCHED_LANES_MAX];
	struct message *sent, *received; /* owned */
	uint32_t sent_count, received_count;
	struct stage stage; /* this rank's */
};

/* The messages of args->rank. The schedules fit (fit.h). ERR_USAGE with a sentence when
 * they do not fit together. */
enum err match_create(
	const struct sched *scheds, const struct lower_args *args, struct match **match);
void match_destroy(struct match *match);

static inline const struct insn *match_insn(
	const struct match *match, uint32_t lane, const struct event *event)
{
	return &match->scheds[match->rank].lanes[lane].insns[event->insn];
}

/* Where the repetition `turn` of a rank's instruction reads its source, or writes its
 * destination. */
struct place match_place(
	const struct sched *sched, const struct insn *insn, bool source, uint32_t turn);

/* Where a message sent between hosts by that event leaves from. */
struct place match_leaves(
	const struct match *match, uint32_t lane, const struct event *event);

/* The position of lane insn->wait_lane that an event waits for; 0: it does not. */
uint32_t match_local_wait(
	const struct match *match, const struct event *event, const struct insn *insn);

/* The event that wrote the slot of `event` before it does, which is the message `depth`
 * earlier in its group, `back` tiles ago. */
const struct event *match_slot_before(const struct match *match, uint32_t lane,
	const struct event *event, uint32_t *back);

#endif
