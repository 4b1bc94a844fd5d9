/* The collectives that move blocks: all_gather, broadcast, gather, scatter, hypercube. */
#include <string.h>

#include "perf/coll.h"
#include "perf/device.h"

/* Block i is rank i's values. */
static bool part_blocks(
	const struct coll_shape *shape, uint32_t i, struct data_part *part)
{
	*part = (struct data_part){PART_COPY, i, i * shape->count, shape->count, 0};
	return i < shape->rank_count;
}

static bool part_blocks_at_root(
	const struct coll_shape *shape, uint32_t i, struct data_part *part)
{
	return shape->rank == shape->root && part_blocks(shape, i, part);
}

static bool part_root(const struct coll_shape *shape, uint32_t i, struct data_part *part)
{
	*part = (struct data_part){PART_COPY, shape->root, 0, shape->count, 0};
	return i == 0;
}

static bool part_own_at_root(
	const struct coll_shape *shape, uint32_t i, struct data_part *part)
{
	return shape->rank == shape->root && part_root(shape, i, part);
}

static bool part_all_at_root(
	const struct coll_shape *shape, uint32_t i, struct data_part *part)
{
	*part = (struct data_part){
		PART_COPY, shape->root, 0, shape->count * shape->rank_count, 0};
	return shape->rank == shape->root && i == 0;
}

static bool part_root_mine(
	const struct coll_shape *shape, uint32_t i, struct data_part *part)
{
	*part = (struct data_part){
		PART_COPY, shape->root, 0, shape->count, shape->rank * shape->count};
	return i == 0;
}

static size_t payload_hypercube(const struct coll_shape *shape)
{
	return shape->count * (shape->rank_count - 1);
}

static ncclResult_t run_all_gather(const struct coll_call *call)
{
	return ncclAllGather(call->send, call->recv, call->shape.count, call->type,
		call->comm, call->stream);
}

static ncclResult_t run_broadcast(const struct coll_call *call)
{
	return ncclBroadcast(call->send, call->recv, call->shape.count, call->type,
		(int)call->shape.root, call->comm, call->stream);
}

static ncclResult_t run_gather(const struct coll_call *call)
{
	return ncclGather(call->send, call->recv, call->shape.count, call->type,
		(int)call->shape.root, call->comm, call->stream);
}

static ncclResult_t run_scatter(const struct coll_call *call)
{
	return ncclScatter(call->send, call->recv, call->shape.count, call->type,
		(int)call->shape.root, call->comm, call->stream);
}

static bool block_copy(const struct coll_call *call, char *to, size_t bytes)
{
	if (call->is_on_device)
		return device_copy(to, call->send, bytes, call->stream);
	memcpy(to, call->send, bytes);
	return true;
}

/* Swap all I have with the rank across one dimension after the other. */
static ncclResult_t run_hypercube(const struct coll_call *call)
{
	const struct coll_shape *shape = &call->shape;
	size_t block = shape->count * shape->elem_bytes;
	char *mine = (char *)call->recv + shape->rank * block;

	if (call->send != mine && !block_copy(call, mine, block))
		return ncclUnhandledCudaError;
	for (uint32_t bit = 1; bit < shape->rank_count; bit *= 2) {
		uint32_t peer = shape->rank ^ bit;
		char *have = (char *)call->recv + (shape->rank & ~(bit - 1)) * block;
		char *want = (char *)call->recv + (peer & ~(bit - 1)) * block;
		ncclResult_t result = ncclGroupStart();

		if (!result)
			result = ncclSend(have, shape->count * bit, call->type, (int)peer,
				call->comm, call->stream);
		if (!result)
			result = ncclRecv(want, shape->count * bit, call->type, (int)peer,
				call->comm, call->stream);
		if (!result)
			result = ncclGroupEnd();
		if (result)
			return result;
	}
	return ncclSuccess;
}

const struct coll_kind coll_all_gather = {
	.name = "all_gather",
	.redop = "none",
	.in_place_checked = true,
	.count = coll_count_share,
	.send_elems = coll_elems_one,
	.recv_elems = coll_elems_all,
	.send_offset = coll_offset_rank,
	.recv_offset = coll_offset_none,
	.send_part = coll_part_own,
	.recv_part = part_blocks,
	.payload = coll_elems_all,
	.factor = coll_factor_share,
	.run = run_all_gather,
};

const struct coll_kind coll_broadcast = {
	.name = "broadcast",
	.redop = "none",
	.has_root = true,
	.in_place_checked = true,
	.count = coll_count_whole,
	.send_elems = coll_elems_one,
	.recv_elems = coll_elems_one,
	.send_offset = coll_offset_none,
	.recv_offset = coll_offset_none,
	.send_part = part_own_at_root,
	.recv_part = part_root,
	.payload = coll_elems_one,
	.factor = coll_factor_one,
	.run = run_broadcast,
};

const struct coll_kind coll_gather = {
	.name = "gather",
	.redop = "none",
	.has_root = true,
	.in_place_checked = true,
	.count = coll_count_share,
	.send_elems = coll_elems_one,
	.recv_elems = coll_elems_all,
	.send_offset = coll_offset_rank,
	.recv_offset = coll_offset_none,
	.send_part = coll_part_own,
	.recv_part = part_blocks_at_root,
	.payload = coll_elems_all,
	.factor = coll_factor_share,
	.run = run_gather,
};

const struct coll_kind coll_scatter = {
	.name = "scatter",
	.redop = "none",
	.has_root = true,
	.in_place_checked = true,
	.count = coll_count_share,
	.send_elems = coll_elems_all,
	.recv_elems = coll_elems_one,
	.send_offset = coll_offset_none,
	.recv_offset = coll_offset_rank,
	.send_part = part_all_at_root,
	.recv_part = part_root_mine,
	.payload = coll_elems_all,
	.factor = coll_factor_share,
	.run = run_scatter,
};

const struct coll_kind coll_hypercube = {
	.name = "hypercube",
	.redop = "",
	.in_place_checked = true,
	.in_rounds = true,
	.count = coll_count_share,
	.send_elems = coll_elems_one,
	.recv_elems = coll_elems_all,
	.send_offset = coll_offset_rank,
	.recv_offset = coll_offset_none,
	.send_part = coll_part_own,
	.recv_part = part_blocks,
	.payload = payload_hypercube,
	.factor = coll_factor_one,
	.run = run_hypercube,
};
