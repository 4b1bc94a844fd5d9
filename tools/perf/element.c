#include "perf/element.h"

#include <string.h>

static const struct element_info infos[ELEMENT_COUNT] = {
	[ELEMENT_INT8] = {"int8", 1, true, 0, 0},
	[ELEMENT_UINT8] = {"uint8", 1, false, 0, 0},
	[ELEMENT_INT32] = {"int32", 4, true, 0, 0},
	[ELEMENT_UINT32] = {"uint32", 4, false, 0, 0},
	[ELEMENT_INT64] = {"int64", 8, true, 0, 0},
	[ELEMENT_UINT64] = {"uint64", 8, false, 0, 0},
	[ELEMENT_HALF] = {"half", 2, true, 5, 10},
	[ELEMENT_FLOAT] = {"float", 4, true, 8, 23},
	[ELEMENT_DOUBLE] = {"double", 8, true, 11, 52},
	[ELEMENT_BFLOAT16] = {"bfloat16", 2, true, 8, 7},
	[ELEMENT_F8E4M3] = {"f8e4m3", 1, true, 4, 3},
	[ELEMENT_F8E5M2] = {"f8e5m2", 1, true, 5, 2},
};

const struct element_info *element_info(enum element type)
{
	return &infos[type];
}

enum element element_find(const char *name)
{
	if (!strcmp(name, "fp8_e4m3"))
		return ELEMENT_F8E4M3;
	if (!strcmp(name, "fp8_e5m2"))
		return ELEMENT_F8E5M2;
	for (int type = 0; type < ELEMENT_COUNT; type++)
		if (!strcmp(name, infos[type].name))
			return (enum element)type;
	return ELEMENT_COUNT;
}

static uint64_t double_bits(double value)
{
	uint64_t bits;

	memcpy(&bits, &value, sizeof(bits));
	return bits;
}

/* `mantissa >> drop`, to nearest, ties to even. */
static uint64_t round_shift(uint64_t mantissa, int drop)
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
static uint64_t pack_narrow(const struct element_info *info, double value)
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

uint64_t element_pack(enum element type, double value)
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

static double power_of_two(int exponent)
{
	uint64_t bits = (uint64_t)(exponent + 1023) << 52;
	double value;

	memcpy(&value, &bits, sizeof(value));
	return value;
}

static double unpack_narrow(const struct element_info *info, uint64_t bits)
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

double element_unpack(enum element type, uint64_t bits)
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

uint64_t element_load(enum element type, const void *array, size_t index)
{
	size_t bytes = infos[type].bytes;
	const char *at = (const char *)array + index * bytes;
	uint64_t wide = 0;

	switch (bytes) { /* constant lengths, so that each copy is one load */
	case 1:
		return *(const unsigned char *)at;
	case 2:
		memcpy(&wide, at, 2);
		return wide;
	case 4:
		memcpy(&wide, at, 4);
		return wide;
	default:
		memcpy(&wide, at, 8);
		return wide;
	}
}

void element_store(enum element type, void *array, size_t index, uint64_t bits)
{
	size_t bytes = infos[type].bytes;
	char *at = (char *)array + index * bytes;

	switch (bytes) {
	case 1:
		memcpy(at, &bits, 1);
		break;
	case 2:
		memcpy(at, &bits, 2);
		break;
	case 4:
		memcpy(at, &bits, 4);
		break;
	default:
		memcpy(at, &bits, 8);
		break;
	}
}

uint64_t element_cut(enum element type, uint64_t wide)
{
	int spare = 64 - 8 * infos[type].bytes;

	return wide << spare >> spare;
}

uint64_t element_widen(enum element type, uint64_t bits)
{
	int spare = 64 - 8 * infos[type].bytes;

	if (!infos[type].is_signed)
		return bits;
	return (uint64_t)((int64_t)(bits << spare) >> spare);
}
