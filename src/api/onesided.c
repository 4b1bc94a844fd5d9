/*
 * onesided.c - put, signal, wait: checked as NCCL does, then refused, because nothing
 * below serves them yet.
 */
#include "api/check.h"
#include "api/group.h"

static enum err refused(const char *function)
{
	return group_note(err_set(ERR_USAGE,
		"%s: one-sided communication is not available on host memory", function));
}

static enum err check_signal(
	struct comm *comm, const char *function, int peer, int signal, int context)
{
	enum err e = check_comm(comm, function);

	if (e)
		return e;
	if (peer < 0 || (uint32_t)peer >= comm_rank_count(comm))
		return err_set(ERR_ARGUMENT,
			"%s: invalid peer %d (peer should be in the 0..%u range)",
			function, peer, comm_rank_count(comm) - 1);
	if (signal || context)
		return err_set(ERR_ARGUMENT, "%s: sigIdx %d and ctx %d should be 0",
			function, signal, context);
	return OK;
}

static enum err check_flags(const char *function, unsigned flags)
{
	if (flags)
		return err_set(
			ERR_ARGUMENT, "%s: flags %#x should be 0", function, flags);
	return OK;
}

ncclResult_t pncclPutSignal(const void *localbuff, size_t count, ncclDataType_t datatype,
	int peer, ncclWindow_t peerWin, size_t peerWinOffset, int sigIdx, int ctx,
	unsigned int flags, ncclComm_t comm, cudaStream_t stream)
{
	enum err e = check_signal(comm_of(comm), "PutSignal", peer, sigIdx, ctx);

	(void)peerWinOffset;
	(void)stream;
	if (!e)
		e = check_flags("PutSignal", flags);
	if (!e && (unsigned)datatype >= ncclNumTypes)
		e = err_set(ERR_ARGUMENT, "PutSignal: invalid type %d", (int)datatype);
	if (!e)
		e = check_pointer(peerWin, "PutSignal", "peerWin");
	if (!e && count)
		e = check_pointer(localbuff, "PutSignal", "localbuff");
	return result_of(e ? group_note(e) : refused("PutSignal"));
}
WEAK_TWIN(ncclPutSignal);

ncclResult_t pncclSignal(int peer, int sigIdx, int ctx, unsigned int flags,
	ncclComm_t comm, cudaStream_t stream)
{
	enum err e = check_signal(comm_of(comm), "Signal", peer, sigIdx, ctx);

	(void)stream;
	if (!e)
		e = check_flags("Signal", flags);
	return result_of(e ? group_note(e) : refused("Signal"));
}
WEAK_TWIN(ncclSignal);

ncclResult_t pncclWaitSignal(int nDesc, ncclWaitSignalDesc_t *signalDescs,
	ncclComm_t comm, cudaStream_t stream)
{
	enum err e = check_comm(comm_of(comm), "WaitSignal");

	(void)stream;
	if (!e && nDesc < 1)
		e = err_set(ERR_ARGUMENT,
			"WaitSignal: nDesc is %d and should be at least 1", nDesc);
	if (!e)
		e = check_pointer(signalDescs, "WaitSignal", "signalDescs");
	for (int i = 0; i < nDesc && !e; i++) {
		const ncclWaitSignalDesc_t *desc = &signalDescs[i];

		e = check_signal(
			comm_of(comm), "WaitSignal", desc->peer, desc->sigIdx, desc->ctx);
		if (!e && desc->opCnt < 1)
			e = err_set(ERR_ARGUMENT,
				"WaitSignal: opCnt is %d and should be at least 1",
				desc->opCnt);
	}
	return result_of(e ? group_note(e) : refused("WaitSignal"));
}
WEAK_TWIN(ncclWaitSignal);
