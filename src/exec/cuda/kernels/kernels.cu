/*
 * kernels.cu - the entry points: pairs_copy, moves_copy, and moves_<type>_<op> for each
 * type and operator that folds. kernels.h says how they are called; the work is in
 * moves.cuh and pairs.cuh (what to do) and units.cuh (doing it), what ranks wait for in
 * meet.cuh.
 */
#include "exec/cuda/kernels/float8.cuh"
#include "exec/cuda/kernels/pairs.cuh"

#define ENTRY(name, ...)                                                                 \
	extern "C" __global__ void __launch_bounds__(MOVES_THREADS, 2)                   \
		moves_##name(const __grid_constant__ struct moves_args args)             \
	{                                                                                \
		moves_run<__VA_ARGS__>(args);                                            \
	}

#define ENTRIES(type)                                                                    \
	ENTRY(type##_sum, kind_fold<type_##type, FOLD_SUM>)                              \
	ENTRY(type##_prod, kind_fold<type_##type, FOLD_PROD>)                            \
	ENTRY(type##_max, kind_fold<type_##type, FOLD_MAX>)                              \
	ENTRY(type##_min, kind_fold<type_##type, FOLD_MIN>)

extern "C" __global__ void __launch_bounds__(MOVES_THREADS, 2)
	pairs_copy(const __grid_constant__ struct pairs_args args)
{
	pairs_run(args);
}

ENTRY(copy, kind_copy<>)
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
