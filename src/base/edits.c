#include "base/edits.h"

#include <ctype.h>
#include <stdbool.h>
#include <string.h>

static bool is_same(char a, char b)
{
	return tolower((unsigned char)a) == tolower((unsigned char)b);
}

static uint32_t less(uint32_t a, uint32_t b)
{
	return a < b ? a : b;
}

uint32_t edits_between(const char *a, const char *b)
{
	uint32_t rows[3][EDITS_BYTES];
	size_t a_bytes = strlen(a), b_bytes = strlen(b);

	if (a_bytes >= EDITS_BYTES || b_bytes >= EDITS_BYTES)
		return EDITS_BYTES;
	for (uint32_t j = 0; j <= b_bytes; j++)
		rows[0][j] = j;
	for (uint32_t i = 1; i <= a_bytes; i++) {
		uint32_t *row = rows[i % 3];
		const uint32_t *above = rows[(i + 2) % 3], *before = rows[(i + 1) % 3];

		row[0] = i;
		for (size_t j = 1; j <= b_bytes; j++) {
			row[j] = above[j - 1] + !is_same(a[i - 1], b[j - 1]);
			row[j] = less(row[j], 1 + less(above[j], row[j - 1]));
			if (i > 1 && j > 1 && is_same(a[i - 1], b[j - 2]) &&
				is_same(a[i - 2], b[j - 1]))
				row[j] = less(row[j], before[j - 2] + 1);
		}
	}
	return rows[a_bytes % 3][b_bytes];
}
