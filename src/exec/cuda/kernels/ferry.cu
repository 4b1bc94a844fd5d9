/*
 * ferry.cu - one launch that takes the small buffers of some calls to their berths in
 * host memory, waits until a thread of the host has run the calls, and brings the
 * results.
 *
 * All are there before any is waited for, so calls of a group may need each other. What
 * the kernel waits for is told however the calls end.
 */
#include "exec/cuda/kernels/meet.cuh"
#include "exec/cuda/lists/ferry_abi.h"

/* By words of `T` as far as they go. Past the first-level cache: the host writes there,
 * too. */
template <class T> DEVICE uint32_t words_copy(char *to, const char *from, uint32_t bytes)
{
	uint32_t count = bytes / sizeof(T);

	for (uint32_t i = threadIdx.x; i < count; i += blockDim.x)
		((T *)to)[i] = __ldcv((const T *)from + i);
	return count * sizeof(T);
}

DEVICE void trip_copy(uint64_t to_at, uint64_t from_at, uint32_t bytes)
{
	char *to = (char *)to_at;
	const char *from = (const char *)from_at;
	uint64_t odd = to_at | from_at;
	uint32_t done = 0;

	if (!(odd & 15))
		done = words_copy<uint4>(to, from, bytes);
	else if (!(odd & 3))
		done = words_copy<unsigned>(to, from, bytes);
	words_copy<unsigned char>(to + done, from + done, bytes - done);
}

DEVICE void trips_load(const struct ferry_args &args)
{
	for (uint32_t i = 0; i < args.count; i++) {
		const struct dev_trip &trip = args.trips[i];

		trip_copy(trip.in_berth, trip.in, trip.in_bytes);
	}
	order_fence(false);
	__syncthreads();
	if (threadIdx.x < args.count)
		flag_release((uint32_t *)args.trips[threadIdx.x].ready_at,
			args.trips[threadIdx.x].ready, false);
}

DEVICE void trip_unload(const struct dev_trip &trip)
{
	if (!threadIdx.x)
		while ((int32_t)(flag_acquire((const uint32_t *)trip.done_at, false) -
				 trip.done) < 0)
			;
	__syncthreads();
	trip_copy(trip.out, trip.out_berth, trip.out_bytes);
}

extern "C" __global__ void __launch_bounds__(FERRY_THREADS)
	ferry(const __grid_constant__ struct ferry_args args)
{
	trips_load(args);
	for (uint32_t i = 0; i < args.count; i++)
		trip_unload(args.trips[i]);
	__syncthreads();
	if (threadIdx.x < args.count)
		flag_release((uint32_t *)args.trips[threadIdx.x].gone_at,
			args.trips[threadIdx.x].gone, false);
}
