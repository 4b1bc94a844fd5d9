/*
 * value.h - inputs whose reductions are exact in every type, and what must come out.
 *
 * Element i of rank r is a small integer that repeats with a prime period, so what a
 * collective must give is one period of a pattern. The values are so small that sums and
 * products are exact in the element type in whatever order they are taken. Conversions
 * are our own and share nothing with the library's.
 */
#ifndef MULTI_VALUE_H
#define MULTI_VALUE_H

#include <stdbool.h>
#include <stddef.h>

#include "nccl.h"

enum { PERIOD = 251 };

enum { OP_PREMUL = ncclNumOps, OP_PREMUL_DEVICE, OP_COUNT };

size_t type_size(ncclDataType_t type);
bool type_is_float(ncclDataType_t type);

/* A number that the type can hold exactly, to and from its bits. */
void type_encode(ncclDataType_t type, double value, void *bits);
double type_decode(ncclDataType_t type, const void *bits);

/* The factor of rank r in a pre-multiplied sum. */
double value_scalar(int rank);

/* One period of rank r's input for this operator, and of the reduction of all ranks'. */
void value_input(ncclDataType_t type, int op, int rank, int rank_count, void *out);
void value_reduced(ncclDataType_t type, int op, int rank_count, void *out);

/* What a reduction may be off by, 0 but for averages over 3, 5, .. */
double value_tolerance(ncclDataType_t type, int op, int rank_count);

#endif
