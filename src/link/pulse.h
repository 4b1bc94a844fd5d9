/*
 * pulse.h - a word on the board that the kernel marks when the process behind it ends.
 *
 * Every process keeps one thread asleep that holds, as a robust futex, one word on each
 * board it has mapped. However the process ends, by exit, signal or exec, the kernel
 * walks that thread's list and marks the words. This needs no permission, no descriptor
 * and no system call from whoever looks; a forked child does not keep the parent alive.
 */
#ifndef LINK_PULSE_H
#define LINK_PULSE_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/err.h"

/* In shared memory. The kernel finds the word by its distance from the link. */
struct pulse {
	struct pulse *next; /* means something in the holder's process only */
	_Atomic uint32_t word;
	uint32_t keeper; /* index of the thread that holds it, see pulse.c */
};

/* Hold it for this process until pulse_drop() or the process's end. */
enum err pulse_hold(struct pulse *pulse);
void pulse_drop(struct pulse *pulse);

/* The process behind a shadow of it has ended, as we hear. */
void pulse_mark_stopped(struct pulse *pulse);

/* Has the process that held it ended? False for one that never was held. */
enum { PULSE_STOPPED = 0x40000000 }; /* FUTEX_OWNER_DIED of linux/futex.h */

static inline bool pulse_has_stopped(const struct pulse *pulse)
{
	return atomic_load_explicit(&pulse->word, memory_order_acquire) & PULSE_STOPPED;
}

#endif
