/*
 * kernel_x86.c - the vector units of x86-64, and copies past its caches.
 */
#include "exec/host/kernel_unit.h"

#include <cpuid.h>
#include <emmintrin.h>
#include <stdint.h>
#include <string.h>
#include <unistd.h>

static int has_avx512(void)
{
	return __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
	       __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl");
}

/* __builtin_cpu_supports() of older compilers does not know F16C. */
static int has_f16c(void)
{
	unsigned a, b, c = 0, d;

	return __get_cpuid(1, &a, &b, &c, &d) && (c & bit_F16C);
}

static int has_avx2(void)
{
	return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") &&
	       has_f16c();
}

static int has_sse2(void)
{
	return 1;
}

static const struct kernel_unit units[] = {
	{"avx512", has_avx512, kernel_get_avx512},
	{"avx2", has_avx2, kernel_get_avx2},
	{"sse2", has_sse2, kernel_get_base},
};

const struct kernel_unit *kernel_units(size_t *count)
{
	*count = sizeof(units) / sizeof(units[0]);
	return units;
}

/*
 * Measured on a 32 MiB cache with two threads copying at once: buffers that memory must
 * supply copy 1.5 times as fast past the caches (25 GB/s for 16), buffers that the cache
 * still holds 3 times as slow (28 for 77). A quarter of the last cache is where the
 * sources and destinations of two ranks no longer fit.
 */
size_t kernel_copy_threshold(void)
{
	long cache_bytes = sysconf(_SC_LEVEL3_CACHE_SIZE);

	return cache_bytes > 0 ? (size_t)cache_bytes / 4 : 8 << 20;
}

void kernel_copy_stream(void *dst, const void *src, size_t bytes)
{
	size_t head = -(uintptr_t)dst % 64;
	const char *from = src;
	char *to = dst;

	if (bytes < 128) {
		memcpy(to, from, bytes);
		return;
	}
	memcpy(to, from, head);
	to += head;
	from += head;
	bytes -= head;
	for (; bytes >= 64; bytes -= 64, to += 64, from += 64) {
		__m128i a = _mm_loadu_si128((const __m128i *)(const void *)from);
		__m128i b = _mm_loadu_si128((const __m128i *)(const void *)(from + 16));
		__m128i c = _mm_loadu_si128((const __m128i *)(const void *)(from + 32));
		__m128i d = _mm_loadu_si128((const __m128i *)(const void *)(from + 48));

		_mm_stream_si128((__m128i *)(void *)to, a);
		_mm_stream_si128((__m128i *)(void *)(to + 16), b);
		_mm_stream_si128((__m128i *)(void *)(to + 32), c);
		_mm_stream_si128((__m128i *)(void *)(to + 48), d);
	}
	memcpy(to, from, bytes);
	/* Streaming stores are weakly ordered: a flag the caller sets must come after. */
	_mm_sfence();
}
