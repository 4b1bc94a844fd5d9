/* Folds against a plain loop: any number of inputs, outputs that are inputs, streaming,
 * scaling and division. Values are small and whole, so every type is exact. */
#include "exec/fold.h"

#include "test.h"

enum { INPUTS = 20, ELEMS = 5003, SLACK = 64 }; /* several blocks and an odd end */

static const enum dtype types[] = {
	DTYPE_INT8, DTYPE_INT32, DTYPE_UINT64, DTYPE_FLOAT32, DTYPE_FLOAT64};
static const enum redop ops[] = {REDOP_SUM, REDOP_PROD, REDOP_MAX, REDOP_MIN};

/* One buffer per input, one more to be an output that is no input, one for the second. */
static char memory[INPUTS + 2][ELEMS * 8 + SLACK];

struct fold_case {
	enum dtype type;
	enum redop op;
	uint32_t in_count;
	uint32_t out;	 /* buffer of the first output; in_count and up: none of them */
	uint32_t scaled; /* bit i: input i is scaled, by 2 */
	uint32_t divisor;
	bool streaming, two_outputs;
};

static int64_t load(enum dtype type, const char *at, size_t i)
{
	switch (type) {
	case DTYPE_INT8:
		return ((const int8_t *)at)[i];
	case DTYPE_INT32:
		return ((const int32_t *)at)[i];
	case DTYPE_UINT64:
		return (int64_t)((const uint64_t *)at)[i];
	case DTYPE_FLOAT32:
		return (int64_t)((const float *)at)[i];
	default:
		return (int64_t)((const double *)at)[i];
	}
}

static void store(enum dtype type, void *at, size_t i, int64_t value)
{
	if (type == DTYPE_INT8)
		((int8_t *)at)[i] = (int8_t)value;
	else if (type == DTYPE_INT32)
		((int32_t *)at)[i] = (int32_t)value;
	else if (type == DTYPE_UINT64)
		((uint64_t *)at)[i] = (uint64_t)value;
	else if (type == DTYPE_FLOAT32)
		((float *)at)[i] = (float)value;
	else
		((double *)at)[i] = (double)value;
}

/* 0 to 5, and for products mostly 1 so that twenty of them stay small. */
static int64_t input(const struct fold_case *c, uint32_t k, size_t i)
{
	if (c->op == REDOP_PROD)
		return (i * 7 + k * 5) % 9 ? 1 : 2;
	return (int64_t)((i * 3 + k * 7 + i / 13) % 6);
}

static int64_t expected(const struct fold_case *c, size_t i)
{
	int64_t value = 0;

	for (uint32_t k = 0; k < c->in_count; k++) {
		int64_t x = input(c, k, i) * (c->scaled >> k & 1 ? 2 : 1);

		if (k == 0)
			value = x;
		else if (c->op == REDOP_SUM)
			value += x;
		else if (c->op == REDOP_PROD)
			value *= x;
		else if (c->op == REDOP_MAX)
			value = x > value ? x : value;
		else
			value = x < value ? x : value;
	}
	return c->divisor ? value / c->divisor : value;
}

static void set_up(const struct fold_case *c, struct fold *fold)
{
	*fold = (struct fold){.kernel = kernel_get(c->type, c->op),
		.width = dtype_size(c->type),
		.divisor = c->divisor,
		.any_scaled = c->scaled != 0,
		.streaming = c->streaming,
		.in_count = c->in_count,
		.out_count = c->two_outputs ? 2 : 1};
	memset(memory, 0x5a, sizeof(memory));
	for (uint32_t k = 0; k < c->in_count; k++) {
		fold->in[k].data = memory[k];
		fold->in[k].scaled = c->scaled >> k & 1;
		store(c->type, fold->in[k].scalar.bytes, 0, 2);
		for (size_t i = 0; i < ELEMS; i++)
			store(c->type, memory[k], i, input(c, k, i));
	}
	/* the second output is not an input, or the last input */
	fold->out[0] = memory[c->out];
	fold->out[1] = c->out % 2 || c->out == c->in_count - 1 ? memory[INPUTS + 1]
							       : memory[c->in_count - 1];
}

static void check(const struct fold_case *c)
{
	struct fold fold;
	size_t bytes = ELEMS * dtype_size(c->type);

	set_up(c, &fold);
	fold_run(&fold, bytes);
	for (size_t i = 0; i < ELEMS; i++) {
		int64_t want = expected(c, i), have = load(c->type, fold.out[0], i);

		if (have == want &&
			load(c->type, fold.out[fold.out_count - 1], i) == want)
			continue;
		fprintf(stderr,
			"%s %s of %u into %u, scaled %x, by %u, streaming %d: element "
			"%zu\n",
			dtype_name(c->type), redop_name(c->op), c->in_count, c->out,
			c->scaled, c->divisor, c->streaming, i);
		EQ(have, want);
		EQ(load(c->type, fold.out[fold.out_count - 1], i), want);
	}
	for (uint32_t k = 0; k < INPUTS + 2; k++)
		for (size_t i = 0; i < SLACK; i++)
			EQ(memory[k][bytes + i], 0x5a); /* nothing beyond the end */
	for (uint32_t k = 0; k < c->in_count; k++)	/* inputs are only read */
		if (memory[k] != fold.out[0] && memory[k] != fold.out[1])
			for (size_t i = 0; i < ELEMS; i += 97)
				EQ(load(c->type, memory[k], i), input(c, k, i));
}

/* Every count of inputs into every one of them; types, operators and ways take turns. */
static void test_in_place(void)
{
	uint32_t turn = 0;

	for (uint32_t n = 1; n <= INPUTS; n++)
		for (uint32_t out = 0; out <= n; out++, turn++)
			check(&(struct fold_case){.type = types[turn % 5],
				.op = ops[turn / 5 % 4],
				.in_count = n,
				.out = out < n ? out : INPUTS,
				.streaming = turn / 2 % 2,
				.two_outputs = turn % 2});
}

static void test_scaled(void)
{
	static const uint32_t masks[] = {1, 2, 0x15, ~0u};

	for (uint32_t n = 1; n <= 6; n++)
		for (uint32_t out = 0; out <= n; out++)
			for (uint32_t m = 0; m < 4; m++)
				check(&(struct fold_case){
					.type = types[(n + out + m) % 5],
					.op = REDOP_SUM,
					.in_count = n,
					.out = out < n ? out : INPUTS,
					.scaled = masks[m] & ((1u << n) - 1),
					.streaming = m % 2,
					.two_outputs = (n + m) % 2});
}

static void test_divided(void)
{
	for (uint32_t n = 1; n <= 9; n++)
		for (uint32_t out = 0; out <= n; out++)
			check(&(struct fold_case){.type = types[(n + out) % 3],
				.op = REDOP_SUM,
				.in_count = n,
				.out = out < n ? out : INPUTS,
				.divisor = n == 1 ? 3 : n,
				.streaming = out % 2,
				.two_outputs = n % 2});
}

static void test_rule(void)
{
	struct plan_key key = {.coll = COLL_ALL_REDUCE, .type = DTYPE_FLOAT32};
	union kernel_scalar given = {.bits = 42};
	struct fold_rule rule;

	fold_rule(&rule, &key, REDOP_MAX, given, 4);
	TRUE(rule.kernel == kernel_get(DTYPE_FLOAT32, REDOP_MAX));
	TRUE(!rule.scaled && !rule.divisor);
	fold_rule(&rule, &key, REDOP_AVG, given, 4);
	TRUE(rule.scaled && !rule.divisor);
	EQ(rule.scalar.bits, kernel_reciprocal(DTYPE_FLOAT32, 4).bits);
	fold_rule(&rule, &key, REDOP_PREMUL, given, 4);
	TRUE(rule.scaled && !rule.divisor);
	EQ(rule.scalar.bits, 42);
	key.type = DTYPE_INT32;
	fold_rule(&rule, &key, REDOP_AVG, given, 4);
	TRUE(!rule.scaled);
	EQ(rule.divisor, 4);
	key.coll = COLL_ALL_GATHER; /* moves bytes, whatever the operator */
	fold_rule(&rule, &key, REDOP_AVG, given, 4);
	TRUE(!rule.kernel && !rule.scaled && !rule.divisor);
}

int main(void)
{
	test_in_place();
	test_scaled();
	test_divided();
	test_rule();
	return 0;
}
