/*
 * kernel.h - elementwise arithmetic on host memory, for the vector unit at hand.
 *
 * One table per (type, operator), chosen once from the instruction sets the CPU has. All
 * functions take any alignment and any count, 0 included; dst may be exactly a or b, but
 * may not overlap them otherwise. Results are the same to the bit for every vector unit.
 */
#ifndef EXEC_HOST_KERNEL_H
#define EXEC_HOST_KERNEL_H

#include <stddef.h>
#include <stdint.h>

#include "base/dtype.h"

/* A pre-operator scalar, in the element type, in the low bytes. */
union kernel_scalar {
	uint64_t bits;
	unsigned char bytes[8];
};

struct kernel {
	/* dst[i] = a[i] op b[i] */
	void (*fold)(void *dst, const void *a, const void *b, size_t elems);
	/* dst[i] = ((a[i] op b[i]) op c[i]) op d[i]: fewer passes over dst */
	void (*fold4)(void *dst, const void *const in[4], size_t elems);
	/* dst[i] = a[i] * s */
	void (*scale)(void *dst, const void *a, union kernel_scalar s, size_t elems);
	/* dst[i] = a[i] op (b[i] * s) */
	void (*fold_scaled)(void *dst, const void *a, const void *b,
		union kernel_scalar s, size_t elems);
	/* dst[i] = dst[i] / n, integers only (truncating); NULL for floats */
	void (*divide)(void *dst, uint64_t n, size_t elems);
};

/* The kernel for a fold (AVG and PREMUL are SUM with scale). Never NULL. */
const struct kernel *kernel_get(enum dtype type, enum redop op);

/* 1/n in the element type: the average's pre-operator for float types. */
union kernel_scalar kernel_reciprocal(enum dtype type, uint32_t n);

/* "avx512", "avx2", "sse2", "neon", "scalar": what kernel_get() chose. */
const char *kernel_isa(void);

/* Copy that does not pollute the cache when `bytes` is large; regions do not overlap. */
void kernel_copy(void *dst, const void *src, size_t bytes);

#endif
