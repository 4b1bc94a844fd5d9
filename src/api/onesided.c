/*
 * onesided.c - put, signal and wait: checked as NCCL does, then calls like any other.
 */
#include "api/check.h"
#include "api/group.h"

/* Which of all contexts' signals. */
static uint32_t signal_number(const struct comm *comm, int signal, int context)
{
	return (uint32_t)(context * comm_config(comm)->rma_signals + signal);
}

static enum err check_index(const char *function, const char *name, int value, int count)
{
	if (value >= 0 && value < count)
		return OK;
	return err_set(ERR_ARGUMENT,
		"%s: invalid %s %d (the communicator has %d: set num%s in its config)",
		function, name, value, count, name[0] == 'c' ? "RmaCtx" : "RmaSig");
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
	e = check_index(function, "ctx", context, comm_config(comm)->rma_contexts);
	return e ? e
		 : check_index(
			   function, "sigIdx", signal, comm_config(comm)->rma_signals);
}

/* NCCL connects for signals when the first window is registered. */
static enum err check_connected(const struct comm *comm, const char *function)
{
	if (comm_can_signal(comm))
		return OK;
	return err_set(ERR_USAGE,
		"%s: no window of this communicator was registered yet: register one, or "
		"set rmaEagerInit in its config",
		function);
}

static enum err check_flags(const char *function, unsigned flags)
{
	if (flags)
		return err_set(
			ERR_ARGUMENT, "%s: flags %#x should be 0", function, flags);
	return OK;
}

static enum err check_put(const struct comm_call *call, unsigned flags)
{
	enum err e = check_flags("PutSignal", flags);

	if (!e && (unsigned)call->type >= ncclNumTypes)
		e = err_set(ERR_ARGUMENT, "PutSignal: invalid type %d", (int)call->type);
	if (!e)
		e = check_pointer(call->put.window, "PutSignal", "peerWin");
	if (!e && call->count)
		e = check_pointer(call->in, "PutSignal", "localbuff");
	if (!e && call->count > SIZE_MAX / dtype_size(call->type))
		e = err_set(
			ERR_ARGUMENT, "PutSignal: count %zu is too large", call->count);
	return e ? e
		 : comm_window_check(call->comm, call->put.window, call->root,
			   call->put.offset, call->count * dtype_size(call->type));
}

/* On a GPU or in host memory: the communicator decides. */
static enum err check_where(
	cudaStream_t stream, const char *function, struct comm_call *call)
{
	enum err e = comm_on_gpu(call->comm, NULL, NULL, &call->on_gpu);

	if (e || !call->on_gpu)
		return e ? e : check_stream(stream, function, &call->stream);
	call->gpu_stream = (void *)stream;
	return OK;
}

ncclResult_t pncclPutSignal(const void *localbuff, size_t count, ncclDataType_t datatype,
	int peer, ncclWindow_t peerWin, size_t peerWinOffset, int sigIdx, int ctx,
	unsigned int flags, ncclComm_t comm, cudaStream_t stream)
{
	struct comm_call call = {.comm = comm_of(comm),
		.kind = CALL_PUT,
		.in = localbuff,
		.count = count,
		.type = (enum dtype)datatype,
		.root = (uint32_t)peer,
		.put = {.window = (const struct window *)peerWin,
			.offset = peerWinOffset}};
	enum err e = check_signal(call.comm, "PutSignal", peer, sigIdx, ctx);

	call.put.signal = e ? 0 : signal_number(call.comm, sigIdx, ctx);
	if (!e)
		e = check_put(&call, flags);
	if (!e)
		e = check_where(stream, "PutSignal", &call);
	return result_of(e ? group_note(e) : group_call(&call));
}
WEAK_TWIN(ncclPutSignal);

ncclResult_t pncclSignal(int peer, int sigIdx, int ctx, unsigned int flags,
	ncclComm_t comm, cudaStream_t stream)
{
	struct comm_call call = {
		.comm = comm_of(comm), .kind = CALL_PUT, .root = (uint32_t)peer};
	enum err e = check_signal(call.comm, "Signal", peer, sigIdx, ctx);

	call.put.signal = e ? 0 : signal_number(call.comm, sigIdx, ctx);
	if (!e)
		e = check_flags("Signal", flags);
	if (!e)
		e = check_where(stream, "Signal", &call);
	if (!e)
		e = check_connected(call.comm, "Signal");
	return result_of(e ? group_note(e) : group_call(&call));
}
WEAK_TWIN(ncclSignal);

static enum err check_wait(
	struct comm *comm, int count, const ncclWaitSignalDesc_t *descs)
{
	enum err e = check_comm(comm, "WaitSignal");

	if (!e && count < 1)
		e = err_set(ERR_ARGUMENT,
			"WaitSignal: nDesc is %d and should be at least 1", count);
	if (!e)
		e = check_pointer(descs, "WaitSignal", "signalDescs");
	for (int i = 0; i < count && !e; i++) {
		e = check_signal(
			comm, "WaitSignal", descs[i].peer, descs[i].sigIdx, descs[i].ctx);
		if (!e && descs[i].opCnt < 1)
			e = err_set(ERR_ARGUMENT,
				"WaitSignal: opCnt is %d and should be at least 1",
				descs[i].opCnt);
	}
	return e;
}

/* The lines are one group: they are waited for side by side. */
ncclResult_t pncclWaitSignal(int nDesc, ncclWaitSignalDesc_t *signalDescs,
	ncclComm_t comm, cudaStream_t stream)
{
	struct comm_call call = {.comm = comm_of(comm), .kind = CALL_WAIT};
	enum err e = check_wait(call.comm, nDesc, signalDescs);

	if (!e)
		e = check_where(stream, "WaitSignal", &call);
	if (!e)
		e = check_connected(call.comm, "WaitSignal");
	if (e)
		return result_of(group_note(e));
	pncclGroupStart();
	for (int i = 0; i < nDesc && !e; i++) {
		call.root = (uint32_t)signalDescs[i].peer;
		call.put.signals = (uint32_t)signalDescs[i].opCnt;
		call.put.signal = signal_number(
			call.comm, signalDescs[i].sigIdx, signalDescs[i].ctx);
		e = group_call(&call);
	}
	return pncclGroupEnd();
}
WEAK_TWIN(ncclWaitSignal);
