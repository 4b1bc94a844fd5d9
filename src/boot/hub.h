/*
 * hub.h - the thread of the control channel, its listening socket, and strangers at it.
 *
 * One lock guards everything. The thread alone destroys strands; others only mark them
 * and wake it. Functions of the ranks are called without the lock.
 */
#ifndef BOOT_HUB_H
#define BOOT_HUB_H

#include <stdbool.h>
#include <stdint.h>

#include "base/err.h"
#include "net/addr.h"

struct strand;
struct control;

/* Start it with the first, stop it with the last. */
enum err hub_get(struct addr *addr);
void hub_put(void);

void hub_lock(void);
void hub_unlock(void);

/* Sleep, with the lock, until something has changed or this many milliseconds. */
void hub_sleep(uint32_t ms);
void hub_changed(void);

/* The thread is to look at the clock and the strands again. */
void hub_wake(void);

/* Poll for what the strand wants now; new ones, too. */
void hub_watch(struct strand *strand);

/* No more; destroys it. */
void hub_drop(struct strand *strand);

/* Strangers may have asked for a session that there is now. */
void hub_greet(void);

/* The errno for which nobody could be taken in for some time, as there are no descriptors
 * for them; or 0. With the lock. */
int hub_starved(void);

/* Is this the thread? */
bool hub_is_self(void);

#endif
