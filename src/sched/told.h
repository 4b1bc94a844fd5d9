/*
 * told.h - of the programs of all ranks: who waits for which move, and how long the
 * messages are that it makes.
 *
 * An engine that announces every position finds out as it goes who waits for it. One that
 * announces only what somebody waits for must know before, and so must one whose
 * receivers may not look at more than was sent: a message may pass through ranks that
 * have no buffer for it, whose moves do not say which chunk of the vector it is of.
 */
#ifndef SCHED_TOLD_H
#define SCHED_TOLD_H

#include "sched/lower.h"

/* What a position means to those who wait for it: data is there, a slot may be filled
 * again in the same tile or in a later one, or the rank's other lane may go on. */
enum told_what { TOLD_DATA = 1, TOLD_ACK = 2, TOLD_ACK_LATER = 4, TOLD_LOCAL = 8 };

struct told_move {
	uint32_t what; /* enum told_what; 0: nobody waits for it */
	/* in a vector collective: the highest chunk its value can be of, with which the
	 * value is shortest, counted for the first chunk of the move */
	uint32_t bound;
};

struct told;

/* Look at all programs, one per rank and borrowed until this returns. Messages between
 * hosts are sent, and nobody is told of them. */
enum err told_create(struct program *const *programs, struct told **told);
void told_destroy(struct told *told);

/* Move number `move` of a lane in a tile. */
const struct told_move *told_at(
	const struct told *told, uint32_t rank, uint32_t lane, uint32_t move);

#endif
