#include "perf/gpu_data.h"

#include "exec/cuda/driver/driver.h"
#include "perf/device.h"
#include "perf/gpu_data_abi.h"

/* Enough for the largest GPUs to be full; each thread has many elements then. */
enum { BLOCKS_MAX = 4096 };

static cu_result load(const struct cuda_driver *driver, struct gpu_data *data)
{
	cu_module module = NULL;
	cu_function fill = NULL, check = NULL;
	cu_result result = driver->module_load(&module, gpu_data_image);

	if (result)
		return result;
	data->module = module;
	result = driver->module_function(&fill, module, "perf_fill");
	if (!result)
		result = driver->module_function(&check, module, "perf_check");
	data->fill = fill;
	data->check = check;
	return result ? result : driver->mem_alloc(&data->wrong, sizeof(uint64_t));
}

const char *gpu_data_open(struct gpu_data *data)
{
	*data = (struct gpu_data){0};
	if (!gpu_data_image_bytes)
		return "this program was built without nvcc";
	if (!cuda_check(load(cuda_driver(), data), "load kernels for that"))
		return NULL;
	gpu_data_close(data);
	return err_last();
}

void gpu_data_close(struct gpu_data *data)
{
	const struct cuda_driver *driver = cuda_driver();

	if (data->wrong)
		driver->mem_free(data->wrong);
	if (data->module)
		driver->module_unload(data->module);
	*data = (struct gpu_data){0};
}

static bool launch(void *function, struct gpu_data_args *args, void *stream)
{
	size_t blocks = (args->part.count + GPU_DATA_THREADS - 1) / GPU_DATA_THREADS;
	void *params[] = {args};

	if (!blocks)
		return true;
	return device_is_well(
		cuda_driver()->launch(function,
			(unsigned)(blocks < BLOCKS_MAX ? blocks : BLOCKS_MAX), 1, 1,
			GPU_DATA_THREADS, 1, 1, 0, stream, params, NULL),
		"fill or check a buffer");
}

bool gpu_data_fill(const struct gpu_data *data, const struct data_rule *rule,
	const struct data_part *part, void *buffer, void *stream)
{
	struct gpu_data_args args = {*rule, *part, (uintptr_t)buffer, 0};

	return launch(data->fill, &args, stream);
}

bool gpu_data_count(const struct gpu_data *data, void *stream)
{
	return device_zero((void *)(uintptr_t)data->wrong, sizeof(uint64_t), stream);
}

bool gpu_data_check(const struct gpu_data *data, const struct data_rule *rule,
	const struct data_part *part, const void *buffer, void *stream)
{
	struct gpu_data_args args = {*rule, *part, (uintptr_t)buffer, data->wrong};

	return launch(data->check, &args, stream);
}

bool gpu_data_counted(const struct gpu_data *data, void *stream, uint64_t *wrong)
{
	return device_read(
		wrong, (const void *)(uintptr_t)data->wrong, sizeof(*wrong), stream);
}
