#include "weft/k8s/report.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/terminal.h"
#include "weft/k8s/strangers.h"

enum { INDENT = 6 };

static const enum terminal_look looks[] = {
	[SEVERITY_FATAL] = LOOK_BAD,
	[SEVERITY_PERFORMANCE] = LOOK_FAIR,
	[SEVERITY_NOTE] = LOOK_SOFT,
};

/* The lines that the finding's edits change, without context. */
static void print_patch(const struct check_result *result, const struct finding *finding)
{
	uint32_t count;
	char *after = edit_apply(&result->file, finding, finding + 1, &count);
	char *diff = after ? edit_diff(result->file.path, result->file.text, after)
			   : NULL;
	char *rest = NULL;
	int shown = 0;

	for (char *line = diff ? strtok_r(diff, "\n", &rest) : NULL; line;
		line = strtok_r(NULL, "\n", &rest)) {
		if ((line[0] != '-' && line[0] != '+') || !strncmp(line, "---", 3) ||
			!strncmp(line, "+++", 3))
			continue;
		printf("  %s%s%s\n", shown++ ? "      " : "fix:  ",
			terminal_look(line[0] == '+' ? LOOK_GOOD : LOOK_BAD), line);
		fputs(terminal_look(LOOK_PLAIN), stdout);
	}
	free(diff);
	free(after);
}

static void print_part(const char *label, const char *text)
{
	printf("  %s ", label);
	terminal_fold(stdout, text, 8, 8);
}

static void print_one(
	const struct check_result *result, const struct finding *finding, bool is_quiet)
{
	const struct rule *rule = &rules[finding->rule];

	printf("%s:%u:%u: %s%s%s: %s [%s]\n", result->file.path, finding->line,
		finding->column, terminal_look(looks[finding->severity]),
		severity_name(finding->severity), terminal_look(LOOK_PLAIN),
		finding->text ? finding->text : "", rule->id);
	if (is_quiet)
		return;
	print_part("why: ", rule->why);
	if (finding->todo)
		print_part("do:  ", finding->todo);
	if (finding->edit_count)
		print_patch(result, finding);
	putchar('\n');
}

void report_text(const struct check_result *result, bool is_quiet)
{
	for (uint32_t i = 0; i < result->findings.count; i++)
		print_one(result, &result->findings.list[i], is_quiet);
	if (!is_quiet)
		strangers_text(result);
	if (result->findings.is_full)
		printf("%s: there is more; these are the first\n", result->file.path);
}

static void count_severities(const struct check_result *results, uint32_t count,
	uint32_t counts[SEVERITY_COUNT])
{
	memset(counts, 0, SEVERITY_COUNT * sizeof(*counts));
	for (uint32_t i = 0; i < count; i++)
		for (uint32_t j = 0; j < results[i].findings.count; j++)
			counts[results[i].findings.list[j].severity]++;
}

void report_total(const struct check_result *results, uint32_t count)
{
	uint32_t counts[SEVERITY_COUNT], works = 0;

	for (uint32_t i = 0; i < count; i++)
		works += results[i].work_count;
	count_severities(results, count, counts);
	printf("%u file%s, %u document%s with pods: %u fatal, %u performance, %u "
	       "note%s\n",
		count, count == 1 ? "" : "s", works, works == 1 ? "" : "s",
		counts[SEVERITY_FATAL], counts[SEVERITY_PERFORMANCE],
		counts[SEVERITY_NOTE], counts[SEVERITY_NOTE] == 1 ? "" : "s");
}

static json_t *edits_json(
	const struct check_result *result, const struct finding *finding)
{
	json_t *list = json_array();

	(void)result;
	for (uint32_t i = 0; i < finding->edit_count; i++)
		json_array_append_new(
			list, json_pack("{s:I,s:I,s:s}", "start",
				      (json_int_t)finding->edits[i].start, "end",
				      (json_int_t)finding->edits[i].end, "text",
				      finding->edits[i].text));
	return list;
}

static json_t *finding_json(
	const struct check_result *result, const struct finding *finding)
{
	const struct rule *rule = &rules[finding->rule];

	return json_pack("{s:s,s:s,s:s,s:i,s:i,s:s,s:s,s:s,s:o}", "id", rule->id,
		"severity", severity_name(finding->severity), "file", result->file.path,
		"line", (int)finding->line, "column", (int)finding->column, "text",
		finding->text ? finding->text : "", "why", rule->why, "do",
		finding->todo ? finding->todo : "", "edits", edits_json(result, finding));
}

json_t *report_json(const struct check_result *results, uint32_t count)
{
	uint32_t counts[SEVERITY_COUNT];
	json_t *list = json_array(), *strangers = json_array();

	for (uint32_t i = 0; i < count; i++)
		strangers_json(&results[i], strangers);
	for (uint32_t i = 0; i < count; i++)
		for (uint32_t j = 0; j < results[i].findings.count; j++)
			json_array_append_new(list,
				finding_json(&results[i], &results[i].findings.list[j]));
	count_severities(results, count, counts);
	return json_pack("{s:i,s:i,s:i,s:i,s:o,s:o}", "files", (int)count, "fatal",
		(int)counts[SEVERITY_FATAL], "performance",
		(int)counts[SEVERITY_PERFORMANCE], "notes", (int)counts[SEVERITY_NOTE],
		"findings", list, "withoutPods", strangers);
}

void report_rules(void)
{
	for (int i = 0; i < RULE_COUNT; i++) {
		printf("%-26s %-12s ", rules[i].id, severity_name(rules[i].severity));
		terminal_fold(stdout, rules[i].title, 40, 40);
	}
}

json_t *report_rules_json(void)
{
	json_t *list = json_array();

	for (int i = 0; i < RULE_COUNT; i++)
		json_array_append_new(
			list, json_pack("{s:s,s:s,s:s,s:s}", "id", rules[i].id,
				      "severity", severity_name(rules[i].severity),
				      "title", rules[i].title, "why", rules[i].why));
	return list;
}
