/*
 * steps_entries.cuh - the entry points of one codec: steps_<codec>_copy, and
 * steps_<codec>_<type>_<op> for each type and operator that folds.
 *
 * A source file for each codec says how steps are run, as STEPS_KIND(kind of units.cuh),
 * and how the codec is called, as STEPS_NAME(the rest of the name), and then includes
 * this.
 */
#include "exec/cuda/kernels/float8.cuh"
#include "exec/cuda/kernels/steps.cuh"

#define ENTRY(name, ...)                                                                 \
	extern "C" __global__ void __launch_bounds__(STEPS_THREADS, 2)                   \
		STEPS_NAME(name)(const __grid_constant__ struct steps_args args)         \
	{                                                                                \
		steps_run<STEPS_KIND(__VA_ARGS__)>(args);                                \
	}

#define ENTRIES(type)                                                                    \
	ENTRY(type##_sum, kind_fold<type_##type, FOLD_SUM, false>)                       \
	ENTRY(type##_prod, kind_fold<type_##type, FOLD_PROD, false>)                     \
	ENTRY(type##_max, kind_fold<type_##type, FOLD_MAX, false>)                       \
	ENTRY(type##_min, kind_fold<type_##type, FOLD_MIN, false>)

ENTRY(copy, kind_copy<false>)
ENTRIES(int8)
ENTRIES(uint8)
ENTRIES(int32)
ENTRIES(uint32)
ENTRIES(int64)
ENTRIES(uint64)
ENTRIES(half)
ENTRIES(float)
ENTRIES(double)
ENTRIES(bfloat16)
ENTRIES(f8e4m3)
ENTRIES(f8e5m2)
