#include "common/units.h"

#include <ctype.h>
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* The number in front, never negative or odd (inf, nan, hex); `rest` is what follows. */
static bool number(const char *text, double *value, const char **rest)
{
	char *end;

	if (!isdigit((unsigned char)text[0]) && text[0] != '.')
		return false;
	if (text[0] == '0' && (text[1] == 'x' || text[1] == 'X'))
		return false;
	*value = strtod(text, &end);
	*rest = end;
	return end != text && isfinite(*value);
}

bool units_size(const char *text, uint64_t *bytes)
{
	static const char letters[] = "kmg";
	const char *rest, *letter;
	double value;

	if (!number(text, &value, &rest))
		return false;
	if (rest[0]) {
		letter = strchr(letters, tolower((unsigned char)rest[0]));
		if (!letter || rest[1])
			return false;
		value *= (double)(UINT64_C(1) << (10 * (letter - letters + 1)));
	}
	if (value >= 0x1p62)
		return false;
	*bytes = (uint64_t)value;
	return true;
}

bool units_time(const char *text, double *seconds)
{
	static const struct {
		const char *name;
		double scale;
	} units[] = {{"ns", 1e-9}, {"us", 1e-6}, {"ms", 1e-3}, {"s", 1.0}};
	const char *rest;
	double value;

	if (!number(text, &value, &rest))
		return false;
	if (!rest[0] && value == 0) {
		*seconds = 0;
		return true;
	}
	for (size_t i = 0; i < sizeof(units) / sizeof(units[0]); i++) {
		if (strcmp(rest, units[i].name))
			continue;
		*seconds = value * units[i].scale;
		return true;
	}
	return false;
}

bool units_rate(const char *text, double *bytes_per_second)
{
	static const char letters[] = "kMGT";
	const char *rest, *letter;
	double value, scale = 1;

	if (!number(text, &value, &rest))
		return false;
	letter = rest[0] ? strchr(letters, rest[0] == 'K' ? 'k' : rest[0]) : NULL;
	if (letter) {
		scale = pow(1000, (double)(letter - letters + 1));
		rest++;
	}
	if (rest[0] != 'B' && rest[0] != 'b')
		return false;
	if (strcmp(rest + 1, "/s") || value == 0)
		return false;
	*bytes_per_second = value * scale / (rest[0] == 'b' ? 8 : 1);
	return true;
}

bool units_int(const char *text, int64_t lowest, int64_t highest, int64_t *value)
{
	long long read;
	char *end;

	errno = 0;
	read = strtoll(text, &end, 10);
	if (end == text || *end || errno || read < lowest || read > highest)
		return false;
	*value = read;
	return true;
}

bool units_pair(const char *text, int64_t highest, int64_t *first, int64_t *second)
{
	const char *cross = strchr(text, 'x');
	char before[32];
	int64_t one, two;

	if (!cross || (size_t)(cross - text) >= sizeof(before))
		return false;
	memcpy(before, text, (size_t)(cross - text));
	before[cross - text] = 0;
	if (!units_int(before, 1, highest, &one) ||
		!units_int(cross + 1, 1, highest, &two))
		return false;
	*first = one;
	*second = two;
	return true;
}

void units_print_size(uint64_t bytes, char *text, size_t text_size)
{
	static const char letters[] = "KMG";
	int power = 0;

	while (power < 3 && bytes >= 1024 && bytes % 1024 == 0) {
		bytes /= 1024;
		power++;
	}
	snprintf(text, text_size, "%llu%.*s", (unsigned long long)bytes, power ? 1 : 0,
		power ? letters + power - 1 : "");
}
