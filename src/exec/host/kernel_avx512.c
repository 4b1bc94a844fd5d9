/*
 * kernel_avx512.c - the kernels for CPUs with AVX-512 F, BW, DQ and VL.
 */
#include <immintrin.h>

#include "exec/host/kernel_arith.h"
#include "exec/host/kernel_unit.h"

typedef u16 f16s __attribute__((vector_size(32)));
typedef u16 wide __attribute__((vector_size(64)));

INLINE __m512 f16_value(f16s x)
{
	return _mm512_cvtph_ps((__m256i)x);
}

INLINE f16s f16_round(__m512 x)
{
	__m512 nan = _mm512_castsi512_ps(_mm512_set1_epi32(INT32_MAX));
	__mmask16 is_nan = _mm512_cmp_ps_mask(x, x, _CMP_UNORD_Q);

	x = _mm512_mask_mov_ps(x, is_nan, nan);
	return (f16s)_mm512_cvtps_ph(x, _MM_FROUND_TO_NEAREST_INT);
}

INLINE f16s f16_sum(f16s x, f16s y)
{
	return f16_round(f16_value(x) + f16_value(y));
}

INLINE f16s f16_prod(f16s x, f16s y)
{
	return f16_round(f16_value(x) * f16_value(y));
}

INLINE f16s f16_splat(union kernel_scalar scalar)
{
	return (f16s){0} + (u16)(scalar.bits & 0xffff);
}

INLINE __m512 low_half(wide x)
{
	return _mm512_cvtph_ps(_mm512_castsi512_si256((__m512i)x));
}

INLINE __m512 high_half(wide x)
{
	return _mm512_cvtph_ps(_mm512_extracti64x4_epi64((__m512i)x, 1));
}

INLINE wide join(__m512 low, __m512 high)
{
	__m256i lower = _mm512_cvtps_ph(low, _MM_FROUND_TO_NEAREST_INT);
	__m256i upper = _mm512_cvtps_ph(high, _MM_FROUND_TO_NEAREST_INT);

	return (wide)_mm512_inserti64x4(_mm512_castsi256_si512(lower), upper, 1);
}

INLINE wide wide_add(wide x, wide y)
{
	return join(low_half(x) + low_half(y), high_half(x) + high_half(y));
}

INLINE wide wide_mul(wide x, wide y, f32 s)
{
	return join(low_half(x) * low_half(y) * s, high_half(x) * high_half(y) * s);
}

INLINE wide wide_least(wide x, u16 limit)
{
	return (wide)_mm512_min_epu16((__m512i)x, _mm512_set1_epi16((i16)limit));
}

INLINE wide wide_over(wide x, wide key, i16 limit, i16 other)
{
	__mmask32 is_over = _mm512_cmpgt_epi16_mask(
		(__m512i)key, _mm512_set1_epi16(limit));

	return (wide)_mm512_mask_mov_epi16((__m512i)x, is_over, _mm512_set1_epi16(other));
}

#include "exec/host/kernel_f16c.h"

#define SMALL_HINT
#define KERNEL_GET kernel_get_avx512
#include "exec/host/kernel_body.h"
