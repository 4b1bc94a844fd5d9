/*
 * kernel_body.h - all loops and the table of one vector unit.
 *
 * Not an ordinary header: each kernel_<unit>.c includes it once, after defining
 *	KERNEL_GET   the name of its table function (kernel_unit.h)
 *	f16s, f8s    words of float16s and of float8s, with f16_sum(), e4m3_prod(),
 *	             e5m2_splat() and so on: kernel_f16c.h or kernel_small.h
 *	SMALL_HINT   VECTORISE, or empty when these words are vectors already
 * Everything else is kernel_arith.h, which the compiler vectorises for the unit's flags.
 */
#include "exec/host/kernel_arith.h"
#include "exec/host/kernel_unit.h"

#include <assert.h>
#include <string.h>

/*
 * W is the type a loop works on: an element, or a word of PER small elements. any_W is it
 * at any address. The rest of a buffer that is no whole word is done in a padded word.
 */
#define WORD(W)                                                                          \
	typedef W any_##W __attribute__((aligned(1), may_alias));                        \
	INLINE W W##_part(const any_##W *from, size_t bytes)                             \
	{                                                                                \
		W word = {0};                                                            \
		memcpy(&word, from, bytes);                                              \
		return word;                                                             \
	}                                                                                \
	INLINE void W##_put(any_##W *to, W word, size_t bytes)                           \
	{                                                                                \
		memcpy(to, &word, bytes);                                                \
	}

/* Longer expressions where the type has no shorter way of its own. */
#define CHAIN4(name, W)                                                                  \
	INLINE W name##_4(W x, W y, W z, W w)                                            \
	{                                                                                \
		return name(name(name(x, y), z), w);                                     \
	}

#define CHAIN_SCALED(T, op, W)                                                           \
	INLINE W T##_##op##_prod(W x, W y, W s)                                          \
	{                                                                                \
		return T##_##op(x, T##_prod(y, s));                                      \
	}

#define CHAINS(T, W)                                                                     \
	CHAIN4(T##_sum, W)                                                               \
	CHAIN4(T##_prod, W)                                                              \
	CHAIN_SCALED(T, sum, W)                                                          \
	CHAIN_SCALED(T, prod, W)

/* dst may be a or b, so it is not `restrict`; no element depends on another's result. */
#define FOLD(name, W, PER, HINT)                                                         \
	static void name##_fold(void *dst, const void *a, const void *b, size_t elems)   \
	{                                                                                \
		size_t words = elems / (PER),                                            \
		       rest = elems % (PER) * (sizeof(W) / (PER));                       \
		const any_##W *x = a, *y = b;                                            \
		any_##W *d = dst;                                                        \
                                                                                         \
		HINT for (size_t i = 0; i < words; i++) d[i] = name(x[i], y[i]);         \
		if (rest)                                                                \
			W##_put(d + words,                                               \
				name(W##_part(x + words, rest),                          \
					W##_part(y + words, rest)),                      \
				rest);                                                   \
	}                                                                                \
	static void name##_fold4(void *dst, const void *const in[4], size_t elems)       \
	{                                                                                \
		size_t words = elems / (PER),                                            \
		       rest = elems % (PER) * (sizeof(W) / (PER));                       \
		const any_##W *x = in[0], *y = in[1], *z = in[2], *w = in[3];            \
		any_##W *d = dst;                                                        \
                                                                                         \
		HINT for (size_t i = 0; i < words; i++)                                  \
			d[i] = name##_4(x[i], y[i], z[i], w[i]);                         \
		if (rest)                                                                \
			W##_put(d + words,                                               \
				name##_4(W##_part(x + words, rest),                      \
					W##_part(y + words, rest),                       \
					W##_part(z + words, rest),                       \
					W##_part(w + words, rest)),                      \
				rest);                                                   \
	}

#define SCALE(T, W, PER, HINT)                                                           \
	static void T##_scale(                                                           \
		void *dst, const void *a, union kernel_scalar scalar, size_t elems)      \
	{                                                                                \
		size_t words = elems / (PER),                                            \
		       rest = elems % (PER) * (sizeof(W) / (PER));                       \
		const any_##W *x = a;                                                    \
		any_##W *d = dst;                                                        \
		W s = T##_splat(scalar);                                                 \
                                                                                         \
		HINT for (size_t i = 0; i < words; i++) d[i] = T##_prod(x[i], s);        \
		if (rest)                                                                \
			W##_put(d + words, T##_prod(W##_part(x + words, rest), s),       \
				rest);                                                   \
	}

#define FOLD_SCALED(T, op, W, PER, HINT)                                                 \
	static void T##_##op##_fold_scaled(void *dst, const void *a, const void *b,      \
		union kernel_scalar scalar, size_t elems)                                \
	{                                                                                \
		size_t words = elems / (PER),                                            \
		       rest = elems % (PER) * (sizeof(W) / (PER));                       \
		const any_##W *x = a, *y = b;                                            \
		any_##W *d = dst;                                                        \
		W s = T##_splat(scalar);                                                 \
                                                                                         \
		HINT for (size_t i = 0; i < words; i++)                                  \
			d[i] = T##_##op##_prod(x[i], y[i], s);                           \
		if (rest)                                                                \
			W##_put(d + words,                                               \
				T##_##op##_prod(W##_part(x + words, rest),               \
					W##_part(y + words, rest), s),                   \
				rest);                                                   \
	}

/* Where scaling and folding work on different words; rare enough for two passes. */
#define FOLD_SCALED_TWICE(T, op, BYTES)                                                  \
	static void T##_##op##_fold_scaled(void *dst, const void *a, const void *b,      \
		union kernel_scalar scalar, size_t elems)                                \
	{                                                                                \
		char scaled[2048];                                                       \
                                                                                         \
		for (size_t i = 0; i < elems * (BYTES); i += sizeof(scaled)) {           \
			size_t left = elems * (BYTES)-i;                                 \
			size_t bytes = left < sizeof(scaled) ? left : sizeof(scaled);    \
			T##_scale(scaled, (const char *)b + i, scalar, bytes / (BYTES)); \
			T##_##op##_fold((char *)dst + i, (const char *)a + i, scaled,    \
				bytes / (BYTES));                                        \
		}                                                                        \
	}

#define VECTORISE _Pragma("omp simd")

#define WHOLE(T)                                                                         \
	WORD(T)                                                                          \
	INLINE T T##_splat(union kernel_scalar scalar)                                   \
	{                                                                                \
		T s;                                                                     \
		memcpy(&s, scalar.bytes, sizeof(s));                                     \
		return s;                                                                \
	}                                                                                \
	CHAINS(T, T)                                                                     \
	CHAIN4(T##_max, T)                                                               \
	CHAIN4(T##_min, T)                                                               \
	CHAIN_SCALED(T, max, T)                                                          \
	CHAIN_SCALED(T, min, T)                                                          \
	FOLD(T##_sum, T, 1, VECTORISE)                                                   \
	FOLD(T##_prod, T, 1, VECTORISE)                                                  \
	FOLD(T##_max, T, 1, VECTORISE)                                                   \
	FOLD(T##_min, T, 1, VECTORISE)                                                   \
	SCALE(T, T, 1, VECTORISE)                                                        \
	FOLD_SCALED(T, sum, T, 1, VECTORISE)                                             \
	FOLD_SCALED(T, prod, T, 1, VECTORISE)                                            \
	FOLD_SCALED(T, max, T, 1, VECTORISE)                                             \
	FOLD_SCALED(T, min, T, 1, VECTORISE)

#define PACKED(T, W, PER, HINT, E)                                                       \
	CHAIN4(T##_max, E)                                                               \
	CHAIN4(T##_min, E)                                                               \
	FOLD(T##_sum, W, PER, HINT)                                                      \
	FOLD(T##_prod, W, PER, HINT)                                                     \
	FOLD(T##_max, E, 1, VECTORISE)                                                   \
	FOLD(T##_min, E, 1, VECTORISE)                                                   \
	SCALE(T, W, PER, HINT)                                                           \
	FOLD_SCALED(T, sum, W, PER, HINT)                                                \
	FOLD_SCALED(T, prod, W, PER, HINT)                                               \
	FOLD_SCALED_TWICE(T, max, sizeof(E))                                             \
	FOLD_SCALED_TWICE(T, min, sizeof(E))

INLINE u32 bf16_splat(union kernel_scalar scalar)
{
	return (u32)(scalar.bits & 0xffff) * 0x10001;
}

WORD(u16)
WORD(f16s)
WORD(f8s)
WHOLE(i8)
WHOLE(u8)
WHOLE(i32)
WHOLE(u32)
WHOLE(i64)
WHOLE(u64)
WHOLE(f32)
WHOLE(f64)
CHAINS(f16, f16s)
CHAINS(e4m3, f8s)
CHAINS(e5m2, f8s)
PACKED(f16, f16s, sizeof(f16s) / 2, SMALL_HINT, u16)
PACKED(bf16, u32, 2, VECTORISE, u16)
PACKED(e4m3, f8s, sizeof(f8s), SMALL_HINT, u8)
PACKED(e5m2, f8s, sizeof(f8s), SMALL_HINT, u8)

/*
 * Division by a number known only at run time: x/n = mulhi(x, 2^w + mul) >> bits, with
 * 2^(bits-1) < n <= 2^bits and mul = 2^w (2^bits - n) / n + 1. The sum of w+1 bits is
 * halved before it can overflow, hence n > 1.
 */
struct divisor32 {
	u32 mul;
	int shift;
};

struct divisor64 {
	u64 mul;
	int shift;
};

static struct divisor32 divisor32(u32 n)
{
	int bits = 32 - __builtin_clz(n - 1);
	u64 above = ((u64)1 << bits) - n;

	return (struct divisor32){(u32)((above << 32) / n + 1), bits - 1};
}

static struct divisor64 divisor64(u64 n)
{
	int bits = 64 - __builtin_clzll(n - 1);
	unsigned __int128 above = ((unsigned __int128)1 << bits) - n;

	return (struct divisor64){(u64)((above << 64) / n + 1), bits - 1};
}

INLINE u32 quotient32(u32 x, struct divisor32 by)
{
	u32 high = (u32)((u64)x * by.mul >> 32);

	return (high + ((x - high) >> 1)) >> by.shift;
}

INLINE u64 quotient64(u64 x, struct divisor64 by)
{
	u64 high = (u64)((unsigned __int128)x * by.mul >> 64);

	return (high + ((x - high) >> 1)) >> by.shift;
}

/* C is the type that computes, 32 or 64 bits wide. Negative numbers divide as positive
 * ones, which truncates towards zero. */
#define DIVIDE(T, C, WIDTH)                                                              \
	INLINE T T##_quotient(T x, struct divisor##WIDTH by)                             \
	{                                                                                \
		C flip = x < (T)1 && x ? (C)-1 : 0;                                      \
		return (T)((quotient##WIDTH(((C)x ^ flip) - flip, by) ^ flip) - flip);   \
	}                                                                                \
	static void T##_divide(void *dst, uint64_t n, size_t elems)                      \
	{                                                                                \
		struct divisor##WIDTH by;                                                \
		any_##T *d = dst;                                                        \
                                                                                         \
		assert(n > 0);                                                           \
		if (n == 1)                                                              \
			return;                                                          \
		if ((C)n != n) {                                                         \
			memset(dst, 0, elems * sizeof(T));                               \
			return;                                                          \
		}                                                                        \
		by = divisor##WIDTH((C)n);                                               \
		VECTORISE for (size_t i = 0; i < elems; i++)                             \
			d[i] = T##_quotient(d[i], by);                                   \
	}

DIVIDE(i8, u32, 32)
DIVIDE(u8, u32, 32)
DIVIDE(i32, u32, 32)
DIVIDE(u32, u32, 32)
DIVIDE(i64, u64, 64)
DIVIDE(u64, u64, 64)

#define ROW(T, op, DIV)                                                                  \
	{                                                                                \
		.fold = T##_##op##_fold, .fold4 = T##_##op##_fold4, .scale = T##_scale,  \
		.fold_scaled = T##_##op##_fold_scaled, .divide = (DIV)                   \
	}
#define ROWS(T, DIV)                                                                     \
	{                                                                                \
		[REDOP_SUM] = ROW(T, sum, DIV), [REDOP_PROD] = ROW(T, prod, DIV),        \
		[REDOP_MAX] = ROW(T, max, DIV), [REDOP_MIN] = ROW(T, min, DIV),          \
	}

static const struct kernel table[DTYPE_COUNT][KERNEL_FOLDS] = {
	[DTYPE_INT8] = ROWS(i8, i8_divide),
	[DTYPE_UINT8] = ROWS(u8, u8_divide),
	[DTYPE_INT32] = ROWS(i32, i32_divide),
	[DTYPE_UINT32] = ROWS(u32, u32_divide),
	[DTYPE_INT64] = ROWS(i64, i64_divide),
	[DTYPE_UINT64] = ROWS(u64, u64_divide),
	[DTYPE_FLOAT16] = ROWS(f16, NULL),
	[DTYPE_FLOAT32] = ROWS(f32, NULL),
	[DTYPE_FLOAT64] = ROWS(f64, NULL),
	[DTYPE_BFLOAT16] = ROWS(bf16, NULL),
	[DTYPE_FLOAT8E4M3] = ROWS(e4m3, NULL),
	[DTYPE_FLOAT8E5M2] = ROWS(e5m2, NULL),
};

const struct kernel *KERNEL_GET(enum dtype type, enum redop fold)
{
	return &table[type][fold];
}
