/*
 * query.c - calls that only ask: version, errors, and what a communicator is.
 */
#include "api/check.h"
#include "api/live.h"
#include "base/log.h"
#include "base/param.h"

ncclResult_t pncclGetVersion(int *version)
{
	int64_t reported = param_int(PARAM_REPORT_VERSION);
	enum err e = check_pointer(version, "GetVersion", "version");

	if (!e)
		*version = reported ? (int)reported : NCCL_VERSION_CODE;
	return result_of(e);
}
WEAK_TWIN(ncclGetVersion);

const char *weftVersion(void)
{
	return WEFT_VERSION;
}

const char *pncclGetErrorString(ncclResult_t result)
{
	return err_name((enum err)result);
}
WEAK_TWIN(ncclGetErrorString);

const char *pncclGetLastError(ncclComm_t comm)
{
	char reason[ERR_TEXT_BYTES];

	if (comm && live_is(LIVE_COMM, comm) &&
		comm_reason(comm_of(comm), reason, sizeof(reason)))
		err_adopt(reason);
	return err_last();
}
WEAK_TWIN(ncclGetLastError);

void pncclResetDebugInit(void)
{
}
WEAK_TWIN(ncclResetDebugInit);

/* NCCL exports it, without a twin; programs that change NCCL_DEBUG call it. */
void ncclResetDebugInitInternal(void)
{
	log_reset();
}

ncclResult_t pncclCommGetAsyncError(ncclComm_t comm, ncclResult_t *asyncError)
{
	enum err e = check_handle(comm_of(comm), "CommGetAsyncError");

	if (!e)
		e = check_pointer(asyncError, "CommGetAsyncError", "asyncError");
	if (!e)
		*asyncError = result_of(comm_peers_get(comm_of(comm)));
	return result_of(e);
}
WEAK_TWIN(ncclCommGetAsyncError);

static enum err check_query(ncclComm_t comm, const int *out, const char *function)
{
	enum err e = check_ready(comm_of(comm), function);

	return e ? e : check_pointer(out, function, "result");
}

ncclResult_t pncclCommCount(const ncclComm_t comm, int *count)
{
	enum err e = check_query(comm, count, "CommCount");

	if (!e)
		*count = (int)comm_rank_count(comm_of(comm));
	return result_of(e);
}
WEAK_TWIN(ncclCommCount);

ncclResult_t pncclCommCuDevice(const ncclComm_t comm, int *device)
{
	enum err e = check_query(comm, device, "CommCuDevice");

	if (!e)
		*device = comm_device(comm_of(comm));
	return result_of(e);
}
WEAK_TWIN(ncclCommCuDevice);

ncclResult_t pncclCommUserRank(const ncclComm_t comm, int *rank)
{
	enum err e = check_query(comm, rank, "CommUserRank");

	if (!e)
		*rank = (int)comm_rank(comm_of(comm));
	return result_of(e);
}
WEAK_TWIN(ncclCommUserRank);

/* Nothing of what a communicator holds could be given back by suspending it. */
static uint64_t statistic(const struct comm *comm, ncclCommMemStat_t stat)
{
	switch (stat) {
	case ncclStatGpuMemSuspended:
		return comm_is_suspended(comm);
	case ncclStatGpuMemPersist:
	case ncclStatGpuMemTotal:
		return comm_gpu_bytes(comm);
	default:
		return 0;
	}
}

ncclResult_t pncclCommMemStats(ncclComm_t comm, ncclCommMemStat_t stat, uint64_t *value)
{
	enum err e = check_ready(comm_of(comm), "CommMemStats");

	if (!e)
		e = check_pointer(value, "CommMemStats", "value");
	if (!e && (unsigned)stat > ncclStatGpuMemTotal)
		e = err_set(
			ERR_ARGUMENT, "CommMemStats: invalid statistic %d", (int)stat);
	if (!e)
		*value = statistic(comm_of(comm), stat);
	return result_of(e);
}
WEAK_TWIN(ncclCommMemStats);
