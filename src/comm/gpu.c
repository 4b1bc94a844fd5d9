#include "comm/gpu.h"

#include <stdio.h>
#include <stdlib.h>

#include "base/log.h"
#include "comm/state.h"

void gpu_prepare(struct comm *comm, struct cuda_hello *hello)
{
	enum err e = cuda_engine_prepare(comm->rank, comm->rank_count, hello, &comm->gpu);

	comm->has_cuda = cuda_driver() != NULL;
	if (e)
		snprintf(comm->gpu_reason, sizeof(comm->gpu_reason), "%s", err_last());
}

void *gpu_context(void)
{
	const struct cuda_driver *driver = cuda_driver();
	cu_context context = NULL;

	return driver && !driver->context_get(&context) ? context : NULL;
}

void gpu_context_use(void *context)
{
	if (context)
		cuda_driver()->context_set(context);
}

/* Did it work for all? They must not go different ways. */
static enum err vote(struct comm *comm, bool *all)
{
	int32_t mine = *all, least = 0;
	struct host_spec spec = {
		.key = {.coll = COLL_ALL_REDUCE, .type = DTYPE_INT32, .count = 1},
		.op = REDOP_MIN,
		.in = &mine,
		.out = &least};
	enum err e = host_run_one(comm->engine, &spec);

	*all = !e && least;
	return e;
}

static void give_up(struct comm *comm, const char *reason)
{
	if (!comm->gpu_reason[0])
		snprintf(comm->gpu_reason, sizeof(comm->gpu_reason), "%s", reason);
	cuda_engine_destroy(comm->gpu);
	comm->gpu = NULL;
}

enum err gpu_connect(struct comm *comm, const struct cuda_hello *const *hellos)
{
	bool any = false, works;
	enum err e;

	for (uint32_t i = 0; i < comm->rank_count; i++)
		any = any || hellos[i]->has_gpu;
	if (!any)
		return OK;
	works = comm->gpu && !cuda_engine_connect(comm->gpu, hellos);
	if (!works)
		give_up(comm, comm->gpu ? err_last() : "this rank has no CUDA context");
	e = vote(comm, &works);
	if (e)
		return e;
	if (!works)
		give_up(comm, "another rank cannot");
	else
		log_info(LOG_INIT, "%u ranks share a GPU, %s", comm->rank_count,
			cuda_engine_way(comm->gpu));
	return OK;
}

enum err gpu_takes(struct comm *comm, const void *in, const void *out, bool *takes)
{
	*takes = false;
	if (!comm->has_cuda)
		return OK;
	*takes = cuda_memory_is(in) || cuda_memory_is(out);
	if (!*takes || comm->gpu)
		return OK;
	return err_set(ERR_USAGE, "device memory cannot be used here: %s",
		comm->gpu_reason[0] ? comm->gpu_reason
				    : "no CUDA context was current when the "
				      "communicator was made");
}

/* What is wrong with the call itself leaves the communicator as it is. */
static enum err call_check(const struct comm_call *call)
{
	if (call->kind != CALL_COLL)
		return err_set(ERR_USAGE,
			"send, recv and one-sided calls on device memory are not in this "
			"version: use a collective, or host memory");
	if (call->op.scalar_pointer)
		return err_set(ERR_USAGE,
			"a scalar in device memory is not read by this version: create "
			"the operator with ncclScalarHostImmediate");
	return cuda_engine_takes(call->comm->gpu, (cu_stream)call->gpu_stream);
}

static struct cuda_call call_of(const struct comm_call *call)
{
	return (struct cuda_call){
		.key = {.coll = call->coll,
			.type = call->type,
			.root = coll_has_root(call->coll) ? call->root : 0,
			.count = call->count},
		.op = coll_reduces(call->coll) ? call->op.op : REDOP_SUM,
		.scalar = {.bits = call->op.scalar_bits},
		.in = call->in,
		.out = call->out,
		.stream = (cu_stream)call->gpu_stream};
}

static enum err settle(const struct comm_call *call, enum err e)
{
	if (e)
		comm_fail(call->comm, e);
	return e;
}

/* Is an earlier call of the same communicator still to be begun or finished? */
static bool is_behind(const struct comm_call *calls, const char *stages, uint32_t at)
{
	for (uint32_t i = 0; i < at; i++)
		if (calls[i].comm == calls[at].comm && stages[i] < 2)
			return true;
	return false;
}

/* One round: begin the first call of each communicator that is left, then finish these.
 * A thread that calls for several ranks must not wait for one before all have begun. */
static enum err submit_round(const struct comm_call *calls, char *stages, uint32_t count)
{
	enum err e = OK;

	for (uint32_t i = 0; i < count && !e; i++) {
		struct cuda_call work = call_of(&calls[i]);

		if (stages[i] || is_behind(calls, stages, i))
			continue;
		e = settle(&calls[i], cuda_engine_begin(calls[i].comm->gpu, &work));
		stages[i] = 1;
	}
	for (uint32_t i = 0; i < count && !e; i++) {
		struct cuda_call work = call_of(&calls[i]);

		if (stages[i] != 1)
			continue;
		e = settle(&calls[i], cuda_engine_finish(calls[i].comm->gpu, &work));
		stages[i] = 2;
	}
	return e;
}

enum err gpu_submit(const struct comm_call *calls, uint32_t count)
{
	char *stages = calloc(count, 1); /* 1 begun, 2 finished */
	bool is_left = true;
	enum err e = stages ? OK : err_set(ERR_SYSTEM, "no memory for %u calls", count);

	for (uint32_t i = 0; i < count && !e; i++)
		e = call_check(&calls[i]);
	/* whoever aborts waits until nobody is inside */
	for (uint32_t i = 0; i < count; i++)
		atomic_fetch_add(&calls[i].comm->inside, 1);
	while (!e && is_left) {
		e = submit_round(calls, stages, count);
		is_left = false;
		for (uint32_t i = 0; i < count; i++)
			is_left = is_left || stages[i] < 2;
	}
	for (uint32_t i = 0; i < count; i++)
		atomic_fetch_sub(&calls[i].comm->inside, 1);
	free(stages);
	return e;
}

enum err gpu_check(struct comm *comm)
{
	return comm->gpu ? cuda_engine_check(comm->gpu) : OK;
}

void gpu_abort(struct comm *comm)
{
	cuda_engine_abort(comm->gpu);
}

void gpu_free(struct comm *comm)
{
	cuda_engine_destroy(comm->gpu);
	comm->gpu = NULL;
}
