#include "value.h"

#include <math.h>
#include <stdint.h>
#include <string.h>

/* Exponent bits and mantissa bits of the small floats; integers up to `exact` have no
 * gaps. */
struct type_info {
	size_t bytes;
	bool is_float, is_signed;
	int exponent, mantissa;
	int exact;
};

static const struct type_info types[ncclNumTypes] = {
	[ncclInt8] = {1, false, true, 0, 0, 127},
	[ncclUint8] = {1, false, false, 0, 0, 255},
	[ncclInt32] = {4, false, true, 0, 0, 1 << 20},
	[ncclUint32] = {4, false, false, 0, 0, 1 << 20},
	[ncclInt64] = {8, false, true, 0, 0, 1 << 20},
	[ncclUint64] = {8, false, false, 0, 0, 1 << 20},
	[ncclFloat16] = {2, true, true, 5, 10, 2048},
	[ncclFloat32] = {4, true, true, 8, 23, 1 << 20},
	[ncclFloat64] = {8, true, true, 11, 52, 1 << 20},
	[ncclBfloat16] = {2, true, true, 8, 7, 256},
	[ncclFloat8e4m3] = {1, true, true, 4, 3, 16},
	[ncclFloat8e5m2] = {1, true, true, 5, 2, 8},
};

size_t type_size(ncclDataType_t type)
{
	return types[type].bytes;
}

bool type_is_float(ncclDataType_t type)
{
	return types[type].is_float;
}

static uint64_t float_bits(const struct type_info *t, double value)
{
	int bias = (1 << (t->exponent - 1)) - 1, power, shift;
	double magnitude = fabs(value);
	uint64_t sign = (uint64_t)(value < 0) << (t->exponent + t->mantissa);

	if (magnitude == 0)
		return sign;
	magnitude = frexp(magnitude, &power) * 2; /* 1 <= magnitude < 2 */
	power += bias - 1;
	shift = power > 0 ? 0 : 1 - power; /* subnormal */
	if (shift)
		return sign | (uint64_t)ldexp(magnitude, t->mantissa - shift);
	return sign | (uint64_t)power << t->mantissa |
	       (uint64_t)ldexp(magnitude - 1, t->mantissa);
}

static double float_value(const struct type_info *t, uint64_t bits)
{
	int bias = (1 << (t->exponent - 1)) - 1;
	uint64_t fraction = bits & (((uint64_t)1 << t->mantissa) - 1);
	int power = (int)(bits >> t->mantissa & (((uint64_t)1 << t->exponent) - 1));
	double value;

	if (power)
		value = ldexp(1 + ldexp((double)fraction, -t->mantissa), power - bias);
	else
		value = ldexp((double)fraction, 1 - bias - t->mantissa);
	return bits >> (t->exponent + t->mantissa) & 1 ? -value : value;
}

void type_encode(ncclDataType_t type, double value, void *bits)
{
	const struct type_info *t = &types[type];
	uint64_t word = t->is_float ? float_bits(t, value) : (uint64_t)(int64_t)value;

	memcpy(bits, &word, t->bytes); /* little endian, as every machine we run on */
}

double type_decode(ncclDataType_t type, const void *bits)
{
	const struct type_info *t = &types[type];
	unsigned unused = 64 - 8 * (unsigned)t->bytes;
	uint64_t word = 0;

	memcpy(&word, bits, t->bytes);
	if (t->is_float)
		return float_value(t, word);
	if (t->is_signed)
		return (double)((int64_t)(word << unused) >> unused);
	return (double)word;
}

double value_scalar(int rank)
{
	return rank % 2 ? 2 : 1;
}

static int at_least_1(int value)
{
	return value < 1 ? 1 : value;
}

/* At most `exact` / 2 in all, so that a factor of 2 still fits; where even ones would be
 * too much, only some ranks have a value. */
static int value(const struct type_info *t, int op, int rank, int rank_count, int i)
{
	int highest = at_least_1(t->exact / 2 / rank_count);
	int some = at_least_1(t->exact / 2 / highest), v;

	highest = highest > 100 ? 100 : highest;
	v = (i * 7 + rank * 13 + i / 16) % (highest + 1);
	if (op == ncclProd)
		return (i + rank) % 3 == 0		     ? 2
		       : t->is_signed && (i + rank) % 5 == 1 ? -1
							     : 1;
	if ((i + rank) % rank_count >= some)
		return 0;
	return t->is_signed && (i + rank) % 3 == 1 ? -v : v;
}

void value_input(ncclDataType_t type, int op, int rank, int rank_count, void *out)
{
	for (int i = 0; i < PERIOD; i++)
		type_encode(type, value(&types[type], op, rank, rank_count, i),
			(char *)out + (size_t)i * types[type].bytes);
}

static double combine(int op, double a, double b)
{
	switch (op) {
	case ncclProd:
		return a * b;
	case ncclMax:
		return a > b ? a : b;
	case ncclMin:
		return a < b ? a : b;
	default:
		return a + b;
	}
}

void value_reduced(ncclDataType_t type, int op, int rank_count, void *out)
{
	const struct type_info *t = &types[type];
	bool premul = op == OP_PREMUL || op == OP_PREMUL_DEVICE;

	for (int i = 0; i < PERIOD; i++) {
		double all = 0;

		for (int r = 0; r < rank_count; r++) {
			double mine = value(t, op, r, rank_count, i) *
				      (premul ? value_scalar(r) : 1);

			all = r ? combine(op, all, mine) : mine;
		}
		if (op == ncclAvg)
			all = t->is_float ? all / rank_count : trunc(all / rank_count);
		type_encode(type, all, (char *)out + (size_t)i * t->bytes);
	}
}

double value_tolerance(ncclDataType_t type, int op, int rank_count)
{
	bool exact = (rank_count & (rank_count - 1)) == 0;

	if (op != ncclAvg || exact || !types[type].is_float)
		return 0;
	return ldexp(2 * rank_count * 100, -types[type].mantissa);
}
