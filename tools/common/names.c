#include "common/names.h"

#include <ctype.h>
#include <string.h>

bool names_match(const char *typed, const char *name)
{
	for (;;) {
		typed += strspn(typed, "_");
		name += strspn(name, "_");
		if (tolower((unsigned char)*typed) != tolower((unsigned char)*name))
			return false;
		if (!*typed)
			return true;
		typed++;
		name++;
	}
}

uint32_t names_distance(const char *a, const char *b)
{
	uint32_t row[NAMES_LENGTH_MAX + 1];
	size_t a_bytes = strlen(a), b_bytes = strlen(b);

	if (a_bytes > NAMES_LENGTH_MAX || b_bytes > NAMES_LENGTH_MAX)
		return NAMES_LENGTH_MAX;
	for (uint32_t j = 0; j <= b_bytes; j++)
		row[j] = j;
	for (uint32_t i = 1; i <= a_bytes; i++) {
		uint32_t corner = row[0];

		row[0] = i;
		for (size_t j = 1; j <= b_bytes; j++) {
			uint32_t change = corner +
					  (tolower((unsigned char)a[i - 1]) !=
						  tolower((unsigned char)b[j - 1]));
			uint32_t one_off = 1 +
					   (row[j] < row[j - 1] ? row[j] : row[j - 1]);

			corner = row[j];
			row[j] = change < one_off ? change : one_off;
		}
	}
	return row[b_bytes];
}
