/*
 * seat.h - ranks of one host that wait on the same core, while another has none of them.
 *
 * A rank that waits for other hosts yields and does not sleep. The kernel chooses a core
 * for who wakes up, and takes none away from its core that ran there just now, as those
 * do who yield to each other all the time. So ranks that once came together on one core
 * stay there for seconds, and the others idle. Whoever notices moves away, once; where it
 * may run is as it was.
 */
#ifndef EXEC_HOST_SEAT_H
#define EXEC_HOST_SEAT_H

#include <sched.h>
#include <stdatomic.h>
#include <stdint.h>

#include "link/peer.h"

/* To be called now and then by a rank that waits: it says where it is, and goes where
 * fewer of the ranks before it are. */
void seat_look(const struct peers *peers);

/* The core of `allowed` with the fewest of the `count` ranks that are at cores[], which
 * are numbered from one, 0: nobody knows; `here` where no other has fewer. */
uint32_t seat_choose(
	const uint32_t *cores, uint32_t count, const cpu_set_t *allowed, uint32_t here);

/* This thread goes on there; it may run wherever it could before. */
void seat_move(uint32_t core, const cpu_set_t *allowed);

#endif
