/*
 * kernel_f16c.h - float8 for units that convert float16 in hardware.
 *
 * For kernel_avx2.c and kernel_avx512.c, which define before including it
 *	wide                                a vector of float16s, as u16
 *	wide_add(x, y), wide_mul(x, y, s)   x + y and x * y * s in float, rounded to
 *float16 wide_least(x, limit)                the lesser, unsigned wide_over(x, key,
 *limit, other)     `other` where key > limit, signed, else x
 *
 * Results are rounded twice, to float16 and then to float8. For sums and products that is
 * the same as rounding once, because 11 bits of precision are at least twice 4 bits plus
 * 2; test_exec_kernel.c proves it for all pairs, subnormal ones included.
 */
#ifndef EXEC_HOST_KERNEL_F16C_H
#define EXEC_HOST_KERNEL_F16C_H

#include "exec/host/kernel_arith.h"
#include "exec/host/kernel_unit.h"

/* Twice as many float8s: the low and the high bytes of the lanes are worked on apart,
 * which needs no lane crossing. */
typedef wide f8s;

/* Drop the last `drop` fraction bits; what is beyond `limit` becomes that. */
INLINE wide wide_round(wide x, int drop, u16 limit)
{
	wide mag = x & 0x7fff;
	wide odd = (mag >> drop) & 1;
	wide code = (mag + (u16)((1 << (drop - 1)) - 1) + odd) >> drop;

	code = wide_least(code, limit) | ((x >> 8) & 0x80);
	return wide_over(code, mag, 0x7c00, 0x7f);
}

/* e5m2 is the upper half of a float16. */
INLINE f8s e5m2_sum(f8s x, f8s y)
{
	wide low = wide_add(x << 8, y << 8);
	wide high = wide_add(x & 0xff00, y & 0xff00);

	return wide_round(low, 8, 0x7b) | wide_round(high, 8, 0x7b) << 8;
}

INLINE f8s e5m2_prod(f8s x, f8s y)
{
	wide low = wide_mul(x << 8, y << 8, 1.0f);
	wide high = wide_mul(x & 0xff00, y & 0xff00, 1.0f);

	return wide_round(low, 8, 0x7b) | wide_round(high, 8, 0x7b) << 8;
}

/* The fields of e4m3 in those of a float16 make a number 2^8 times smaller. The code is
 * in the upper byte; what is in the lower one does not matter. */
INLINE wide e4m3_widen(wide x)
{
	wide mag = x & 0x7f00;

	return wide_over((x & 0x8000) | mag >> 1, mag, 0x7e00, 0x7fff);
}

INLINE f8s e4m3_sum(f8s x, f8s y)
{
	wide low = wide_add(e4m3_widen(x << 8), e4m3_widen(y << 8));
	wide high = wide_add(e4m3_widen(x), e4m3_widen(y));

	return wide_round(low, 7, 0x7e) | wide_round(high, 7, 0x7e) << 8;
}

INLINE f8s e4m3_prod(f8s x, f8s y)
{
	wide low = wide_mul(e4m3_widen(x << 8), e4m3_widen(y << 8), 256.0f);
	wide high = wide_mul(e4m3_widen(x), e4m3_widen(y), 256.0f);

	return wide_round(low, 7, 0x7e) | wide_round(high, 7, 0x7e) << 8;
}

INLINE f8s e4m3_splat(union kernel_scalar scalar)
{
	return (f8s){0} + (u16)((scalar.bits & 0xff) * 0x101);
}

INLINE f8s e5m2_splat(union kernel_scalar scalar)
{
	return (f8s){0} + (u16)((scalar.bits & 0xff) * 0x101);
}

#endif
