/*
 * dtype.h - data types and reduction operators, numbered as in nccl.h.
 */
#ifndef BASE_DTYPE_H
#define BASE_DTYPE_H

#include <stddef.h>

enum dtype {
	DTYPE_INT8,
	DTYPE_UINT8,
	DTYPE_INT32,
	DTYPE_UINT32,
	DTYPE_INT64,
	DTYPE_UINT64,
	DTYPE_FLOAT16,
	DTYPE_FLOAT32,
	DTYPE_FLOAT64,
	DTYPE_BFLOAT16,
	DTYPE_FLOAT8E4M3,
	DTYPE_FLOAT8E5M2,
	DTYPE_COUNT
};

/* What the kernels fold with. Average and pre-multiplied sum are SUM plus a scale of the
 * input (floats) or a division of the result (integers). */
enum redop {
	REDOP_SUM,
	REDOP_PROD,
	REDOP_MAX,
	REDOP_MIN,
	REDOP_AVG,
	REDOP_PREMUL,
	REDOP_COUNT
};

/* Bytes of one element. */
size_t dtype_size(enum dtype type);

/* "float", "bfloat16", ..: nccl-tests' names. */
const char *dtype_name(enum dtype type);
const char *redop_name(enum redop op);

static inline int dtype_is_float(enum dtype type)
{
	return type >= DTYPE_FLOAT16;
}

#endif
