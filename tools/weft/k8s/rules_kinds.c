/* What each kind of job asks of its manifest, and what of its releases differs. */
#include <stdio.h>
#include <string.h>

#include "weft/k8s/rule.h"

bool rules_is_distributed(const struct work *work)
{
	static const char *const starters[] = {"torchrun", "mpirun", "deepspeed",
		"torch.distributed.run", "torch.distributed.launch", "accelerate"};
	bool is_one = false;

	if (work_rank_pods(work) < 2)
		return false;
	if (work->kind == WORK_MPIJOB || work->kind == WORK_PYTORCHJOB ||
		work->kind == WORK_TRAINJOB)
		return true;
	for (uint32_t i = 0; i < work->set_count && !is_one; i++) {
		struct words words;
		const struct node *env = node_get(work->sets[i].container, "env");

		words_read(work->file, work->sets[i].container, &words);
		for (size_t j = 0; j < sizeof(starters) / sizeof(starters[0]); j++)
			is_one |= words_program(&words, starters[j]) != NULL;
		words_free(&words);
		for (uint32_t j = 0; env && env->kind == NODE_LIST && j < env->count; j++)
			is_one |= node_is(node_get(env->items[j], "name"),
					  "MASTER_ADDR") ||
				  node_is(node_get(env->items[j], "name"), "WORLD_SIZE");
	}
	return is_one;
}

static bool has_container(const struct pod_set *set, const char *name)
{
	const struct node *list = set->containers;

	for (uint32_t i = 0; list && list->kind == NODE_LIST && i < list->count; i++)
		if (node_is(node_get(list->items[i], "name"), name))
			return true;
	return !list || list->kind != NODE_LIST || !list->count;
}

static void container_names(const struct rule_view *view, const char *name)
{
	for (uint32_t i = 0; i < view->work->set_count; i++) {
		const struct pod_set *set = &view->work->sets[i];
		const struct node *own = node_get(set->container, "name");
		struct finding *finding;

		if (has_container(set, name))
			continue;
		finding = finding_add(view->findings, RULE_CONTAINER_NAME,
			node_or(own, set->containers), "no container of %s is called %s",
			set->role, name);
		finding_todo(finding, "call the training container %s", name);
		if (own)
			edit_scalar(view->work->file, finding, own, name);
		else if (set->container)
			edit_add(view->work->file, finding, set->container, "name",
				json_string(name));
	}
}

static void pytorchjob(const struct rule_view *view)
{
	const struct work *work = view->work;
	bool has_master = false;

	container_names(view, "pytorch");
	for (uint32_t i = 0; i < work->set_count; i++) {
		const struct node *at = node_get(work->sets[i].at, "replicas");
		struct finding *finding;

		if (strcmp(work->sets[i].role, "Master") != 0)
			continue;
		has_master = true;
		if (work->sets[i].replicas == 1)
			continue;
		finding = finding_add(view->findings, RULE_MASTER_REPLICAS, at,
			"the Master has %d replicas and must have 1",
			(int)work->sets[i].replicas);
		finding_todo(
			finding, "write replicas: 1, and put the others into Worker");
		if (at)
			edit_scalar(work->file, finding, at, "1");
	}
	if (has_master || node_get(work->spec, "elasticPolicy") || !work->set_count)
		return;
	finding_todo(
		finding_add(view->findings, RULE_MASTER_REPLICAS,
			node_key(work->spec, "pytorchReplicaSpecs"),
			"there is no Master, and no elasticPolicy that would do without"),
		"add a Master with replicas: 1, or an elasticPolicy");
}

/* Pod fields that may be changed from a TrainJob. */
static const char patchable[] =
	" serviceAccountName volumes initContainers containers imagePullSecrets "
	"securityContext nodeSelector affinity tolerations schedulingGates "
	"terminationGracePeriodSeconds resourceClaims priorityClassName ";

static bool listed(const char *names, const char *name)
{
	char padded[96];

	snprintf(padded, sizeof(padded), " %s ", name);
	return strstr(names, padded) != NULL;
}

static void override_env(const struct rule_view *view, const struct node *container)
{
	static const char reserved[] = " node dataset-initializer model-initializer ";
	const char *name = node_text(node_get(container, "name"));
	const struct node *env = node_get(container, "env");
	struct finding *finding;

	rules_override_environment(view, env);
	if (!name || !env || !listed(reserved, name))
		return;
	finding = finding_add(view->findings, RULE_OVERRIDE_ENV,
		node_or(node_key(container, "env"), env),
		"env of the container %s cannot be set here", name);
	finding_todo(finding, "move these variables to %s",
		!strcmp(name, "node") ? "spec.trainer.env"
				      : "the initializer's env under spec.initializer");
}

/* A pod's spec as an override has it. */
static void override_spec(const struct rule_view *view, const struct node *spec)
{
	const struct node *list = node_get(spec, "containers");

	for (uint32_t i = 0; spec && spec->kind == NODE_MAP && i < spec->count; i++) {
		struct finding *finding;

		if (spec->keys[i]->kind != NODE_SCALAR ||
			listed(patchable, spec->keys[i]->text))
			continue;
		finding = finding_add(view->findings, RULE_OVERRIDE_FIELD, spec->keys[i],
			"%s cannot be changed from a TrainJob", spec->keys[i]->text);
		finding_todo(finding,
			"put %s into the (Cluster)TrainingRuntime, at "
			"spec.template.spec.replicatedJobs[].template.spec.template.spec",
			spec->keys[i]->text);
		edit_remove(view->work->file, finding, spec->items[i]);
	}
	for (uint32_t i = 0; list && list->kind == NODE_LIST && i < list->count; i++)
		override_env(view, list->items[i]);
	list = node_get(spec, "initContainers");
	for (uint32_t i = 0; list && list->kind == NODE_LIST && i < list->count; i++)
		override_env(view, list->items[i]);
}

static void target_jobs(const struct rule_view *view, const struct node *list)
{
	for (uint32_t i = 0; list && list->kind == NODE_LIST && i < list->count; i++) {
		const char *name = node_text(list->items[i]);
		struct finding *finding;

		if (!name)
			continue;
		finding = finding_add(view->findings, RULE_TARGET_JOBS, list->items[i],
			"targetJobs has the text %s instead of an object", name);
		finding_todo(finding, "write {name: %s}", name);
		edit_value(view->work->file, finding, list->items[i],
			json_pack("{s:s}", "name", name));
	}
}

static void old_overrides(const struct rule_view *view, const struct node *list)
{
	for (uint32_t i = 0; list && list->kind == NODE_LIST && i < list->count; i++) {
		target_jobs(view, node_get(list->items[i], "targetJobs"));
		override_spec(view, node_get(list->items[i], "spec"));
	}
}

static void new_patches(const struct rule_view *view, const struct node *list)
{
	for (uint32_t i = 0; list && list->kind == NODE_LIST && i < list->count; i++) {
		const struct node *jobs = node_at(list->items[i],
			"trainingRuntimeSpec/template/spec/replicatedJobs");

		for (uint32_t j = 0; jobs && jobs->kind == NODE_LIST && j < jobs->count;
			j++)
			override_spec(view,
				node_at(jobs->items[j], "template/spec/template/spec"));
	}
}

static void wrong_release(
	const struct rule_view *view, const char *field, bool is_wrong, const char *todo)
{
	const struct node *key = node_key(view->work->spec, field);

	if (!key || !is_wrong)
		return;
	finding_todo(finding_add(view->findings, RULE_CRD_VERSION, key,
			     "Kubeflow Trainer v%d.%d has no field %s",
			     view->options->trainer_version / 100,
			     view->options->trainer_version % 100, field),
		"%s", todo);
}

static void trainjob(const struct rule_view *view)
{
	const struct node *spec = view->work->spec;
	const struct node *procs = node_at(spec, "trainer/numProcPerNode");
	bool is_new = view->options->trainer_version >= 202;
	int64_t number;

	wrong_release(view, "podTemplateOverrides", is_new,
		"write runtimePatches (manager, trainingRuntimeSpec.template.spec."
		"replicatedJobs[]), or say --trainer-version 2.1");
	wrong_release(view, "podSpecOverrides", true,
		"it was called podTemplateOverrides up to v2.1; since v2.2 write "
		"runtimePatches");
	wrong_release(view, "runtimePatches", !is_new,
		"write podTemplateOverrides, or say --trainer-version 2.2");
	if (is_new && procs && node_text(procs) &&
		(!node_int(procs, &number) || number < 1 || !procs->is_plain)) {
		struct finding *finding = finding_add(view->findings, RULE_CRD_VERSION,
			procs,
			"numProcPerNode is '%s'; since Kubeflow Trainer v2.2 it is a "
			"whole "
			"number from 1 on",
			procs->text);

		finding_todo(finding, "give a number, or leave it out: that is auto");
		if (!strcmp(procs->text, "auto") || !strcmp(procs->text, "gpu"))
			edit_remove(view->work->file, finding, procs);
		else if (node_int(procs, &number) && number > 0)
			edit_bytes(finding, procs->start, procs->end, procs->text);
	}
	old_overrides(view, node_get(spec, "podTemplateOverrides"));
	old_overrides(view, node_get(spec, "podSpecOverrides"));
	new_patches(view, node_get(spec, "runtimePatches"));
}

/* Pod fields where a JobSet's belong. */
static void runtime(const struct rule_view *view)
{
	static const char pod_fields[] =
		" containers initContainers hostIPC hostNetwork hostPID volumes "
		"nodeSelector tolerations affinity dnsPolicy shareProcessNamespace "
		"securityContext serviceAccountName restartPolicy priorityClassName "
		"schedulerName imagePullSecrets ";
	const struct node *spec = node_at(view->work->spec, "template/spec");

	for (uint32_t i = 0; spec && spec->kind == NODE_MAP && i < spec->count; i++) {
		if (spec->keys[i]->kind != NODE_SCALAR ||
			!listed(pod_fields, spec->keys[i]->text))
			continue;
		finding_todo(
			finding_add(view->findings, RULE_RUNTIME_NESTING, spec->keys[i],
				"%s stands where a JobSet's fields do",
				spec->keys[i]->text),
			"move it to spec.template.spec.replicatedJobs[].template.spec."
			"template.spec");
	}
	for (uint32_t i = 0; i < view->work->set_count; i++) {
		const struct pod_set *set = &view->work->sets[i];

		if (!strcmp(set->role, "node") && !has_container(set, "node"))
			finding_todo(finding_add(view->findings, RULE_CONTAINER_NAME,
					     node_or(node_get(set->container, "name"),
						     set->containers),
					     "the job node has no container called node"),
				"call the training container node: a TrainJob's trainer "
				"is "
				"written into it");
	}
}

static void indexed(
	const struct rule_view *view, const struct node *spec, const struct node *at)
{
	const struct node *mode = node_get(spec, "completionMode");
	const struct node *completions = node_get(spec, "completions");
	int64_t want = 0, runs = 1;
	struct finding *finding;

	node_int(node_get(spec, "parallelism"), &runs);
	if (!node_is(mode, "Indexed")) {
		finding = finding_add(view->findings, RULE_JOB_INDEXED, node_or(mode, at),
			"%d pods without a number", (int)runs);
		finding_todo(finding, "write completionMode: Indexed");
		if (mode)
			edit_scalar(view->work->file, finding, mode, "Indexed");
		else
			edit_add(view->work->file, finding, spec, "completionMode",
				json_string("Indexed"));
	}
	if (node_int(completions, &want) && want == runs)
		return;
	finding = finding_add(view->findings, RULE_JOB_PARALLELISM,
		node_or(completions, at), "%d pods run at once, and completions is %s",
		(int)runs, completions ? completions->text : "not said");
	finding_todo(finding, "write completions: %d", (int)runs);
	if (completions && want > runs)
		finding_todo(finding, "write parallelism: %d, so that all ranks run",
			(int)want);
	if (!completions)
		edit_add(view->work->file, finding, spec, "completions",
			json_integer(runs));
	else if (want > runs && node_get(spec, "parallelism"))
		edit_scalar(view->work->file, finding, node_get(spec, "parallelism"),
			completions->text);
}

static void job(const struct rule_view *view)
{
	const struct work *work = view->work;
	int64_t completions = 0;

	node_int(node_get(work->spec, "completions"), &completions);
	/* One pod at a time of several ranks is the same mistake. */
	if (!rules_is_distributed(work) && completions < 2)
		return;
	if (rules_is_distributed(work))
		indexed(view, work->spec, node_key(work->root, "spec"));
}

static void statefulset(const struct rule_view *view)
{
	const struct work *work = view->work;
	const struct node *policy = node_get(work->spec, "podManagementPolicy");
	struct finding *finding;

	if (!rules_is_distributed(work) || node_is(policy, "Parallel"))
		return;
	finding = finding_add(view->findings, RULE_STATEFULSET_ORDER,
		node_or(policy, node_key(work->root, "spec")),
		"%d pods start one after the other", (int)work_rank_pods(work));
	finding_todo(finding, "write podManagementPolicy: Parallel");
	if (policy)
		edit_scalar(work->file, finding, policy, "Parallel");
	else
		edit_add(work->file, finding, work->spec, "podManagementPolicy",
			json_string("Parallel"));
}

static void istio(const struct rule_view *view)
{
	for (uint32_t i = 0; i < view->work->set_count; i++) {
		const struct node *meta = node_get(
			view->work->sets[i].template, "metadata");
		const struct node *places[] = {
			node_get(meta, "annotations"), node_get(meta, "labels")};

		if (work_rank_pods(view->work) < 2)
			continue;
		for (int j = 0; j < 2; j++) {
			const struct node *at = node_get(
				places[j], "sidecar.istio.io/inject");
			struct finding *finding;

			if (!node_true(at))
				continue;
			finding = finding_add(view->findings, RULE_ISTIO, at,
				"the sidecar is asked for in %s's pods",
				view->work->sets[i].role);
			finding_todo(finding, "write sidecar.istio.io/inject: \"false\"");
			edit_bytes(finding, at->start, at->end, "\"false\"");
		}
	}
}

void rules_kinds(const struct rule_view *view)
{
	istio(view);
	switch (view->work->kind) {
	case WORK_PYTORCHJOB:
		pytorchjob(view);
		break;
	case WORK_TRAINJOB:
		trainjob(view);
		break;
	case WORK_RUNTIME:
		runtime(view);
		break;
	case WORK_JOB:
		job(view);
		break;
	case WORK_STATEFULSET:
		statefulset(view);
		break;
	default:
		break;
	}
}
