#include "colls.h"

const char *collective_name(int collective)
{
	static const char *const names[COLLECTIVES] = {"AllReduce", "Broadcast", "Reduce",
		"AllGather", "ReduceScatter", "AlltoAll", "Gather", "Scatter"};

	return collective < COLLECTIVES ? names[collective] : "?";
}

bool collective_has_root(int collective)
{
	return collective == BROADCAST || collective == REDUCE || collective == GATHER ||
	       collective == SCATTER;
}

ncclResult_t collective_call(const struct collective_call *c)
{
	switch (c->collective) {
	case ALL_REDUCE:
		return ncclAllReduce(
			c->in, c->out, c->count, c->type, c->op, c->comm, c->stream);
	case BROADCAST:
		return ncclBroadcast(
			c->in, c->out, c->count, c->type, c->root, c->comm, c->stream);
	case REDUCE:
		return ncclReduce(c->in, c->out, c->count, c->type, c->op, c->root,
			c->comm, c->stream);
	case ALL_GATHER:
		return ncclAllGather(
			c->in, c->out, c->count, c->type, c->comm, c->stream);
	case REDUCE_SCATTER:
		return ncclReduceScatter(
			c->in, c->out, c->count, c->type, c->op, c->comm, c->stream);
	case ALL_TO_ALL:
		return ncclAlltoAll(c->in, c->out, c->count, c->type, c->comm, c->stream);
	case GATHER:
		return ncclGather(
			c->in, c->out, c->count, c->type, c->root, c->comm, c->stream);
	case SCATTER:
		return ncclScatter(
			c->in, c->out, c->count, c->type, c->root, c->comm, c->stream);
	default:
		return ncclInternalError;
	}
}

ncclResult_t ring_call(const struct collective_call *c, int rank, int rank_count)
{
	int next = (rank + 1) % rank_count, before = (rank + rank_count - 1) % rank_count;
	ncclResult_t got = ncclGroupStart(), end;

	if (got)
		return got;
	got = ncclSend(c->in, c->count, c->type, next, c->comm, c->stream);
	if (!got)
		got = ncclRecv(c->out, c->count, c->type, before, c->comm, c->stream);
	end = ncclGroupEnd();
	return got ? got : end;
}
