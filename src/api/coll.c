/*
 * coll.c - entry points of the calls that move data. An allreduce starts here; group.c is
 * next.
 */
#include "api/check.h"
#include "api/coll_config.h"
#include "api/group.h"
#include "api/live.h"
#include "base/log.h"

static void log_call(const struct call_args *args)
{
	comm_speak(args->comm);
	log_info(LOG_COLL,
		"%s: opCount %lx sendbuff %p recvbuff %p count %zu datatype %d op %d "
		"root %d "
		"comm %p [nranks=%u] stream %p",
		args->function, (unsigned long)live_count_call(args->comm), args->in,
		args->out, args->count, args->type, args->op, args->root,
		(void *)args->comm, comm_rank_count(args->comm), (void *)args->stream);
}

/* NCCL looks at the wishes before it looks at anything else. */
static enum err prepare(const struct call_args *args, const ncclCollConfig_t *config,
	struct comm_call *call)
{
	struct coll_wishes wishes;
	enum err e;

	if (!config)
		return check_call(args, call);
	e = coll_config_read(config, args->function, &wishes);
	if (!e)
		e = check_call(args, call);
	return e ? e : coll_config_apply(&wishes, args->function, call);
}

static ncclResult_t issue(const struct call_args *args, const ncclCollConfig_t *config)
{
	struct comm_call call;
	enum err e = prepare(args, config, &call);

	if (e)
		return result_of(group_note(e));
	if (log_is_on(LOG_INFO, LOG_COLL))
		log_call(args);
	/* Nothing to move, nobody waits for it; the host's engine remembers that it was
	 * called. A send of nothing still meets its receive. */
	if (!args->count && args->kind == CALL_COLL && call.on_gpu &&
		!comm_is_relayed(call.comm))
		return ncclSuccess;
	return result_of(group_call(&call));
}

ncclResult_t pncclReduceConfig(const void *sendbuff, void *recvbuff, size_t count,
	ncclDataType_t datatype, ncclRedOp_t op, int root, ncclComm_t comm,
	cudaStream_t stream, const ncclCollConfig_t *config)
{
	const struct call_args args = {
		.function = "Reduce",
		.comm = comm_of(comm),
		.kind = CALL_COLL,
		.coll = COLL_REDUCE,
		.in = sendbuff,
		.out = recvbuff,
		.count = count,
		.type = (int)datatype,
		.op = (int)op,
		.root = root,
		.stream = stream,
	};

	return issue(&args, config);
}
WEAK_TWIN(ncclReduceConfig);

ncclResult_t pncclReduce(const void *sendbuff, void *recvbuff, size_t count,
	ncclDataType_t datatype, ncclRedOp_t op, int root, ncclComm_t comm,
	cudaStream_t stream)
{
	return pncclReduceConfig(
		sendbuff, recvbuff, count, datatype, op, root, comm, stream, NULL);
}
WEAK_TWIN(ncclReduce);

ncclResult_t pncclBcast(void *buff, size_t count, ncclDataType_t datatype, int root,
	ncclComm_t comm, cudaStream_t stream)
{
	const struct call_args args = {
		.function = "Bcast",
		.comm = comm_of(comm),
		.kind = CALL_COLL,
		.coll = COLL_BROADCAST,
		.in = buff,
		.out = buff,
		.count = count,
		.type = (int)datatype,
		.root = root,
		.stream = stream,
	};

	return issue(&args, NULL);
}
WEAK_TWIN(ncclBcast);

ncclResult_t pncclBroadcastConfig(const void *sendbuff, void *recvbuff, size_t count,
	ncclDataType_t datatype, int root, ncclComm_t comm, cudaStream_t stream,
	const ncclCollConfig_t *config)
{
	const struct call_args args = {
		.function = "Broadcast",
		.comm = comm_of(comm),
		.kind = CALL_COLL,
		.coll = COLL_BROADCAST,
		.in = sendbuff,
		.out = recvbuff,
		.count = count,
		.type = (int)datatype,
		.root = root,
		.stream = stream,
	};

	return issue(&args, config);
}
WEAK_TWIN(ncclBroadcastConfig);

ncclResult_t pncclBroadcast(const void *sendbuff, void *recvbuff, size_t count,
	ncclDataType_t datatype, int root, ncclComm_t comm, cudaStream_t stream)
{
	return pncclBroadcastConfig(
		sendbuff, recvbuff, count, datatype, root, comm, stream, NULL);
}
WEAK_TWIN(ncclBroadcast);

ncclResult_t pncclAllReduceConfig(const void *sendbuff, void *recvbuff, size_t count,
	ncclDataType_t datatype, ncclRedOp_t op, ncclComm_t comm, cudaStream_t stream,
	const ncclCollConfig_t *config)
{
	const struct call_args args = {
		.function = "AllReduce",
		.comm = comm_of(comm),
		.kind = CALL_COLL,
		.coll = COLL_ALL_REDUCE,
		.in = sendbuff,
		.out = recvbuff,
		.count = count,
		.type = (int)datatype,
		.op = (int)op,
		.stream = stream,
	};

	return issue(&args, config);
}
WEAK_TWIN(ncclAllReduceConfig);

ncclResult_t pncclAllReduce(const void *sendbuff, void *recvbuff, size_t count,
	ncclDataType_t datatype, ncclRedOp_t op, ncclComm_t comm, cudaStream_t stream)
{
	return pncclAllReduceConfig(
		sendbuff, recvbuff, count, datatype, op, comm, stream, NULL);
}
WEAK_TWIN(ncclAllReduce);

ncclResult_t pncclReduceScatterConfig(const void *sendbuff, void *recvbuff,
	size_t recvcount, ncclDataType_t datatype, ncclRedOp_t op, ncclComm_t comm,
	cudaStream_t stream, const ncclCollConfig_t *config)
{
	const struct call_args args = {
		.function = "ReduceScatter",
		.comm = comm_of(comm),
		.kind = CALL_COLL,
		.coll = COLL_REDUCE_SCATTER,
		.in = sendbuff,
		.out = recvbuff,
		.count = recvcount,
		.type = (int)datatype,
		.op = (int)op,
		.stream = stream,
	};

	return issue(&args, config);
}
WEAK_TWIN(ncclReduceScatterConfig);

ncclResult_t pncclReduceScatter(const void *sendbuff, void *recvbuff, size_t recvcount,
	ncclDataType_t datatype, ncclRedOp_t op, ncclComm_t comm, cudaStream_t stream)
{
	return pncclReduceScatterConfig(
		sendbuff, recvbuff, recvcount, datatype, op, comm, stream, NULL);
}
WEAK_TWIN(ncclReduceScatter);

ncclResult_t pncclAllGatherConfig(const void *sendbuff, void *recvbuff, size_t sendcount,
	ncclDataType_t datatype, ncclComm_t comm, cudaStream_t stream,
	const ncclCollConfig_t *config)
{
	const struct call_args args = {
		.function = "AllGather",
		.comm = comm_of(comm),
		.kind = CALL_COLL,
		.coll = COLL_ALL_GATHER,
		.in = sendbuff,
		.out = recvbuff,
		.count = sendcount,
		.type = (int)datatype,
		.stream = stream,
	};

	return issue(&args, config);
}
WEAK_TWIN(ncclAllGatherConfig);

ncclResult_t pncclAllGather(const void *sendbuff, void *recvbuff, size_t sendcount,
	ncclDataType_t datatype, ncclComm_t comm, cudaStream_t stream)
{
	return pncclAllGatherConfig(
		sendbuff, recvbuff, sendcount, datatype, comm, stream, NULL);
}
WEAK_TWIN(ncclAllGather);

ncclResult_t pncclAlltoAllConfig(const void *sendbuff, void *recvbuff, size_t count,
	ncclDataType_t datatype, ncclComm_t comm, cudaStream_t stream,
	const ncclCollConfig_t *config)
{
	const struct call_args args = {
		.function = "AlltoAll",
		.comm = comm_of(comm),
		.kind = CALL_COLL,
		.coll = COLL_ALL_TO_ALL,
		.in = sendbuff,
		.out = recvbuff,
		.count = count,
		.type = (int)datatype,
		.stream = stream,
	};

	return issue(&args, config);
}
WEAK_TWIN(ncclAlltoAllConfig);

ncclResult_t pncclAlltoAll(const void *sendbuff, void *recvbuff, size_t count,
	ncclDataType_t datatype, ncclComm_t comm, cudaStream_t stream)
{
	return pncclAlltoAllConfig(
		sendbuff, recvbuff, count, datatype, comm, stream, NULL);
}
WEAK_TWIN(ncclAlltoAll);

ncclResult_t pncclGatherConfig(const void *sendbuff, void *recvbuff, size_t count,
	ncclDataType_t datatype, int root, ncclComm_t comm, cudaStream_t stream,
	const ncclCollConfig_t *config)
{
	const struct call_args args = {
		.function = "Gather",
		.comm = comm_of(comm),
		.kind = CALL_COLL,
		.coll = COLL_GATHER,
		.in = sendbuff,
		.out = recvbuff,
		.count = count,
		.type = (int)datatype,
		.root = root,
		.stream = stream,
	};

	return issue(&args, config);
}
WEAK_TWIN(ncclGatherConfig);

ncclResult_t pncclGather(const void *sendbuff, void *recvbuff, size_t count,
	ncclDataType_t datatype, int root, ncclComm_t comm, cudaStream_t stream)
{
	return pncclGatherConfig(
		sendbuff, recvbuff, count, datatype, root, comm, stream, NULL);
}
WEAK_TWIN(ncclGather);

ncclResult_t pncclScatterConfig(const void *sendbuff, void *recvbuff, size_t count,
	ncclDataType_t datatype, int root, ncclComm_t comm, cudaStream_t stream,
	const ncclCollConfig_t *config)
{
	const struct call_args args = {
		.function = "Scatter",
		.comm = comm_of(comm),
		.kind = CALL_COLL,
		.coll = COLL_SCATTER,
		.in = sendbuff,
		.out = recvbuff,
		.count = count,
		.type = (int)datatype,
		.root = root,
		.stream = stream,
	};

	return issue(&args, config);
}
WEAK_TWIN(ncclScatterConfig);

ncclResult_t pncclScatter(const void *sendbuff, void *recvbuff, size_t count,
	ncclDataType_t datatype, int root, ncclComm_t comm, cudaStream_t stream)
{
	return pncclScatterConfig(
		sendbuff, recvbuff, count, datatype, root, comm, stream, NULL);
}
WEAK_TWIN(ncclScatter);

ncclResult_t pncclSend(const void *sendbuff, size_t count, ncclDataType_t datatype,
	int peer, ncclComm_t comm, cudaStream_t stream)
{
	const struct call_args args = {
		.function = "Send",
		.comm = comm_of(comm),
		.kind = CALL_SEND,
		.in = sendbuff,
		.count = count,
		.type = (int)datatype,
		.root = peer,
		.stream = stream,
	};

	return issue(&args, NULL);
}
WEAK_TWIN(ncclSend);

ncclResult_t pncclRecv(void *recvbuff, size_t count, ncclDataType_t datatype, int peer,
	ncclComm_t comm, cudaStream_t stream)
{
	const struct call_args args = {
		.function = "Recv",
		.comm = comm_of(comm),
		.kind = CALL_RECV,
		.out = recvbuff,
		.count = count,
		.type = (int)datatype,
		.root = peer,
		.stream = stream,
	};

	return issue(&args, NULL);
}
WEAK_TWIN(ncclRecv);
