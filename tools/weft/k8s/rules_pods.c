/* What a pod needs around its devices: shared memory, locked memory, names, a place. */
#include <stdio.h>
#include <string.h>

#include "weft/k8s/rule.h"

static const double gib = 0x1p30;
static const char zone[] = "topology.kubernetes.io/zone";

/* The mount of /dev/shm; NULL. */
static const struct node *shm_mount(const struct node *container)
{
	const struct node *mounts = node_get(container, "volumeMounts");

	for (uint32_t i = 0; mounts && mounts->kind == NODE_LIST && i < mounts->count;
		i++)
		if (node_is(node_get(mounts->items[i], "mountPath"), "/dev/shm") ||
			node_is(node_get(mounts->items[i], "mountPath"), "/dev/shm/"))
			return mounts->items[i];
	return NULL;
}

static const struct node *volume_named(const struct node *spec, const char *name)
{
	const struct node *volumes = node_get(spec, "volumes");

	for (uint32_t i = 0;
		name && volumes && volumes->kind == NODE_LIST && i < volumes->count; i++)
		if (node_is(node_get(volumes->items[i], "name"), name))
			return volumes->items[i];
	return NULL;
}

static const struct node *memory_volume(const struct node *spec)
{
	const struct node *volumes = node_get(spec, "volumes");

	for (uint32_t i = 0; volumes && volumes->kind == NODE_LIST && i < volumes->count;
		i++)
		if (node_is(node_at(volumes->items[i], "emptyDir/medium"), "Memory"))
			return volumes->items[i];
	return NULL;
}

static void shm_missing(const struct rule_view *view, const struct pod_set *set)
{
	const struct doc_file *file = view->work->file;
	const struct node *mounts = node_get(set->container, "volumeMounts");
	const struct node *volumes = node_get(set->spec, "volumes");
	const struct node *there = memory_volume(set->spec);
	const char *name = node_text(node_get(there, "name"));
	struct finding *finding = finding_add(view->findings, RULE_SHM_MISSING,
		node_or(node_key(set->container, "volumeMounts"), set->container),
		"nothing is mounted on /dev/shm of %s", set->role);
	json_t *mount = json_pack(
		"{s:s,s:s}", "name", name ? name : "dshm", "mountPath", "/dev/shm");

	finding_todo(finding,
		"mount an emptyDir with medium: Memory on /dev/shm, such as 8Gi per GPU");
	if (mounts && mounts->kind == NODE_LIST)
		edit_append(file, finding, mounts, mount);
	else
		edit_add(file, finding, set->container, "volumeMounts",
			json_pack("[o]", mount));
	if (name)
		return;
	if (volumes && volumes->kind == NODE_LIST)
		edit_append(file, finding, volumes,
			json_pack("{s:s,s:{s:s,s:s}}", "name", "dshm", "emptyDir",
				"medium", "Memory", "sizeLimit", "16Gi"));
	else
		edit_add(file, finding, set->spec, "volumes",
			json_pack("[{s:s,s:{s:s,s:s}}]", "name", "dshm", "emptyDir",
				"medium", "Memory", "sizeLimit", "16Gi"));
}

static void shm_size(const struct rule_view *view, const struct pod_set *set,
	const struct node *empty_dir)
{
	const struct node *size = node_get(empty_dir, "sizeLimit");
	const struct node *memory = node_at(set->resources, "limits/memory");
	double bytes = 0, limit = 0;
	struct finding *finding;

	if (!node_text(size) || !quantity_bytes(size->text, &bytes))
		return;
	if (bytes < gib) {
		finding = finding_add(view->findings, RULE_SHM_SMALL, size,
			"/dev/shm of %s for %d GPU%s", size->text, (int)set->gpus,
			set->gpus == 1 ? "" : "s");
		finding_todo(finding, "write sizeLimit: 16Gi");
		edit_scalar(view->work->file, finding, size, "16Gi");
	}
	if (node_text(memory) && quantity_bytes(memory->text, &limit) && bytes > limit)
		finding_todo(finding_add(view->findings, RULE_SHM_OVER_MEMORY, size,
				     "/dev/shm of %s within a memory limit of %s",
				     size->text, memory->text),
			"raise limits.memory above it, or lower sizeLimit");
}

static void shm(const struct rule_view *view, const struct pod_set *set)
{
	const struct node *mount = shm_mount(set->container);
	const struct node *volume, *empty_dir, *medium;
	struct finding *finding;

	if (set->gpus < 1 || (set->gpus < 2 && work_rank_pods(view->work) < 2))
		return;
	if (!mount) {
		if (!node_true(node_get(set->spec, "hostIPC")) || set->gpus > 1)
			shm_missing(view, set);
		return;
	}
	volume = volume_named(set->spec, node_text(node_get(mount, "name")));
	empty_dir = node_get(volume, "emptyDir");
	if (!empty_dir)
		return;
	medium = node_get(empty_dir, "medium");
	if (!node_is(medium, "Memory")) {
		finding = finding_add(view->findings, RULE_SHM_MEDIUM,
			node_or(node_key(volume, "emptyDir"), volume),
			"/dev/shm is an emptyDir without medium: Memory");
		finding_todo(finding, "write medium: Memory");
		if (medium)
			edit_scalar(view->work->file, finding, medium, "Memory");
		else if (empty_dir->kind == NODE_MAP)
			edit_add(view->work->file, finding, empty_dir, "medium",
				json_string("Memory"));
		else
			edit_value(view->work->file, finding, empty_dir,
				json_pack("{s:s}", "medium", "Memory"));
	}
	shm_size(view, set, empty_dir);
}

static bool has_capability(const struct node *container, const char *name)
{
	const struct node *list = node_at(container, "securityContext/capabilities/add");

	for (uint32_t i = 0; list && list->kind == NODE_LIST && i < list->count; i++)
		if (node_is(list->items[i], name) || node_is(list->items[i], "ALL"))
			return true;
	return false;
}

/* Add IPC_LOCK wherever there is room for it. */
static void edit_ipc_lock(
	const struct rule_view *view, struct finding *finding, const struct pod_set *set)
{
	const struct doc_file *file = view->work->file;
	const struct node *context = node_get(set->container, "securityContext");
	const struct node *all = node_get(context, "capabilities");
	const struct node *list = node_get(all, "add");

	if (list)
		edit_append(file, finding, list, json_string("IPC_LOCK"));
	else if (all)
		edit_add(file, finding, all, "add", json_pack("[s]", "IPC_LOCK"));
	else if (context)
		edit_add(file, finding, context, "capabilities",
			json_pack("{s:[s]}", "add", "IPC_LOCK"));
	else
		edit_add(file, finding, set->container, "securityContext",
			json_pack("{s:{s:[s]}}", "capabilities", "add", "IPC_LOCK"));
}

static void privileged(const struct rule_view *view, const struct pod_set *set)
{
	const struct node *context = node_get(set->container, "securityContext");
	const struct node *at = node_get(context, "privileged");
	const struct node *list = node_at(context, "capabilities/add");
	struct finding *finding;

	if (set->gpus < 1)
		return;
	if (node_true(at)) {
		finding = finding_add(view->findings, RULE_PRIVILEGED, at,
			"the container is privileged");
		finding_todo(finding, "write privileged: false%s",
			has_capability(set->container, "IPC_LOCK")
				? "; IPC_LOCK is there"
				: ", and add the capability IPC_LOCK for RDMA");
		edit_scalar(view->work->file, finding, at, "false");
		if (!has_capability(set->container, "IPC_LOCK"))
			edit_ipc_lock(view, finding, set);
	} else if ((set->efa || set->has_rdma) &&
		   !has_capability(set->container, "IPC_LOCK")) {
		finding = finding_add(view->findings, RULE_MEMLOCK,
			node_or(node_key(set->container, "securityContext"),
				set->container),
			"the container has no IPC_LOCK");
		finding_todo(finding, "add the capability IPC_LOCK");
		edit_ipc_lock(view, finding, set);
	}
	for (uint32_t i = 0; list && list->kind == NODE_LIST && i < list->count; i++)
		if (node_is(list->items[i], "NET_ADMIN") ||
			node_is(list->items[i], "SYS_ADMIN") ||
			node_is(list->items[i], "NET_RAW")) {
			finding = finding_add(view->findings, RULE_CAPABILITY,
				list->items[i], "the capability %s",
				list->items[i]->text);
			finding_todo(finding, "take it out");
			edit_remove(view->work->file, finding, list->items[i]);
		}
}

static void host_network(const struct rule_view *view, const struct pod_set *set)
{
	const struct node *at = node_get(set->spec, "hostNetwork");
	const struct node *policy = node_get(set->spec, "dnsPolicy");
	struct finding *finding;

	if (!node_true(at) || work_rank_pods(view->work) < 2)
		return;
	if (!node_is(policy, "ClusterFirstWithHostNet") && !node_is(policy, "None")) {
		finding = finding_add(view->findings, RULE_HOST_NETWORK_DNS,
			node_or(policy, at), "hostNetwork with dnsPolicy %s",
			policy && node_text(policy) ? policy->text
						    : "ClusterFirst (the default)");
		finding_todo(finding, "write dnsPolicy: ClusterFirstWithHostNet");
		if (policy)
			edit_scalar(view->work->file, finding, policy,
				"ClusterFirstWithHostNet");
		else
			edit_add(view->work->file, finding, set->spec, "dnsPolicy",
				json_string("ClusterFirstWithHostNet"));
	}
	if (set->machine && set->gpus && set->machine->gpus / set->gpus > 1 &&
		!set->is_launcher) {
		finding = finding_add(view->findings, RULE_HOST_NETWORK_PORTS, at,
			"%d of these pods fit on one %s and would share its ports",
			(int)(set->machine->gpus / set->gpus), set->machine->name);
		finding_todo(finding, "make one pod of each machine, or take hostNetwork "
				      "out: EFA does not "
				      "need it");
		edit_remove(view->work->file, finding, at);
	}
}

/* Is the zone mentioned in what decides where pods go? */
static bool names_zone(const struct doc_file *file, const struct node *node)
{
	size_t end;

	if (!node)
		return false;
	end = node_tail(file, node);
	return end > node->start && end <= file->bytes &&
	       memmem(file->text + node->start, end - node->start, "/zone", 5);
}

static const struct node *first_label(const struct node *template)
{
	const struct node *labels = node_at(template, "metadata/labels");

	return labels && labels->kind == NODE_MAP && labels->count &&
			       labels->keys[0]->kind == NODE_SCALAR &&
			       node_text(labels->items[0])
		       ? labels
		       : NULL;
}

static json_t *zone_affinity(const char *label, const char *value)
{
	return json_pack("{s:[{s:{s:{s:s}},s:s}]}",
		"requiredDuringSchedulingIgnoredDuringExecution", "labelSelector",
		"matchLabels", label, value, "topologyKey", zone);
}

static void edit_zone(
	const struct rule_view *view, struct finding *finding, const struct pod_set *set)
{
	const struct doc_file *file = view->work->file;
	const struct node *labels = first_label(set->template);
	const struct node *meta = node_get(set->template, "metadata");
	const struct node *affinity = node_get(set->spec, "affinity");
	const char *name = *view->work->name ? view->work->name : "job";
	const char *label = labels ? labels->keys[0]->text : "weft/job";
	const char *value = labels ? labels->items[0]->text : name;

	if (node_get(affinity, "podAffinity"))
		return;
	if (!labels && node_get(meta, "labels"))
		return;
	if (!labels && meta)
		edit_add(file, finding, meta, "labels", json_pack("{s:s}", label, value));
	else if (!labels)
		edit_add(file, finding, set->template, "metadata",
			json_pack("{s:{s:s}}", "labels", label, value));
	if (affinity)
		edit_add(file, finding, affinity, "podAffinity",
			zone_affinity(label, value));
	else
		edit_add(file, finding, set->spec, "affinity",
			json_pack("{s:o}", "podAffinity", zone_affinity(label, value)));
}

static void zone_pin(const struct rule_view *view, const struct pod_set *set)
{
	const struct doc_file *file = view->work->file;
	struct finding *finding;

	if (!set->efa || set->is_launcher || set != work_main_set(view->work) ||
		work_rank_pods(view->work) < 2)
		return;
	if (names_zone(file, node_get(set->spec, "nodeSelector")) ||
		names_zone(file, node_get(set->spec, "affinity")) ||
		names_zone(file, node_get(view->work->root, "metadata")) ||
		names_zone(file, node_at(set->template, "metadata")))
		return;
	finding = finding_add(view->findings, RULE_ZONE_PIN,
		node_or(node_key(set->spec, "nodeSelector"), set->spec),
		"%d pods with EFA may land in several zones",
		(int)work_rank_pods(view->work));
	finding_todo(finding,
		"name one under nodeSelector (%s), or let a podAffinity keep them "
		"together",
		zone);
	edit_zone(view, finding, set);
}

static bool tolerates(const struct node *list, const char *key)
{
	for (uint32_t i = 0; list && list->kind == NODE_LIST && i < list->count; i++) {
		const struct node *own = node_get(list->items[i], "key");

		if (node_is(own, key) ||
			(!node_text(own) &&
				node_is(node_get(list->items[i], "operator"), "Exists")))
			return true;
	}
	return false;
}

static void toleration(const struct rule_view *view, const struct pod_set *set)
{
	const struct node *list = node_get(set->spec, "tolerations");
	json_t *value;
	struct finding *finding;

	if (set->gpus < 1 || tolerates(list, "nvidia.com/gpu"))
		return;
	finding = finding_add(view->findings, RULE_TOLERATION,
		node_or(node_key(set->spec, "tolerations"), set->spec),
		"%s does not tolerate the taint nvidia.com/gpu", set->role);
	finding_todo(finding, "add a toleration of nvidia.com/gpu");
	value = json_pack("{s:s,s:s,s:s}", "key", "nvidia.com/gpu", "operator", "Exists",
		"effect", "NoSchedule");
	if (list)
		edit_append(view->work->file, finding, list, value);
	else
		edit_add(view->work->file, finding, set->spec, "tolerations",
			json_pack("[o]", value));
}

static void fabric_manager(const struct rule_view *view, const struct pod_set *set)
{
	struct words words;

	for (uint32_t i = 0; set->containers && set->containers->kind == NODE_LIST &&
			     i < set->containers->count;
		i++) {
		const struct node *one = set->containers->items[i];
		const struct word *word;

		words_read(view->work->file, one, &words);
		word = words_program(&words, "nvidia-fabricmanager");
		if (!word)
			word = words_program(&words, "nv-fabricmanager");
		if (word)
			finding_todo(
				finding_add(view->findings, RULE_FABRIC_MANAGER,
					word->node, "this pod runs the fabric manager"),
				"delete it; on the host, systemctl status "
				"nvidia-fabricmanager shows the service, whose version "
				"must "
				"be the driver's");
		words_free(&words);
	}
}

void rules_pods(const struct rule_view *view)
{
	for (uint32_t i = 0; i < view->work->set_count; i++) {
		const struct pod_set *set = &view->work->sets[i];

		/* A TrainJob's pods are described by its runtime, which is not here. */
		if (!set->spec || set->spec->kind != NODE_MAP)
			continue;
		fabric_manager(view, set);
		if (view->work->kind == WORK_DAEMONSET)
			continue;
		shm(view, set);
		privileged(view, set);
		host_network(view, set);
		zone_pin(view, set);
		toleration(view, set);
	}
}
