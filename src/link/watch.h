/*
 * watch.h - does a process of another rank still run?
 *
 * One descriptor (pidfd) per process watched, shared by all communicators of this
 * process. Where the system refuses it, as old kernels and some sandboxes do, /proc is
 * asked instead. It is one of two witnesses; the pulse on the board (pulse.h) is the
 * other.
 */
#ifndef LINK_WATCH_H
#define LINK_WATCH_H

#include <stdbool.h>
#include <stdint.h>

#include "base/err.h"

struct watch;

/* Begin to watch, counted. *watch is NULL for this process. Fails for want of descriptors
 * or memory. */
enum err watch_get(uint32_t pid, struct watch **watch);
void watch_put(struct watch *watch); /* NULL is fine */

/* Has the process ended? False for NULL. A descriptor that the program has closed, or
 * closed and made into something else, is no news of the process and is made anew. */
bool watch_has_ended(struct watch *watch);

#endif
