/*
 * pair.h - one connection: the sends of one rank and the receives of the other.
 *
 * Between two ranks, on one lane, the first send meets the first receive, and so on. An
 * instruction that repeats on one connection is a run of messages, so that a connection
 * is walked in the time of its instructions, however many messages they are. Also here:
 * how the messages of a run travel, which their two instructions decide.
 */
#ifndef SCHED_PAIR_H
#define SCHED_PAIR_H

#include "sched/lower.h"

/* Messages that one repetition of an instruction receives, and sends. */
static inline uint32_t insn_recv_fan(const struct insn *insn)
{
	return !(insn->op & IN_RECV) ? 0 : insn->op & FAN_IN ? insn->reps : 1;
}

static inline uint32_t insn_send_fan(const struct insn *insn)
{
	return !(insn->op & OUT_SEND) ? 0 : insn->op & FAN_OUT ? insn->reps : 1;
}

/* Are two ranks on different hosts? */
static inline bool ranks_are_apart(const uint16_t *hosts, uint32_t a, uint32_t b)
{
	return hosts && hosts[a] != hosts[b];
}

enum how { HOW_STAGED, HOW_LENT, HOW_LANDED, HOW_SENT };

/* Messages in a row, each end of which is one instruction. Events are repetitions of
 * instructions, counted through a lane. */
struct encounter {
	const struct insn *send, *recv; /* borrowed from the schedules */
	uint32_t sent, received;	/* the first message's events */
	uint32_t sent_turn, recv_turn;	/* .. and repetitions */
	uint32_t count;			/* 0: there are no more */
};

/* One end of a connection. */
struct walk {
	const struct prog *prog; /* borrowed */
	bool sends;
	uint32_t conn;		 /* index in the peer list */
	uint32_t pc, event;	 /* what comes next */
	const struct insn *insn; /* of the run: `left` messages from `first` on */
	uint32_t first, turn, left;
};

/* Be at the next messages of this end; false when there are none. */
bool walk_on(struct walk *walk);

struct pair {
	uint32_t lane, from, to;
	uint32_t hint; /* where the last peer was found: lists are often alike */
	struct walk send, recv;
};

/* Begin the connection `tx` of rank `from`, or `rx` of rank `to`; `pair` was zeroed once
 * and may have served for others. The schedules fit (fit.h) and are borrowed. */
void pair_from(struct pair *pair, const struct sched *scheds, uint32_t from, uint32_t tx);
void pair_to(struct pair *pair, const struct sched *scheds, uint32_t to, uint32_t rx);

/* The next messages. ERR_USAGE with a sentence where the two ends do not fit. */
enum err pair_next(struct pair *pair, struct encounter *meeting);

/* How the messages just met travel: args tells the mode and the hosts. */
enum how pair_how(const struct pair *pair, const struct encounter *meeting,
	const struct lower_args *args);

/* The sender's value stands in a buffer of its own when the instruction is done, its
 * source or its destination, so that it can be sent from there. */
bool insn_stands(const struct insn *insn);
bool insn_stands_in_source(const struct insn *insn);

/* The first chunk of the vector that message `k` of those just met is of, as
 * sent.chunk. */
uint16_t pair_chunk(const struct pair *pair, const struct sched *scheds,
	const struct encounter *meeting, uint32_t k);

/* Does a message that travels so take a slot of its sender's stage? */
bool insn_takes_slot(const struct insn *send, enum how how);

/* May a send of this lane be staged in direct mode, and may one to this lane? If not,
 * none has to be looked at. */
bool lane_may_stage(const struct prog *prog);
bool lane_may_be_staged_to(const struct prog *prog, enum lower_mode mode);

#endif
