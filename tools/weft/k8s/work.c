#include "weft/k8s/work.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/edits.h"
#include "weft/k8s/resource.h"

static const struct {
	const char *name;
	enum work_kind kind;
} kinds[] = {
	{"Pod", WORK_POD},
	{"Job", WORK_JOB},
	{"StatefulSet", WORK_STATEFULSET},
	{"DaemonSet", WORK_DAEMONSET},
	{"Deployment", WORK_DEPLOYMENT},
	{"ReplicaSet", WORK_DEPLOYMENT},
	{"JobSet", WORK_JOBSET},
	{"MPIJob", WORK_MPIJOB},
	{"PyTorchJob", WORK_PYTORCHJOB},
	{"TrainJob", WORK_TRAINJOB},
	{"TrainingRuntime", WORK_RUNTIME},
	{"ClusterTrainingRuntime", WORK_RUNTIME},
};

enum { KIND_COUNT = sizeof(kinds) / sizeof(kinds[0]) };

void work_kinds(char *text, size_t room)
{
	size_t used = 0;

	for (size_t i = 0; i < KIND_COUNT && used < room; i++)
		used += (size_t)snprintf(text + used, room - used, "%s%s",
			!i		     ? ""
			: i + 1 < KIND_COUNT ? ", "
					     : " and ",
			kinds[i].name);
}

/* One letter off, or another case: MXJob is a kind of its own, two off MPIJob. */
const char *work_kind_near(const char *kind)
{
	const char *near = NULL;

	for (size_t i = 0; i < KIND_COUNT; i++) {
		if (!strcmp(kind, kinds[i].name))
			return NULL;
		if (edits_between(kind, kinds[i].name) <= 1)
			near = kinds[i].name;
	}
	return near;
}

/* A List of kubectl's, or a PodList of the API's, holds objects of its own. */
static struct node *list_items(const struct node *root)
{
	const char *kind = node_text(node_get(root, "kind"));
	struct node *items = node_get(root, "items");
	size_t bytes = kind ? strlen(kind) : 0;

	return bytes >= 4 && !strcmp(kind + bytes - 4, "List") && items &&
			       items->kind == NODE_LIST
		       ? items
		       : NULL;
}

struct node *work_next(const struct doc_file *file, struct object_walk *walk)
{
	while (walk->doc < file->doc_count) {
		struct node *root = file->docs[walk->doc];
		const struct node *items = list_items(root);

		if (items && walk->item < items->count)
			return items->items[walk->item++];
		walk->doc++;
		walk->item = 0;
		if (!items)
			return root;
	}
	return NULL;
}

bool quantity_bytes(const char *text, double *bytes)
{
	static const struct {
		const char *suffix;
		double factor;
	} suffixes[] = {{"", 1}, {"Ki", 0x1p10}, {"Mi", 0x1p20}, {"Gi", 0x1p30},
		{"Ti", 0x1p40}, {"Pi", 0x1p50}, {"k", 1e3}, {"M", 1e6}, {"G", 1e9},
		{"T", 1e12}, {"P", 1e15}, {"m", 1e-3}};
	double number;
	char *end;

	if (!text || !*text || strchr(" \t", *text))
		return false;
	number = strtod(text, &end);
	if (end == text || !isfinite(number) || number < 0)
		return false;
	for (size_t i = 0; i < sizeof(suffixes) / sizeof(suffixes[0]); i++)
		if (!strcmp(end, suffixes[i].suffix)) {
			*bytes = number * suffixes[i].factor;
			return true;
		}
	return false;
}

/* The instance type among the terms of a node affinity. */
static const struct node *affinity_type(const struct node *spec)
{
	const struct node *terms = node_at(spec,
		"affinity/nodeAffinity/requiredDuringSchedulingIgnoredDuringExecution/"
		"nodeSelectorTerms");

	for (uint32_t i = 0; terms && terms->kind == NODE_LIST && i < terms->count; i++) {
		const struct node *all = node_get(terms->items[i], "matchExpressions");

		for (uint32_t j = 0; all && all->kind == NODE_LIST && j < all->count; j++)
			if (node_is(node_get(all->items[j], "key"),
				    "node.kubernetes.io/instance-type") &&
				node_is(node_get(all->items[j], "operator"), "In"))
				return node_at(all->items[j], "values/0");
	}
	return NULL;
}

static void find_machine(struct pod_set *set, const char *machine)
{
	const struct node *selector = node_get(set->spec, "nodeSelector");
	const struct node *at = node_get(selector, "node.kubernetes.io/instance-type");

	if (!at)
		at = node_get(selector, "beta.kubernetes.io/instance-type");
	if (!at)
		at = affinity_type(set->spec);
	set->machine_name = node_text(at);
	set->machine_at = set->machine_name ? at : NULL;
	if (!set->machine_name)
		set->machine_name = machine;
	if (set->machine_name)
		set->machine = machine_kind_find(set->machine_name);
}

/* The container with the most devices; the first of them where none has any. */
static struct node *main_container(const struct node *containers)
{
	struct node *best = NULL;
	int64_t most = -1;

	for (uint32_t i = 0; containers && i < containers->count; i++) {
		struct node *resources = node_get(containers->items[i], "resources");
		int64_t devices = resource_count(resources, RESOURCE_GPU) +
				  resource_count(resources, RESOURCE_EFA);

		if (containers->items[i]->kind != NODE_MAP || devices <= most)
			continue;
		most = devices;
		best = containers->items[i];
	}
	return best;
}

static struct pod_set *add_set(
	struct work *work, const char *role, struct node *template, int64_t replicas)
{
	struct pod_set *set;

	if (work->set_count == WORK_SETS_MAX)
		return NULL;
	set = &work->sets[work->set_count++];
	*set = (struct pod_set){.role = role, .template = template, .replicas = replicas};
	set->at = template;
	set->spec = node_get(template, "spec");
	set->containers = node_get(set->spec, "containers");
	/* A list that somebody shortened to its only item. */
	if (set->containers && set->containers->kind == NODE_LIST)
		set->container = main_container(set->containers);
	else if (set->containers && set->containers->kind == NODE_MAP)
		set->container = set->containers;
	set->resources = node_get(set->container, "resources");
	return set;
}

static void count_devices(struct pod_set *set)
{
	set->gpus = resource_count(set->resources, RESOURCE_GPU);
	set->efa = resource_count(set->resources, RESOURCE_EFA);
	set->has_rdma = resource_count(set->resources, RESOURCE_RDMA) > 0;
}

static int64_t count_of(const struct node *map, const char *key, int64_t otherwise)
{
	int64_t value;

	return node_int(node_get(map, key), &value) && value >= 0 ? value : otherwise;
}

static void read_replicas(struct work *work, const char *specs)
{
	struct node *map = node_get(work->spec, specs);

	for (uint32_t i = 0; map && map->kind == NODE_MAP && i < map->count; i++) {
		struct node *one = map->items[i];
		struct pod_set *set;

		if (one->kind != NODE_MAP || map->keys[i]->kind != NODE_SCALAR)
			continue;
		set = add_set(work, map->keys[i]->text, node_get(one, "template"),
			count_of(one, "replicas", 1));
		if (set)
			set->at = one;
	}
}

static void read_mpijob(struct work *work)
{
	bool is_both = node_true(node_get(work->spec, "runLauncherAsWorker"));

	read_replicas(work, "mpiReplicaSpecs");
	work->slots_at = node_get(work->spec, "slotsPerWorker");
	work->slots = count_of(work->spec, "slotsPerWorker", 1);
	for (uint32_t i = 0; i < work->set_count; i++)
		work->sets[i].is_launcher = !is_both &&
					    !strcmp(work->sets[i].role, "Launcher");
}

static void read_pytorchjob(struct work *work)
{
	read_replicas(work, "pytorchReplicaSpecs");
	work->slots_at = node_get(work->spec, "nprocPerNode");
	if (!work->slots_at)
		work->slots_at = node_at(work->spec, "elasticPolicy/nProcPerNode");
	if (!node_int(work->slots_at, &work->slots) || work->slots < 0)
		work->slots = 0;
}

static void read_trainjob(struct work *work)
{
	struct node *trainer = node_get(work->spec, "trainer");
	struct pod_set *set;

	if (!trainer || trainer->kind != NODE_MAP)
		return;
	set = add_set(work, "node", NULL, count_of(trainer, "numNodes", 1));
	if (!set)
		return;
	set->at = set->container = trainer;
	set->resources = node_get(trainer, "resourcesPerNode");
	work->slots_at = node_get(trainer, "numProcPerNode");
	work->slots = count_of(trainer, "numProcPerNode", 0);
}

static void read_jobset(struct work *work, const struct node *spec)
{
	const struct node *jobs = node_get(spec, "replicatedJobs");

	for (uint32_t i = 0; jobs && jobs->kind == NODE_LIST && i < jobs->count; i++) {
		const char *name = node_text(node_get(jobs->items[i], "name"));
		const struct node *job = node_at(jobs->items[i], "template/spec");
		struct pod_set *set = add_set(work, name ? name : "job",
			node_get(job, "template"),
			count_of(jobs->items[i], "replicas", 1) *
				count_of(job, "parallelism", 1));

		if (set && !set->at)
			set->at = jobs->items[i];
	}
}

static void read_sets(struct work *work)
{
	switch (work->kind) {
	case WORK_POD:
		add_set(work, "pod", work->root, 1);
		break;
	case WORK_JOB:
		add_set(work, "pod", node_get(work->spec, "template"),
			count_of(work->spec, "parallelism", 1));
		break;
	case WORK_STATEFULSET:
	case WORK_DAEMONSET:
	case WORK_DEPLOYMENT:
		add_set(work, "pod", node_get(work->spec, "template"),
			count_of(work->spec, "replicas", 1));
		break;
	case WORK_JOBSET:
		read_jobset(work, work->spec);
		break;
	case WORK_RUNTIME:
		read_jobset(work, node_at(work->spec, "template/spec"));
		break;
	case WORK_MPIJOB:
		read_mpijob(work);
		break;
	case WORK_PYTORCHJOB:
		read_pytorchjob(work);
		break;
	case WORK_TRAINJOB:
		read_trainjob(work);
		break;
	default:
		break;
	}
}

/* A part of a job without the rest, as people show it. */
static void guess_kind(struct work *work)
{
	struct node *spec = node_get(work->root, "spec");

	work->is_fragment = true;
	if (!spec)
		spec = work->root;
	work->spec = spec;
	if (node_get(spec, "trainer"))
		work->kind = WORK_TRAINJOB;
	else if (node_get(spec, "mpiReplicaSpecs"))
		work->kind = WORK_MPIJOB;
	else if (node_get(spec, "pytorchReplicaSpecs"))
		work->kind = WORK_PYTORCHJOB;
	else if (node_get(spec, "replicatedJobs"))
		work->kind = WORK_JOBSET;
	else if (node_get(work->root, "spec") && node_get(spec, "containers"))
		work->kind = WORK_POD;
}

static const char *text_or_empty(const struct node *node)
{
	const char *text = node_text(node);

	return text ? text : "";
}

/* Others have a Job or a StatefulSet of their own, such as batch.volcano.sh: a group with
 * a dot is not one of Kubernetes' own kinds. */
static bool is_namesake(enum work_kind kind, const char *api)
{
	size_t group = strcspn(api, "/");

	return kind <= WORK_DEPLOYMENT && api[group] && memchr(api, '.', group) &&
	       !strstr(api, "k8s.io/");
}

void work_read(const struct doc_file *file, struct node *root, const char *machine,
	struct work *work)
{
	*work = (struct work){.file = file, .root = root};
	work->kind_name = text_or_empty(node_get(root, "kind"));
	work->api = text_or_empty(node_get(root, "apiVersion"));
	work->name = text_or_empty(node_at(root, "metadata/name"));
	work->spec = node_get(root, "spec");
	for (size_t i = 0; i < KIND_COUNT; i++)
		if (!strcmp(kinds[i].name, work->kind_name) &&
			!is_namesake(kinds[i].kind, work->api))
			work->kind = kinds[i].kind;
	if (!*work->kind_name && root->kind == NODE_MAP)
		guess_kind(work);
	read_sets(work);
	for (uint32_t i = 0; i < work->set_count; i++) {
		find_machine(&work->sets[i], machine);
		count_devices(&work->sets[i]);
	}
}

int64_t work_rank_pods(const struct work *work)
{
	int64_t pods = 0;

	for (uint32_t i = 0; i < work->set_count; i++)
		if (!work->sets[i].is_launcher)
			pods += work->sets[i].replicas;
	return pods;
}

int64_t work_gpus(const struct work *work)
{
	int64_t gpus = 0;

	for (uint32_t i = 0; i < work->set_count; i++)
		if (!work->sets[i].is_launcher)
			gpus += work->sets[i].replicas * work->sets[i].gpus;
	return gpus;
}

const struct pod_set *work_main_set(const struct work *work)
{
	for (uint32_t i = 0; i < work->set_count; i++)
		if (!work->sets[i].is_launcher && work->sets[i].gpus > 0)
			return &work->sets[i];
	return NULL;
}
