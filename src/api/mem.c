/*
 * mem.c - memory that peers can map, registration, windows.
 */
#include "api/check.h"
#include "api/group.h"

ncclResult_t pncclMemAlloc(void **ptr, size_t size)
{
	enum err e = check_pointer(ptr, "MemAlloc", "ptr");

	if (!e && !size)
		e = err_set(ERR_ARGUMENT, "MemAlloc: size is 0");
	return result_of(e ? e : mem_alloc(size, ptr));
}
WEAK_TWIN(ncclMemAlloc);

ncclResult_t pncclMemFree(void *ptr)
{
	return result_of(ptr ? mem_free(ptr) : OK);
}
WEAK_TWIN(ncclMemFree);

static enum err check_range(const char *function, const void *buff, size_t size)
{
	enum err e = check_pointer(buff, function, "buff");

	if (!e && !size)
		e = err_set(ERR_ARGUMENT, "%s: size is 0", function);
	if (!e && size > UINTPTR_MAX - (uintptr_t)buff)
		e = err_set(ERR_ARGUMENT,
			"%s: size %zu from buff %p on is more than there are addresses",
			function, size, buff);
	return e;
}

ncclResult_t pncclCommRegister(
	const ncclComm_t comm, void *buff, size_t size, void **handle)
{
	enum err e = check_comm(comm_of(comm), "CommRegister");

	if (!e)
		e = check_range("CommRegister", buff, size);
	if (!e)
		e = check_pointer(handle, "CommRegister", "handle");
	return result_of(e ? e : comm_register(comm_of(comm), buff, size, handle));
}
WEAK_TWIN(ncclCommRegister);

/* Giving back is possible in any state, so that a failed communicator leaks nothing. */
ncclResult_t pncclCommDeregister(const ncclComm_t comm, void *handle)
{
	enum err e = check_handle(comm_of(comm), "CommDeregister");

	if (!e)
		e = check_pointer(handle, "CommDeregister", "handle");
	return result_of(e ? e : comm_deregister(comm_of(comm), handle));
}
WEAK_TWIN(ncclCommDeregister);

static enum err check_flags(const char *function, int flags)
{
	const int known = NCCL_WIN_COLL_SYMMETRIC | NCCL_WIN_STRICT_ORDERING |
			  NCCL_WIN_GIN_ONLY | NCCL_WIN_CFT_COUNTED;
	const int alone = NCCL_WIN_GIN_ONLY | NCCL_WIN_CFT_COUNTED;

	if (flags & ~known)
		return err_set(
			ERR_ARGUMENT, "%s: invalid flags %#x", function, (unsigned)flags);
	if (flags & alone && flags & NCCL_WIN_COLL_SYMMETRIC)
		return err_set(ERR_ARGUMENT,
			"%s: flags %#x: a symmetric window is neither for GIN only nor "
			"counted",
			function, (unsigned)flags);
	if (flags & NCCL_WIN_CFT_COUNTED)
		return err_set(ERR_USAGE,
			"%s: no fabric here counts what it writes; "
			"ncclCommQueryProperties() says so in cftCountedSupport",
			function);
	return OK;
}

static enum err check_window(struct comm *comm, const void *buff, size_t size,
	const ncclWindow_t *win, int flags)
{
	const char *function = "CommWindowRegister";
	enum err e = check_comm(comm, function);

	if (!e)
		e = check_range(function, buff, size);
	if (!e)
		e = check_pointer(win, function, "win");
	if (!e)
		e = check_flags(function, flags);
	if (!e && (uintptr_t)buff % NCCL_WIN_REQUIRED_ALIGNMENT)
		e = err_set(ERR_ARGUMENT, "%s: buff %p is not a multiple of %d", function,
			buff, NCCL_WIN_REQUIRED_ALIGNMENT);
	return e;
}

ncclResult_t pncclCommWindowRegister(
	ncclComm_t comm, void *buff, size_t size, ncclWindow_t *win, int winFlags)
{
	struct job *job;
	enum err e = check_window(comm_of(comm), buff, size, win, winFlags);

	if (e)
		return result_of(group_note(e));
	job = job_create(JOB_WINDOW, comm_of(comm));
	if (!job)
		return result_of(group_note(ERR_SYSTEM));
	job->args.pointer = buff;
	job->args.bytes = size;
	job->args.flags = winFlags;
	job->args.window = win;
	return result_of(group_job(job));
}
WEAK_TWIN(ncclCommWindowRegister);

ncclResult_t pncclCommWindowDeregister(ncclComm_t comm, ncclWindow_t win)
{
	enum err e = check_handle(comm_of(comm), "CommWindowDeregister");

	if (e || !win)
		return result_of(e);
	return result_of(comm_window_deregister(comm_of(comm), (struct window *)win));
}
WEAK_TWIN(ncclCommWindowDeregister);

ncclResult_t pncclWinGetUserPtr(ncclComm_t comm, ncclWindow_t win, void **outUserPtr)
{
	enum err e = check_ready(comm_of(comm), "WinGetUserPtr");

	if (!e)
		e = check_pointer(win, "WinGetUserPtr", "win");
	if (!e)
		e = check_pointer(outUserPtr, "WinGetUserPtr", "outUserPtr");
	if (!e)
		e = comm_window_pointer(
			comm_of(comm), (const struct window *)win, outUserPtr);
	return result_of(e);
}
WEAK_TWIN(ncclWinGetUserPtr);
