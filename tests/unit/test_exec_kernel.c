/*
 * Every vector unit this CPU has gives the bits of a slow reference: all pairs of the
 * 8-bit types, special and random values of the others; any count, alignment and
 * aliasing.
 */
#include <math.h>
#include <stdint.h>

#include "exec/host/kernel.h"
#include "test.h"

enum { PAIRS = 65536, SMALL = 8192, GUARD = 0x5a };

static const char *const units[] = {"avx512", "avx2", "sse2", "neon", "scalar"};

static struct lanes {
	uint64_t a[PAIRS], b[PAIRS], c[PAIRS], d[PAIRS];
	size_t count;
} lanes;

static unsigned char in[4][PAIRS * 8], out[PAIRS * 8];

static uint64_t random_bits(void)
{
	static uint64_t state = 88172645463325252u;

	state ^= state << 13;
	state ^= state >> 7;
	state ^= state << 17;
	return state * 2685821657736338717u;
}

/* A float format: fraction bits, exponent of the least normal number, greatest code that
 * is a number, code of what is too large, greatest code that is not NaN. */
struct format {
	int fraction, least;
	unsigned sign, finite, over, number;
};

static const struct format formats[DTYPE_COUNT] = {
	[DTYPE_FLOAT16] = {10, -14, 0x8000, 0x7bff, 0x7c00, 0x7c00},
	[DTYPE_BFLOAT16] = {7, -126, 0x8000, 0x7f7f, 0x7f80, 0x7f80},
	[DTYPE_FLOAT8E4M3] = {3, -6, 0x80, 0x7e, 0x7e, 0x7e},
	[DTYPE_FLOAT8E5M2] = {2, -14, 0x80, 0x7b, 0x7b, 0x7c},
};

static double magnitude(const struct format *f, unsigned code)
{
	unsigned power = code >> f->fraction, fraction = code & ((1u << f->fraction) - 1);

	if (code > f->number)
		return NAN;
	if (code > f->finite)
		return INFINITY;
	if (power == 0)
		return ldexp(fraction, f->least - f->fraction);
	return ldexp(
		fraction + (1u << f->fraction), (int)power - 1 + f->least - f->fraction);
}

static double decode(enum dtype type, uint64_t bits)
{
	const struct format *f = &formats[type];
	double wide, value;
	float single;

	memcpy(&wide, &bits, sizeof(wide));
	memcpy(&single, &bits, sizeof(single));
	if (type == DTYPE_FLOAT64)
		return wide;
	if (type == DTYPE_FLOAT32)
		return (double)single;
	value = magnitude(f, (unsigned)bits & (f->sign - 1));
	return bits & f->sign ? -value : value;
}

static uint64_t encode(enum dtype type, double value)
{
	const struct format *f = &formats[type];
	unsigned sign = signbit(value) ? f->sign : 0;
	uint64_t bits = 0;
	double unit, units_count;
	float single = (float)value;
	int power;

	if (type == DTYPE_FLOAT64) {
		memcpy(&bits, &value, sizeof(value));
		return isnan(value) ? INT64_MAX : bits;
	}
	if (type == DTYPE_FLOAT32) {
		memcpy(&bits, &single, sizeof(single));
		return isnan(value) ? INT32_MAX : bits;
	}
	if (isnan(value))
		return f->sign - 1;
	if (isinf(value))
		return sign | f->over;
	frexp(value, &power);
	power = value != 0 && power - 1 > f->least ? power - 1 : f->least;
	unit = ldexp(1, power - f->fraction);
	units_count = rint(fabs(value) / unit);
	if (units_count * unit > magnitude(f, f->finite))
		return sign | f->over;
	return sign |
	       (((unsigned)(power - f->least) << f->fraction) + (unsigned)units_count);
}

static int64_t as_signed(enum dtype type, uint64_t bits)
{
	int unused = 64 - 8 * (int)dtype_size(type);

	return (int64_t)(bits << unused) >> unused;
}

static uint64_t cut(enum dtype type, uint64_t bits)
{
	return bits & (~(uint64_t)0 >> (64 - 8 * dtype_size(type)));
}

static uint64_t integer_fold(enum dtype type, enum redop op, uint64_t x, uint64_t y)
{
	int is_signed = type == DTYPE_INT8 || type == DTYPE_INT32 || type == DTYPE_INT64;
	int is_less = is_signed ? as_signed(type, x) < as_signed(type, y) : x < y;

	if (op == REDOP_SUM)
		return cut(type, x + y);
	if (op == REDOP_PROD)
		return cut(type, x * y);
	return (op == REDOP_MIN) == is_less ? x : y;
}

/* Zeros of both signs are ordered; two NaNs of float or double give the canonical one. */
static uint64_t float_pick(enum dtype type, enum redop op, uint64_t x, uint64_t y)
{
	double u = decode(type, x), v = decode(type, y);
	int is_wide = type == DTYPE_FLOAT32 || type == DTYPE_FLOAT64;
	int is_first = op == REDOP_MAX ? u > v : u < v;

	if (isnan(u) && isnan(v) && is_wide)
		return type == DTYPE_FLOAT32 ? INT32_MAX : INT64_MAX;
	if (isnan(u) || isnan(v))
		return isnan(v) ? x : y;
	if (u == v)
		is_first = op == REDOP_MAX ? x < y : x > y;
	return is_first ? x : y;
}

static uint64_t fold(enum dtype type, enum redop op, uint64_t x, uint64_t y)
{
	double u, v;
	float single;

	if (!dtype_is_float(type))
		return integer_fold(type, op, x, y);
	if (op == REDOP_MAX || op == REDOP_MIN)
		return float_pick(type, op, x, y);
	u = decode(type, x);
	v = decode(type, y);
	if (type == DTYPE_FLOAT64)
		return encode(type, op == REDOP_SUM ? u + v : u * v);
	single = op == REDOP_SUM ? (float)u + (float)v : (float)u * (float)v;
	return encode(type, (double)single);
}

static uint64_t quotient(enum dtype type, uint64_t x, uint64_t n)
{
	int64_t value = as_signed(type, x);
	uint64_t mag = value < 0 ? -(uint64_t)value : (uint64_t)value;

	if (type == DTYPE_UINT8 || type == DTYPE_UINT32 || type == DTYPE_UINT64)
		return x / n;
	return cut(type, value < 0 ? -(mag / n) : mag / n);
}

/* Zero, subnormals, one, the greatest, infinity, NaNs, their neighbours and negatives: in
 * every format they are near a change of the exponent, or at an end. */
static uint64_t special_bits(enum dtype type)
{
	int bits = 8 * (int)dtype_size(type),
	    start = (int)(random_bits() % (unsigned)bits);
	uint64_t ones = ~(uint64_t)0 << start, near = random_bits() % 5 - 2;
	uint64_t sign = random_bits() << (bits - 1);

	if (random_bits() % 4 == 0)
		ones = ones >> 1 & ~(uint64_t)0 << (start / 2);
	return cut(type, ((ones & ~((uint64_t)1 << (bits - 1))) ^ sign) + near);
}

static void lanes_fill(enum dtype type)
{
	size_t bytes = dtype_size(type);
	uint64_t *all[] = {lanes.a, lanes.b, lanes.c, lanes.d};

	lanes.count = bytes == 1 ? PAIRS : SMALL;
	for (size_t i = 0; i < lanes.count; i++) {
		for (int k = 0; k < 4; k++) {
			uint64_t bits = random_bits() % 3 ? random_bits()
							  : special_bits(type);
			all[k][i] = cut(type, bits);
		}
		/* Near enough to each other to cancel, or to round. */
		if (i % 4 == 0)
			lanes.b[i] = cut(type, lanes.a[i] ^ random_bits() >> (i % 61));
		if (bytes == 1) {
			lanes.a[i] = i & 0xff;
			lanes.b[i] = i >> 8;
		}
		for (int k = 0; k < 4; k++)
			memcpy(in[k] + i * bytes, &all[k][i], bytes);
	}
}

/* What the reference gives for one operator; the units are compared with it in turn. */
static struct wanted {
	uint64_t fold[PAIRS], fold4[SMALL], scaled[SMALL], scale[SMALL];
	union kernel_scalar s;
} wanted;

static void wanted_fill(enum dtype type, enum redop op)
{
	wanted.s.bits = lanes.b[7];
	if (dtype_is_float(type))
		wanted.s = kernel_reciprocal(type, 3 + (uint32_t)op);
	for (size_t i = 0; i < lanes.count; i++)
		wanted.fold[i] = fold(type, op, lanes.a[i], lanes.b[i]);
	for (size_t i = 0; i < SMALL; i++) {
		uint64_t three = fold(type, op, wanted.fold[i], lanes.c[i]);
		uint64_t prod = fold(type, REDOP_PROD, lanes.b[i], wanted.s.bits);

		wanted.fold4[i] = fold(type, op, three, lanes.d[i]);
		wanted.scaled[i] = fold(type, op, lanes.a[i], prod);
		wanted.scale[i] = fold(type, REDOP_PROD, lanes.c[i], wanted.s.bits);
	}
}

static void out_check(
	enum dtype type, const uint64_t *want, size_t count, const char *what)
{
	size_t bytes = dtype_size(type);

	for (size_t i = 0; i < count; i++) {
		uint64_t got = 0;

		memcpy(&got, out + i * bytes, bytes);
		if (got == want[i])
			continue;
		fprintf(stderr, "%s %s: lane %zu of %#llx %#llx gives %#llx, not %#llx\n",
			what, dtype_name(type), i, (unsigned long long)lanes.a[i],
			(unsigned long long)lanes.b[i], (unsigned long long)got,
			(unsigned long long)want[i]);
		exit(1);
	}
}

static void folds_check(const struct kernel *k, enum dtype type, enum redop op)
{
	const void *const four[] = {in[0], in[1], in[2], in[3]};

	k->fold(out, in[0], in[1], lanes.count);
	out_check(type, wanted.fold, lanes.count, redop_name(op));
	k->fold4(out, four, SMALL);
	out_check(type, wanted.fold4, SMALL, "fold4");
	k->fold_scaled(out, in[0], in[1], wanted.s, SMALL);
	out_check(type, wanted.scaled, SMALL, "fold_scaled");
	k->scale(out, in[2], wanted.s, SMALL);
	out_check(type, wanted.scale, SMALL, "scale");
}

static void divide_check(const struct kernel *k, enum dtype type)
{
	static const uint64_t by[] = {1, 2, 3, 5, 7, 8, 64, 100, 127, 128, 255, 256, 641,
		65537, INT32_MAX, 1u << 31, UINT32_MAX, (uint64_t)1 << 32, INT64_MAX,
		(uint64_t)1 << 63, UINT64_MAX};
	uint64_t want[512];

	EQ(k->divide == NULL, dtype_is_float(type));
	if (!k->divide)
		return;
	for (size_t n = 0; n < sizeof(by) / sizeof(by[0]); n++) {
		memcpy(out, in[0], 512 * dtype_size(type));
		k->divide(out, by[n], 512);
		for (size_t i = 0; i < 512; i++)
			want[i] = quotient(type, lanes.a[i], by[n]);
		out_check(type, want, 512, "divide");
	}
}

/* Short and misaligned, in place or not: as the long aligned call, and not a byte more.
 */
static void edges_check(const struct kernel *k, enum dtype type)
{
	static unsigned char want[256 * 8], a[3072], b[3072], d[3072];
	size_t bytes = dtype_size(type);

	k->fold(want, in[2], in[3], 256);
	for (size_t shift = 0; shift <= 65; shift++) {
		size_t count = shift * 3, from = 64 + shift, to = 64 + (shift * 5) % 66;
		unsigned char *places[] = {d + to, a + from, b + to};

		for (int where = 0; where < 3; where++) {
			unsigned char *dst = places[where];

			memset(a, GUARD, sizeof(a));
			memset(b, GUARD, sizeof(b));
			memset(d, GUARD, sizeof(d));
			memcpy(a + from, in[2], count * bytes);
			memcpy(b + to, in[3], count * bytes);
			k->fold(dst, a + from, b + to, count);
			TRUE(!memcmp(dst, want, count * bytes));
			EQ(dst[-1], GUARD);
			EQ(dst[count * bytes], GUARD);
		}
	}
}

static void units_check(enum dtype type, enum redop op)
{
	const struct kernel *before = NULL;

	wanted_fill(type, op);
	for (size_t i = 0; i < sizeof(units) / sizeof(units[0]); i++) {
		const struct kernel *k = kernel_get_isa(units[i], type, op);

		/* "scalar" may be another name of the one before. */
		if (!k || k == before)
			continue;
		folds_check(k, type, op);
		edges_check(k, type);
		if (op == REDOP_SUM)
			divide_check(k, type);
		before = k;
	}
	TRUE(kernel_get(type, op) == kernel_get_isa("scalar", type, op));
	TRUE(kernel_get(type, REDOP_AVG) == kernel_get(type, REDOP_SUM));
}

static void reciprocal_check(void)
{
	for (enum dtype type = DTYPE_FLOAT16; type < DTYPE_COUNT; type++)
		for (uint32_t n = 1; n < 3000; n++) {
			double want = type == DTYPE_FLOAT64 ? 1.0 / n
							    : (double)(1.0f / (float)n);
			TRUE(kernel_reciprocal(type, n).bits == encode(type, want));
		}
	EQ(kernel_reciprocal(DTYPE_INT32, 3).bits, 1);
}

static void copy_check(void)
{
	size_t large = kernel_copy_threshold() < SIZE_MAX ? kernel_copy_threshold() + 77
							  : 4096;
	unsigned char *from = malloc(large), *to = malloc(large);

	TRUE(from && to);
	for (size_t i = 0; i < large; i++)
		from[i] = (unsigned char)(i * 7 + i / 255);
	kernel_copy(to, from, large);
	TRUE(!memcmp(to, from, large));
	for (size_t bytes = 0; bytes < 400; bytes++) {
		memset(to, GUARD, 1024);
		kernel_copy_stream(to + 1 + bytes % 67, from + bytes % 13, bytes);
		TRUE(!memcmp(to + 1 + bytes % 67, from + bytes % 13, bytes));
		EQ(to[bytes % 67], GUARD);
		EQ(to[1 + bytes % 67 + bytes], GUARD);
	}
	free(from);
	free(to);
}

int main(void)
{
	setenv("WEFT_ISA", "scalar", 1);
	for (enum dtype type = 0; type < DTYPE_COUNT; type++) {
		lanes_fill(type);
		for (enum redop op = REDOP_SUM; op <= REDOP_MIN; op++)
			units_check(type, op);
	}
	TRUE(kernel_get_isa("abacus", DTYPE_INT8, REDOP_SUM) == NULL);
	TRUE(kernel_get_isa(kernel_isa(), DTYPE_INT8, REDOP_SUM) ==
		kernel_get(DTYPE_INT8, REDOP_SUM));
	reciprocal_check();
	copy_check();
	return 0;
}
