#include "comm/gpu_slots.h"

#include <stdlib.h>

#include "comm/inside.h"
#include "comm/state.h"
#include "exec/cuda/engine.h"

/* One communicator on its way to slots. */
struct maker {
	struct comm *comm;
	struct cuda_engine *gpu;	 /* borrowed */
	struct cuda_offer mine, *offers; /* owned */
	int32_t works, all_work;
	enum err own; /* what failed here */
	bool entered;
	struct host_job job; /* the one under way */
};

/* The same small collective on each, side by side: one thread may be several ranks. */
typedef struct host_spec spec_of(struct maker *maker);

static enum err makers_run(struct maker *makers, uint32_t count, spec_of *spec)
{
	const struct host_job **jobs = calloc(count, sizeof(*jobs));
	enum err e;

	if (!jobs)
		return err_set(ERR_SYSTEM, "no memory for %u communicators", count);
	for (uint32_t i = 0; i < count; i++) {
		makers[i].job.kind = JOB_COLL;
		makers[i].job.engine = makers[i].comm->engine;
		makers[i].job.spec = spec(&makers[i]);
		jobs[i] = &makers[i].job;
	}
	e = host_run(jobs, count);
	free(jobs);
	return e;
}

static struct host_spec offer_spec(struct maker *maker)
{
	return (struct host_spec){.key = {.coll = COLL_ALL_GATHER,
					  .type = DTYPE_UINT8,
					  .count = sizeof(maker->mine)},
		.in = &maker->mine,
		.out = maker->offers};
}

static struct host_spec vote_spec(struct maker *maker)
{
	return (struct host_spec){
		.key = {.coll = COLL_ALL_REDUCE, .type = DTYPE_INT32, .count = 1},
		.op = REDOP_MIN,
		.in = &maker->works,
		.out = &maker->all_work};
}

static enum err maker_result(const struct maker *maker)
{
	if (maker->all_work)
		return OK;
	return maker->own ? maker->own
			  : err_set(ERR_REMOTE, "another rank has no memory for slots");
}

/* What a rank lacks is told to the others by its vote. */
static enum err makers_make(struct maker *makers, uint32_t count)
{
	enum err e;

	for (uint32_t i = 0; i < count; i++)
		makers[i].own = cuda_engine_offer(
			makers[i].gpu, makers[i].comm->gpu.is_apart, &makers[i].mine);
	e = makers_run(makers, count, offer_spec);
	for (uint32_t i = 0; i < count && !e; i++) {
		if (!makers[i].own)
			makers[i].own = cuda_engine_accept(
				makers[i].gpu, makers[i].offers);
		makers[i].works = !makers[i].own;
	}
	if (!e)
		e = makers_run(makers, count, vote_spec);
	for (uint32_t i = 0; i < count && !e; i++) {
		e = maker_result(&makers[i]);
		makers[i].comm->gpu.is_staged = !e;
	}
	return e;
}

static enum err maker_init(
	struct maker *maker, struct comm *comm, struct cuda_engine *gpu)
{
	maker->comm = comm;
	maker->gpu = gpu;
	maker->offers = calloc(comm->rank_count, sizeof(*maker->offers));
	return maker->offers
		       ? OK
		       : err_set(ERR_SYSTEM, "no memory for %u ranks", comm->rank_count);
}

/* Does anybody want slots, or need them? Then everybody makes some. */
static enum err slots_agree(struct comm *comm, struct cuda_engine *gpu, bool *wanted)
{
	const int32_t mine[2] = {comm->limits != NULL, cuda_engine_is_apart(gpu)};
	int32_t most[2] = {0, 0};
	struct host_spec spec = {
		.key = {.coll = COLL_ALL_REDUCE, .type = DTYPE_INT32, .count = 2},
		.op = REDOP_MAX,
		.in = mine,
		.out = most};
	enum err e = host_run_one(comm->engine, &spec);

	comm->gpu.is_apart = most[1];
	*wanted = most[0] || most[1];
	return e;
}

enum err gpu_slots_connect(struct comm *comm, struct cuda_engine *gpu)
{
	struct maker maker = {0};
	bool wanted = false;
	enum err e = slots_agree(comm, gpu, &wanted);

	if (e || !wanted)
		return e;
	e = maker_init(&maker, comm, gpu);
	if (!e)
		e = makers_make(&maker, 1);
	free(maker.offers);
	return e;
}

static bool is_without(const struct comm_call *call)
{
	const struct comm *comm = call->comm;

	return call->kind == CALL_COLL && call->protos && !comm->gpu.is_staged &&
	       comm->rank_count > 1;
}

static enum err makers_enter(struct maker *makers, uint32_t count)
{
	enum err e = OK;

	for (uint32_t i = 0; i < count && !e; i++) {
		e = inside_enter(makers[i].comm);
		makers[i].entered = !e;
	}
	return e;
}

/* One maker for each communicator, however many of its calls need it. */
static enum err makers_fill(const struct comm_call *calls, uint32_t call_count,
	struct maker *makers, uint32_t *count)
{
	enum err e = OK;

	*count = 0;
	for (uint32_t i = 0; i < call_count && !e; i++) {
		bool is_known = !is_without(&calls[i]);

		for (uint32_t j = 0; j < *count && !is_known; j++)
			is_known = makers[j].comm == calls[i].comm;
		if (!is_known)
			e = maker_init(&makers[(*count)++], calls[i].comm,
				calls[i].comm->gpu.engine);
	}
	return e;
}

static enum err provide(const struct comm_call *calls, uint32_t call_count)
{
	struct maker *makers = calloc(call_count, sizeof(*makers));
	uint32_t count = 0;
	bool has_begun = false;
	enum err e = makers ? makers_fill(calls, call_count, makers, &count)
			    : err_set(ERR_SYSTEM, "no memory for %u calls", call_count);

	if (!e)
		e = makers_enter(makers, count);
	if (!e) {
		has_begun = true;
		e = makers_make(makers, count);
	}
	for (uint32_t i = 0; i < count; i++) {
		if (e && has_begun)
			comm_fail(makers[i].comm, e,
				host_engine_culprit(makers[i].comm->engine));
		if (makers[i].entered)
			inside_leave(makers[i].comm);
		free(makers[i].offers);
	}
	free(makers);
	return e;
}

enum err gpu_slots_provide(const struct comm_call *calls, uint32_t count)
{
	for (uint32_t i = 0; i < count; i++)
		if (is_without(&calls[i]))
			return provide(calls, count);
	return OK;
}
