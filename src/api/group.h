/*
 * group.h - what a thread has said between ncclGroupStart() and ncclGroupEnd().
 *
 * Every entry point that does something hands it to group_call() or group_job(), which
 * record it while a group is open and run it at once otherwise. The state is the
 * thread's own, so there is nothing to lock.
 */
#ifndef API_GROUP_H
#define API_GROUP_H

#include "api/export.h"
#include "api/job.h"

/* A call failed its checks: the open group, if any, will fail with it. Returns `code`. */
enum err group_note(enum err code);

enum err group_call(const struct comm_call *call);

/* Takes the job over, whatever it returns. */
enum err group_job(struct job *job);

enum err group_start(void);
enum err group_end(void);

#endif
