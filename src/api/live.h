/*
 * live.h - which communicators exist, and which have a job running on them.
 *
 * A freed handle cannot be recognised by looking at it, so the calls that end a
 * communicator ask here. A job is a call that makes, divides or finalizes communicators;
 * while one runs, possibly in a helper thread, nobody may free what it works on. All
 * functions may be called by any thread; the collectives' path calls none of them.
 */
#ifndef API_LIVE_H
#define API_LIVE_H

#include <stdbool.h>
#include <stdint.h>

#include "base/err.h"

struct comm;

/* Known from now on. Fails only without memory. */
enum err live_add(struct comm *comm);

/* A job begins to use the communicator (false: it is unknown), and has ended. live_end()
 * is true when an abort waits for this end: the caller must not free it. */
bool live_begin(struct comm *comm);
bool live_end(struct comm *comm);

/* Unknown from now on, so the caller may free it. ERR_ARGUMENT: it was unknown already;
 * ERR_PROGRESS: a job runs on it. */
enum err live_take(struct comm *comm);

/* As live_take(), but a running job is interrupted by comm_revoke() and waited for. */
enum err live_take_by_force(struct comm *comm);

/* How many calls of this communicator were counted before; only for the log. */
uint64_t live_count_call(struct comm *comm);

#endif
