/*
 * steps_ll128.cu - staged kernels whose slots hold LL128 lines (steps_abi.h).
 */
#include "exec/cuda/kernels/lines.cuh"

#define STEPS_NAME(rest) steps_ll128_##rest
#define STEPS_KIND(...)	 lines<codec_ll128, __VA_ARGS__>
#include "exec/cuda/kernels/steps_entries.cuh"
