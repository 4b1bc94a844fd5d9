/*
 * The check's own arithmetic: packing agrees with the compiler's, and the contributions
 * reduce to the expected value in any order, rounding at every step.
 */
#include <math.h>
#include <string.h>

#include "perf/data.h"
#include "test.h"

enum { RANKS_MAX = 67, INDEXES = 300 };

static const struct data_stride all = {0, 1};

/* Every 16-bit or 8-bit pattern survives; float agrees with the compiler's conversion. */
static void packing(void)
{
	static const enum element small[] = {
		ELEMENT_HALF, ELEMENT_BFLOAT16, ELEMENT_F8E4M3, ELEMENT_F8E5M2};

	for (size_t i = 0; i < sizeof(small) / sizeof(small[0]); i++) {
		const struct element_info *info = element_info(small[i]);
		uint64_t limit = UINT64_C(1) << (8 * info->bytes);

		for (uint64_t bits = 0; bits < limit; bits++) {
			uint64_t exponent = bits >> info->mantissa_bits &
					    ((1u << info->exponent_bits) - 1);
			double value = element_unpack(small[i], bits);

			if (exponent == (1u << info->exponent_bits) - 1 || value == 0)
				continue;
			EQ(element_pack(small[i], value), bits);
		}
	}
	EQ(element_pack(ELEMENT_HALF, 1.0), 0x3c00);
	EQ(element_pack(ELEMENT_HALF, 1.0 / 3), 0x3555);
	EQ(element_pack(ELEMENT_BFLOAT16, -2.0), 0xc000);
	EQ(element_pack(ELEMENT_F8E4M3, 448), 0x7e);
	EQ(element_pack(ELEMENT_F8E5M2, 0.5), 0x38);
	EQ(element_pack(ELEMENT_HALF, 0x1p-24), 1);
	EQ(element_pack(ELEMENT_HALF, 0x1p-26), 0);
	EQ(element_pack(ELEMENT_INT8, -3), 0xfd);
	EQ(element_widen(ELEMENT_INT8, 0xfd), -3);
	EQ(element_widen(ELEMENT_UINT8, 0xfd), 0xfd);
}

static uint64_t fold(enum element type, enum data_op op, uint64_t a, uint64_t b)
{
	if (element_is_float(type)) {
		double x = element_unpack(type, a), y = element_unpack(type, b);
		double z = op == DATA_PROD  ? x * y
			   : op == DATA_MAX ? fmax(x, y)
			   : op == DATA_MIN ? fmin(x, y)
					    : x + y;
		return element_pack(type, z);
	}
	return element_cut(type, op == DATA_PROD ? a * b : a + b);
}

/* Fold in an order given by the stride; count what the check calls wrong. */
static uint64_t wrong_after(const struct data_rule *rule, uint32_t stride)
{
	static uint64_t give[INDEXES], result[INDEXES];
	struct data_part part = {PART_GIVE, 0, 0, INDEXES, 5};
	uint32_t rank = stride % rule->rank_count;

	for (uint32_t i = 0; i < rule->rank_count; i++) {
		part.rank = rank;
		data_fill(rule, &part, give, all);
		for (size_t j = 0; j < INDEXES; j++) {
			uint64_t bits = element_load(rule->type, give, j), sum = bits;

			if (rule->op == DATA_MULSUM)
				bits = fold(rule->type, DATA_PROD, bits,
					data_scalar(rule->type, rank));
			if (rule->op == DATA_AVG)
				bits = fold(rule->type, DATA_PROD, bits,
					element_pack(rule->type, 1.0 / rule->rank_count));
			sum = i ? fold(rule->type, rule->op,
					  element_load(rule->type, result, j), bits)
				: bits;
			element_store(rule->type, result, j, sum);
		}
		rank = (rank + stride) % rule->rank_count;
	}
	part.kind = PART_REDUCED;
	return data_count_wrong(rule, &part, result, all);
}

/* Integers: maxima and averages are left to the tools' own runs. */
static bool tried(enum element type, enum data_op op)
{
	return element_is_float(type) || op == DATA_SUM || op == DATA_PROD ||
	       op == DATA_MULSUM;
}

static void exact(uint32_t rank_count)
{
	for (int type = 0; type < ELEMENT_COUNT; type++) {
		for (int op = 0; op < DATA_OP_COUNT; op++) {
			struct data_rule rule = {
				(enum element)type, (enum data_op)op, rank_count, 3};

			if (!tried(rule.type, rule.op))
				continue;
			EQ(wrong_after(&rule, 1), 0);
			EQ(wrong_after(&rule, rank_count - 1 ? rank_count - 1 : 1), 0);
			if (rank_count % 5)
				EQ(wrong_after(&rule, 5), 0);
		}
	}
}

/* One flipped bit is seen, wherever it is, by who has that element. */
static void sees_errors(void)
{
	struct data_rule rule = {ELEMENT_BFLOAT16, DATA_SUM, 4, 1};
	struct data_part part = {PART_COPY, 2, 0, 3000, 0};
	static uint16_t buffer[3000];

	data_fill(&rule, &part, buffer, all);
	EQ(data_count_wrong(&rule, &part, buffer, all), 0);
	buffer[0] ^= 1;
	buffer[2999] ^= 0x8000;
	EQ(data_count_wrong(&rule, &part, buffer, all), 2);
	for (size_t i = 0; i < 7; i++)
		EQ(data_count_wrong(&rule, &part, buffer, (struct data_stride){i, 7}),
			(i == 0) + (i == 2999 % 7));
}

/* Threads that share out a part write what one would, and nothing else. */
static void strides(void)
{
	struct data_rule rule = {ELEMENT_HALF, DATA_AVG, 3, 7};
	struct data_part part = {PART_GIVE, 1, 11, 1000, 4};
	static uint16_t whole[1100], shared[1100];

	data_fill(&rule, &part, whole, all);
	for (size_t i = 0; i < 64; i++)
		data_fill(&rule, &part, shared, (struct data_stride){i, 64});
	EQ(memcmp(whole, shared, sizeof(whole)), 0);
	EQ(whole[10] | whole[1011], 0);
}

int main(void)
{
	static const uint32_t counts[] = {1, 2, 3, 4, 7, 16, 33, RANKS_MAX};

	packing();
	for (size_t i = 0; i < sizeof(counts) / sizeof(counts[0]); i++)
		exact(counts[i]);
	sees_errors();
	strides();
	return 0;
}
