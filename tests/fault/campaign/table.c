#include "table.h"

#include <stdio.h>
#include <stdlib.h>

static int compare(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

enum figure { NAMED, SILENT, ABORTED, SHRUNK, FIGURE_COUNT };
static const char *const figure_names[FIGURE_COUNT] = {
	"death named", "silence", "abort", "shrink"};

static double figure_of(const struct run_result *result, enum figure figure)
{
	return figure == NAMED	   ? result->named_ms
	       : figure == SILENT  ? result->silent_ms
	       : figure == ABORTED ? result->abort_ms
				   : result->shrink_ms;
}

static void figure_print(const struct run_result *results, int count, enum figure figure)
{
	double *values = malloc((size_t)count * sizeof(*values));
	int n = 0;

	for (int i = 0; values && i < count; i++)
		if (results[i].is_made && figure_of(&results[i], figure) >= 0)
			values[n++] = figure_of(&results[i], figure);
	if (n) {
		qsort(values, (size_t)n, sizeof(*values), compare);
		printf("%-12s %6d %9.2f %9.2f %9.2f\n", figure_names[figure], n,
			values[n / 2], values[(n * 99 + 99) / 100 - 1], values[n - 1]);
	}
	free(values);
}

int table_print(const struct run_result *results, int count)
{
	int runs[FAULT_COUNT] = {0}, struck[FAULT_COUNT] = {0}, wrong[FAULT_COUNT] = {0};
	int sum = 0;

	for (int i = 0; i < count; i++) {
		const struct run_result *result = &results[i];

		runs[result->fault]++;
		struck[result->fault] += result->is_struck;
		wrong[result->fault] += !result->is_ok;
		sum += !result->is_ok;
		if (!result->is_ok)
			printf("%s\n", result->line);
	}
	printf("\n%-12s %6s %9s %9s %9s\n", "fault", "runs", "struck", "ok", "BAD");
	for (int i = 0; i < FAULT_COUNT; i++)
		if (runs[i])
			printf("%-12s %6d %9d %9d %9d\n", fault_names[i], runs[i],
				struck[i], runs[i] - wrong[i], wrong[i]);
	printf("%-12s %6d %9s %9d %9d\n", "all", count, "", count - sum, sum);
	printf("\n%-12s %6s %9s %9s %9s\n", "ms", "runs", "median", "p99", "max");
	for (int i = 0; i < FIGURE_COUNT; i++)
		figure_print(results, count, (enum figure)i);
	return sum;
}
