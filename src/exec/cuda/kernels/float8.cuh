/*
 * float8.cuh - the two float8 formats: by the device's conversions where it has them, by
 * hand where it does not.
 */
#ifndef EXEC_CUDA_KERNELS_FLOAT8_CUH
#define EXEC_CUDA_KERNELS_FLOAT8_CUH

#include "exec/cuda/kernels/arith.cuh"

/* By hand, as exec/host/kernel_small.h explains it. NORMAL is the least normal number and
 * LIMIT the greatest, as the bits of a float. */
template <int FRACTION, int SPECIAL, int NORMAL, int LIMIT> struct mini {
	static constexpr int SHIFT = 23 - FRACTION;
	static __device__ __forceinline__ float decode(uint32_t code)
	{
		int magnitude = (int)(code & 0x7f);
		bool is_subnormal = magnitude < 1 << FRACTION;
		uint32_t bits = ((uint32_t)magnitude << SHIFT) + (uint32_t)NORMAL;
		float value = is_subnormal ? __fadd_rn(__uint_as_float(bits),
						     -__uint_as_float((uint32_t)NORMAL))
					   : __uint_as_float(bits - (1u << 23));
		uint32_t wide = __float_as_uint(value);

		wide |= magnitude >= SPECIAL ? 0x7f800000 : 0;
		return __uint_as_float(wide | (code & 0x80) << 24);
	}
	static __device__ __forceinline__ uint32_t encode(float x)
	{
		int magnitude = (int)(__float_as_uint(x) & 0x7fffffff);
		int clipped = magnitude < LIMIT ? magnitude : LIMIT;
		int power = clipped & 0x7f800000;
		int base = power > NORMAL ? power : NORMAL;
		uint32_t magic = (uint32_t)base + ((uint32_t)SHIFT << 23);
		float rounded = __fadd_rn(
			__uint_as_float((uint32_t)clipped), __uint_as_float(magic));
		uint32_t code = __float_as_uint(rounded) - magic +
				((uint32_t)(base - NORMAL) >> SHIFT);

		code |= __float_as_uint(x) >> 24 & 0x80;
		return magnitude > 0x7f800000 ? 0x7f : code;
	}
};

struct code_f8e4m3 {
	static constexpr int BITS = 8, SPECIAL = 0x7e;
	using by_hand = mini<3, 0x7f, 121 << 23, 0x43e00000>;
	static __device__ __forceinline__ float2 decode(uint32_t pair)
	{
#if __CUDA_ARCH__ >= 890
		uint32_t halves;

		asm("cvt.rn.f16x2.e4m3x2 %0, %1;" : "=r"(halves) : "h"((uint16_t)pair));
		return code_half::decode(halves);
#else
		return make_float2(by_hand::decode(pair), by_hand::decode(pair >> 8));
#endif
	}
	static __device__ __forceinline__ uint32_t encode(float low, float high)
	{
#if __CUDA_ARCH__ >= 890
		uint16_t pair;

		asm("cvt.rn.satfinite.e4m3x2.f32 %0, %1, %2;"
			: "=h"(pair)
			: "f"(high), "f"(low));
		return pair;
#else
		return by_hand::encode(low) | by_hand::encode(high) << 8;
#endif
	}
};

struct code_f8e5m2 {
	static constexpr int BITS = 8, SPECIAL = 0x7c;
	using by_hand = mini<2, 0x7c, 113 << 23, 0x47600000>;
	/* e5m2 is the upper half of a float16 */
	static __device__ __forceinline__ float2 decode(uint32_t pair)
	{
		return code_half::decode((pair & 0xff) << 8 | (pair & 0xff00) << 16);
	}
	static __device__ __forceinline__ uint32_t encode(float low, float high)
	{
#if __CUDA_ARCH__ >= 890
		uint16_t pair;

		asm("cvt.rn.satfinite.e5m2x2.f32 %0, %1, %2;"
			: "=h"(pair)
			: "f"(high), "f"(low));
		return pair;
#else
		return by_hand::encode(low) | by_hand::encode(high) << 8;
#endif
	}
};

using type_f8e4m3 = type_small<code_f8e4m3>;
using type_f8e5m2 = type_small<code_f8e5m2>;

#endif
