/*
 * kernel_neon.c - the units of a platform that is not x86; NEON is part of every AArch64.
 *
 * Plain C throughout: the baseline of the compiler is the vector unit.
 */
#include "exec/host/kernel_small.h"

#define SMALL_HINT VECTORISE
#define KERNEL_GET kernel_get_neon
#include "exec/host/kernel_body.h"

static int is_present(void)
{
	return 1;
}

static const struct kernel_unit units[] = {
	{"neon", is_present, kernel_get_neon},
	{"scalar", is_present, kernel_get_base},
};

const struct kernel_unit *kernel_units(size_t *count)
{
	*count = sizeof(units) / sizeof(units[0]);
	return units;
}

size_t kernel_copy_threshold(void)
{
	return SIZE_MAX;
}

void kernel_copy_stream(void *dst, const void *src, size_t bytes)
{
	memcpy(dst, src, bytes);
}
