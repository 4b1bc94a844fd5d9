/*
 * steps_ll.cu - staged kernels whose slots hold LL lines (steps_abi.h).
 */
#include "exec/cuda/kernels/lines.cuh"

#define STEPS_NAME(rest) steps_ll_##rest
#define STEPS_KIND(...)	 lines<codec_ll, __VA_ARGS__>
#include "exec/cuda/kernels/steps_entries.cuh"
