/* The collectives where every rank has something for another: alltoall, sendrecv. */
#include "perf/coll.h"

static bool part_all(const struct coll_shape *shape, uint32_t i, struct data_part *part)
{
	*part = (struct data_part){
		PART_COPY, shape->rank, 0, shape->count * shape->rank_count, 0};
	return i == 0;
}

/* Block i is what rank i had for this one. */
static bool part_for_me(
	const struct coll_shape *shape, uint32_t i, struct data_part *part)
{
	*part = (struct data_part){
		PART_COPY, i, i * shape->count, shape->count, shape->rank * shape->count};
	return i < shape->rank_count;
}

static uint32_t rank_before(const struct coll_shape *shape)
{
	return (shape->rank + shape->rank_count - 1) % shape->rank_count;
}

static bool part_before(
	const struct coll_shape *shape, uint32_t i, struct data_part *part)
{
	*part = (struct data_part){PART_COPY, rank_before(shape), 0, shape->count, 0};
	return i == 0;
}

static ncclResult_t run_alltoall(const struct coll_call *call)
{
	return ncclAlltoAll(call->send, call->recv, call->shape.count, call->type,
		call->comm, call->stream);
}

static ncclResult_t run_sendrecv(const struct coll_call *call)
{
	const struct coll_shape *shape = &call->shape;
	int after = (int)((shape->rank + 1) % shape->rank_count);
	ncclResult_t result = ncclGroupStart();

	if (!result)
		result = ncclSend(call->send, shape->count, call->type, after, call->comm,
			call->stream);
	if (!result)
		result = ncclRecv(call->recv, shape->count, call->type,
			(int)rank_before(shape), call->comm, call->stream);
	return result ? result : ncclGroupEnd();
}

const struct coll_kind coll_alltoall = {
	.name = "alltoall",
	.redop = "none",
	.count = coll_count_share,
	.send_elems = coll_elems_all,
	.recv_elems = coll_elems_all,
	.send_offset = coll_offset_none,
	.recv_offset = coll_offset_none,
	.send_part = part_all,
	.recv_part = part_for_me,
	.payload = coll_elems_all,
	.factor = coll_factor_share,
	.run = run_alltoall,
};

const struct coll_kind coll_sendrecv = {
	.name = "sendrecv",
	.redop = "sum",
	.count = coll_count_whole,
	.send_elems = coll_elems_one,
	.recv_elems = coll_elems_one,
	.send_offset = coll_offset_none,
	.recv_offset = coll_offset_none,
	.send_part = coll_part_own,
	.recv_part = part_before,
	.payload = coll_elems_one,
	.factor = coll_factor_one,
	.run = run_sendrecv,
};
