/*
 * gpu_data.cu - the entry points perf_fill and perf_check, which do on a GPU what
 * data_fill() and data_count_wrong() do on the host: by the same source.
 */
#include "perf/gpu_data_abi.h"

#include "perf/element.c"

#include "perf/data.c"

static __device__ struct data_stride stride_own()
{
	struct data_stride stride;

	stride.first = (size_t)blockIdx.x * blockDim.x + threadIdx.x;
	stride.step = (size_t)gridDim.x * blockDim.x;
	return stride;
}

extern "C" __global__ void __launch_bounds__(GPU_DATA_THREADS)
	perf_fill(const __grid_constant__ struct gpu_data_args args)
{
	data_fill(&args.rule, &args.part, (void *)args.buffer, stride_own());
}

extern "C" __global__ void __launch_bounds__(GPU_DATA_THREADS)
	perf_check(const __grid_constant__ struct gpu_data_args args)
{
	uint64_t wrong = data_count_wrong(
		&args.rule, &args.part, (const void *)args.buffer, stride_own());

	if (wrong)
		atomicAdd((unsigned long long *)args.wrong, (unsigned long long)wrong);
}
