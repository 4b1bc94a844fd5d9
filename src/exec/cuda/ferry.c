#include "exec/cuda/ferry.h"

#include <stdlib.h>
#include <string.h>

#include "exec/cuda/kernels/kernels.h"

struct cuda_ferry {
	cu_module module;
	cu_function function;
};

static bool shares_well(const struct cuda_hello *mine, const struct cuda_hello *other)
{
	return memcmp(mine->uuid, other->uuid, sizeof(mine->uuid)) ||
	       (mine->is_mps && other->is_mps && mine->pid != other->pid);
}

bool cuda_ferry_may(
	const struct cuda_hello *const *hellos, uint32_t rank_count, uint32_t rank)
{
	for (uint32_t r = 0; r < rank_count; r++)
		if (!hellos[r]->has_gpu ||
			(r != rank && !shares_well(hellos[rank], hellos[r])))
			return false;
	return true;
}

enum err cuda_ferry_open(struct cuda_ferry **ferry)
{
	const struct cuda_driver *driver = cuda_driver();
	struct cuda_ferry *made = calloc(1, sizeof(*made));
	struct ferry_args none = {0};
	enum err e = made ? OK : err_set(ERR_SYSTEM, "no memory for device buffers");
	int mode = 0;

	cuda_capture_relax(driver, &mode);
	if (!e)
		e = cuda_check(driver->module_load(&made->module, cuda_ferry),
			"load the kernels");
	if (!e)
		e = cuda_check(
			driver->module_function(&made->function, made->module, "ferry"),
			"ferry");
	/* a driver that loads lazily would do it in the middle of calls, and wait */
	if (!e)
		e = cuda_ferry_run(made, &none, CU_STREAM_PER_THREAD);
	cuda_capture_restore(driver, mode);
	if (e)
		cuda_ferry_close(made);
	*ferry = e ? NULL : made;
	return e;
}

void cuda_ferry_close(struct cuda_ferry *ferry)
{
	if (ferry && ferry->module)
		cuda_driver()->module_unload(ferry->module);
	free(ferry);
}

bool cuda_ferry_load(struct ferry_args *args, const struct cuda_berth *berth,
	struct ferry_cargo in, struct ferry_cargo out)
{
	struct berth_passage passage = cuda_berth_passage(berth);

	if (args->count == FERRY_TRIPS_MAX || in.bytes > FERRY_BYTES_MAX ||
		out.bytes > FERRY_BYTES_MAX)
		return false;
	args->trips[args->count++] = (struct dev_trip){.in = (uintptr_t)in.data,
		.in_berth = passage.memory + in.at,
		.out_berth = passage.memory + out.at,
		.out = (uintptr_t)out.data,
		.in_bytes = (uint32_t)in.bytes,
		.out_bytes = (uint32_t)out.bytes,
		.ready_at = passage.ready,
		.done_at = passage.done,
		.gone_at = passage.gone,
		.ready = passage.number,
		.done = passage.number,
		.gone = passage.number};
	return true;
}

static unsigned threads_for(const struct ferry_args *args)
{
	for (uint32_t i = 0; i < args->count; i++)
		if (args->trips[i].in_bytes > FERRY_FEW ||
			args->trips[i].out_bytes > FERRY_FEW)
			return FERRY_THREADS;
	return FERRY_THREADS_FEW;
}

enum err cuda_ferry_run(
	const struct cuda_ferry *ferry, struct ferry_args *args, cu_stream stream)
{
	void *params[] = {args};

	return cuda_check(cuda_driver()->launch(ferry->function, 1, 1, 1,
				  threads_for(args), 1, 1, 0, stream, params, NULL),
		"launch a kernel");
}
