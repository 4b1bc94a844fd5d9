/*
 * steps_simple.cu - staged kernels whose slots hold plain bytes (steps_abi.h).
 */
#include "exec/cuda/kernels/plain.cuh"

#define STEPS_NAME(rest) steps_simple_##rest
#define STEPS_KIND(...)	 plain<__VA_ARGS__>
#include "exec/cuda/kernels/steps_entries.cuh"
