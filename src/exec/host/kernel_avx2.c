/*
 * kernel_avx2.c - the kernels for CPUs with AVX2 and F16C.
 */
#include <immintrin.h>

#include "exec/host/kernel_arith.h"
#include "exec/host/kernel_unit.h"

typedef u16 f16s __attribute__((vector_size(16)));
typedef u16 wide __attribute__((vector_size(32)));

INLINE __m256 f16_value(f16s x)
{
	return _mm256_cvtph_ps((__m128i)x);
}

INLINE f16s f16_round(__m256 x)
{
	__m256 nan = _mm256_castsi256_ps(_mm256_set1_epi32(INT32_MAX));
	__m256 is_nan = _mm256_cmp_ps(x, x, _CMP_UNORD_Q);

	x = _mm256_blendv_ps(x, nan, is_nan);
	return (f16s)_mm256_cvtps_ph(x, _MM_FROUND_TO_NEAREST_INT);
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

INLINE __m256 low_half(wide x)
{
	return _mm256_cvtph_ps(_mm256_castsi256_si128((__m256i)x));
}

INLINE __m256 high_half(wide x)
{
	return _mm256_cvtph_ps(_mm256_extracti128_si256((__m256i)x, 1));
}

INLINE wide join(__m256 low, __m256 high)
{
	__m128i lower = _mm256_cvtps_ph(low, _MM_FROUND_TO_NEAREST_INT);
	__m128i upper = _mm256_cvtps_ph(high, _MM_FROUND_TO_NEAREST_INT);

	return (wide)_mm256_set_m128i(upper, lower);
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
	return (wide)_mm256_min_epu16((__m256i)x, _mm256_set1_epi16((i16)limit));
}

INLINE wide wide_over(wide x, wide key, i16 limit, i16 other)
{
	__m256i is_over = _mm256_cmpgt_epi16((__m256i)key, _mm256_set1_epi16(limit));

	return (wide)_mm256_blendv_epi8((__m256i)x, _mm256_set1_epi16(other), is_over);
}

#include "exec/host/kernel_f16c.h"

#define SMALL_HINT
#define KERNEL_GET kernel_get_avx2
#include "exec/host/kernel_body.h"
