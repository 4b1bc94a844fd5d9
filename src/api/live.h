/*
 * live.h - which handles are ours: the communicators and host streams that exist now, and
 * which communicators have a job running on them.
 *
 * A freed handle cannot be recognised by looking at it, and one that never was ours must
 * not be looked at, so every entry point asks here first. A job is a call that makes,
 * divides or finalizes communicators; while one runs, possibly in a helper thread, nobody
 * may free what it works on. All functions may be called by any thread. Windows,
 * registrations and operators are known to their communicator (comm.h).
 */
#ifndef API_LIVE_H
#define API_LIVE_H

#include <stdbool.h>
#include <stdint.h>

#include "base/err.h"

struct comm;

enum live_kind { LIVE_NOTHING, LIVE_COMM, LIVE_STREAM };

/* Known from now on. Fails only without memory. */
enum err live_add(enum live_kind kind, const void *object);

/* Is there such an object? Nothing is read through the pointer. On the path of every
 * call: an answer that the thread has had before, and that no object made or ended since
 * can have changed, costs a few loads. */
bool live_is(enum live_kind kind, const void *object);

/* A job begins to use the communicator (false: it is unknown or leaving), and has ended.
 * live_end() is true when an abort waits for this end: the caller must not free it. */
bool live_begin(struct comm *comm);
bool live_end(struct comm *comm);

/* live_end() of a job whose result is for whoever asks the communicator: who has seen it
 * finds no job running any more. */
bool live_end_as(struct comm *comm, enum err result);

/* Unknown from now on, so the caller may free it. ERR_ARGUMENT: it was unknown already;
 * ERR_PROGRESS: a job runs on it. */
enum err live_take(enum live_kind kind, const void *object);

/* The same in two steps, for a destruction that may wait for the end of a group: nobody
 * else can end the communicator, or begin a job, while it is leaving; then it is unknown,
 * or stays after all. */
enum err live_leave(struct comm *comm);
void live_left(struct comm *comm, bool is_gone);

/* As live_take() of a communicator, but a running job is interrupted by comm_interrupt()
 * and waited for. */
enum err live_take_by_force(struct comm *comm);

/* How many calls of this communicator were counted before; only for the log. */
uint64_t live_count_call(struct comm *comm);

#endif
