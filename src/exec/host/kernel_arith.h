/*
 * kernel_arith.h - the arithmetic of one element, or of one 32-bit word of small
 * elements.
 *
 * Plain C without branches, in 32-bit lanes wherever possible, so that compilers turn a
 * loop over it into code for any vector unit. Small floats travel packed in words: taking
 * them apart with shifts needs no lane crossing, which vector units do slowly.
 *
 * The rules, the same on every unit: integers wrap; a float result is rounded once, to
 * nearest even, from a float operation; a NaN result is the type's all-ones NaN
 * (compilers may swap operands, so the payload of an input NaN would depend on the unit);
 * max and min give the operand that is not NaN. kernel_body.h makes the loops.
 */
#ifndef EXEC_HOST_KERNEL_ARITH_H
#define EXEC_HOST_KERNEL_ARITH_H

#include <stdint.h>
#include <string.h>

/* A call left in a loop would keep it from being vectorised. */
#define INLINE static inline __attribute__((always_inline))

typedef int8_t i8;
typedef uint8_t u8;
typedef int16_t i16;
typedef uint16_t u16;
typedef int32_t i32;
typedef uint32_t u32;
typedef int64_t i64;
typedef uint64_t u64;
typedef float f32;
typedef double f64;

INLINE f32 f32_from_bits(u32 bits)
{
	f32 x;

	memcpy(&x, &bits, sizeof(x));
	return x;
}

INLINE u32 f32_bits(f32 x)
{
	u32 bits;

	memcpy(&bits, &x, sizeof(bits));
	return bits;
}

INLINE f32 f32_canon(f32 x)
{
	return x == x ? x : f32_from_bits(INT32_MAX);
}

INLINE f64 f64_canon(f64 x)
{
	u64 bits = INT64_MAX;
	f64 nan;

	memcpy(&nan, &bits, sizeof(nan));
	return x == x ? x : nan;
}

/* Integers compute in U, the unsigned type, where overflow is defined. */
#define INTEGER(T, U)                                                                    \
	INLINE T T##_sum(T x, T y)                                                       \
	{                                                                                \
		return (T)((U)x + (U)y);                                                 \
	}                                                                                \
	INLINE T T##_prod(T x, T y)                                                      \
	{                                                                                \
		return (T)((U)x * (U)y);                                                 \
	}                                                                                \
	INLINE T T##_max(T x, T y)                                                       \
	{                                                                                \
		return x > y ? x : y;                                                    \
	}                                                                                \
	INLINE T T##_min(T x, T y)                                                       \
	{                                                                                \
		return x < y ? x : y;                                                    \
	}

INTEGER(i8, u8)
INTEGER(u8, u8)
INTEGER(i32, u32)
INTEGER(u32, u32)
INTEGER(i64, u64)
INTEGER(u64, u64)

/* Of two equal numbers, which differ only if they are zeros: +0 when either is, or -0
 * when either is. Ranks that fold the same pair in either order must get the same bits.
 */
#define ZEROS(T, U)                                                                      \
	INLINE T T##_both(T x, T y)                                                      \
	{                                                                                \
		U a, b;                                                                  \
		memcpy(&a, &x, sizeof(a));                                               \
		memcpy(&b, &y, sizeof(b));                                               \
		a &= b;                                                                  \
		memcpy(&x, &a, sizeof(x));                                               \
		return x;                                                                \
	}                                                                                \
	INLINE T T##_either(T x, T y)                                                    \
	{                                                                                \
		U a, b;                                                                  \
		memcpy(&a, &x, sizeof(a));                                               \
		memcpy(&b, &y, sizeof(b));                                               \
		a |= b;                                                                  \
		memcpy(&x, &a, sizeof(x));                                               \
		return x;                                                                \
	}

ZEROS(f32, u32)
ZEROS(f64, u64)

#define FLOAT(T)                                                                         \
	INLINE T T##_sum(T x, T y)                                                       \
	{                                                                                \
		return T##_canon(x + y);                                                 \
	}                                                                                \
	INLINE T T##_prod(T x, T y)                                                      \
	{                                                                                \
		return T##_canon(x * y);                                                 \
	}                                                                                \
	INLINE T T##_max(T x, T y)                                                       \
	{                                                                                \
		T greater = x > y ? x : y;                                               \
		greater = x == y ? T##_both(x, y) : greater;                             \
		return T##_canon(y == y ? greater : x);                                  \
	}                                                                                \
	INLINE T T##_min(T x, T y)                                                       \
	{                                                                                \
		T less = x < y ? x : y;                                                  \
		less = x == y ? T##_either(x, y) : less;                                 \
		return T##_canon(y == y ? less : x);                                     \
	}

FLOAT(f32)
FLOAT(f64)

/* A bfloat16 is the upper half of a float, and two of them make a word. */
INLINE f32 bf16_low(u32 word)
{
	return f32_from_bits(word << 16);
}

INLINE f32 bf16_high(u32 word)
{
	return f32_from_bits(word & 0xffff0000);
}

/* The bits of the float that is x rounded. The NaNs that arise from bfloat16 operands
 * have no low bits, so they remain NaNs. */
INLINE u32 bf16_nearest(f32 x)
{
	u32 bits = f32_bits(x);

	return (bits + 0x7fff + ((bits >> 16) & 1)) & 0xffff0000;
}

INLINE u32 bf16_round(f32 x)
{
	return x == x ? bf16_nearest(x) : 0x7fff0000;
}

/* Longer sums and products stay apart, and leave care for NaNs to the last rounding. */
#define BFLOAT(op, SIGN)                                                                 \
	INLINE u32 bf16_##op(u32 x, u32 y)                                               \
	{                                                                                \
		return bf16_round(bf16_low(x) SIGN bf16_low(y)) >> 16 |                  \
		       bf16_round(bf16_high(x) SIGN bf16_high(y));                       \
	}                                                                                \
	INLINE f32 bf16_##op##_float(f32 x, f32 y)                                       \
	{                                                                                \
		return f32_from_bits(bf16_nearest(x SIGN y));                            \
	}                                                                                \
	INLINE u32 bf16_##op##_4(u32 x, u32 y, u32 z, u32 w)                             \
	{                                                                                \
		f32 low = bf16_##op##_float(bf16_low(x), bf16_low(y));                   \
		f32 high = bf16_##op##_float(bf16_high(x), bf16_high(y));                \
                                                                                         \
		low = bf16_##op##_float(low, bf16_low(z));                               \
		high = bf16_##op##_float(high, bf16_high(z));                            \
		return bf16_round(low SIGN bf16_low(w)) >> 16 |                          \
		       bf16_round(high SIGN bf16_high(w));                               \
	}                                                                                \
	INLINE u32 bf16_##op##_prod(u32 x, u32 y, u32 s)                                 \
	{                                                                                \
		f32 low = f32_from_bits(bf16_nearest(bf16_low(y) * bf16_low(s)));        \
		f32 high = f32_from_bits(bf16_nearest(bf16_high(y) * bf16_high(s)));     \
                                                                                         \
		return bf16_round(bf16_low(x) SIGN low) >> 16 |                          \
		       bf16_round(bf16_high(x) SIGN high);                               \
	}

BFLOAT(sum, +)
BFLOAT(prod, *)

/*
 * Greatest and least of small floats need no float: a code with its magnitude bits turned
 * over when negative orders as a signed integer does, -0 before +0. A NaN gets the key
 * that loses. SPECIAL is the largest code that is a number.
 */
#define ORDERED(T, S, U, SPECIAL)                                                        \
	INLINE S T##_key(U x, S nan)                                                     \
	{                                                                                \
		S flip = (S)((U)((S)x < 0 ? -1 : 0) >> 1);                               \
		S mag = (S)(x & (U)((U)-1 >> 1));                                        \
		S key = (S)((S)x ^ flip);                                                \
		return mag > (SPECIAL) ? nan : key;                                      \
	}                                                                                \
	INLINE U T##_max(U x, U y)                                                       \
	{                                                                                \
		S lowest = (S)(-(S)((U)-1 >> 1) - 1);                                    \
		return T##_key(x, lowest) >= T##_key(y, lowest) ? x : y;                 \
	}                                                                                \
	INLINE U T##_min(U x, U y)                                                       \
	{                                                                                \
		S highest = (S)((U)-1 >> 1);                                             \
		return T##_key(x, highest) <= T##_key(y, highest) ? x : y;               \
	}

ORDERED(f16, i16, u16, 0x7c00)
ORDERED(bf16, i16, u16, 0x7f80)
ORDERED(e4m3, i8, u8, 0x7e)
ORDERED(e5m2, i8, u8, 0x7c)

#endif
