#include "weft/json_print.h"

#include <stdio.h>

#include "weft/command.h"

int json_print(const char *command, json_t *value)
{
	int bad;

	if (!value) {
		fprintf(stderr, "weft %s: no memory for the JSON text\n", command);
		return EXIT_WRONG;
	}
	bad = json_dumpf(value, stdout, JSON_INDENT(1) | JSON_REAL_PRECISION(9));
	json_decref(value);
	putchar('\n');
	/* Standard output that takes nothing is output_end()'s to report. */
	if (!bad || ferror(stdout))
		return EXIT_GOOD;
	fprintf(stderr, "weft %s: the JSON text cannot be made\n", command);
	return EXIT_WRONG;
}
