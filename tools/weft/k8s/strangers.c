#include "weft/k8s/strangers.h"

#include <stdio.h>
#include <string.h>

enum { WALK_DEPTH = 2 * DOC_DEPTH_MAX, KINDS_BYTES = 256 };

/* Is there a list of containers anywhere below? Aliases may lead deeper than text does;
 * who hides a pod there need not be told of it. */
static bool has_containers(const struct node *root)
{
	struct {
		const struct node *node;
		uint32_t next;
	} stack[WALK_DEPTH] = {{root, 0}};
	uint32_t depth = 1;

	while (depth) {
		const struct node *node = stack[depth - 1].node;
		uint32_t i = stack[depth - 1].next++;

		if (node->kind == NODE_SCALAR || i >= node->count) {
			depth--;
			continue;
		}
		if (node->kind == NODE_MAP && node_is(node->keys[i], "containers") &&
			node->items[i]->kind == NODE_LIST)
			return true;
		if (depth < WALK_DEPTH) {
			stack[depth].node = node->items[i];
			stack[depth++].next = 0;
		}
	}
	return false;
}

/* A misspelt kind is refused by the API server; one with pods is worth a word. */
void rules_stranger(const struct rule_view *view)
{
	const struct work *work = view->work;
	const char *near = work_kind_near(work->kind_name);
	const struct node *at = node_get(work->root, "kind");
	char known[KINDS_BYTES];
	struct finding *finding;

	if (!*work->kind_name)
		return;
	if (near) {
		finding = finding_add(view->findings, RULE_KIND_UNKNOWN, at,
			"there is no kind %s in %s", work->kind_name,
			*work->api ? work->api : "any apiVersion");
		finding->severity = SEVERITY_FATAL;
		finding_todo(finding, "write %s", near);
		edit_scalar(work->file, finding, at, near);
		return;
	}
	if (!has_containers(work->root))
		return;
	work_kinds(known, sizeof(known));
	finding = finding_add(view->findings, RULE_KIND_UNKNOWN, at,
		"%s (%s) has pods that are not looked at", work->kind_name,
		*work->api ? work->api : "no apiVersion");
	finding_todo(finding,
		"check its pod template as a fragment of its own; known are %s", known);
}

static bool is_podless(const struct work *work)
{
	return work->kind == WORK_NONE && *work->kind_name &&
	       !work_kind_near(work->kind_name) && !has_containers(work->root);
}

static uint32_t line_of(const struct work *work)
{
	return node_get(work->root, "kind")->line;
}

/* The next document of a file without pods; false: no further one. */
static bool next_podless(
	const struct check_result *result, struct object_walk *walk, struct work *work)
{
	struct node *root;

	while ((root = work_next(&result->file, walk))) {
		work_read(&result->file, root, NULL, work);
		if (is_podless(work))
			return true;
	}
	return false;
}

void strangers_text(const struct check_result *result)
{
	struct object_walk walk = {0};
	struct work work;
	bool is_any = false;

	while (next_podless(result, &walk, &work)) {
		if (is_any)
			printf(", ");
		else
			printf("%s: no pods are known in ", result->file.path);
		printf("%s (%s, line %u)", work.kind_name,
			*work.api ? work.api : "no apiVersion", line_of(&work));
		is_any = true;
	}
	if (is_any)
		printf("; nothing of it was checked\n");
}

void strangers_json(const struct check_result *result, json_t *list)
{
	struct object_walk walk = {0};
	struct work work;

	while (next_podless(result, &walk, &work))
		json_array_append_new(
			list, json_pack("{s:s,s:i,s:s,s:s}", "file", result->file.path,
				      "line", (int)line_of(&work), "kind", work.kind_name,
				      "apiVersion", work.api));
}

bool strangers_alone(const struct check_result *results, uint32_t count)
{
	uint32_t objects = 0, works = 0, findings = 0;
	const char *what = "has no pods, so nothing was checked";
	char known[KINDS_BYTES];

	for (uint32_t i = 0; i < count; i++) {
		const struct findings *found = &results[i].findings;

		objects += results[i].object_count;
		works += results[i].work_count;
		findings += found->count;
		/* what is no YAML, or a misspelt kind, is told already */
		if (found->count && found->list[0].severity == SEVERITY_FATAL)
			return false;
	}
	if (works)
		return false;
	if (!objects)
		what = "holds no object of Kubernetes: nothing in it has a kind";
	else if (findings)
		what = "was not checked: where its kinds keep their pods is not known";
	work_kinds(known, sizeof(known));
	fprintf(stderr, "weft k8s: %s %s; known are %s\n",
		count == 1 ? results[0].file.path : "what these files hold", what, known);
	return !objects || findings;
}
