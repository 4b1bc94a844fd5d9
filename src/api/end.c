/*
 * end.c - how communicators end: finalize, destroy, abort, revoke.
 */
#include "api/check.h"
#include "api/group.h"
#include "api/live.h"

ncclResult_t pncclCommFinalize(ncclComm_t comm)
{
	struct job *job;
	enum err e = check_handle(comm_of(comm), "CommFinalize");

	if (!e && !comm_is_unharmed(comm_of(comm)))
		e = check_ready(comm_of(comm), "CommFinalize");
	if (!e && comm_is_revoked(comm_of(comm)))
		e = err_set(ERR_USAGE, "CommFinalize: communicator was revoked");
	if (e)
		return result_of(group_note(e));
	job = job_create(JOB_FINALIZE, comm_of(comm));
	if (!job)
		return result_of(group_note(ERR_SYSTEM));
	job->background = !comm_is_blocking(comm_of(comm));
	return result_of(group_job(job));
}
WEAK_TWIN(ncclCommFinalize);

/* Why a handle could not be taken. Nothing of it may be looked at. */
static enum err not_taken(enum err code, struct comm *comm, const char *function)
{
	if (code == ERR_PROGRESS)
		return err_set(code, "%s: the previous call on comm %p has not finished",
			function, (void *)comm);
	return err_set(code, "%s: %p is no communicator or was destroyed", function,
		(void *)comm);
}

ncclResult_t pncclCommDestroy(ncclComm_t comm)
{
	struct job *job;
	enum err e;

	if (!comm)
		return ncclSuccess;
	job = job_create(JOB_DESTROY, comm_of(comm));
	e = live_leave(comm_of(comm));
	if (e) {
		if (job)
			job_discard(job);
		return result_of(group_note(not_taken(e, comm_of(comm), "CommDestroy")));
	}
	if (!job) { /* an end needs no memory: without any it does not wait for the group
		     */
		live_left(comm_of(comm), true);
		return result_of(comm_destroy(comm_of(comm)));
	}
	return result_of(group_job(job));
}
WEAK_TWIN(ncclCommDestroy);

/* Never part of a group: who aborts does not want to wait for anything. */
ncclResult_t pncclCommAbort(ncclComm_t comm)
{
	enum err e;

	if (!comm)
		return ncclSuccess;
	e = live_take_by_force(comm_of(comm));
	if (e)
		return result_of(not_taken(e, comm_of(comm), "CommAbort"));
	return result_of(comm_abort(comm_of(comm)));
}
WEAK_TWIN(ncclCommAbort);

ncclResult_t pncclCommRevoke(ncclComm_t comm, int revokeFlags)
{
	enum err e = check_handle(comm_of(comm), "CommRevoke");

	if (!e && revokeFlags != NCCL_REVOKE_DEFAULT)
		e = err_set(ERR_ARGUMENT, "CommRevoke: invalid flags %#x",
			(unsigned)revokeFlags);
	if (!e)
		e = comm_revoke(comm_of(comm));
	return result_of(e);
}
WEAK_TWIN(ncclCommRevoke);

static enum err nothing_to_suspend(ncclComm_t comm, const char *function)
{
	enum err e = check_comm(comm_of(comm), function);

	return e ? e : err_set(ERR_USAGE, "%s: no GPU memory to suspend", function);
}

ncclResult_t pncclCommSuspend(ncclComm_t comm, int flags)
{
	if (flags != NCCL_SUSPEND_MEM)
		return result_of(err_set(
			ERR_ARGUMENT, "CommSuspend: invalid flags %#x", (unsigned)flags));
	return result_of(nothing_to_suspend(comm, "CommSuspend"));
}
WEAK_TWIN(ncclCommSuspend);

ncclResult_t pncclCommResume(ncclComm_t comm)
{
	return result_of(nothing_to_suspend(comm, "CommResume"));
}
WEAK_TWIN(ncclCommResume);
