/*
 * Float sum. The ranks are rotated by a hash of the element; those that come to even
 * places share out a whole number `up`, those on odd places a number `down`, all in units
 * of one power of two:
 *
 *	place      0        1        2        3       ..
 *	gives    +up/2   -down/2   +up/2   -down/2        (n = 4)
 *
 * Both numbers fit the mantissa, so every partial sum, between -down and +up, does too.
 */
#include "perf/data.h"

#include <math.h>

static ON_BOTH uint64_t mix(uint64_t x)
{
	x ^= x >> 32;
	x *= UINT64_C(0xd6e8feb86659fd93);
	x ^= x >> 29;
	x *= UINT64_C(0xa0761d6478bd642f);
	return x ^ x >> 32;
}

static ON_BOTH uint64_t hash(uint64_t seed, uint64_t rank, uint64_t index)
{
	return mix(mix(index + (seed << 40)) + rank * UINT64_C(0x9e3779b97f4a7c15));
}

static ON_BOTH uint32_t below(uint64_t random, uint32_t limit)
{
	return (uint32_t)((random >> 32) * limit >> 32);
}

/* Any integer; any float but zeros, subnormals, infinities and NaNs, far from the ends.
 */
static ON_BOTH uint64_t random_bits(
	const struct data_rule *rule, uint32_t rank, size_t index)
{
	const struct element_info *info = element_info(rule->type);
	uint64_t random = hash(rule->seed, rank, index), bits;

	if (!element_is_float(rule->type))
		return element_cut(rule->type, random);
	bits = random & ((UINT64_C(1) << info->mantissa_bits) - 1);
	random = mix(random);
	bits |= ((random & ((UINT64_C(1) << (info->exponent_bits - 1)) - 1)) +
			(UINT64_C(1) << (info->exponent_bits - 2)))
		<< info->mantissa_bits;
	return bits | (random >> 63) << (info->exponent_bits + info->mantissa_bits);
}

/* ---- float sum and mulsum ---- */

struct sum_plan {
	uint64_t up, down; /* what the even and the odd places add up to, in units */
	uint32_t turn;	   /* place = (rank + turn) mod n */
	double unit;
};

static ON_BOTH struct sum_plan sum_plan(const struct data_rule *rule, size_t index)
{
	const struct element_info *info = element_info(rule->type);
	int bias = (1 << (info->exponent_bits - 1)) - 1;
	int highest = bias - info->mantissa_bits - 2, lowest = 2 - bias;
	uint64_t top = UINT64_C(1) << info->mantissa_bits;
	uint64_t a = hash(rule->seed, 0, index), b = mix(a), c = mix(b);
	struct sum_plan plan;

	highest = highest > 20 ? 20 : highest;
	lowest = lowest < -20 ? -20 : lowest;
	plan.up = top + (a & (top - 1));
	plan.down = top + (b & (top - 1));
	if (plan.up == plan.down)
		plan.down ^= 1; /* a result of zero could be an untouched buffer */
	plan.turn = below(c, rule->rank_count);
	plan.unit = ldexp(1.0, lowest + (int)(c % (uint64_t)(highest - lowest + 1)));
	return plan;
}

static ON_BOTH uint64_t share(uint64_t total, uint32_t place, uint32_t places)
{
	uint64_t each = total / places;

	return place == places - 1 ? total - each * (places - 1) : each;
}

static ON_BOTH uint32_t place_of(
	const struct data_rule *rule, uint32_t rank, uint32_t turn)
{
	uint32_t place = rank + turn;

	return place >= rule->rank_count ? place - rule->rank_count : place;
}

static ON_BOTH double sum_give(const struct data_rule *rule, uint32_t rank, size_t index)
{
	struct sum_plan plan = sum_plan(rule, index);
	uint32_t place = place_of(rule, rank, plan.turn);
	double value;

	if (place & 1)
		value = -(double)share(plan.down, place / 2, rule->rank_count / 2);
	else
		value = (double)share(plan.up, place / 2, (rule->rank_count + 1) / 2);
	return value * plan.unit;
}

static ON_BOTH double sum_reduced(const struct data_rule *rule, size_t index)
{
	struct sum_plan plan = sum_plan(rule, index);
	double value = (double)plan.up;

	if (rule->rank_count > 1)
		value -= (double)plan.down;
	return value * plan.unit;
}

/* ---- float product: powers of two but for one rank's mantissa ---- */

struct prod_plan {
	uint32_t up, down; /* exponents the even and the odd places add up to */
	uint32_t turn;
	double mantissa; /* of place 0, in [1, 2) */
};

static ON_BOTH struct prod_plan prod_plan(const struct data_rule *rule, size_t index)
{
	const struct element_info *info = element_info(rule->type);
	uint64_t a = hash(rule->seed, 1, index), b = mix(a);
	uint32_t span = 1u << (info->exponent_bits - 2);
	struct prod_plan plan;

	plan.up = below(a, span);
	plan.down = below(a << 16, span);
	plan.turn = below(b, rule->rank_count);
	plan.mantissa = 1 +
			(double)(mix(b) & ((UINT64_C(1) << info->mantissa_bits) - 1)) /
				(double)(UINT64_C(1) << info->mantissa_bits);
	return plan;
}

static ON_BOTH double prod_give(const struct data_rule *rule, uint32_t rank, size_t index)
{
	struct prod_plan plan = prod_plan(rule, index);
	uint32_t place = place_of(rule, rank, plan.turn);

	if (place & 1)
		return -ldexp(
			1.0, -(int)share(plan.down, place / 2, rule->rank_count / 2));
	return ldexp(place ? 1.0 : plan.mantissa,
		(int)share(plan.up, place / 2, (rule->rank_count + 1) / 2));
}

static ON_BOTH double prod_reduced(const struct data_rule *rule, size_t index)
{
	struct prod_plan plan = prod_plan(rule, index);
	uint32_t odd = rule->rank_count / 2;
	int exponent = (int)plan.up - (odd ? (int)plan.down : 0);

	return ldexp(odd & 1 ? -plan.mantissa : plan.mantissa, exponent);
}

/* ---- float average: two ranks give, the rest give zero ---- */

static ON_BOTH double avg_give(const struct data_rule *rule, uint32_t rank, size_t index)
{
	const struct element_info *info = element_info(rule->type);
	uint64_t a = hash(rule->seed, 2, index);
	uint32_t place = place_of(rule, rank, below(a, rule->rank_count));

	if (place > 1)
		return 0;
	a = place ? mix(a) : a;
	return (double)(1 + (a & ((UINT64_C(1) << info->mantissa_bits) - 1)));
}

/* Each rank scales in the element type first, as NCCL defines it. */
static ON_BOTH double avg_reduced(const struct data_rule *rule, size_t index)
{
	double scale = element_unpack(
		rule->type, element_pack(rule->type, 1.0 / rule->rank_count));
	double sum = 0;
	uint32_t turn = below(hash(rule->seed, 2, index), rule->rank_count);

	for (uint32_t place = 0; place < 2 && place < rule->rank_count; place++) {
		uint32_t rank = (place + rule->rank_count - turn) % rule->rank_count;
		double value = avg_give(rule, rank, index) * scale;
		sum += element_unpack(rule->type, element_pack(rule->type, value));
	}
	return sum;
}

/* ---- any type ---- */

static ON_BOTH double float_give(
	const struct data_rule *rule, uint32_t rank, size_t index)
{
	switch (rule->op) {
	case DATA_SUM:
		return sum_give(rule, rank, index);
	case DATA_MULSUM: /* exact: the factor is a power of two */
		return sum_give(rule, rank, index) / (1 + (rank & 1));
	case DATA_PROD:
		return prod_give(rule, rank, index);
	case DATA_AVG:
		return avg_give(rule, rank, index);
	default:
		return element_unpack(rule->type, random_bits(rule, rank, index));
	}
}

static ON_BOTH uint64_t give_bits(
	const struct data_rule *rule, uint32_t rank, size_t index)
{
	uint64_t bits;

	if (element_is_float(rule->type))
		return element_pack(rule->type, float_give(rule, rank, index));
	bits = random_bits(rule, rank, index);
	return rule->op == DATA_PROD && !bits ? 1 : bits;
}

static ON_BOTH double float_extreme(const struct data_rule *rule, size_t index)
{
	double best = float_give(rule, 0, index);

	for (uint32_t rank = 1; rank < rule->rank_count; rank++) {
		double value = float_give(rule, rank, index);
		if (rule->op == DATA_MAX ? value > best : value < best)
			best = value;
	}
	return best;
}

static ON_BOTH double float_reduced(const struct data_rule *rule, size_t index)
{
	switch (rule->op) {
	case DATA_SUM:
	case DATA_MULSUM:
		return sum_reduced(rule, index);
	case DATA_PROD:
		return prod_reduced(rule, index);
	case DATA_AVG:
		return avg_reduced(rule, index);
	default:
		return float_extreme(rule, index);
	}
}

static ON_BOTH bool int_less(enum element type, uint64_t a, uint64_t b)
{
	if (element_info(type)->is_signed)
		return (int64_t)a < (int64_t)b;
	return a < b;
}

static ON_BOTH uint64_t int_fold(const struct data_rule *rule, uint64_t a, uint64_t b)
{
	switch (rule->op) {
	case DATA_PROD:
		return a * b;
	case DATA_MAX:
		return int_less(rule->type, a, b) ? b : a;
	case DATA_MIN:
		return int_less(rule->type, b, a) ? b : a;
	default:
		return a + b;
	}
}

/* Wrap-around at 64 bits and a cut at the end is wrap-around at the type's width. */
static ON_BOTH uint64_t int_reduced(const struct data_rule *rule, size_t index)
{
	uint64_t folded = 0, wide;

	for (uint32_t rank = 0; rank < rule->rank_count; rank++) {
		wide = element_widen(rule->type, give_bits(rule, rank, index));
		if (rule->op == DATA_MULSUM)
			wide *= 1 + (rank & 1);
		folded = rank ? int_fold(rule, folded, wide) : wide;
	}
	if (rule->op != DATA_AVG)
		return element_cut(rule->type, folded);
	wide = element_widen(rule->type, element_cut(rule->type, folded));
	if (element_info(rule->type)->is_signed)
		wide = (uint64_t)((int64_t)wide / (int64_t)rule->rank_count);
	else
		wide /= rule->rank_count;
	return element_cut(rule->type, wide);
}

static ON_BOTH uint64_t part_bits(
	const struct data_rule *rule, const struct data_part *part, size_t index)
{
	switch (part->kind) {
	case PART_COPY:
		return random_bits(rule, part->rank, index);
	case PART_GIVE:
		return give_bits(rule, part->rank, index);
	default:
		if (element_is_float(rule->type))
			return element_pack(rule->type, float_reduced(rule, index));
		return int_reduced(rule, index);
	}
}

ON_BOTH void data_fill(const struct data_rule *rule, const struct data_part *part,
	void *buffer, struct data_stride stride)
{
	for (size_t i = stride.first; i < part->count; i += stride.step)
		element_store(rule->type, buffer, part->offset + i,
			part_bits(rule, part, part->index + i));
}

/* Neighbours among floats of one sign have neighbouring bits. */
static ON_BOTH bool differs(const struct data_rule *rule, uint64_t got, uint64_t expected)
{
	uint64_t distance = got > expected ? got - expected : expected - got;
	bool rounds = rule->op == DATA_AVG && element_is_float(rule->type);

	return distance > (rounds ? 2 : 0);
}

ON_BOTH uint64_t data_count_wrong(const struct data_rule *rule,
	const struct data_part *part, const void *buffer, struct data_stride stride)
{
	uint64_t wrong = 0;

	for (size_t i = stride.first; i < part->count; i += stride.step)
		wrong += differs(rule, element_load(rule->type, buffer, part->offset + i),
			part_bits(rule, part, part->index + i));
	return wrong;
}

ON_BOTH uint64_t data_scalar(enum element type, uint32_t rank)
{
	return element_pack(type, 1 + (rank & 1));
}
