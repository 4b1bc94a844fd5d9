#include "comm/gpu.h"

#include "comm/relay.h"
#include "comm/state.h"

_Static_assert((int)COMM_SIGNALS_MAX <= (int)CUDA_SIGNALS_MAX, "the engine has as many");

void *gpu_context(void)
{
	cu_context context;

	return cuda_context(&context) ? NULL : context;
}

void gpu_context_use(void *context)
{
	if (context)
		cuda_driver()->context_set(context);
}

void gpu_context_back(void *context)
{
	cuda_driver()->context_set(context);
}

void *gpu_context_of(const struct comm *comm)
{
	return comm->gpu.engine ? cuda_engine_context(comm->gpu.engine) : NULL;
}

enum err gpu_context_listed(const struct gpu_listed *listed, void **context)
{
	cu_context found = NULL, last;
	enum err e;

	*context = gpu_context();
	if (!*context ||
		(!listed->devices && cuda_device_context(listed->count - 1, &last)))
		return OK;
	e = cuda_device_context(
		listed->devices ? listed->devices[listed->at] : listed->at, &found);
	*context = found;
	return e;
}

enum err gpu_refused(const struct comm *comm)
{
	return err_set(
		ERR_USAGE, "device memory cannot be used here: %s", comm->gpu.reason);
}

/* CUDA may have come into the process after the communicator. */
bool gpu_look(struct comm *comm)
{
	comm->gpu.has_looked = true;
	comm->gpu.has_cuda = cuda_driver() != NULL;
	return comm->gpu.has_cuda;
}

enum err gpu_takes(struct comm *comm, const void *in, const void *out, bool *takes)
{
	*takes = comm->gpu.engine || comm->gpu.relay;
	if (*takes || (comm->gpu.has_looked ? !comm->gpu.has_cuda : !gpu_look(comm)) ||
		(!cuda_memory_is(in) && !cuda_memory_is(out)))
		return OK;
	*takes = true; /* the GPUs meet before it is run */
	if (comm->hosts.numbers)
		return relay_open(comm, cuda_memory_is(in) ? in : out, false);
	return comm->gpu.reason[0] ? gpu_refused(comm) : OK;
}

enum err gpu_plan(const struct comm_call *call, struct device_plan *plan)
{
	const struct comm *comm = call->comm;
	const struct device_ask ask = {.key = call_spec(call).key,
		.protos = call->protos,
		.has_slots = comm->gpu.is_staged,
		.is_apart = comm->gpu.is_apart};

	return plan_get_device(host_engine_planner(comm->engine), &ask, plan);
}

enum err gpu_show(struct comm *comm, const void *ptr, size_t bytes, uint64_t *addresses)
{
	enum err e = OK;

	if (!cuda_memory_is(ptr))
		return err_set(ERR_ARGUMENT,
			"a window of a communicator on GPUs must lie in device memory; "
			"%p does not",
			ptr);
	for (uint32_t r = 0; r < comm->rank_count && !e; r++)
		e = cuda_engine_show(comm->gpu.engine, r, ptr, bytes, &addresses[r]);
	return e;
}

enum err gpu_check(struct comm *comm)
{
	return comm->gpu.engine ? cuda_engine_check(comm->gpu.engine) : OK;
}

void gpu_abort(struct comm *comm)
{
	relay_let_go(comm);
	cuda_engine_abort(comm->gpu.engine);
}

void gpu_free(struct comm *comm)
{
	relay_rest(comm);
	cuda_engine_destroy(comm->gpu.engine);
	cuda_engine_destroy(comm->gpu.made);
	comm->gpu.engine = NULL;
}
