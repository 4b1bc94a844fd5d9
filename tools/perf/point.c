#include "perf/point.h"

#include <string.h>

#include "perf/device.h"

struct coll_shape point_shape(
	const struct worker *worker, const struct point *point, uint32_t rank)
{
	const struct run *run = worker->run;
	struct coll_shape shape = {.rank = rank,
		.rank_count = run->rank_count,
		.root = point->root,
		.elem_bytes = element_info(point->type)->bytes,
		.total = point->total};

	shape.count = run->kind->count(&shape);
	return shape;
}

size_t point_row_elems(const struct coll_kind *kind, const struct coll_shape *shape)
{
	size_t send = kind->send_elems(shape), recv = kind->recv_elems(shape);

	return send > recv ? send : recv;
}

bool worker_is_on_device(const struct worker *worker)
{
	return worker->run->options.memory == MEMORY_DEVICE;
}

/* ---- calls ---- */

/* Two buffers of a rank. */
struct buffers {
	char *send, *recv;
};

static struct coll_call call_in(const struct worker *worker, const struct point *point,
	const struct rank *rank, struct buffers buffers)
{
	const struct coll_kind *kind = worker->run->kind;
	struct coll_call call = {.shape = point_shape(worker, point, rank->rank),
		.send = buffers.send,
		.recv = buffers.recv,
		.type = (ncclDataType_t)point->type,
		.op = rank->op,
		.comm = rank->comm,
		.stream = (cudaStream_t)rank->stream,
		.is_on_device = worker_is_on_device(worker)};
	size_t bytes = call.shape.elem_bytes;

	if (point->in_place) {
		call.send = buffers.recv + kind->send_offset(&call.shape) * bytes;
		call.recv = buffers.recv + kind->recv_offset(&call.shape) * bytes;
	}
	return call;
}

static size_t skipped(const struct worker *worker, const struct point *point)
{
	return (size_t)worker->run->options.unalign * element_info(point->type)->bytes;
}

struct coll_call point_call(const struct worker *worker, const struct point *point,
	const struct rank *rank, size_t shift)
{
	shift += skipped(worker, point);
	return call_in(worker, point, rank,
		(struct buffers){rank->send + shift, rank->recv + shift});
}

/* .. where it is filled and looked at. */
static struct coll_call call_seen(
	const struct worker *worker, const struct point *point, const struct rank *rank)
{
	size_t skip = skipped(worker, point);

	return call_in(worker, point, rank,
		(struct buffers){rank->send_seen + skip, rank->recv_seen + skip});
}

/* ---- on a GPU ---- */

int worker_device_failed(const struct worker *worker)
{
	return meet_fail(worker->run->meet, TEST_INTERNAL);
}

int worker_wait(struct worker *worker)
{
	for (uint32_t j = 0; worker_is_on_device(worker) && j < worker->rank_count; j++)
		if (!device_wait(worker->ranks[j].stream))
			return worker_device_failed(worker);
	return TEST_OK;
}

/* Bytes of a row from the beginning of both buffers, to the device or from it. */
static int rows_copy(struct worker *worker, const struct point *point, bool is_read)
{
	size_t skip = skipped(worker, point);

	for (uint32_t j = 0; j < worker->rank_count; j++) {
		const struct rank *rank = &worker->ranks[j];
		struct coll_shape shape = point_shape(worker, point, rank->rank);
		size_t bytes = point_row_elems(worker->run->kind, &shape) *
			       shape.elem_bytes;
		bool is_well = is_read ? device_read(rank->recv_seen + skip,
						 rank->recv + skip, bytes, rank->stream)
				       : device_write(rank->recv + skip,
						 rank->recv_seen + skip, bytes,
						 rank->stream) &&
						 device_write(rank->send + skip,
							 rank->send_seen + skip, bytes,
							 rank->stream);

		if (!is_well)
			return worker_device_failed(worker);
	}
	return TEST_OK;
}

/* ---- values ---- */

static struct data_rule rule_of(
	const struct worker *worker, const struct point *point, uint64_t seed)
{
	return (struct data_rule){point->type, point->op, worker->run->rank_count, seed};
}

static const struct data_stride all = {0, 1};

/* Where a rank is filled, all of a row is made zero first. */
static bool zero(const struct worker *worker, char *base, const struct coll_call *call)
{
	size_t bytes = point_row_elems(worker->run->kind, &call->shape) *
		       call->shape.elem_bytes;

	if (worker->is_seen_on_device)
		return !bytes || device_zero(base, bytes, call->stream);
	memset(base, 0, bytes);
	return true;
}

static bool fill_part(const struct worker *worker, const struct data_rule *rule,
	const struct data_part *part, const struct coll_call *call)
{
	void *buffer = (void *)(uintptr_t)call->send;

	if (worker->is_seen_on_device)
		return gpu_data_fill(&worker->data, rule, part, buffer, call->stream);
	data_fill(rule, part, buffer, all);
	return true;
}

int point_fill(struct worker *worker, const struct point *point, uint64_t seed)
{
	const struct coll_kind *kind = worker->run->kind;
	struct data_rule rule = rule_of(worker, point, seed);
	bool is_well = true;

	for (uint32_t j = 0; is_well && j < worker->rank_count; j++) {
		struct rank *rank = &worker->ranks[j];
		struct coll_call call = call_seen(worker, point, rank);
		struct data_part part;

		is_well = zero(worker, rank->recv_seen + skipped(worker, point), &call);
		for (uint32_t i = 0; is_well && kind->send_part(&call.shape, i, &part);
			i++)
			is_well = fill_part(worker, &rule, &part, &call);
	}
	if (!is_well)
		return worker_device_failed(worker);
	if (worker_is_on_device(worker) && !worker->is_seen_on_device)
		return rows_copy(worker, point, false);
	return worker_wait(worker);
}

int point_fetch(struct worker *worker, const struct point *point)
{
	if (worker_is_on_device(worker) && !worker->is_seen_on_device)
		return rows_copy(worker, point, true);
	return worker_wait(worker);
}

static uint64_t wrong_on_host(const struct coll_kind *kind, const struct data_rule *rule,
	const struct coll_call *call)
{
	struct data_part part;
	uint64_t wrong = 0;

	for (uint32_t i = 0; kind->recv_part(&call->shape, i, &part); i++)
		wrong += data_count_wrong(rule, &part, call->recv, all);
	return wrong;
}

static bool wrong_on_device(const struct worker *worker, const struct data_rule *rule,
	const struct coll_call *call, uint64_t *wrong)
{
	bool is_well = gpu_data_count(&worker->data, call->stream);
	struct data_part part;

	for (uint32_t i = 0;
		is_well && worker->run->kind->recv_part(&call->shape, i, &part); i++)
		is_well = gpu_data_check(
			&worker->data, rule, &part, call->recv, call->stream);
	return is_well && gpu_data_counted(&worker->data, call->stream, wrong);
}

int point_count_wrong(
	struct worker *worker, const struct point *point, uint64_t seed, double *wrong)
{
	struct data_rule rule = rule_of(worker, point, seed);
	uint64_t all_wrong = 0;

	for (uint32_t j = 0; j < worker->rank_count; j++) {
		struct coll_call call = call_seen(worker, point, &worker->ranks[j]);
		uint64_t here = 0;

		if (!worker->is_seen_on_device)
			here = wrong_on_host(worker->run->kind, &rule, &call);
		else if (!wrong_on_device(worker, &rule, &call, &here))
			return worker_device_failed(worker);
		all_wrong += here;
	}
	*wrong = (double)all_wrong;
	return TEST_OK;
}
