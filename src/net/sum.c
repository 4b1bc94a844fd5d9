#include "net/sum.h"

#include <string.h>

/* Eight columns. Each has the sum of its words, and the sum of all the sums on the way,
 * in which a word counts as often as there are words behind it: so order matters, too.
 * Two additions a word, no multiplication: this runs as fast as the words are read. They
 * stand in pairs, which is what every processor has registers for. */
enum { PAIRS = 4 };
typedef uint64_t pair __attribute__((vector_size(2 * sizeof(uint64_t))));

struct columns {
	pair sum[PAIRS], sums[PAIRS];
};

enum { ROW_BYTES = PAIRS * sizeof(pair) };

static uint64_t stir(uint64_t state, uint64_t word)
{
	state = (state ^ word) * 0x9fb21c651e98df25u;
	return state ^ state >> 29;
}

static void columns_add(struct columns *columns, const char *from, size_t rows)
{
	struct columns now = *columns;

	for (; rows; rows--, from += ROW_BYTES) {
		pair words[PAIRS];

		memcpy(words, from, sizeof(words));
#pragma GCC unroll 4
		for (uint32_t i = 0; i < PAIRS; i++) {
			now.sum[i] += words[i];
			now.sums[i] += now.sum[i];
		}
	}
	*columns = now;
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
	for (uint32_t i = 0; i < PAIRS; i++)
		for (uint32_t j = 0; j < 2; j++)
			state = stir(stir(state, columns.sum[i][j]), columns.sums[i][j]);
	return state;
}
