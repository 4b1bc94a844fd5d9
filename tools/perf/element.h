/*
 * element.h - the twelve element types as bits: pack, unpack, fold.
 *
 * Written apart from the library's kernels on purpose: a check is worth something only
 * when it does not share code with what it checks.
 *
 * element.c and data.c are compiled twice, for the host and, as a part of gpu_data.cu,
 * for a GPU, so that both know the same values.
 */
#ifndef TOOLS_PERF_ELEMENT_H
#define TOOLS_PERF_ELEMENT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __CUDACC__
#define ON_BOTH	      __device__
#define ON_BOTH_TABLE static __constant__
#else
#define ON_BOTH
#define ON_BOTH_TABLE static
#endif

/* In the order of ncclDataType_t. */
enum element {
	ELEMENT_INT8,
	ELEMENT_UINT8,
	ELEMENT_INT32,
	ELEMENT_UINT32,
	ELEMENT_INT64,
	ELEMENT_UINT64,
	ELEMENT_HALF,
	ELEMENT_FLOAT,
	ELEMENT_DOUBLE,
	ELEMENT_BFLOAT16,
	ELEMENT_F8E4M3,
	ELEMENT_F8E5M2,
	ELEMENT_COUNT
};

struct element_info {
	uint8_t bytes;
	bool is_signed;
	uint8_t exponent_bits, mantissa_bits; /* 0 for integers */
};

ON_BOTH const struct element_info *element_info(enum element type);

static inline ON_BOTH bool element_is_float(enum element type)
{
	return type >= ELEMENT_HALF;
}

/* A finite value in range to the type's bits, rounded to nearest even. */
ON_BOTH uint64_t element_pack(enum element type, double value);
ON_BOTH double element_unpack(enum element type, uint64_t bits);

/* Each element lies where its size divides its address. */
ON_BOTH uint64_t element_load(enum element type, const void *array, size_t index);
ON_BOTH void element_store(enum element type, void *array, size_t index, uint64_t bits);

/* An integer's bits widened to 64 with its sign, and cut back to its width. */
ON_BOTH uint64_t element_widen(enum element type, uint64_t bits);
ON_BOTH uint64_t element_cut(enum element type, uint64_t wide);

#endif
