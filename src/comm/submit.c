/*
 * submit.c - a group's calls become jobs of the engines, here or on a stream's thread.
 */
#include <stdlib.h>
#include <string.h>

#include "comm/comm.h"
#include "comm/comm_log.h"
#include "comm/first.h"
#include "comm/gpu.h"
#include "comm/inside.h"
#include "comm/relay.h"
#include "comm/state.h"
#include "tune/squad.h"

static union kernel_scalar scalar_read(const void *pointer, enum dtype type)
{
	union kernel_scalar scalar = {0};

	memcpy(scalar.bytes, pointer, dtype_size(type));
	return scalar;
}

struct host_spec call_spec(const struct comm_call *call)
{
	return (struct host_spec){
		.key = {.coll = call->coll,
			.type = call->type,
			.root = coll_has_root(call->coll) ? call->root : 0,
			.count = call->count,
			.schedule = call->schedule},
		.op = coll_reduces(call->coll) ? call->op.op : REDOP_SUM,
		.scalar = {.bits = call->op.scalar_bits},
		.in = call->in,
		.out = call->out,
		.told = call->profile};
}

static void onesided_fill(const struct comm_call *call, struct host_job *job)
{
	job->kind = JOB_ONESIDED;
	job->onesided = (struct onesided){.engine = call->comm->engine,
		.peer = call->root,
		.signal = call->put.signal,
		.awaited = call->kind == CALL_WAIT ? call->put.signals : 0,
		.data = call->in,
		.bytes = call->count * dtype_size(call->type)};
	if (job->onesided.bytes)
		window_target(call, &job->onesided);
}

void work_fill(const struct comm_call *call, struct work *work)
{
	struct host_engine *engine = call->comm->engine;

	*work = (struct work){.comm = call->comm,
		.scalar_pointer = call->op.scalar_pointer,
		.entered = work->entered};
	work->job.engine = engine;
	if (call->kind == CALL_COLL) {
		work->job.kind = JOB_COLL;
		work->job.spec = call_spec(call);
		return;
	}
	if (call->kind == CALL_PUT || call->kind == CALL_WAIT) {
		onesided_fill(call, &work->job);
		return;
	}
	work->job.kind = JOB_P2P;
	p2p_init(&work->job.p2p, engine, call->kind == CALL_SEND, call->root);
	work->job.p2p.data = call->kind == CALL_SEND ? (char *)(uintptr_t)call->in
						     : (char *)call->out;
	work->job.p2p.bytes = call->count * dtype_size(call->type);
	work->job.p2p.told = call->profile;
	if (!comm_is_near(call->comm, call->root))
		work->job.p2p.shares = squad_shares(work->job.p2p.bytes,
			call->comm->hosts.squad.threads,
			call->comm->hosts.squad.share_bytes);
}

void work_join(struct work *work)
{
	if (work->carry.list)
		work->job.spec.carry = &work->carry;
	if (work->tide.count && work->job.kind == JOB_COLL)
		work->job.spec.tide = &work->tide;
	if (work->tide.count && work->job.kind == JOB_P2P)
		work->job.p2p.tide = &work->tide;
}

/* A call that no plan can serve is refused before a peer has seen anything of its group:
 * ERR_ARGUMENT, and the communicator lives on. */
static enum err work_plan(const struct work *work)
{
	const struct plan *plan;

	return plan_get(
		host_engine_planner(work->job.engine), &work->job.spec.key, &plan);
}

enum err works_run(struct work *works, uint32_t count)
{
	const struct host_job **jobs = malloc(count * sizeof(*jobs));
	enum err e = OK;

	if (!jobs)
		return err_set(ERR_SYSTEM, "no memory for %u calls", count);
	for (uint32_t i = 0; i < count && !e; i++) {
		bool is_planned = works[i].carry.list != NULL;

		if (works[i].scalar_pointer && !is_planned)
			works[i].job.spec.scalar = scalar_read(
				works[i].scalar_pointer, works[i].job.spec.key.type);
		if (works[i].job.kind == JOB_COLL && !is_planned)
			e = work_plan(&works[i]);
		if (!e && works[i].job.kind == JOB_COLL && !is_planned)
			e = comm_log_choice(works[i].comm, &works[i].job.spec.key);
		jobs[i] = &works[i].job;
	}
	if (!e)
		e = host_run(jobs, count);
	free(jobs);
	return e;
}

void works_leave(const struct work *works, uint32_t count)
{
	for (uint32_t i = 0; i < count; i++)
		if (works[i].entered)
			inside_leave(works[i].comm);
}

enum err works_enter(struct work *works, uint32_t count)
{
	enum err e = OK;

	for (uint32_t i = 0; i < count && !e; i++) {
		if (inside_is_mine(works[i].comm))
			continue;
		e = inside_enter(works[i].comm);
		works[i].entered = !e;
	}
	if (e)
		works_leave(works, count);
	return e;
}

/* Collectives and transfers in the calling thread; the comms are marked failed, all of
 * them, because a group succeeds or fails as one. ERR_ARGUMENT is work_plan()'s. */
static enum err submit_here(const struct comm_call *calls, uint32_t count)
{
	struct work *works = calloc(count, sizeof(*works));
	enum err e;

	if (!works)
		return err_set(ERR_SYSTEM, "no memory for %u calls", count);
	for (uint32_t i = 0; i < count; i++)
		works[i].comm = calls[i].comm;
	e = works_enter(works, count);
	if (e) {
		free(works);
		return e;
	}
	for (uint32_t i = 0; i < count; i++)
		work_fill(&calls[i], &works[i]);
	profile_run(calls, count, true);
	e = works_run(works, count);
	profile_ran(calls, count);
	for (uint32_t i = 0; i < count && e && e != ERR_ARGUMENT; i++)
		comm_fail(calls[i].comm, e, host_engine_culprit(calls[i].comm->engine));
	works_leave(works, count);
	free(works);
	return e;
}

/* Turns are taken and the batch is pushed in one go, which two threads must not mix. */
static enum err submit_to(
	struct stream *stream, const struct comm_call *calls, uint32_t count)
{
	struct work *works = calloc(count, sizeof(*works));
	bool *first = calloc(count, sizeof(*first));
	enum err e = works && first
			     ? inside_enqueue(calls, count, first)
			     : err_set(ERR_SYSTEM, "no memory for %u calls", count);

	if (e) {
		free(works);
		free(first);
		return e;
	}
	profile_run(calls, count, false);
	for (uint32_t i = 0; i < count; i++) {
		work_fill(&calls[i], &works[i]);
		works[i].turn = comm_busy_add(calls[i].comm);
		works[i].profile = profile_keep(&calls[i]);
	}
	e = stream_push(stream, works, count);
	inside_enqueued(calls, count, first);
	free(first);
	return e;
}

/* The common case: one collective, wait for it. */
static enum err submit_one(const struct comm_call *call)
{
	struct comm *comm = call->comm;
	struct host_spec spec;
	enum err e = inside_enter(comm);

	if (e)
		return e;
	spec = call_spec(call);
	if (call->op.scalar_pointer && coll_reduces(call->coll))
		spec.scalar = scalar_read(call->op.scalar_pointer, call->type);
	e = comm_log_choice(comm, &spec.key);
	if (call->profile)
		profile_run(call, 1, true);
	if (!e)
		e = host_run_one(comm->engine, &spec);
	if (call->profile)
		profile_ran(call, 1);
	if (e && e != ERR_ARGUMENT) /* that is the plan's: nothing has begun */
		comm_fail(comm, e, host_engine_culprit(comm->engine));
	inside_leave(comm);
	return e;
}

enum err comm_exchange(struct comm *comm, const struct host_spec *spec)
{
	enum err e;

	relay_drain(comm);
	e = inside_enter(comm);
	if (e)
		return e;
	e = host_run_one(comm->engine, spec);
	if (e)
		comm_fail(comm, e, host_engine_culprit(comm->engine));
	inside_leave(comm);
	return e;
}

/* The stream a call runs on: the caller's, or a non-blocking comm's own. */
static enum err call_stream(const struct comm_call *call, struct stream **stream)
{
	struct comm *comm = call->comm;
	enum err e = OK;

	*stream = call->stream;
	if (call->stream || comm->config.blocking)
		return OK;
	if (!comm->turns.worker)
		e = stream_create(&comm->turns.worker);
	*stream = comm->turns.worker;
	return e;
}

/* Calls of one stream leave as one batch, so they can run side by side. */
static enum err submit_batches(
	struct comm_call *calls, struct stream **streams, uint32_t count)
{
	struct comm_call *batch = calloc(count, sizeof(*batch));
	enum err e = OK;

	if (!batch)
		return err_set(ERR_SYSTEM, "no memory for %u calls", count);
	for (uint32_t i = 0; i < count && !e; i++) {
		struct stream *stream = streams[i];
		uint32_t size = 0;

		if (!calls[i].comm)
			continue;
		for (uint32_t j = i; j < count; j++)
			if (calls[j].comm && streams[j] == stream) {
				batch[size++] = calls[j];
				calls[j].comm = NULL; /* taken */
			}
		e = stream ? submit_to(stream, batch, size) : submit_here(batch, size);
	}
	free(batch);
	return e;
}

static enum err submit_host(const struct comm_call *calls, uint32_t count)
{
	struct stream **streams;
	struct comm_call *copy;
	struct stream *own = NULL;
	bool deferred = false;
	enum err e = OK;

	if (count == 1 && calls->kind == CALL_COLL && !calls->stream &&
		calls->comm->config.blocking)
		return submit_one(calls);
	streams = calloc(count, sizeof(*streams));
	copy = calloc(count, sizeof(*copy));
	if (!streams || !copy)
		e = err_set(ERR_SYSTEM, "no memory for %u calls", count);
	for (uint32_t i = 0; i < count && !e; i++) {
		copy[i] = calls[i];
		e = call_stream(&calls[i], &streams[i]);
		if (calls[i].comm->config.blocking || calls[i].stream)
			continue;
		/* non-blocking comms driven by one thread share one worker: side by side
		 */
		own = own ? own : streams[i];
		streams[i] = own;
		deferred = true;
		comm_async_set(calls[i].comm, ERR_PROGRESS);
	}
	if (!e)
		e = submit_batches(copy, streams, count);
	free(streams);
	free(copy);
	return e ? e : deferred ? ERR_PROGRESS : OK;
}

bool call_has_root(enum call_kind kind, enum coll coll)
{
	return kind != CALL_COLL || coll_has_root(coll);
}

struct call_blocks comm_call_blocks(
	const struct comm *comm, enum call_kind kind, enum coll coll, uint32_t root)
{
	bool at_root = root == comm->rank;

	if (kind != CALL_COLL)
		return (struct call_blocks){kind == CALL_SEND, kind == CALL_RECV};
	return (struct call_blocks){
		coll_blocks(coll, SPACE_IN, at_root, comm->rank_count),
		coll_blocks(coll, SPACE_OUT, at_root, comm->rank_count)};
}

enum err comm_on_gpu(struct comm *comm, const void *in, const void *out, bool *on_gpu)
{
	return gpu_takes(comm, in, out, on_gpu);
}

bool comm_look_for_cuda(struct comm *comm)
{
	return gpu_look(comm);
}

bool comm_is_device(const void *ptr)
{
	return cuda_memory_is(ptr);
}

bool comm_is_relayed(const struct comm *comm)
{
	return comm->gpu.relay && !comm->gpu.engine;
}

/* Who takes a call. */
enum taker { TAKER_GPU, TAKER_RELAY, TAKER_HOST, TAKERS };

/* Beside a call that is relayed, those of the same communicator are as well, so that all
 * of a group run together. */
static enum taker taker_of(const struct comm_call *calls, uint32_t count, uint32_t at)
{
	const struct comm_call *call = &calls[at];
	bool is_relayed = call->on_gpu;

	for (uint32_t i = 0; i < count && !is_relayed && !call->stream; i++)
		is_relayed = calls[i].comm == call->comm && calls[i].on_gpu;
	/* GPUs that do not reach each other have slots for collectives */
	if (call->comm->gpu.engine && call->kind != CALL_SEND && call->kind != CALL_RECV)
		is_relayed = false;
	if (is_relayed && call->comm->gpu.relay)
		return TAKER_RELAY;
	return call->on_gpu ? TAKER_GPU : TAKER_HOST;
}

static enum err submit_gpu(const struct comm_call *calls, uint32_t count)
{
	enum err e;

	profile_launch(calls, count);
	e = gpu_submit(calls, count);
	profile_launched(calls, count);
	return e;
}

static enum err submit_for(
	enum taker taker, const struct comm_call *calls, uint32_t count)
{
	if (taker == TAKER_GPU)
		return submit_gpu(calls, count);
	return taker == TAKER_RELAY ? relay_submit(calls, count)
				    : submit_host(calls, count);
}

/* Calls of a group that this one takes. */
static enum err submit_some(
	const struct comm_call *calls, uint32_t count, enum taker taker)
{
	struct comm_call *some = malloc(count * sizeof(*some));
	uint32_t used = 0;
	enum err e = OK;

	if (!some)
		return err_set(ERR_SYSTEM, "no memory for %u calls", count);
	for (uint32_t i = 0; i < count; i++)
		if (taker_of(calls, count, i) == taker)
			some[used++] = calls[i];
	if (used)
		e = submit_for(taker, some, used);
	free(some);
	return e;
}

enum err comm_submit(const struct comm_call *calls, uint32_t count)
{
	uint32_t on_gpu = 0;
	enum err e;

	for (uint32_t i = 0; i < count; i++)
		on_gpu += calls[i].on_gpu;
	if (!on_gpu)
		return submit_host(calls, count);
	e = first_meet(calls, count);
	if (!e && count == 1)
		return submit_for(taker_of(calls, 1, 0), calls, 1);
	for (enum taker taker = 0; taker < TAKERS && !e; taker++)
		e = submit_some(calls, count, taker);
	return e;
}
