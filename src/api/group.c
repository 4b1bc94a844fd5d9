#include "api/group.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "api/check.h"
#include "api/live.h"
#include "comm/profile.h"

/* Enough for the usual group of one call, or of a send and a receive per neighbour;
 * larger groups move to the heap. */
enum { CALLS_INLINE = 16, SELFS_INLINE = 8 };

enum mode { MODE_UNKNOWN, MODE_BLOCKING, MODE_NONBLOCKING };

struct group {
	int depth;
	enum err failed; /* the first failure inside it */
	enum mode mode;
	struct job *jobs, **jobs_tail;
	bool has_life_job;	   /* one that makes or ends a communicator */
	struct comm_call *spilled; /* owned; NULL while calls fit in `calls` */
	uint32_t call_count, call_capacity;
	uint32_t self_count; /* sends to and receives from the caller itself */
	struct comm_call calls[CALLS_INLINE];
};

static _Thread_local struct group group;

enum err group_note(enum err code)
{
	if (!code || !group.depth || group.failed)
		return code;
	/* "In progress" from the end of the group would say that the group runs. */
	group.failed = code == ERR_PROGRESS ? ERR_USAGE : code;
	return code;
}

static struct comm_call *group_calls(void)
{
	return group.spilled ? group.spilled : group.calls;
}

static bool is_to_self(const struct comm_call *call)
{
	return (call->kind == CALL_SEND || call->kind == CALL_RECV) &&
	       call->root == comm_rank(call->comm);
}

static enum err self_unmatched(bool send)
{
	return err_set(ERR_USAGE, "Trying to %s to self without a matching %s",
		send ? "send" : "recv", send ? "recv" : "send");
}

static enum err check_mode(bool blocking)
{
	enum mode mode = blocking ? MODE_BLOCKING : MODE_NONBLOCKING;

	if (group.mode != MODE_UNKNOWN && group.mode != mode)
		return err_set(ERR_USAGE,
			"blocking and non-blocking communicators cannot share a group");
	group.mode = mode;
	return OK;
}

static enum err reserve(void)
{
	uint32_t capacity = group.spilled ? 2 * group.call_capacity : 4 * CALLS_INLINE;
	struct comm_call *calls;

	if (group.call_count < (group.spilled ? group.call_capacity : CALLS_INLINE))
		return OK;
	assert(capacity > 0);
	calls = realloc(group.spilled, capacity * sizeof(*calls));
	if (!calls)
		return err_set(ERR_SYSTEM, "no memory for a group of %u calls", capacity);
	if (!group.spilled)
		memcpy(calls, group.calls, group.call_count * sizeof(*calls));
	group.spilled = calls;
	group.call_capacity = capacity;
	return OK;
}

static enum err check_launched(const struct comm *comm)
{
	for (uint32_t i = 0; i < group.call_count; i++)
		if (group_calls()[i].comm == comm && group_calls()[i].launched)
			return err_set(ERR_USAGE, "a group has one launchCompletionEvent "
						  "for a communicator, "
						  "and this is the second");
	return OK;
}

static enum err record_call(const struct comm_call *call)
{
	enum err e = check_mode(comm_is_blocking(call->comm));

	if (e)
		return e;
	if (group.has_life_job)
		return err_set(ERR_USAGE,
			"a group cannot both make or end communicators and use them");
	e = call->launched ? check_launched(call->comm) : OK;
	if (e)
		return e;
	e = reserve();
	if (e)
		return e;
	group_calls()[group.call_count] = *call;
	if (profile_is_on(call->comm)) {
		struct comm_call *told = &group_calls()[group.call_count];

		profile_call(told, group_calls(), group.call_count, group.depth + 1);
		profile_called(told);
	}
	group.call_count++;
	group.self_count += is_to_self(call);
	return OK;
}

/* A call that is in no group of the user's, and that somebody listens to. */
static enum err call_told(const struct comm_call *call)
{
	struct comm_call told = *call;
	enum err e;

	profile_call(&told, NULL, 0, 1);
	profile_called(&told);
	profile_group_ends(&told, 1);
	e = comm_submit(&told, 1);
	profile_group_ended(&told, 1);
	return e;
}

enum err group_call(const struct comm_call *call)
{
	if (group.depth)
		return group_note(record_call(call));
	if (is_to_self(call))
		return self_unmatched(call->kind == CALL_SEND);
	return profile_is_on(call->comm) ? call_told(call) : comm_submit(call, 1);
}

static enum err record_job(struct job *job)
{
	bool is_life = job->kind != JOB_WINDOW;
	const struct comm *comm = job->child ? job->child : job->parent;
	enum err e = check_mode(comm_is_blocking(comm));

	if (e)
		return e;
	if (is_life && group.call_count)
		return err_set(ERR_USAGE,
			"a group cannot both make or end communicators and use them");
	group.has_life_job |= is_life;
	if (!group.jobs)
		group.jobs_tail = &group.jobs;
	*group.jobs_tail = job;
	group.jobs_tail = &job->next;
	return OK;
}

enum err group_job(struct job *job)
{
	enum err e;

	if (!group.depth)
		return job_run_all(job);
	e = record_job(job);
	if (e)
		job_cancel(job);
	return group_note(e);
}

enum err group_start(void)
{
	group.depth++;
	return OK;
}

struct self {
	struct comm *comm;
	int64_t sends_ahead;
};

/* Per communicator, as many sends to self as receives from self. */
static enum err count_selfs(struct self *selfs)
{
	uint32_t count = 0, i;

	for (const struct comm_call *call = group_calls(), *end = call + group.call_count;
		call < end; call++) {
		if (!is_to_self(call))
			continue;
		for (i = 0; i < count && selfs[i].comm != call->comm; i++)
			;
		if (i == count)
			selfs[count++] = (struct self){.comm = call->comm};
		selfs[i].sends_ahead += call->kind == CALL_SEND ? 1 : -1;
	}
	for (i = 0; i < count; i++)
		if (selfs[i].sends_ahead)
			return self_unmatched(selfs[i].sends_ahead > 0);
	return OK;
}

static enum err check_selfs(void)
{
	struct self few[SELFS_INLINE], *selfs = few;
	enum err e;

	if (!group.self_count)
		return OK;
	if (group.self_count > SELFS_INLINE)
		selfs = malloc(group.self_count * sizeof(*selfs));
	if (!selfs)
		return err_set(
			ERR_SYSTEM, "no memory for %u calls to self", group.self_count);
	e = count_selfs(selfs);
	if (selfs != few)
		free(selfs);
	return e;
}

/* Forget everything; jobs that did not run are undone. */
static void group_clear(void)
{
	while (group.jobs) {
		struct job *job = group.jobs;

		group.jobs = job->next;
		job_cancel(job);
	}
	profile_group_ended(group_calls(), group.call_count);
	free(group.spilled);
	group.spilled = NULL;
	group.call_count = group.call_capacity = group.self_count = 0;
	group.has_life_job = false;
	group.mode = MODE_UNKNOWN;
	group.failed = OK;
}

/* Something of the group was destroyed before the group ended. */
static enum err is_gone(const char *what, const void *object)
{
	return err_set(ERR_ARGUMENT,
		"ncclGroupEnd: %s %p, which a call of the group uses, was destroyed",
		what, object);
}

static enum err recheck_call(const struct comm_call *call)
{
	if (!live_is(LIVE_COMM, call->comm))
		return is_gone("comm", call->comm);
	if (!call->on_gpu && call->stream && !live_is(LIVE_STREAM, call->stream))
		return is_gone("stream", call->stream);
	return call->kind == CALL_PUT && call->put.window
		       ? comm_window_check(call->comm, call->put.window, call->root,
				 call->put.offset, call->count * dtype_size(call->type))
		       : OK;
}

static enum err recheck_job(const struct job *job)
{
	if (job->parent && !live_is(LIVE_COMM, job->parent))
		return is_gone("comm", job->parent);
	return !job->child || live_is(LIVE_COMM, job->child)
		       ? OK
		       : is_gone("comm", job->child);
}

/* What was checked when it was said may have been destroyed since. */
static enum err recheck(void)
{
	enum err e = OK;

	for (const struct job *job = group.jobs; job && !e; job = job->next)
		e = recheck_job(job);
	for (uint32_t i = 0; i < group.call_count && !e; i++)
		e = recheck_call(&group_calls()[i]);
	return e;
}

/* Windows come first: calls of the same group may use them. */
static enum err group_run(void)
{
	struct job *jobs = group.jobs;
	enum err e = recheck(), progress = OK;

	if (!e)
		e = check_selfs();
	if (e)
		return e;
	group.jobs = NULL;
	if (jobs)
		e = job_run_all(jobs);
	if (e && e != ERR_PROGRESS)
		return e;
	progress = e;
	if (group.call_count)
		e = comm_submit(group_calls(), group.call_count);
	return e ? e : progress;
}

/* The outermost end of a group, or ERR_AGAIN when it is an inner one. */
static enum err group_leave(const char *function)
{
	if (!group.depth)
		return err_set(ERR_USAGE, "%s: no group was started", function);
	return --group.depth ? ERR_AGAIN : OK;
}

enum err group_end(void)
{
	enum err e = group_leave("ncclGroupEnd");

	if (e)
		return e == ERR_AGAIN ? OK : e;
	profile_group_ends(group_calls(), group.call_count);
	e = group.failed ? group.failed : group_run();
	group_clear();
	return e;
}

ncclResult_t pncclGroupStart(void)
{
	return result_of(group_start());
}
WEAK_TWIN(ncclGroupStart);

ncclResult_t pncclGroupEnd(void)
{
	return result_of(group_end());
}
WEAK_TWIN(ncclGroupEnd);

static enum err check_sim_info(const ncclSimInfo_t *info)
{
	const ncclSimInfo_t fresh = NCCL_SIM_INFO_INITIALIZER;

	if (info && (info->magic != fresh.magic || info->size < sizeof(fresh)))
		return err_set(ERR_ARGUMENT,
			"simInfo was not initialized with NCCL_SIM_INFO_INITIALIZER "
			"(magic %#x, size %zu)",
			info->magic, info->size);
	return OK;
}

/* Ends the group without running it. */
ncclResult_t pncclGroupSimulateEnd(ncclSimInfo_t *simInfo)
{
	enum err e = check_sim_info(simInfo), left;
	double us = 0;

	left = group_leave("ncclGroupSimulateEnd");
	if (left)
		return result_of(left == ERR_AGAIN ? e : left);
	e = e ? e : group.failed;
	e = e ? e : recheck();
	if (!e && group.jobs)
		e = err_set(ERR_USAGE,
			"ncclGroupSimulateEnd: making communicators cannot be estimated");
	if (!e)
		e = comm_estimate(group_calls(), group.call_count, &us);
	group_clear();
	if (!e && simInfo)
		simInfo->estimatedTime = (float)us;
	return result_of(e);
}
WEAK_TWIN(ncclGroupSimulateEnd);
