/*
 * kernel.h - elementwise arithmetic on host memory, for the vector unit at hand.
 *
 * One table per (type, operator), chosen once from the instruction sets the CPU has. All
 * functions take any alignment and any count, 0 included; dst may be exactly a or b, but
 * may not overlap them otherwise. Results are the same to the bit for every vector unit:
 * integers wrap; every float operation is rounded to the element type, to nearest even
 * (fp8: beyond the greatest finite number it becomes that); a NaN that a sum or product
 * gives has all bits but the sign set; max and min give the operand that is not NaN.
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
	/* dst[i] = ((in[0][i] op in[1][i]) op in[2][i]) op in[3][i]: what three folds
	 * give, in one pass; dst may be exactly any of the four */
	void (*fold4)(void *dst, const void *const in[4], size_t elems);
	/* dst[i] = a[i] * s */
	void (*scale)(void *dst, const void *a, union kernel_scalar s, size_t elems);
	/* dst[i] = a[i] op (b[i] * s), the product rounded to the element type */
	void (*fold_scaled)(void *dst, const void *a, const void *b,
		union kernel_scalar s, size_t elems);
	/* dst[i] = dst[i] / n, integers only (truncating); NULL for floats */
	void (*divide)(void *dst, uint64_t n, size_t elems);
};

/* The kernel for a fold (AVG and PREMUL are SUM with scale). Never NULL. */
const struct kernel *kernel_get(enum dtype type, enum redop op);

/* As above for the vector unit called `isa`; NULL when this CPU has none of that name. */
const struct kernel *kernel_get_isa(const char *isa, enum dtype type, enum redop op);

/* 1/n in the element type: the average's pre-operator for float types. Integers get 1,
 * they are divided at the end. */
union kernel_scalar kernel_reciprocal(enum dtype type, uint32_t n);

/* "avx512", "avx2", "sse2", "neon", "scalar": what kernel_get() chose. */
const char *kernel_isa(void);

/* Copy; past the caches from kernel_copy_threshold() bytes on. Regions do not overlap. */
void kernel_copy(void *dst, const void *src, size_t bytes);

/* Copy past the caches whatever the size, for the tiles of a transfer that is larger in
 * all than the threshold. Slower than kernel_copy() for what the caches hold. */
void kernel_copy_stream(void *dst, const void *src, size_t bytes);
size_t kernel_copy_threshold(void);

#endif
