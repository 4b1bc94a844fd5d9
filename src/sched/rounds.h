/*
 * rounds.h - what the drivers of a host hand out or take in, run by run and in step.
 *
 * A driver's share of the blocks may lie in several runs. Were all of them sent before
 * any is received, ranks that do so to each other could fill their slots and wait for
 * ever: so everybody sends the first run of each driver and receives it, then the second.
 */
#ifndef SCHED_ROUNDS_H
#define SCHED_ROUNDS_H

#include "sched/crew.h"

struct rounds {
	struct crew *crew;  /* borrowed */
	struct map *shares; /* owned: [driver] blocks by rank */
	uint32_t *at;	    /* owned: [driver] blocks already done .. */
	uint32_t *run;	    /* .. and those of this round, behind them */
};

/* The shares of hosts `from` to `to`, which is not included. On failure, which sticks in
 * the writer, there are no rounds. */
void rounds_begin(struct rounds *rounds, struct crew *crew, uint32_t from, uint32_t to);
void rounds_end(struct rounds *rounds);

/* Is anything left to do, of any driver? */
bool rounds_left(const struct rounds *rounds);

/* The run of driver `d` in this round: blocks from `line->src` and `line->dst`, which are
 * both set, `line->count` of them; false when it has none left. */
bool rounds_run(const struct rounds *rounds, uint32_t d, struct sched_line *line);

/* On to the next round. */
void rounds_next(struct rounds *rounds);

/* In this round, `line` with the run of each driver but this rank. */
void rounds_each_driver(const struct rounds *rounds, const struct sched_line *line);

#endif
