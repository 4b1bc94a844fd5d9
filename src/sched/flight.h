/*
 * flight.h - messages on their way to other hosts: what must have left before what.
 *
 * A message between hosts may be read from where it stands until it has left. So a rank
 * waits for that before it writes there: into a slot of its stage that comes round again,
 * or into a buffer it has sent from. On one host nothing is in flight.
 */
#ifndef SCHED_FLIGHT_H
#define SCHED_FLIGHT_H

#include "sched/match.h"

struct flight {
	struct wait *waits; /* owned; all WAIT_SENT */
	uint32_t wait_count, wait_room;
	/* owned: those of event e of a lane are waits[first[lane][e]] up to [e + 1] */
	uint32_t *first[SCHED_LANES_MAX];
	uint32_t drain_first; /* .. and from here on those after the last tile */
};

/* What the matched rank must wait for. On failure nothing is left to free. */
enum err flight_create(const struct match *match, struct flight **flight);
void flight_destroy(struct flight *flight);

#endif
