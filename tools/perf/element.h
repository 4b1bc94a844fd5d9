/*
 * element.h - the twelve element types as bits: pack, unpack, fold.
 *
 * Written apart from the library's kernels on purpose: a check is worth something only
 * when it does not share code with what it checks.
 */
#ifndef TOOLS_PERF_ELEMENT_H
#define TOOLS_PERF_ELEMENT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

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
	const char *name; /* nccl-tests' */
	uint8_t bytes;
	bool is_signed;
	uint8_t exponent_bits, mantissa_bits; /* 0 for integers */
};

const struct element_info *element_info(enum element type);

/* The type of that name (or of the older fp8 spelling); ELEMENT_COUNT for none. */
enum element element_find(const char *name);

static inline bool element_is_float(enum element type)
{
	return type >= ELEMENT_HALF;
}

/* A finite value in range to the type's bits, rounded to nearest even. */
uint64_t element_pack(enum element type, double value);
double element_unpack(enum element type, uint64_t bits);

uint64_t element_load(enum element type, const void *array, size_t index);
void element_store(enum element type, void *array, size_t index, uint64_t bits);

/* An integer's bits widened to 64 with its sign, and cut back to its width. */
uint64_t element_widen(enum element type, uint64_t bits);
uint64_t element_cut(enum element type, uint64_t wide);

#endif
