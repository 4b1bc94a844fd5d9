#include "net/sum.h"

#include <string.h>

/* Eight columns. Each has the sum of its words, and the sum of all the sums on the way,
 * in which a word counts as often as there are words behind it: so order matters, too.
 * Two additions a word, no multiplication: this runs as fast as the words are read, in
 * registers as wide as the processor has. */
enum { QUADS = 2, COLUMNS = 4 * QUADS };
typedef uint64_t quad __attribute__((vector_size(4 * sizeof(uint64_t))));
typedef uint64_t quad_anywhere
	__attribute__((vector_size(4 * sizeof(uint64_t)), aligned(1), may_alias));

struct columns {
	quad sum[QUADS], sums[QUADS];
};

enum { ROW_BYTES = QUADS * sizeof(quad) };

static uint64_t stir(uint64_t state, uint64_t word)
{
	state = (state ^ word) * 0x9fb21c651e98df25u;
	return state ^ state >> 29;
}

static inline __attribute__((always_inline)) void rows_add(
	struct columns *columns, const char *from, size_t rows)
{
	struct columns now = *columns;

	for (; rows; rows--, from += ROW_BYTES) {
		const quad_anywhere *words = (const quad_anywhere *)from;

#pragma GCC unroll 2
		for (uint32_t i = 0; i < QUADS; i++) {
			now.sum[i] += words[i];
			now.sums[i] += now.sum[i];
		}
	}
	*columns = now;
}

static void add_base(struct columns *columns, const char *from, size_t rows)
{
	rows_add(columns, from, rows);
}

#ifdef __x86_64__
__attribute__((target("avx2"))) static void add_avx2(
	struct columns *columns, const char *from, size_t rows)
{
	rows_add(columns, from, rows);
}
#endif

static void columns_add(struct columns *columns, const char *from, size_t rows)
{
#ifdef __x86_64__
	if (__builtin_cpu_supports("avx2")) {
		add_avx2(columns, from, rows);
		return;
	}
#endif
	add_base(columns, from, rows);
}

uint64_t sum_of(const void *bytes, size_t count, uint64_t seed)
{
	size_t rows = count / ROW_BYTES, rest = count % ROW_BYTES;
	struct columns columns = {0};
	uint64_t state = stir(seed + 1, count);
	char last[ROW_BYTES] = {0};

	columns_add(&columns, bytes, rows);
	if (rest) {
		memcpy(last, (const char *)bytes + rows * ROW_BYTES, rest);
		columns_add(&columns, last, 1);
	}
	for (uint32_t i = 0; i < COLUMNS; i++)
		state = stir(stir(state, columns.sum[i / 4][i % 4]),
			columns.sums[i / 4][i % 4]);
	return state;
}
