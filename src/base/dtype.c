#include "base/dtype.h"

#include <assert.h>
#include <stdint.h>

static const struct {
	uint8_t bytes;
	const char *name;
} types[DTYPE_COUNT] = {
	[DTYPE_INT8] = {1, "int8"},
	[DTYPE_UINT8] = {1, "uint8"},
	[DTYPE_INT32] = {4, "int32"},
	[DTYPE_UINT32] = {4, "uint32"},
	[DTYPE_INT64] = {8, "int64"},
	[DTYPE_UINT64] = {8, "uint64"},
	[DTYPE_FLOAT16] = {2, "half"},
	[DTYPE_FLOAT32] = {4, "float"},
	[DTYPE_FLOAT64] = {8, "double"},
	[DTYPE_BFLOAT16] = {2, "bfloat16"},
	[DTYPE_FLOAT8E4M3] = {1, "f8e4m3"},
	[DTYPE_FLOAT8E5M2] = {1, "f8e5m2"},
};

static const char *const redops[REDOP_COUNT] = {
	"sum", "prod", "max", "min", "avg", "mulsum"};

size_t dtype_size(enum dtype type)
{
	assert(type < DTYPE_COUNT);
	return types[type].bytes;
}

const char *dtype_name(enum dtype type)
{
	assert(type < DTYPE_COUNT);
	return types[type].name;
}

const char *redop_name(enum redop op)
{
	assert(op < REDOP_COUNT);
	return redops[op];
}
