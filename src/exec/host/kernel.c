#include "exec/host/kernel.h"

#include <assert.h>
#include <stdatomic.h>
#include <string.h>

#include "base/log.h"
#include "base/param.h"
#include "exec/host/kernel_small.h"
#include "exec/host/kernel_unit.h"

/* Chosen once. Threads that come at the same time choose the same. */
static _Atomic(const struct kernel_unit *) chosen_unit;

/* The unit called `name`, counted from the best; `count` when there is none. The last
 * one is also called "scalar", whatever the baseline of the platform is. */
static size_t unit_find(const struct kernel_unit *units, size_t count, const char *name)
{
	for (size_t i = 0; i < count; i++)
		if (!strcmp(units[i].name, name))
			return i;
	return strcmp(name, "scalar") ? count : count - 1;
}

static const struct kernel_unit *unit_choose(void)
{
	const char *highest = param_text(PARAM_ISA);
	size_t count, first = 0;
	const struct kernel_unit *units = kernel_units(&count);

	if (highest && *highest)
		first = unit_find(units, count, highest);
	if (first == count) {
		log_warn("WEFT_ISA %s is not a vector unit of this platform", highest);
		first = 0;
	}
	while (!units[first].is_present())
		first++;
	return &units[first];
}

static const struct kernel_unit *unit_chosen(void)
{
	const struct kernel_unit *unit = atomic_load_explicit(
		&chosen_unit, memory_order_relaxed);

	if (!unit) {
		unit = unit_choose();
		atomic_store_explicit(&chosen_unit, unit, memory_order_relaxed);
	}
	return unit;
}

static enum redop fold_of(enum redop op)
{
	return op > REDOP_MIN ? REDOP_SUM : op;
}

const struct kernel *kernel_get(enum dtype type, enum redop op)
{
	assert(type < DTYPE_COUNT && op < REDOP_COUNT);
	return unit_chosen()->get(type, fold_of(op));
}

const struct kernel *kernel_get_isa(const char *isa, enum dtype type, enum redop op)
{
	size_t count;
	const struct kernel_unit *units = kernel_units(&count);
	size_t i = unit_find(units, count, isa);

	assert(type < DTYPE_COUNT && op < REDOP_COUNT);
	if (i == count || !units[i].is_present())
		return NULL;
	return units[i].get(type, fold_of(op));
}

const char *kernel_isa(void)
{
	return unit_chosen()->name;
}

union kernel_scalar kernel_reciprocal(enum dtype type, uint32_t n)
{
	union kernel_scalar scalar = {.bits = 1};
	f32 single = 1.0f / (f32)n;
	f64 twice = 1.0 / n;

	assert(n > 0);
	if (type == DTYPE_FLOAT16)
		scalar.bits = mini_encode(mini_f16, single);
	else if (type == DTYPE_FLOAT32)
		memcpy(scalar.bytes, &single, sizeof(single));
	else if (type == DTYPE_FLOAT64)
		memcpy(scalar.bytes, &twice, sizeof(twice));
	else if (type == DTYPE_BFLOAT16)
		scalar.bits = bf16_round(single) >> 16;
	else if (type == DTYPE_FLOAT8E4M3)
		scalar.bits = mini_encode(mini_e4m3, single);
	else if (type == DTYPE_FLOAT8E5M2)
		scalar.bits = mini_encode(mini_e5m2, single);
	return scalar;
}

void kernel_copy(void *dst, const void *src, size_t bytes)
{
	static _Atomic size_t threshold;
	size_t least = atomic_load_explicit(&threshold, memory_order_relaxed);

	if (!least) {
		least = kernel_copy_threshold();
		atomic_store_explicit(&threshold, least, memory_order_relaxed);
	}
	if (bytes < least)
		memcpy(dst, src, bytes);
	else
		kernel_copy_stream(dst, src, bytes);
}
