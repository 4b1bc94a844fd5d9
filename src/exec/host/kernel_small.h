/*
 * kernel_small.h - float16 and float8 for units without conversions of their own.
 *
 * They travel in 32-bit words, two or four at a time; see kernel_body.h for what a unit
 * must define.
 */
#ifndef EXEC_HOST_KERNEL_SMALL_H
#define EXEC_HOST_KERNEL_SMALL_H

#include "exec/host/kernel.h"
#include "exec/host/kernel_arith.h"

typedef u32 f16s;
typedef u32 f8s;

/* A float format smaller than float: 1 sign bit, some exponent bits, `fraction` bits. */
struct mini {
	int fraction;
	u32 sign;    /* the code's sign bit */
	i32 special; /* codes without sign from here on are infinite or NaN */
	i32 normal;  /* the least normal number, as the bits of a float */
	i32 limit;   /* results beyond it become it, as the bits of a float */
};

/* The limit of float16 is 65536, which is the code of infinity. */
static const struct mini mini_f16 = {10, 0x8000, 0x7c00, 113 << 23, 143 << 23};
static const struct mini mini_e4m3 = {3, 0x80, 0x7f, 121 << 23, 0x43e00000};
static const struct mini mini_e5m2 = {2, 0x80, 0x7c, 113 << 23, 0x47600000};

/* Bits of `code` above the sign bit are ignored. */
INLINE f32 mini_decode(struct mini m, u32 code)
{
	int shift = 23 - m.fraction;
	i32 mag = (i32)(code & (m.sign - 1));
	/* A subnormal lacks the leading one: let it have it, and take it away as a float.
	 */
	u32 is_subnormal = -(u32)(mag < 1 << m.fraction);
	u32 is_special = -(u32)(mag >= m.special);
	u32 bits = ((u32)mag << shift) + (u32)m.normal - (1 << 23);
	f32 lead = f32_from_bits((u32)m.normal & is_subnormal);
	f32 value = f32_from_bits(bits + ((1 << 23) & is_subnormal)) - lead;
	u32 wide = f32_bits(value) | (0x7f800000 & is_special);

	return f32_from_bits(wide | (code & m.sign) << (m.sign == 0x80 ? 24 : 16));
}

/*
 * Adding a power of two whose last place is the code's last place rounds x there, to
 * nearest even, and leaves x in units of that place in the low bits. Counting on from the
 * code of x's power of two gives the code; a carry runs into the exponent as it should.
 */
INLINE u32 mini_encode(struct mini m, f32 x)
{
	int shift = 23 - m.fraction;
	i32 mag = (i32)(f32_bits(x) & INT32_MAX);
	i32 clipped = mag < m.limit ? mag : m.limit;
	i32 power = clipped & 0x7f800000;
	i32 base = power > m.normal ? power : m.normal;
	u32 magic = (u32)base + ((u32)shift << 23);
	u32 units = f32_bits(f32_from_bits((u32)clipped) + f32_from_bits(magic)) - magic;
	u32 code = units + ((u32)(base - m.normal) >> shift);
	u32 sign = f32_bits(x) & 0x80000000;
	u32 is_nan = -(u32)(mag > 0x7f800000);

	code |= m.sign == 0x80 ? sign >> 24 : sign >> 16;
	return (code & ~is_nan) | (is_nan & (m.sign - 1));
}

#define MINI(T)                                                                          \
	INLINE u32 T##_sum_one(u32 x, u32 y)                                             \
	{                                                                                \
		return mini_encode(                                                      \
			mini_##T, mini_decode(mini_##T, x) + mini_decode(mini_##T, y));  \
	}                                                                                \
	INLINE u32 T##_prod_one(u32 x, u32 y)                                            \
	{                                                                                \
		return mini_encode(                                                      \
			mini_##T, mini_decode(mini_##T, x) * mini_decode(mini_##T, y));  \
	}

MINI(f16)
MINI(e4m3)
MINI(e5m2)

#define WORD_OF_2(name)                                                                  \
	INLINE u32 name(u32 x, u32 y)                                                    \
	{                                                                                \
		return name##_one(x, y) | name##_one(x >> 16, y >> 16) << 16;            \
	}

#define WORD_OF_4(name)                                                                  \
	INLINE u32 name(u32 x, u32 y)                                                    \
	{                                                                                \
		return name##_one(x, y) | name##_one(x >> 8, y >> 8) << 8 |              \
		       name##_one(x >> 16, y >> 16) << 16 |                              \
		       name##_one(x >> 24, y >> 24) << 24;                               \
	}

WORD_OF_2(f16_sum)
WORD_OF_2(f16_prod)
WORD_OF_4(e4m3_sum)
WORD_OF_4(e4m3_prod)
WORD_OF_4(e5m2_sum)
WORD_OF_4(e5m2_prod)

INLINE u32 f16_splat(union kernel_scalar scalar)
{
	return (u32)(scalar.bits & 0xffff) * 0x10001;
}

INLINE u32 e4m3_splat(union kernel_scalar scalar)
{
	return (u32)(scalar.bits & 0xff) * 0x1010101;
}

INLINE u32 e5m2_splat(union kernel_scalar scalar)
{
	return (u32)(scalar.bits & 0xff) * 0x1010101;
}

#endif
