/* weft plan --cases: the rows of a table answered, one line each. */
#include <math.h>
#include <string.h>

#include "weft/command.h"
#include "weft/plan.h"

/* With quotes around it where the text has what ends a field. */
static void field_print(const char *text)
{
	if (!text[strcspn(text, ",\"\r\n")]) {
		printf("%s", text);
		return;
	}
	putchar('"');
	for (; *text; text++) {
		if (*text == '"')
			putchar('"');
		putchar(*text);
	}
	putchar('"');
}

static void row_print(const struct train_case *c, const char *name)
{
	static struct train_calib calib;
	struct calib_answer answer;
	struct train_memory memory;
	struct train_step step;

	if (!calib.count)
		calib_load(&calib);
	calib_ask(&calib, &c->who, &answer);
	step_make(&c->work, &answer.params, &step);
	memory_make(&c->model, &c->layout, &answer.habit, &memory);
	memory_settle(&memory, c->who.gpu->memory_gb * 1e9);
	if (*name)
		field_print(name);
	else
		printf("%u", c->row);
	printf(",%.6g,%.6g,%.6g,%.4g,%s\n", step.seconds,
		step.seconds * exp(-answer.spread), step.seconds * exp(answer.spread),
		memory.total / MEMORY_GIB, step_part_name(step.bound));
}

int plan_cases_print(const char *path)
{
	struct train_cases cases;
	enum err e = train_cases_read(path, &cases);

	if (e)
		return plan_failed(e);
	printf("case,step_s,lo_s,hi_s,mem_gb,bound\n");
	for (uint32_t i = 0; i < cases.count; i++)
		row_print(&cases.cases[i], table_at(&cases.table, cases.cases[i].row,
						   table_column(&cases.table, "case")));
	train_cases_free(&cases);
	return EXIT_GOOD;
}
