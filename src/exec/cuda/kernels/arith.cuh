/*
 * arith.cuh - the arithmetic of one word of elements, on the device.
 *
 * The rules are those of exec/host/kernel.h, to the bit. A type says how wide its
 * elements are, in which word they travel, how two words are folded and how a word is
 * divided. A word whose upper elements are rubbish gives rubbish there and the right
 * lower ones.
 */
#ifndef EXEC_CUDA_KERNELS_ARITH_CUH
#define EXEC_CUDA_KERNELS_ARITH_CUH

#include <stdint.h>

enum fold_op { FOLD_SUM, FOLD_PROD, FOLD_MAX, FOLD_MIN };

#define DEVICE static __device__ __forceinline__

template <fold_op OP, class S, class U> DEVICE S fold_integer(S x, S y)
{
	if (OP == FOLD_SUM)
		return (S)((U)x + (U)y);
	if (OP == FOLD_PROD)
		return (S)((U)x * (U)y);
	if (OP == FOLD_MAX)
		return x > y ? x : y;
	return x < y ? x : y;
}

/* Negative numbers divide as positive ones, which truncates towards zero. */
template <class S, class U> DEVICE S divide_integer(S x, U n)
{
	bool is_negative = x < (S)1 && x;
	U quotient = (is_negative ? (U)0 - (U)x : (U)x) / n;

	return (S)(is_negative ? (U)0 - quotient : quotient);
}

/* Integers as wide as their word. */
template <class S, class U> struct type_integer {
	using word = U;
	static constexpr int WIDTH = sizeof(U);
	static constexpr bool IS_INTEGER = true;
	template <fold_op OP> static __device__ __forceinline__ word fold(word x, word y)
	{
		return (word)fold_integer<OP, S, U>((S)x, (S)y);
	}
	static __device__ __forceinline__ word divide(word x, uint32_t n)
	{
		return (word)divide_integer<S, U>((S)x, (U)n);
	}
};

using type_int32 = type_integer<int32_t, uint32_t>;
using type_uint32 = type_integer<uint32_t, uint32_t>;
using type_int64 = type_integer<int64_t, uint64_t>;
using type_uint64 = type_integer<uint64_t, uint64_t>;

/* Four bytes to the word; the device has most of it as one operation. */
template <class S> struct type_bytes {
	using word = uint32_t;
	static constexpr int WIDTH = 1;
	static constexpr bool IS_INTEGER = true;
	static constexpr bool IS_SIGNED = S(-1) < S(1);
	static __device__ __forceinline__ word product(word x, word y)
	{
		/* bytes that are not neighbours, so that products stay apart */
		word even = ((x & 0xff) * (y & 0xff) & 0xff) |
			    ((x >> 16 & 0xff) * (y >> 16 & 0xff) & 0xff) << 16;
		word odd = ((x >> 8 & 0xff) * (y >> 8 & 0xff) & 0xff) << 8 |
			   (x >> 24) * (y >> 24) << 24;

		return even | odd;
	}
	template <fold_op OP> static __device__ __forceinline__ word fold(word x, word y)
	{
		if (OP == FOLD_SUM)
			return __vadd4(x, y);
		if (OP == FOLD_PROD)
			return product(x, y);
		if (OP == FOLD_MAX)
			return IS_SIGNED ? __vmaxs4(x, y) : __vmaxu4(x, y);
		return IS_SIGNED ? __vmins4(x, y) : __vminu4(x, y);
	}
	static __device__ __forceinline__ word divide(word x, uint32_t n)
	{
		word result = 0;

#pragma unroll
		for (int shift = 0; shift < 32; shift += 8) {
			int32_t one = (int32_t)(S)(x >> shift);

			result |= (word)(uint8_t)divide_integer<int32_t, uint32_t>(one, n)
				  << shift;
		}
		return result;
	}
};

using type_int8 = type_bytes<int8_t>;
using type_uint8 = type_bytes<uint8_t>;

/* What a float of either size needs: F computes, U are its bits. */
struct bits_float {
	using number = float;
	static constexpr uint32_t NAN_BITS = 0x7fffffff;
	static __device__ __forceinline__ float from(uint32_t x)
	{
		return __uint_as_float(x);
	}
	static __device__ __forceinline__ uint32_t to(float x)
	{
		return __float_as_uint(x);
	}
	static __device__ __forceinline__ float sum(float x, float y)
	{
		return __fadd_rn(x, y);
	}
	static __device__ __forceinline__ float prod(float x, float y)
	{
		return __fmul_rn(x, y);
	}
};

struct bits_double {
	using number = double;
	static constexpr uint64_t NAN_BITS = 0x7fffffffffffffff;
	static __device__ __forceinline__ double from(uint64_t x)
	{
		return __longlong_as_double((long long)x);
	}
	static __device__ __forceinline__ uint64_t to(double x)
	{
		return (uint64_t)__double_as_longlong(x);
	}
	static __device__ __forceinline__ double sum(double x, double y)
	{
		return __dadd_rn(x, y);
	}
	static __device__ __forceinline__ double prod(double x, double y)
	{
		return __dmul_rn(x, y);
	}
};

/* The rounded operations by name, so that no product is fused with a sum. */
template <class B, class U> struct type_float_of {
	using word = U;
	static constexpr int WIDTH = sizeof(U);
	static constexpr bool IS_INTEGER = false;
	template <fold_op OP> static __device__ __forceinline__ word fold(word x, word y)
	{
		typename B::number a = B::from(x), b = B::from(y), result;

		if (OP == FOLD_SUM || OP == FOLD_PROD) {
			result = OP == FOLD_SUM ? B::sum(a, b) : B::prod(a, b);
			return result == result ? B::to(result) : B::NAN_BITS;
		}
		/* Of two equal numbers, which differ only if they are zeros, +0 is the
		 * greater. */
		if (a == b)
			return OP == FOLD_MAX ? x & y : x | y;
		if (a != a && b != b)
			return B::NAN_BITS;
		if (a != a || b != b)
			return a != a ? y : x;
		return (OP == FOLD_MAX ? a > b : a < b) ? x : y;
	}
};

using type_float = type_float_of<bits_float, uint32_t>;
using type_double = type_float_of<bits_double, uint64_t>;

/*
 * Small floats: N of them in a word, each BITS wide; C turns codes into floats and back.
 * Greatest and least need no float: a code with its magnitude bits turned over when
 * negative orders as a signed integer does, -0 before +0. A NaN gets the key that loses.
 */
template <class C> struct type_small {
	using word = uint32_t;
	static constexpr int BITS = C::BITS, WIDTH = BITS / 8;
	static constexpr bool IS_INTEGER = false;
	static constexpr uint32_t MASK = (1u << BITS) - 1, MAGNITUDE = MASK >> 1;
	static __device__ __forceinline__ int key(uint32_t code, int nan)
	{
		int magnitude = (int)(code & MAGNITUDE);
		int order = code & (MAGNITUDE + 1) ? -1 - magnitude : magnitude;

		return magnitude > C::SPECIAL ? nan : order;
	}
	template <fold_op OP>
	static __device__ __forceinline__ uint32_t pick(uint32_t x, uint32_t y)
	{
		if (OP == FOLD_MAX)
			return key(x, INT32_MIN) >= key(y, INT32_MIN) ? x : y;
		return key(x, INT32_MAX) <= key(y, INT32_MAX) ? x : y;
	}
	template <fold_op OP>
	static __device__ __forceinline__ float one(float x, float y)
	{
		return OP == FOLD_SUM ? __fadd_rn(x, y) : __fmul_rn(x, y);
	}
	template <fold_op OP> static __device__ __forceinline__ word fold(word x, word y)
	{
		word result = 0;

#pragma unroll
		for (int shift = 0; shift < 32; shift += 2 * BITS) {
			uint32_t a = x >> shift, b = y >> shift, pair;

			if (OP == FOLD_SUM || OP == FOLD_PROD) {
				float2 c = C::decode(a), d = C::decode(b);

				pair = C::encode(one<OP>(c.x, d.x), one<OP>(c.y, d.y));
			} else {
				uint32_t high = pick<OP>(
					a >> BITS & MASK, b >> BITS & MASK);

				pair = pick<OP>(a & MASK, b & MASK) | high << BITS;
			}
			result |= pair << shift;
		}
		return result;
	}
};

/* A coder works on the two lowest elements of a word; what is above them is ignored, and
 * 0 in what encode() gives. The conversions round to nearest even and give the NaN of all
 * ones. */
struct code_half {
	static constexpr int BITS = 16, SPECIAL = 0x7c00;
	static __device__ __forceinline__ float2 decode(uint32_t pair)
	{
		float2 wide;

		asm("{.reg .b16 l, h; mov.b32 {l, h}, %2;\n\t"
		    "cvt.f32.f16 %0, l; cvt.f32.f16 %1, h;}"
			: "=f"(wide.x), "=f"(wide.y)
			: "r"(pair));
		return wide;
	}
	static __device__ __forceinline__ uint32_t encode(float low, float high)
	{
		uint32_t pair;

		asm("cvt.rn.f16x2.f32 %0, %1, %2;" : "=r"(pair) : "f"(high), "f"(low));
		return pair;
	}
};

struct code_bfloat16 {
	static constexpr int BITS = 16, SPECIAL = 0x7f80;
	static __device__ __forceinline__ float2 decode(uint32_t pair)
	{
		return make_float2(
			__uint_as_float(pair << 16), __uint_as_float(pair & 0xffff0000));
	}
	static __device__ __forceinline__ uint32_t encode(float low, float high)
	{
		uint32_t pair;

		asm("cvt.rn.bf16x2.f32 %0, %1, %2;" : "=r"(pair) : "f"(high), "f"(low));
		return pair;
	}
};

using type_half = type_small<code_half>;
using type_bfloat16 = type_small<code_bfloat16>;

#endif
