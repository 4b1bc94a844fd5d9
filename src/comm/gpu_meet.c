/*
 * gpu_meet.c - the GPUs of a communicator's ranks meet: when it is made, or when device
 * memory comes.
 */
#include <assert.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/log.h"
#include "comm/gpu.h"
#include "comm/gpu_slots.h"
#include "comm/inside.h"
#include "comm/relay.h"
#include "comm/state.h"
#include "exec/cuda/ferry.h"

void gpu_prepare(struct comm *comm, struct cuda_hello *hello)
{
	enum err e = cuda_engine_prepare(
		comm->rank, comm->rank_count, hello, &comm->gpu.made);

	comm->gpu.has_cuda = cuda_driver() != NULL;
	if (comm->gpu.made)
		comm->gpu.device = cuda_device();
	if (e)
		snprintf(comm->gpu.reason, sizeof(comm->gpu.reason), "%s", err_last());
}

enum err gpu_vote(struct comm *comm, bool *all)
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

static void reason_set(struct comm *comm, const char *reason)
{
	if (!comm->gpu.reason[0])
		snprintf(comm->gpu.reason, sizeof(comm->gpu.reason), "%s", reason);
}

void gpu_give_up(struct comm *comm, const char *reason)
{
	reason_set(comm, reason);
	cuda_engine_destroy(comm->gpu.made);
	comm->gpu.made = NULL;
}

/* Where it cannot be opened now, whoever brings device memory hears why. */
void gpu_relay(struct comm *comm, const struct cuda_hello *const *hellos)
{
	bool has_gpu = comm->gpu.made != NULL;
	bool may_wait = cuda_ferry_may(hellos, comm->rank_count, comm->rank);

	gpu_give_up(comm, "its ranks are on several hosts");
	if (has_gpu && relay_open(comm, NULL, may_wait))
		log_info(LOG_INIT, "device memory between hosts: not yet (%s)",
			err_last());
}

/* The first rank for which that holds; the number of ranks when it does for none. */
static uint32_t hello_find(const struct comm *comm,
	const struct cuda_hello *const *hellos, bool (*holds)(const struct cuda_hello *))
{
	uint32_t rank = 0;

	for (; rank < comm->rank_count; rank++) {
		assert(hellos[rank]);
		if (holds(hellos[rank]))
			break;
	}
	return rank;
}

static bool shows_gpu(const struct cuda_hello *hello)
{
	return hello->has_gpu;
}

static bool shows_nothing(const struct cuda_hello *hello)
{
	return !hello->has_gpu && !hello->has_failed;
}

static bool shows_failure(const struct cuda_hello *hello)
{
	return hello->has_failed;
}

/* Does everybody have a GPU that works? Where some have shown none yet, it is decided
 * when device memory comes. */
static bool are_all_there(struct comm *comm, const struct cuda_hello *const *hellos)
{
	uint32_t failed = hello_find(comm, hellos, shows_failure);
	uint32_t without = hello_find(comm, hellos, shows_nothing);
	char reason[ERR_TEXT_BYTES];

	if (failed < comm->rank_count) {
		snprintf(reason, sizeof(reason), "rank %u cannot use its GPU", failed);
		gpu_give_up(comm, reason);
		return false;
	}
	if (without == comm->rank_count)
		return true;
	comm->gpu.missing = without;
	cuda_engine_destroy(comm->gpu.made);
	comm->gpu.made = NULL;
	if (hello_find(comm, hellos, shows_gpu) < comm->rank_count)
		log_info(LOG_INIT,
			"rank %u shows no CUDA device and others do: the first "
			"collective with device memory decides",
			without);
	return false;
}

enum err gpu_connect(struct comm *comm, const struct cuda_hello *const *hellos)
{
	bool works, passes;
	enum err e;

	if (!are_all_there(comm, hellos))
		return OK;
	works = !cuda_engine_connect(comm->gpu.made, hellos);
	/* others may be using what is ours until they have voted */
	if (!works)
		reason_set(comm, err_last());
	e = gpu_vote(comm, &works);
	if (e)
		return e;
	if (!works) {
		gpu_give_up(comm, "another rank cannot");
		return OK;
	}
	passes = cuda_engine_passes_fds(comm->gpu.made);
	e = gpu_vote(comm, &passes);
	cuda_engine_pass_fds(comm->gpu.made, passes);
	if (!e)
		e = gpu_slots_connect(comm, comm->gpu.made);
	if (!e && comm->gpu.is_apart)
		e = relay_open(
			comm, NULL, cuda_ferry_may(hellos, comm->rank_count, comm->rank));
	if (e)
		return e;
	log_info(LOG_INIT, "%u ranks on device memory: %s", comm->rank_count,
		cuda_engine_way(comm->gpu.made));
	e = cuda_engine_start(comm->gpu.made, comm->health);
	if (e)
		return e;
	/* other threads may ask for it from now on */
	comm->gpu.engine = comm->gpu.made;
	comm->gpu.made = NULL;
	return OK;
}

/* ---- GPUs that meet when device memory comes ---- */

/* In the context of the memory. Ranks that bring none make another call, and all hear of
 * it. */
static enum err hellos_exchange(struct comm *comm, struct cuda_hello *all)
{
	struct cuda_hello mine;
	const struct host_spec spec = {.key = {.coll = COLL_ALL_GATHER,
					       .type = DTYPE_UINT8,
					       .count = sizeof(mine)},
		.op = (enum redop)OP_MEETING,
		.in = &mine,
		.out = all};

	gpu_prepare(comm, &mine);
	return host_run_one(comm->engine, &spec);
}

static enum err meet_here(struct comm *comm)
{
	struct cuda_hello *all = calloc(comm->rank_count, sizeof(*all));
	const struct cuda_hello **hellos = calloc(comm->rank_count, sizeof(*hellos));
	enum err e = all && hellos ? OK
				   : err_set(ERR_SYSTEM, "no memory to meet %u ranks",
					     comm->rank_count);

	for (uint32_t i = 0; i < comm->rank_count && !e; i++)
		hellos[i] = &all[i];
	if (!e)
		e = hellos_exchange(comm, all);
	if (!e)
		e = gpu_connect(comm, hellos);
	free(all);
	free(hellos);
	return e;
}

enum err gpu_meet(struct comm *comm, const void *ptr)
{
	const struct cuda_driver *driver = cuda_driver();
	cu_context had = NULL, wanted;
	enum err e = cuda_memory_context(ptr, &wanted);

	if (e)
		return e;
	driver->context_get(&had);
	driver->context_set(wanted);
	e = inside_enter(comm);
	if (!e) {
		e = meet_here(comm);
		if (e)
			comm_fail(comm, e, host_engine_culprit(comm->engine));
		inside_leave(comm);
	}
	driver->context_set(had);
	return e || comm->gpu.engine ? e : gpu_refused(comm);
}
