/* The collectives that compute: all_reduce, reduce, reduce_scatter. */
#include "perf/coll.h"

static bool part_give(const struct coll_shape *shape, uint32_t i, struct data_part *part)
{
	*part = (struct data_part){PART_GIVE, shape->rank, 0, shape->count, 0};
	return i == 0;
}

static bool part_give_all(
	const struct coll_shape *shape, uint32_t i, struct data_part *part)
{
	*part = (struct data_part){
		PART_GIVE, shape->rank, 0, shape->count * shape->rank_count, 0};
	return i == 0;
}

static bool part_reduced(
	const struct coll_shape *shape, uint32_t i, struct data_part *part)
{
	*part = (struct data_part){PART_REDUCED, 0, 0, shape->count, 0};
	return i == 0;
}

static bool part_reduced_at_root(
	const struct coll_shape *shape, uint32_t i, struct data_part *part)
{
	return part_reduced(shape, i, part) && shape->rank == shape->root;
}

static bool part_reduced_mine(
	const struct coll_shape *shape, uint32_t i, struct data_part *part)
{
	*part = (struct data_part){
		PART_REDUCED, 0, 0, shape->count, shape->rank * shape->count};
	return i == 0;
}

static double factor_all_reduce(uint32_t rank_count)
{
	return 2 * coll_factor_share(rank_count);
}

static ncclResult_t run_all_reduce(const struct coll_call *call)
{
	return ncclAllReduce(call->send, call->recv, call->shape.count, call->type,
		call->op, call->comm, call->stream);
}

static ncclResult_t run_reduce(const struct coll_call *call)
{
	return ncclReduce(call->send, call->recv, call->shape.count, call->type, call->op,
		(int)call->shape.root, call->comm, call->stream);
}

static ncclResult_t run_reduce_scatter(const struct coll_call *call)
{
	return ncclReduceScatter(call->send, call->recv, call->shape.count, call->type,
		call->op, call->comm, call->stream);
}

const struct coll_kind coll_all_reduce = {
	.name = "all_reduce",
	.reduces = true,
	.in_place_checked = true,
	.count = coll_count_whole,
	.send_elems = coll_elems_one,
	.recv_elems = coll_elems_one,
	.send_offset = coll_offset_none,
	.recv_offset = coll_offset_none,
	.send_part = part_give,
	.recv_part = part_reduced,
	.payload = coll_elems_one,
	.factor = factor_all_reduce,
	.run = run_all_reduce,
};

const struct coll_kind coll_reduce = {
	.name = "reduce",
	.reduces = true,
	.has_root = true,
	.in_place_checked = true,
	.count = coll_count_whole,
	.send_elems = coll_elems_one,
	.recv_elems = coll_elems_one,
	.send_offset = coll_offset_none,
	.recv_offset = coll_offset_none,
	.send_part = part_give,
	.recv_part = part_reduced_at_root,
	.payload = coll_elems_one,
	.factor = coll_factor_one,
	.run = run_reduce,
};

const struct coll_kind coll_reduce_scatter = {
	.name = "reduce_scatter",
	.reduces = true,
	.in_place_checked = true,
	.count = coll_count_share,
	.send_elems = coll_elems_all,
	.recv_elems = coll_elems_one,
	.send_offset = coll_offset_none,
	.recv_offset = coll_offset_rank,
	.send_part = part_give_all,
	.recv_part = part_reduced_mine,
	.payload = coll_elems_all,
	.factor = coll_factor_share,
	.run = run_reduce_scatter,
};
