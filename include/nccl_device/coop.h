/*
 * nccl_device/coop.h - the threads of a kernel that act together. Comes with
 * nccl_device.h.
 *
 * Each kind says which of its threads the caller is and how many there are, and lets them
 * wait for each other.
 */
/* First, so that this header alone brings the others in their order. */
#include "../nccl_device.h"

#ifndef NCCL_DEVICE_COOP_H
#define NCCL_DEVICE_COOP_H

#ifdef __CUDACC__

/* `count` neighbours of a warp; a power of two. */
template <int count> struct ncclCoopTile {
	static_assert(count > 0 && count <= 32 && (count & (count - 1)) == 0,
		"a tile is 1, 2, 4, 8, 16 or 32 threads");

	__device__ int thread_rank() const
	{
		return (int)(threadIdx.x % count);
	}
	__device__ constexpr int size() const
	{
		return count;
	}
	__device__ constexpr int num_threads() const
	{
		return count;
	}
	__device__ void sync() const
	{
		unsigned int first = threadIdx.x % 32 / count * count;

		__syncwarp((0xffffffffu >> (32 - count)) << first);
	}
};

typedef ncclCoopTile<1> ncclCoopThread;
typedef ncclCoopTile<32> ncclCoopWarp;

/* All threads of a block. */
struct ncclCoopCta {
	__device__ int thread_rank() const
	{
		return (int)threadIdx.x;
	}
	__device__ int size() const
	{
		return (int)blockDim.x;
	}
	__device__ int num_threads() const
	{
		return (int)blockDim.x;
	}
	__device__ void sync() const
	{
		__syncthreads();
	}
};

#endif

#endif
