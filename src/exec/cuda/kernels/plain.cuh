/*
 * plain.cuh - the simple codec: a slot holds bytes as they are, and a step is a move.
 */
#ifndef EXEC_CUDA_KERNELS_PLAIN_CUH
#define EXEC_CUDA_KERNELS_PLAIN_CUH

#include "exec/cuda/kernels/steps.cuh"

template <class Kind> struct plain {
	static constexpr bool HAS_FLAGS = false;
	static constexpr int FLAG_BITS = 0;
	static __device__ __forceinline__ bool run(
		const struct work &work, const struct ready_step &step)
	{
		struct run run = work_run(work, step);

		Kind::piece(run, work.bytes, step.any, step.apart);
		return true;
	}
};

#endif
