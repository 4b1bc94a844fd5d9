/* Devices that are asked for: their names, their numbers, and what the machine has. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "weft/k8s/resource.h"
#include "weft/k8s/rule.h"

enum { NUMBER_BYTES = 24 };

static const char gpu[] = "nvidia.com/gpu", efa[] = "vpc.amazonaws.com/efa";

static void name(const struct rule_view *view, const struct node *map, uint32_t i)
{
	const struct node *key = map->keys[i];
	struct finding *finding;
	const char *right;

	resource_kind(key->text, &right);
	if (!right)
		return;
	finding = finding_add(
		view->findings, RULE_RES_NAME, key, "there is no resource %s", key->text);
	finding_todo(finding, "write %s", right);
	if (!node_get(map, right))
		edit_scalar(view->work->file, finding, key, right);
}

static bool is_whole(const struct node *value)
{
	double number;

	return !node_text(value) ||
	       (quantity_bytes(value->text, &number) && number == floor(number));
}

static void integer(const struct rule_view *view, const struct node *map, uint32_t i)
{
	const char *right;

	if (resource_kind(map->keys[i]->text, &right) == RESOURCE_OTHER ||
		is_whole(map->items[i]))
		return;
	finding_todo(finding_add(view->findings, RULE_RES_INTEGER, map->items[i],
			     "%s is %s", map->keys[i]->text, map->items[i]->text),
		"ask for whole devices; to share a GPU use MIG (nvidia.com/mig-..) or "
		"the "
		"device plugin's time slicing");
}

static bool needs_equal(const char *resource)
{
	const char *right;

	return !strncmp(resource, "hugepages-", 10) ||
	       resource_kind(resource, &right) != RESOURCE_OTHER;
}

static void requests_of(const struct rule_view *view, const struct node *resources)
{
	const struct node *requests = node_get(resources, "requests");
	const struct node *limits = node_get(resources, "limits");

	for (uint32_t i = 0;
		requests && requests->kind == NODE_MAP && i < requests->count; i++) {
		const char *resource = requests->keys[i]->text;
		const char *value = node_text(requests->items[i]);
		const struct node *limit = node_get(limits, resource);
		double asked, given;
		struct finding *finding;

		if (!value || !needs_equal(resource) || !quantity_bytes(value, &asked) ||
			(node_text(limit) && quantity_bytes(limit->text, &given) &&
				asked == given))
			continue;
		finding = finding_add(view->findings, RULE_REQUESTS_LIMITS,
			requests->items[i], "%s: requests %s, limits %s", resource, value,
			node_text(limit) ? limit->text : "nothing");
		finding_todo(
			finding, "write the same into limits; requests may be left out");
		if (node_text(limit))
			edit_scalar(view->work->file, finding, requests->items[i],
				limit->text);
		else if (limits && limits->kind == NODE_MAP)
			edit_add(view->work->file, finding, limits, resource,
				json_string(value));
		else
			edit_add(view->work->file, finding, resources, "limits",
				json_pack("{s:s}", resource, value));
	}
}

static void hugepages(const struct rule_view *view, const struct node *resources)
{
	static const char *const lists[] = {"limits", "requests"};
	const struct node *huge = NULL, *in = NULL;
	struct finding *finding;

	for (int l = 0; l < 2; l++) {
		const struct node *map = node_get(resources, lists[l]);

		if (node_get(map, "memory") || node_get(map, "cpu"))
			return;
		for (uint32_t i = 0; map && map->kind == NODE_MAP && i < map->count; i++)
			if (!strncmp(map->keys[i]->text, "hugepages-", 10) && !huge) {
				huge = map->keys[i];
				in = map;
			}
	}
	if (!huge)
		return;
	finding = finding_add(view->findings, RULE_HUGEPAGES_MEMORY, huge,
		"%s without memory or cpu", huge->text);
	finding_todo(finding, "ask for memory too, such as memory: 32000Mi");
	edit_add(view->work->file, finding, in, "memory", json_string("32000Mi"));
}

static void container(const struct rule_view *view, const struct node *resources)
{
	static const char *const lists[] = {"limits", "requests"};

	for (int l = 0; l < 2; l++) {
		const struct node *map = node_get(resources, lists[l]);

		for (uint32_t i = 0; map && map->kind == NODE_MAP && i < map->count;
			i++) {
			if (map->keys[i]->kind != NODE_SCALAR)
				continue;
			name(view, map, i);
			integer(view, map, i);
		}
	}
	requests_of(view, resources);
	hugepages(view, resources);
}

static void instance_type(const struct rule_view *view, const struct pod_set *set)
{
	struct finding *finding;
	const char *near;

	if (!set->machine_name || set->machine || !machine_kind_is_aws(set->machine_name))
		return;
	near = machine_kind_near(set->machine_name);
	/* A family that is newer than this table is no mistake. */
	if (!near)
		return;
	finding = finding_add(view->findings, RULE_INSTANCE_TYPE, set->machine_at,
		"there is no instance type %s", set->machine_name);
	finding_todo(finding, "%s is there; is that what was meant?", near);
	if (set->machine_at)
		edit_scalar(view->work->file, finding, set->machine_at, near);
}

/* The value of a resource, and the map it is in. */
static const struct node *asked(const struct pod_set *set, const char *resource)
{
	const struct node *at = node_get(node_get(set->resources, "limits"), resource);

	return at ? at : node_get(node_get(set->resources, "requests"), resource);
}

static void set_number(const struct rule_view *view, struct finding *finding,
	const struct pod_set *set, const char *resource, int64_t number)
{
	static const char *const lists[] = {"limits", "requests"};
	char text[NUMBER_BYTES];

	snprintf(text, sizeof(text), "%d", (int)number);
	for (int l = 0; l < 2; l++) {
		const struct node *at = node_get(
			node_get(set->resources, lists[l]), resource);

		if (at && !node_is(at, text))
			edit_scalar(view->work->file, finding, at, text);
	}
}

static void too_many(const struct rule_view *view, const struct pod_set *set)
{
	const struct machine_kind *machine = set->machine;
	struct finding *finding;

	if (set->gpus > machine->gpus) {
		finding = finding_add(view->findings, RULE_GPU_TOO_MANY,
			node_or(asked(set, gpu), set->at),
			"%d GPUs on a %s, which has %d", (int)set->gpus, machine->name,
			machine->gpus);
		finding_todo(finding, "ask for %d, and for more pods", machine->gpus);
		set_number(view, finding, set, gpu, machine->gpus);
	}
	if (machine->efa < 0 || set->efa <= machine->efa)
		return;
	finding = finding_add(view->findings, RULE_EFA_TOO_MANY,
		node_or(asked(set, efa), set->at), "%d EFA devices on a %s, which has %d",
		(int)set->efa, machine->name, machine->efa);
	finding_todo(finding, "ask for %d", machine->efa);
	if (machine->efa)
		set_number(view, finding, set, efa, machine->efa);
}

/* A share of the devices for a pod with a part of the GPUs; all for a pod with all. */
static int64_t share(const struct pod_set *set)
{
	int64_t pods = set->machine->gpus / (set->gpus ? set->gpus : 1);
	int64_t devices = set->machine->efa / (pods ? pods : 1);

	return devices ? devices : 1;
}

static void efa_missing(const struct rule_view *view, const struct pod_set *set)
{
	const struct node *limits = node_get(set->resources, "limits");
	struct finding *finding;
	char text[NUMBER_BYTES];

	if (set->gpus < 1 || set->machine->efa < 1 || set->efa || set->has_rdma)
		return;
	finding = finding_add(view->findings, RULE_EFA_MISSING,
		node_or(node_key(set->resources, "limits"), set->at),
		"%d pods on %s, and none asks for an EFA device", (int)set->replicas,
		set->machine->name);
	finding_todo(finding, "add %s: %d to limits", efa, (int)share(set));
	snprintf(text, sizeof(text), "%d", (int)share(set));
	if (limits)
		edit_add(view->work->file, finding, limits, efa, json_string(text));
}

static void ratio(const struct rule_view *view, const struct pod_set *set)
{
	struct finding *finding;

	if (set->gpus != set->machine->gpus || !set->efa || set->machine->efa < 0 ||
		set->efa >= set->machine->efa || work_rank_pods(view->work) < 2)
		return;
	finding = finding_add(view->findings, RULE_GPU_EFA_RATIO,
		node_or(asked(set, efa), set->at),
		"all %d GPUs of a %s with %d of its %d EFA devices", (int)set->gpus,
		set->machine->name, (int)set->efa, set->machine->efa);
	finding_todo(finding, "ask for %d", set->machine->efa);
	set_number(view, finding, set, efa, set->machine->efa);
}

/* Devices may come another way: all of the node's, or an interface of Multus'. */
static bool has_other_way(const struct pod_set *set)
{
	return set->has_rdma || set->efa ||
	       node_true(node_get(set->spec, "hostNetwork")) ||
	       node_true(node_at(set->container, "securityContext/privileged")) ||
	       node_get(node_at(set->template, "metadata/annotations"),
		       "k8s.v1.cni.cncf.io/networks") ||
	       node_get(set->spec, "resourceClaims");
}

static void rdma_missing(const struct rule_view *view, const struct pod_set *set)
{
	if (set->machine || set->machine_name || set->gpus < 1 || has_other_way(set))
		return;
	finding_todo(finding_add(view->findings, RULE_RDMA_MISSING,
			     node_or(node_key(set->resources, "limits"), set->at),
			     "%d pods with GPUs, and none asks for a network device",
			     (int)work_rank_pods(view->work)),
		"on AWS add vpc.amazonaws.com/efa to limits (--machine tells how many); "
		"on "
		"other networks the resource of its device plugin, such as rdma/..");
}

void rules_resources(const struct rule_view *view)
{
	const struct work *work = view->work;
	bool is_wide = work_rank_pods(work) > 1;

	for (uint32_t i = 0; i < work->set_count; i++) {
		const struct pod_set *set = &work->sets[i];
		const struct node *list = set->containers;

		if (work->kind == WORK_DAEMONSET || work->kind == WORK_DEPLOYMENT)
			is_wide = false;
		if (list && list->kind == NODE_LIST)
			for (uint32_t j = 0; j < list->count; j++)
				container(view, node_get(list->items[j], "resources"));
		else
			container(view, set->resources);
		instance_type(view, set);
		if (set->machine) {
			too_many(view, set);
			ratio(view, set);
		}
		if (is_wide && set->machine && work->kind != WORK_RUNTIME)
			efa_missing(view, set);
		if (is_wide && set->spec && work->kind != WORK_RUNTIME &&
			set == work_main_set(work))
			rdma_missing(view, set);
	}
}
