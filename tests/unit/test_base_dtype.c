/* Types and operators: sizes and names, numbered as nccl.h numbers them. */
#include "base/dtype.h"

#include "nccl.h"
#include "test.h"

static const struct {
	ncclDataType_t theirs;
	size_t bytes;
	const char *name;
} types[DTYPE_COUNT] = {
	[DTYPE_INT8] = {ncclInt8, 1, "int8"},
	[DTYPE_UINT8] = {ncclUint8, 1, "uint8"},
	[DTYPE_INT32] = {ncclInt32, 4, "int32"},
	[DTYPE_UINT32] = {ncclUint32, 4, "uint32"},
	[DTYPE_INT64] = {ncclInt64, 8, "int64"},
	[DTYPE_UINT64] = {ncclUint64, 8, "uint64"},
	[DTYPE_FLOAT16] = {ncclFloat16, 2, "half"},
	[DTYPE_FLOAT32] = {ncclFloat32, 4, "float"},
	[DTYPE_FLOAT64] = {ncclFloat64, 8, "double"},
	[DTYPE_BFLOAT16] = {ncclBfloat16, 2, "bfloat16"},
	[DTYPE_FLOAT8E4M3] = {ncclFloat8e4m3, 1, "f8e4m3"},
	[DTYPE_FLOAT8E5M2] = {ncclFloat8e5m2, 1, "f8e5m2"},
};

int main(void)
{
	EQ(DTYPE_COUNT, ncclNumTypes);
	for (enum dtype type = 0; type < DTYPE_COUNT; type++) {
		EQ(type, types[type].theirs);
		EQ(dtype_size(type), types[type].bytes);
		EQ_STR(dtype_name(type), types[type].name);
		EQ(dtype_is_float(type), strchr("hfdb", *types[type].name) != NULL);
	}
	EQ(REDOP_SUM, ncclSum);
	EQ(REDOP_PROD, ncclProd);
	EQ(REDOP_MAX, ncclMax);
	EQ(REDOP_MIN, ncclMin);
	EQ(REDOP_AVG, ncclAvg);
	EQ_STR(redop_name(REDOP_SUM), "sum");
	EQ_STR(redop_name(REDOP_PROD), "prod");
	EQ_STR(redop_name(REDOP_MAX), "max");
	EQ_STR(redop_name(REDOP_MIN), "min");
	EQ_STR(redop_name(REDOP_AVG), "avg");
	EQ_STR(redop_name(REDOP_PREMUL), "mulsum");
	return 0;
}
