#include "perf/element.h"

#include <string.h>

ON_BOTH_TABLE const struct element_info infos[] = {
	{1, true, 0, 0},   /* int8 */
	{1, false, 0, 0},  /* uint8 */
	{4, true, 0, 0},   /* int32 */
	{4, false, 0, 0},  /* uint32 */
	{8, true, 0, 0},   /* int64 */
	{8, false, 0, 0},  /* uint64 */
	{2, true, 5, 10},  /* half */
	{4, true, 8, 23},  /* float */
	{8, true, 11, 52}, /* double */
	{2, true, 8, 7},   /* bfloat16 */
	{1, true, 4, 3},   /* f8e4m3 */
	{1, true, 5, 2},   /* f8e5m2 */
};
_Static_assert(sizeof(infos) / sizeof(*infos) == ELEMENT_COUNT, "a row for each");

ON_BOTH const struct element_info *element_info(enum element type)
{
	return &infos[type];
}

static ON_BOTH uint64_t double_bits(double value)
{
	uint64_t bits;

	memcpy(&bits, &value, sizeof(bits));
	return bits;
}

/* `mantissa >> drop`, to nearest, ties to even. */
static ON_BOTH uint64_t round_shift(uint64_t mantissa, int drop)
{
	uint64_t kept, rest, half;

	if (drop > 54)
		return 0;
	kept = mantissa >> drop;
	rest = mantissa & ((UINT64_C(1) << drop) - 1);
	half = UINT64_C(1) << (drop - 1);
	return kept + (rest > half || (rest == half && (kept & 1)));
}

/* For formats narrower than double. The carry of a rounding runs into the exponent, which
 * is what the next binade needs. */
static ON_BOTH uint64_t pack_narrow(const struct element_info *info, double value)
{
	uint64_t bits = double_bits(value), sign = bits >> 63;
	int bias = (1 << (info->exponent_bits - 1)) - 1;
	int exponent = (int)(bits >> 52 & 0x7ff) - 1023 + bias;
	uint64_t mantissa = (bits & ((UINT64_C(1) << 52) - 1)) | UINT64_C(1) << 52;
	int drop = 52 - info->mantissa_bits;
	uint64_t packed;

	if (value == 0)
		packed = 0;
	else if (exponent <= 0)
		packed = round_shift(mantissa, drop + 1 - exponent);
	else
		packed = ((uint64_t)(exponent - 1) << info->mantissa_bits) +
			 round_shift(mantissa, drop);
	return packed | sign << (info->exponent_bits + info->mantissa_bits);
}

ON_BOTH uint64_t element_pack(enum element type, double value)
{
	if (type == ELEMENT_DOUBLE)
		return double_bits(value);
	if (type == ELEMENT_FLOAT) {
		float narrow = (float)value;
		uint32_t bits;

		memcpy(&bits, &narrow, sizeof(bits));
		return bits;
	}
	if (element_is_float(type))
		return pack_narrow(&infos[type], value);
	return element_cut(type, (uint64_t)(int64_t)value);
}

static ON_BOTH double power_of_two(int exponent)
{
	uint64_t bits = (uint64_t)(exponent + 1023) << 52;
	double value;

	memcpy(&value, &bits, sizeof(value));
	return value;
}

static ON_BOTH double unpack_narrow(const struct element_info *info, uint64_t bits)
{
	int bias = (1 << (info->exponent_bits - 1)) - 1;
	uint64_t fraction = bits & ((UINT64_C(1) << info->mantissa_bits) - 1);
	int exponent = (int)(bits >> info->mantissa_bits) &
		       ((1 << info->exponent_bits) - 1);
	bool negative = bits >> (info->exponent_bits + info->mantissa_bits) & 1;
	double value;

	if (exponent)
		fraction |= UINT64_C(1) << info->mantissa_bits;
	else
		exponent = 1;
	value = (double)fraction * power_of_two(exponent - bias - info->mantissa_bits);
	return negative ? -value : value;
}

ON_BOTH double element_unpack(enum element type, uint64_t bits)
{
	if (type == ELEMENT_DOUBLE) {
		double value;

		memcpy(&value, &bits, sizeof(value));
		return value;
	}
	if (element_is_float(type))
		return unpack_narrow(&infos[type], bits);
	if (infos[type].is_signed)
		return (double)(int64_t)element_widen(type, bits);
	return (double)bits;
}

ON_BOTH uint64_t element_load(enum element type, const void *array, size_t index)
{
	size_t bytes = infos[type].bytes;
	const char *at = (const char *)array + index * bytes;
	uint64_t wide = 0;

	switch (bytes) { /* constant lengths and places, so that each copy is one load */
	case 1:
		return *(const unsigned char *)at;
	case 2:
		memcpy(&wide, __builtin_assume_aligned(at, 2), 2);
		return wide;
	case 4:
		memcpy(&wide, __builtin_assume_aligned(at, 4), 4);
		return wide;
	default:
		memcpy(&wide, __builtin_assume_aligned(at, 8), 8);
		return wide;
	}
}

ON_BOTH void element_store(enum element type, void *array, size_t index, uint64_t bits)
{
	size_t bytes = infos[type].bytes;
	char *at = (char *)array + index * bytes;

	switch (bytes) {
	case 1:
		memcpy(at, &bits, 1);
		break;
	case 2:
		memcpy(__builtin_assume_aligned(at, 2), &bits, 2);
		break;
	case 4:
		memcpy(__builtin_assume_aligned(at, 4), &bits, 4);
		break;
	default:
		memcpy(__builtin_assume_aligned(at, 8), &bits, 8);
		break;
	}
}

ON_BOTH uint64_t element_cut(enum element type, uint64_t wide)
{
	int spare = 64 - 8 * infos[type].bytes;

	return wide << spare >> spare;
}

ON_BOTH uint64_t element_widen(enum element type, uint64_t bits)
{
	int spare = 64 - 8 * infos[type].bytes;

	if (!infos[type].is_signed)
		return bits;
	return (uint64_t)((int64_t)(bits << spare) >> spare);
}
