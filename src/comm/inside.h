/*
 * inside.h - one thread at a time in a communicator, and who it is.
 *
 * Whoever runs calls of a communicator on the host engine, the user's thread or that of a
 * host stream, is inside. Whoever only enqueues, on a stream or for a GPU, may do so
 * while the stream's thread is inside, but not beside another user's thread. Who breaks
 * this is refused before anything of its call has begun, with a sentence that names both
 * threads; the one inside does not notice. Asking, aborting and revoking need none of
 * this: they wait, if at all, until both words are zero. Who aborts then keeps both, and
 * a thread that comes too late is told so.
 */
#ifndef COMM_INSIDE_H
#define COMM_INSIDE_H

#include <stdbool.h>
#include <stdint.h>

#include "base/err.h"

struct comm;
struct comm_call;

/* This thread is a stream's; said once, when it begins. */
void inside_be_stream(void);

/* Come inside, after what was enqueued has run (a stream's thread does not wait: what it
 * runs is that). ERR_USAGE when another thread is there. */
enum err inside_enter(struct comm *comm);

/* Go. The communicator may be freed from now on. */
void inside_leave(struct comm *comm);

/* Is it this thread that is inside? Then a group has entered already. */
bool inside_is_mine(const struct comm *comm);

/* Enqueue calls: on all their comms, or on none. `first`, of as many members and all
 * false, is what inside_enqueued() needs to end it. ERR_USAGE when another thread
 * enqueues on one, or a user's is inside it. */
enum err inside_enqueue(const struct comm_call *calls, uint32_t count, bool *first);
void inside_enqueued(const struct comm_call *calls, uint32_t count, const bool *first);

/* Nobody comes inside or enqueues any more: who is there is waited for. */
void inside_close(struct comm *comm);

#endif
