#include "weft/k8s/finding.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { FINDINGS_MAX = 2000 };

static struct finding *new_finding(struct findings *findings)
{
	static struct finding forgotten;

	if (findings->count == findings->room && findings->count < FINDINGS_MAX) {
		uint32_t room = findings->room ? 2 * findings->room : 16;
		struct finding *list = realloc(findings->list, room * sizeof(*list));

		if (list) {
			findings->list = list;
			findings->room = room;
		}
	}
	if (findings->count < findings->room)
		return &findings->list[findings->count++];
	findings->is_full = true;
	free(forgotten.text);
	free(forgotten.todo);
	for (uint32_t i = 0; i < forgotten.edit_count; i++)
		free(forgotten.edits[i].text);
	return &forgotten;
}

struct finding *finding_add(struct findings *findings, enum rule_id rule,
	const struct node *node, const char *format, ...)
{
	struct finding *finding = new_finding(findings);
	va_list args;

	*finding = (struct finding){.rule = rule,
		.severity = rules[rule].severity,
		.line = node ? node->line : 1,
		.column = node ? node->column : 1,
		.start = node ? node->start : 0,
		.end = node ? node->end : 0};
	va_start(args, format);
	if (vasprintf(&finding->text, format, args) < 0)
		finding->text = NULL;
	va_end(args);
	return finding;
}

void finding_todo(struct finding *finding, const char *format, ...)
{
	va_list args;

	free(finding->todo);
	va_start(args, format);
	if (vasprintf(&finding->todo, format, args) < 0)
		finding->todo = NULL;
	va_end(args);
}

static int by_cost(const void *a, const void *b)
{
	const struct finding *x = a, *y = b;

	if (x->severity != y->severity)
		return x->severity > y->severity ? -1 : 1;
	if (x->line != y->line)
		return x->line < y->line ? -1 : 1;
	if (x->column != y->column)
		return x->column < y->column ? -1 : 1;
	if (x->rule != y->rule)
		return x->rule < y->rule ? -1 : 1;
	return strcmp(x->text ? x->text : "", y->text ? y->text : "");
}

void finding_forget_edits(struct finding *finding)
{
	for (uint32_t i = 0; i < finding->edit_count; i++)
		free(finding->edits[i].text);
	finding->edit_count = 0;
}

static void finding_fini(struct finding *finding)
{
	free(finding->text);
	free(finding->todo);
	finding_forget_edits(finding);
}

void findings_drop(struct findings *findings, const bool allowed[RULE_COUNT])
{
	uint32_t kept = 0;

	for (uint32_t i = 0; i < findings->count; i++)
		if (allowed[findings->list[i].rule])
			finding_fini(&findings->list[i]);
		else
			findings->list[kept++] = findings->list[i];
	findings->count = kept;
}

void findings_sort(struct findings *findings)
{
	uint32_t kept = 0;

	if (!findings->count)
		return;
	qsort(findings->list, findings->count, sizeof(*findings->list), by_cost);
	for (uint32_t i = 0; i < findings->count; i++) {
		if (kept && !by_cost(&findings->list[kept - 1], &findings->list[i])) {
			finding_fini(&findings->list[i]);
			continue;
		}
		findings->list[kept++] = findings->list[i];
	}
	findings->count = kept;
}

void findings_free(struct findings *findings)
{
	for (uint32_t i = 0; i < findings->count; i++)
		finding_fini(&findings->list[i]);
	free(findings->list);
	*findings = (struct findings){0};
}
