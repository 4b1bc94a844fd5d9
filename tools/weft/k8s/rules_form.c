/* The form of a document: keys twice, lists where maps belong, fields and versions that
 * the kind does not have. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/edits.h"
#include "weft/k8s/rule.h"

enum { WALK_MAX = 100000, NAME_BYTES = 64 };

static int by_text(const void *a, const void *b)
{
	const struct node *const *x = a, *const *y = b;
	int way = strcmp((*x)->text, (*y)->text);

	return way ? way : (*x)->start < (*y)->start ? -1 : (*x)->start > (*y)->start;
}

static void duplicates_of(const struct rule_view *view, const struct node *map)
{
	struct node **keys = calloc(map->count, sizeof(struct node *));

	if (!keys)
		return;
	memcpy(keys, map->keys, map->count * sizeof(struct node *));
	qsort(keys, map->count, sizeof(struct node *), by_text);
	for (uint32_t i = 1; i < map->count; i++) {
		struct finding *finding;

		if (keys[i]->kind != NODE_SCALAR || keys[i - 1]->kind != NODE_SCALAR ||
			strcmp(keys[i]->text, keys[i - 1]->text) != 0 ||
			!strcmp(keys[i]->text, "<<"))
			continue;
		finding = finding_add(view->findings, RULE_DUPLICATE_KEY, keys[i],
			"the key %s stands here a second time", keys[i]->text);
		finding_todo(finding, "keep one of them; the first is on line %u",
			keys[i - 1]->line);
	}
	free(keys);
}

/* Every map of the document once; aliases lead back to where a map stands first. */
static void duplicates(const struct rule_view *view)
{
	const struct node **stack = calloc(WALK_MAX, sizeof(*stack));
	uint32_t depth = 0;

	if (!stack)
		return;
	stack[depth++] = view->work->root;
	while (depth) {
		const struct node *node = stack[--depth];

		if (node->kind == NODE_MAP && node->count > 1)
			duplicates_of(view, node);
		for (uint32_t i = 0; i < node->count && depth < WALK_MAX; i++)
			if (node->items[i]->kind != NODE_SCALAR &&
				node->items[i]->parent == node)
				stack[depth++] = node->items[i];
	}
	free(stack);
}

static bool is_kind(const struct rule_view *view, const struct node *node,
	enum node_kind kind, const char *what)
{
	static const char *const names[] = {"a single value", "a map", "a list"};
	struct finding *finding;

	if (!node || node->kind == kind ||
		(node->kind == NODE_SCALAR && !node_text(node)))
		return true;
	finding = finding_add(view->findings, RULE_WRONG_TYPE, node,
		"%s is %s and must be %s", what, names[node->kind], names[kind]);
	finding_todo(finding, "write %s as %s", what, names[kind]);
	return false;
}

/* A pod that runs already was accepted; what is not right in it was cut by hand. */
static bool is_dump(const struct work *work)
{
	return work->kind == WORK_POD && node_get(work->spec, "nodeName");
}

static void container_shapes(const struct rule_view *view, const struct node *list)
{
	for (uint32_t i = 0; list && list->kind == NODE_LIST && i < list->count; i++) {
		const struct node *one = list->items[i];

		if (!is_kind(view, one, NODE_MAP, "a container"))
			continue;
		is_kind(view, node_get(one, "env"), NODE_LIST, "env");
		is_kind(view, node_get(one, "volumeMounts"), NODE_LIST, "volumeMounts");
		is_kind(view, node_get(one, "resources"), NODE_MAP, "resources");
		is_kind(view, node_get(one, "command"), NODE_LIST, "command");
		is_kind(view, node_get(one, "args"), NODE_LIST, "args");
	}
}

static void shapes(const struct rule_view *view)
{
	const struct work *work = view->work;

	is_kind(view, work->spec, NODE_MAP, "spec");
	for (uint32_t i = 0; i < work->set_count; i++) {
		const struct pod_set *set = &work->sets[i];

		if (!set->spec)
			continue;
		is_kind(view, set->spec, NODE_MAP, "the pod's spec");
		if (!is_dump(work))
			is_kind(view, set->containers, NODE_LIST, "containers");
		container_shapes(view, set->containers);
		is_kind(view, node_get(set->spec, "tolerations"), NODE_LIST,
			"tolerations");
		is_kind(view, node_get(set->spec, "volumes"), NODE_LIST, "volumes");
		is_kind(view, node_get(set->spec, "nodeSelector"), NODE_MAP,
			"nodeSelector");
	}
}

/* The fields of a kind's specification at one place; what people write instead after a
 * slash: "slotsPerWorker/procPerNode". */
struct fields {
	enum work_kind kind;
	const char *path;
	const char *names;
};

static const struct fields fields[] = {
	{WORK_MPIJOB, "",
		"slotsPerWorker/procPerNode/processesPerNode/gpusPerNode/nprocPerNode "
		"runLauncherAsWorker runPolicy mpiReplicaSpecs sshAuthMountPath "
		"launcherCreationPolicy mpiImplementation"},
	{WORK_MPIJOB, "runPolicy",
		"cleanPodPolicy ttlSecondsAfterFinished activeDeadlineSeconds "
		"backoffLimit "
		"schedulingPolicy suspend managedBy"},
	{WORK_PYTORCHJOB, "",
		"nprocPerNode/procPerNode/nProcPerNode/slotsPerWorker elasticPolicy "
		"pytorchReplicaSpecs runPolicy"},
	{WORK_PYTORCHJOB, "elasticPolicy",
		"minReplicas maxReplicas rdzvBackend rdzvPort rdzvHost rdzvId rdzvConf "
		"standalone nProcPerNode maxRestarts metrics"},
	{WORK_TRAINJOB, "",
		"runtimeRef trainer initializer labels annotations podTemplateOverrides "
		"podSpecOverrides runtimePatches suspend activeDeadlineSeconds "
		"managedBy"},
	{WORK_TRAINJOB, "trainer",
		"image command args env numNodes/nnodes/replicas/nodes "
		"numProcPerNode/nprocPerNode/nproc_per_node resourcesPerNode/resources"},
	{WORK_JOB, "",
		"parallelism completions completionMode backoffLimit "
		"backoffLimitPerIndex "
		"maxFailedIndexes activeDeadlineSeconds ttlSecondsAfterFinished suspend "
		"podFailurePolicy successPolicy podReplacementPolicy managedBy selector "
		"manualSelector template"},
};

/* Is `name` one of the fields? Else the field it was meant to be is in `meant`, or "". */
static bool has_field(const char *names, const char *name, char meant[NAME_BYTES])
{
	uint32_t least = 3;

	meant[0] = 0;
	while (*names) {
		size_t bytes = strcspn(names, " ");
		char field[512], *first, *other, *rest = NULL;
		uint32_t far;

		snprintf(field, sizeof(field), "%.*s", (int)bytes, names);
		names += bytes + (names[bytes] == ' ');
		first = strtok_r(field, "/", &rest);
		if (!first)
			continue;
		if (!strcmp(first, name))
			return true;
		far = edits_between(first, name);
		while ((other = strtok_r(NULL, "/", &rest)))
			if (!strcasecmp(other, name))
				far = 0;
		if (far < least) {
			least = far;
			snprintf(meant, NAME_BYTES, "%s", first);
		}
	}
	return false;
}

static void unknown_field(const struct rule_view *view, const struct node *map,
	const struct node *key, const char *meant)
{
	const char *kind = *view->work->kind_name ? view->work->kind_name : "a job";
	struct finding *finding = finding_add(view->findings, RULE_FIELD_UNKNOWN, key,
		"%s has no field %s%s%s here", kind, key->text,
		*meant ? "; it is called " : "", meant);

	if (*meant && !node_get(map, meant)) {
		finding_todo(finding, "write %s instead of %s", meant, key->text);
		edit_scalar(view->work->file, finding, key, meant);
	} else {
		finding_todo(finding, "take it out, or find the field that was meant");
	}
}

static void unknown_fields(const struct rule_view *view)
{
	const struct work *work = view->work;

	for (size_t i = 0; i < sizeof(fields) / sizeof(fields[0]); i++) {
		const struct node *map = fields[i].kind == work->kind
						 ? node_at(work->spec, fields[i].path)
						 : NULL;

		/* The other operator's MPIJob has other fields. */
		if (!map || map->kind != NODE_MAP ||
			(work->kind == WORK_MPIJOB &&
				!strcmp(work->api, "kubeflow.org/v1")) ||
			(work->is_fragment && map == work->root))
			continue;
		for (uint32_t j = 0; j < map->count; j++) {
			char meant[NAME_BYTES];

			if (map->keys[j]->kind == NODE_SCALAR &&
				strcmp(map->keys[j]->text, "<<") != 0 &&
				!has_field(fields[i].names, map->keys[j]->text, meant))
				unknown_field(view, map, map->keys[j], meant);
		}
	}
}

static const struct {
	enum work_kind kind;
	const char *right, *also; /* the second is served by something else */
} versions[] = {
	{WORK_MPIJOB, "kubeflow.org/v2beta1", "kubeflow.org/v1"},
	{WORK_PYTORCHJOB, "kubeflow.org/v1", NULL},
	{WORK_TRAINJOB, "trainer.kubeflow.org/v1alpha1", NULL},
	{WORK_RUNTIME, "trainer.kubeflow.org/v1alpha1", NULL},
	{WORK_JOBSET, "jobset.x-k8s.io/v1alpha2", NULL},
	{WORK_JOB, "batch/v1", NULL},
	{WORK_STATEFULSET, "apps/v1", NULL},
	{WORK_DAEMONSET, "apps/v1", NULL},
	{WORK_DEPLOYMENT, "apps/v1", NULL},
	{WORK_POD, "v1", NULL},
};

static void api_version(const struct rule_view *view)
{
	const struct work *work = view->work;
	const struct node *at = node_get(work->root, "apiVersion");
	struct finding *finding;

	for (size_t i = 0; i < sizeof(versions) / sizeof(versions[0]); i++) {
		if (versions[i].kind != work->kind || work->is_fragment ||
			!strcmp(versions[i].right, work->api))
			continue;
		finding = finding_add(view->findings, RULE_CRD_VERSION,
			at ? at : node_key(work->root, "kind"), "%s is of %s, not %s",
			work->kind_name, versions[i].right,
			*work->api ? work->api : "without a version");
		finding_todo(finding, "write apiVersion: %s", versions[i].right);
		if (versions[i].also && !strcmp(versions[i].also, work->api)) {
			finding->severity = SEVERITY_NOTE;
			finding_todo(finding,
				"%s is the MPIJob of the training operator v1, whose "
				"fields "
				"differ (slots, cleanPodPolicy); for the MPI operator "
				"write "
				"%s, and run only one of the two",
				work->api, versions[i].right);
		} else if (at) {
			edit_scalar(work->file, finding, at, versions[i].right);
		}
	}
}

void rules_form(const struct rule_view *view)
{
	duplicates(view);
	shapes(view);
	api_version(view);
	unknown_fields(view);
}
