/* weft sim --cases: the rows of a table answered, one line each. */
#include <stdio.h>
#include <string.h>

#include "sim/resolve.h"
#include "weft/command.h"
#include "weft/sim.h"

static void groups_tell(const struct sim_cases *cases)
{
	for (uint32_t i = 0; i < cases->group_count; i++) {
		const struct sim_group *group = &cases->groups[i];
		int platform = table_column(&cases->table, "platform");
		int net = table_column(&cases->table, "net");

		fprintf(stderr, "taken for %s: %s | %s\n", group->taken,
			table_at(&cases->table, group->first_row, platform),
			table_at(&cases->table, group->first_row, net));
	}
}

/* As it was in the table: with quotes where it needs them. */
static void name_print(const char *name)
{
	if (!strpbrk(name, ",\"\n")) {
		printf("%s", name);
		return;
	}
	putchar('"');
	for (; *name; name++)
		printf(*name == '"' ? "\"\"" : "%c", *name);
	putchar('"');
}

static void row_print(const struct sim_cases *cases, const struct sim_case *c,
	const struct sim_calib *calib)
{
	int name = table_column(&cases->table, "case");
	struct sim_answer answer;

	sim_answer_make(calib, &c->terms, c->bytes, c->bus_factor, &answer);
	if (name >= 0)
		name_print(table_at(&cases->table, c->row, name));
	else
		printf("%u", c->row);
	printf(",%.6g,%.6g,%.6g,%.6g\n", answer.time_us, answer.busbw, answer.low,
		answer.high);
}

int sim_cases_print(const char *path)
{
	struct sim_cases cases;
	struct sim_calib calib;
	enum err e = sim_cases_read(path, &cases);

	if (e)
		return sim_failed(e);
	sim_calib_load(&calib);
	groups_tell(&cases);
	printf("case,time_us,busbw_GBps,lo_GBps,hi_GBps\n");
	for (uint32_t i = 0; i < cases.count; i++)
		row_print(&cases, &cases.cases[i], &calib);
	sim_cases_free(&cases);
	return EXIT_GOOD;
}
