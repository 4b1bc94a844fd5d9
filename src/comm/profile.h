/*
 * profile.h - what a profiler plugin (prof/profiler.h) is told of a communicator's calls.
 *
 *	api: a call is made		profile_call(), profile_called()
 *	api: its group ends		profile_group_ends(), profile_group_ended()
 *	comm: its calls are run		profile_run(), profile_ran()
 *	comm: .. or put on a GPU	profile_launch(), profile_launched()
 *
 * A call carries what was started for it in `profile`, which is NULL where nobody listens
 * and of calls that plugins have no event for. It outlives the communicator, if need be:
 * a group may end after one of its communicators has.
 */
#ifndef COMM_PROFILE_H
#define COMM_PROFILE_H

#include <stdbool.h>
#include <stdint.h>

struct comm;
struct comm_call;
struct profile; /* of a communicator */
struct call_profile;
struct host_teller;

/* ---- for the files of comm ---- */

/* Tells of messages with other hosts: a call's `told` is its `profile`. */
extern const struct host_teller profile_teller;

/* NULL where there is no plugin. */
struct profile *profile_open(const struct comm *comm);
void profile_put(struct profile *profile); /* NULL is fine */

/* Calls begin to run; `is_planned` when this thread is inside their communicators, so
 * that the algorithm can be asked for. */
void profile_run(const struct comm_call *calls, uint32_t count, bool is_planned);
void profile_ran(const struct comm_call *calls, uint32_t count);

/* The same for calls that a stream runs, each by itself: what profile_run() has started
 * lives until profile_over(). */
struct call_profile *profile_keep(const struct comm_call *call);
void profile_over(struct call_profile *profile); /* NULL is fine */

void profile_launch(const struct comm_call *calls, uint32_t count);
void profile_launched(const struct comm_call *calls, uint32_t count);

/* ---- for the api ---- */

/* Does anybody listen? Then a call is told of: */
bool profile_is_on(const struct comm *comm);

/* A call is made, in a group of `depth` (1: it is none's) after `earlier` ones. Fills in
 * call->profile. It is followed by profile_called(), and by the functions below. */
void profile_call(struct comm_call *call, const struct comm_call *earlier,
	uint32_t earlier_count, int depth);
void profile_called(const struct comm_call *call);

/* The group of these calls ends; and has, whatever became of it: forget them. */
void profile_group_ends(const struct comm_call *calls, uint32_t count);
void profile_group_ended(struct comm_call *calls, uint32_t count);

#endif
