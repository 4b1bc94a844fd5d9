#include "comm/first.h"

#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/thread.h"
#include "comm/gpu.h"
#include "comm/state.h"

/* One communicator that is to meet. */
struct first {
	struct comm *comm;
	const void *ptr; /* device memory of this rank */
	pthread_t thread;
	bool has_thread;
	enum err result;
	char reason[ERR_TEXT_BYTES];
};

static bool is_first(const struct comm_call *call)
{
	return call->on_gpu && !call->comm->gpu.engine && !call->comm->gpu.relay;
}

/* Is it there already? A message beside a collective of the same group goes with it. */
static struct first *first_find(
	struct first *list, uint32_t count, const struct comm *comm)
{
	for (uint32_t i = 0; i < count; i++)
		if (list[i].comm == comm)
			return &list[i];
	return NULL;
}

static uint32_t list_fill(
	const struct comm_call *calls, uint32_t count, struct first *list)
{
	uint32_t used = 0;

	for (uint32_t i = 0; i < count; i++)
		if (is_first(&calls[i]) && calls[i].kind == CALL_COLL &&
			!first_find(list, used, calls[i].comm))
			list[used++] = (struct first){.comm = calls[i].comm,
				.ptr = comm_is_device(calls[i].in) ? calls[i].in
								   : calls[i].out};
	return used;
}

static enum err calls_check(
	const struct comm_call *calls, uint32_t count, struct first *list, uint32_t used)
{
	for (uint32_t i = 0; i < count; i++)
		if (is_first(&calls[i]) && !first_find(list, used, calls[i].comm))
			return err_set(ERR_USAGE,
				"device memory is sent or received on a communicator "
				"that was made when rank %u had not chosen a GPU: call "
				"cudaSetDevice on every rank before the communicator is "
				"made, or a collective with device memory first",
				calls[i].comm->gpu.missing);
	return OK;
}

static void *meet_main(void *arg)
{
	struct first *first = arg;

	first->result = gpu_meet(first->comm, first->ptr);
	snprintf(first->reason, sizeof(first->reason), "%s", err_last());
	return NULL;
}

/* The last one here, the others in threads. One whose thread cannot be had fails, and so
 * its ranks do, rather than wait for each other. */
static enum err list_run(struct first *list, uint32_t used)
{
	enum err e = OK;

	for (uint32_t i = 0; i + 1 < used; i++) {
		errno = thread_start_roomy(
			&list[i].thread, "weft-meet", meet_main, &list[i]);
		list[i].has_thread = !errno;
		if (list[i].has_thread)
			continue;
		list[i].result = err_set(ERR_SYSTEM, "cannot start a thread: %m");
		snprintf(list[i].reason, sizeof(list[i].reason), "%s", err_last());
		comm_fail(list[i].comm, ERR_SYSTEM, list[i].comm->rank);
	}
	meet_main(&list[used - 1]);
	for (uint32_t i = 0; i < used; i++) {
		if (list[i].has_thread)
			pthread_join(list[i].thread, NULL);
		if (list[i].result && !e) {
			e = list[i].result;
			err_adopt(list[i].reason);
		}
	}
	return e;
}

enum err first_meet(const struct comm_call *calls, uint32_t count)
{
	struct first *list;
	uint32_t used = 0;
	enum err e = OK;

	for (uint32_t i = 0; i < count; i++)
		used += is_first(&calls[i]);
	if (!used)
		return OK;
	list = calloc(used, sizeof(*list));
	if (!list)
		return err_set(ERR_SYSTEM, "no memory for %u calls", count);
	used = list_fill(calls, count, list);
	e = calls_check(calls, count, list, used);
	if (!e && used)
		e = list_run(list, used);
	free(list);
	return e;
}
