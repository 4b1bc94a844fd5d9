/*
 * kernel_unit.h - what kernel.c knows about the vector units of one platform.
 *
 * kernel_x86.c or kernel_neon.c (the build compiles one of the two) lists the units;
 * every unit's table is made from kernel_body.h, compiled once more with that unit's
 * flags.
 */
#ifndef EXEC_HOST_KERNEL_UNIT_H
#define EXEC_HOST_KERNEL_UNIT_H

#include <stddef.h>

#include "exec/host/kernel.h"

/* Sum, product, maximum, minimum: the operators that are really computed. */
enum { KERNEL_FOLDS = REDOP_MIN + 1 };

struct kernel_unit {
	const char *name;
	int (*is_present)(void);
	const struct kernel *(*get)(enum dtype type, enum redop fold);
};

/* The platform's units, best first; the last is present on every CPU. */
const struct kernel_unit *kernel_units(size_t *count);

const struct kernel *kernel_get_base(enum dtype type, enum redop fold);
const struct kernel *kernel_get_avx2(enum dtype type, enum redop fold);
const struct kernel *kernel_get_avx512(enum dtype type, enum redop fold);
const struct kernel *kernel_get_neon(enum dtype type, enum redop fold);

#endif
