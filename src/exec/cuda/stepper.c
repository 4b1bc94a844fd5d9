#include "exec/cuda/stepper.h"

#include <stdio.h>
#include <stdlib.h>

#include "exec/cuda/kernels/kernels.h"
#include "exec/cuda/state.h"

static enum err module_get(
	struct stepper *stepper, enum steps_codec codec, cu_module *module)
{
	static const unsigned char *const images[STEPS_CODECS] = {
		[STEPS_SIMPLE] = cuda_steps_simple,
		[STEPS_LL] = cuda_steps_ll,
		[STEPS_LL128] = cuda_steps_ll128};
	cu_module *kept = &stepper->modules[codec];
	enum err e = OK;

	if (!*kept)
		e = cuda_check(cuda_driver()->module_load(kept, images[codec]),
			"load the kernels");
	*module = *kept;
	return e;
}

enum err stepper_function(struct stepper *stepper, enum steps_codec codec,
	enum dtype type, const char *op, cu_function *function)
{
	cu_module module;
	char name[64];
	enum err e = module_get(stepper, codec, &module);

	if (op)
		snprintf(name, sizeof(name), "steps_%s_%s_%s", steps_codec_name(codec),
			dtype_name(type), op);
	else
		snprintf(name, sizeof(name), "steps_%s_copy", steps_codec_name(codec));
	return e ? e
		 : cuda_check(
			   cuda_driver()->module_function(function, module, name), name);
}

enum err stepper_fold(struct stepper *stepper, enum steps_codec codec,
	const struct plan_key *key, enum redop op, cu_function *function)
{
	static const char *const ops[] = {
		[REDOP_SUM] = "sum",
		[REDOP_PROD] = "prod",
		[REDOP_MAX] = "max",
		[REDOP_MIN] = "min",
		[REDOP_AVG] = "sum",
		[REDOP_PREMUL] = "sum",
	};

	return stepper_function(stepper, codec, key->type,
		coll_reduces(key->coll) ? ops[op] : NULL, function);
}

enum err stepper_load(struct stepper *stepper, enum steps_codec codec)
{
	static const char *const ops[] = {"sum", "prod", "max", "min"};
	cu_function function;
	enum err e = stepper_function(stepper, codec, 0, NULL, &function);

	for (int t = 0; t < DTYPE_COUNT; t++)
		for (int o = 0; o < 4 && !e; o++)
			e = stepper_function(
				stepper, codec, (enum dtype)t, ops[o], &function);
	return e;
}

static enum err steps_upload(
	cu_stream side, cu_ptr to, const struct dev_steps *steps, size_t bytes)
{
	const struct cuda_driver *driver = cuda_driver();
	enum err e = cuda_check(
		driver->memcpy_async(to, (cu_ptr)(uintptr_t)steps, bytes, side),
		"copy to the device");

	return e ? e
		 : cuda_check(driver->stream_synchronize(side),
			   "wait for a copy to the device");
}

static enum err steps_place(cu_stream side, struct kept_steps *kept)
{
	cu_ptr address = 0;
	enum err e = cuda_check(cuda_driver()->mem_alloc(&address, kept->bytes),
		"allocate device memory");

	if (!e)
		e = steps_upload(side, address, kept->steps, kept->bytes);
	if (e && address)
		cuda_driver()->mem_free(address);
	if (!e)
		kept->address = address;
	return e;
}

static enum err kept_find(struct stepper *stepper, const struct device_program *program,
	struct kept_steps **found)
{
	void *list = kept_grow(stepper->kept, &stepper->kept_count, program->number,
		sizeof(*stepper->kept));
	struct kept_steps *kept;

	if (!list)
		return ERR_SYSTEM;
	stepper->kept = list;
	*found = kept = &stepper->kept[program->number];
	return kept->steps ? OK
			   : steps_flatten(program->ranks, &kept->steps, &kept->bytes);
}

enum err stepper_flat(struct stepper *stepper, const struct device_program *program,
	const struct kept_steps **found)
{
	struct kept_steps *kept;
	enum err e = kept_find(stepper, program, &kept);

	if (!e)
		*found = kept;
	return e;
}

enum err stepper_steps(struct stepper *stepper, const struct device_program *program,
	cu_stream side, const struct kept_steps **found)
{
	struct kept_steps *kept;
	enum err e = kept_find(stepper, program, &kept);

	if (!e && !kept->address)
		e = steps_place(side, kept);
	if (!e)
		*found = kept;
	return e;
}

enum err stepper_run(const struct stepper_launch *launch, struct steps_args *args)
{
	void *params[] = {args};

	return cuda_check(cuda_driver()->launch(launch->function,
				  launch->channels * args->head.lane_count,
				  args->rank_count, 1, steps_threads(args, launch->codec),
				  1, 1, 0, launch->stream, params, NULL),
		"launch a kernel");
}

void stepper_free(struct stepper *stepper)
{
	for (uint32_t i = 0; i < stepper->kept_count; i++) {
		if (stepper->kept[i].address)
			cuda_driver()->mem_free(stepper->kept[i].address);
		free(stepper->kept[i].steps);
	}
	free(stepper->kept);
	for (uint32_t c = 0; c < STEPS_CODECS; c++)
		if (stepper->modules[c])
			cuda_driver()->module_unload(stepper->modules[c]);
}
