/* Variables for NCCL, its plugin and libfabric: those nobody reads, and those that harm.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/env_names.h"
#include "topo/instance.h"
#include "weft/k8s/rule.h"

enum { NAME_BYTES = 128 };

/* Small ones, too: NCCl_DEBUG is somebody's mistake. */
static const char name_letters[] =
	"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_";

/* One variable as it is set somewhere. */
struct setting {
	char name[NAME_BYTES];
	const char *value;	 /* NULL: taken from elsewhere, or not known */
	const struct node *item; /* of an env list; NULL: in a command */
	struct node at;		 /* its place */
	const struct word *word; /* in a command */
};

/* What the job looks like to a variable. */
struct scene {
	const struct rule_view *view;
	const struct pod_set *set;
	bool is_wide, has_efa, has_nvlink, knows_machine;
};

enum when { ALWAYS, WIDE, WITH_EFA, WIDE_WITH_EFA, NO_NVLINK, WIDE_WITHOUT_EFA };

/* `values` has a blank around each; NULL is any, and '<' a bound: smaller ones. */
static const struct {
	const char *name, *values;
	enum when when;
	enum rule_id rule;
	const char *what, *todo;
} table[] = {
	{"NCCL_P2P_DISABLE", " 1 ", ALWAYS, RULE_ENV_HARMFUL,
		"it forbids NVLink and PCIe peer-to-peer between GPUs", NULL},
	{"NCCL_SHM_DISABLE", " 1 ", ALWAYS, RULE_ENV_HARMFUL,
		"it forbids shared memory between ranks of a pod", NULL},
	{"NCCL_P2P_LEVEL", " NVL ", NO_NVLINK, RULE_ENV_HARMFUL,
		"these GPUs have no NVLink, so it forbids all peer-to-peer", NULL},
	{"NCCL_P2P_LEVEL", " LOC 0 ", ALWAYS, RULE_ENV_HARMFUL,
		"it forbids all peer-to-peer between GPUs", NULL},
	{"NCCL_NET", " Socket socket ", WIDE, RULE_ENV_HARMFUL,
		"it takes TCP instead of RDMA", NULL},
	{"NCCL_NET_PLUGIN", " none ", WIDE_WITH_EFA, RULE_ENV_HARMFUL,
		"without the plugin NCCL cannot use EFA", NULL},
	{"NCCL_NET_GDR_LEVEL", " LOC 0 ", WIDE, RULE_ENV_HARMFUL,
		"it stages all network traffic through host memory", NULL},
	{"NCCL_BUFFSIZE", "<4194304", ALWAYS, RULE_ENV_HARMFUL,
		"the default is 4 MiB (8 MiB with aws-ofi-nccl), not 2: it makes buffers "
		"smaller",
		NULL},
	{"NCCL_IB_DISABLE", NULL, WITH_EFA, RULE_ENV_NO_EFFECT,
		"EFA goes through the plugin, not through NCCL's verbs code", NULL},
	{"NCCL_IB_DISABLE", " 1 ", WIDE_WITHOUT_EFA, RULE_ENV_HARMFUL,
		"it forbids InfiniBand and RoCE, which leaves TCP", NULL},
	{"NCCL_IB_DISABLE", " 0 ", ALWAYS, RULE_ENV_NO_EFFECT,
		"0 is the default, and EFA does not depend on it", NULL},
	{"FI_PROVIDER", " tcp sockets shm udp tcp;ofi_rxm ", WIDE_WITH_EFA,
		RULE_ENV_HARMFUL, "it makes libfabric leave EFA out",
		"write efa, or take it out"},
	{"FI_EFA_USE_DEVICE_RDMA", " 0 ", WIDE_WITH_EFA, RULE_ENV_HARMFUL,
		"it forbids RDMA by the EFA device", NULL},
	{"FI_EFA_USE_DEVICE_RDMA", NULL, ALWAYS, RULE_ENV_OBSOLETE,
		"libfabric 1.18 and newer decide it by themselves", NULL},
	{"NCCL_CHECKS_DISABLE", NULL, ALWAYS, RULE_ENV_OBSOLETE, "it does nothing", NULL},
	{"CUDA_LAUNCH_BLOCKING", " 1 ", ALWAYS, RULE_ENV_HARMFUL,
		"every kernel waits for the one before it: for debugging only", NULL},
	{"NCCL_NVLS_ENABLE", " 0 ", ALWAYS, RULE_ENV_FORCED,
		"it switches NVLink SHARP off, where GPUs have it", NULL},
	{"NCCL_ALGO", NULL, ALWAYS, RULE_ENV_FORCED, "one algorithm for every size",
		NULL},
	{"NCCL_PROTO", NULL, ALWAYS, RULE_ENV_FORCED,
		"one protocol for every size; the plugin sets simple where it must",
		NULL},
	{"NCCL_MIN_NCHANNELS", NULL, ALWAYS, RULE_ENV_FORCED,
		"the number of channels by hand", NULL},
	{"NCCL_MAX_NCHANNELS", NULL, ALWAYS, RULE_ENV_FORCED,
		"the number of channels by hand", NULL},
	{"NCCL_MIN_NRINGS", NULL, ALWAYS, RULE_ENV_FORCED,
		"the number of channels by hand", NULL},
	{"NCCL_MAX_NRINGS", NULL, ALWAYS, RULE_ENV_FORCED,
		"the number of channels by hand", NULL},
	{"NCCL_MIN_CTAS", NULL, ALWAYS, RULE_ENV_FORCED, "the number of channels by hand",
		NULL},
	{"NCCL_MAX_CTAS", NULL, ALWAYS, RULE_ENV_FORCED, "the number of channels by hand",
		NULL},
	{"NCCL_NTHREADS", NULL, ALWAYS, RULE_ENV_FORCED, "threads per channel by hand",
		NULL},
	{"NCCL_CROSS_NIC", NULL, ALWAYS, RULE_ENV_FORCED,
		"whether rings may change NICs, by hand", NULL},
	{"NCCL_IB_GID_INDEX", NULL, ALWAYS, RULE_ENV_FORCED,
		"NCCL 2.21 and newer find the GID by themselves", NULL},
};

static bool applies(const struct scene *scene, enum when when)
{
	switch (when) {
	case WIDE:
		return scene->is_wide;
	case WITH_EFA:
		return scene->has_efa;
	case WIDE_WITH_EFA:
		return scene->is_wide && scene->has_efa;
	case WIDE_WITHOUT_EFA:
		return scene->is_wide && !scene->has_efa;
	case NO_NVLINK:
		return scene->knows_machine && !scene->has_nvlink;
	default:
		return true;
	}
}

static bool matches(const char *values, const char *value)
{
	char padded[NAME_BYTES], *end;
	double bound;

	if (!values)
		return true;
	if (!value)
		return false;
	if (*values == '<') {
		bound = strtod(value, &end);
		return end != value && !*end && bound > 0 &&
		       bound < strtod(values + 1, NULL);
	}
	snprintf(padded, sizeof(padded), " %s ", value);
	return strstr(values, padded) != NULL;
}

/* Take the variable out, where it stands in a list. */
static void edit_drop(
	const struct scene *scene, struct finding *finding, const struct setting *one)
{
	if (one->item)
		edit_remove(scene->view->work->file, finding, one->item);
}

static void empty(const struct scene *scene, const struct setting *one)
{
	struct finding *finding = finding_add(scene->view->findings, RULE_ENV_EMPTY,
		&one->at, "%s is set and empty", one->name);

	if (strcmp(one->name, "NCCL_TOPO_FILE") != 0)
		finding->severity = SEVERITY_NOTE;
	finding_todo(finding, "take it out");
	edit_drop(scene, finding, one);
}

/* `why` it does nothing, where that is known; NULL: nobody ever knew it. */
static void unknown(const struct scene *scene, const struct setting *one, const char *why)
{
	char near[ENV_NAME_BYTES];
	struct finding *finding = finding_add(scene->view->findings, RULE_ENV_UNKNOWN,
		&one->at, "nobody reads %s", one->name);

	if (!why && env_name_nearest(one->name, near)) {
		finding->severity = SEVERITY_PERFORMANCE;
		finding_todo(finding, "%s is read; write that if it was meant", near);
		if (one->item && node_get(one->item, "name"))
			edit_scalar(scene->view->work->file, finding,
				node_get(one->item, "name"), near);
	} else {
		finding_todo(finding, "%s%stake it out", why ? why : "", why ? "; " : "");
		edit_drop(scene, finding, one);
	}
}

/* An interface filter takes names; lo reaches nobody. */
static bool interface(const struct scene *scene, const struct setting *one)
{
	struct finding *finding;

	if (strcmp(one->name, "NCCL_SOCKET_IFNAME") != 0 || !one->value)
		return false;
	if (!scene->is_wide ||
		(strcmp(one->value, "lo") != 0 && strcmp(one->value, "=lo") != 0 &&
			!(one->value[0] >= '0' && one->value[0] <= '9')))
		return true;
	finding = finding_add(scene->view->findings, RULE_ENV_HARMFUL, &one->at,
		"NCCL_SOCKET_IFNAME=%s: %s", one->value,
		one->value[0] == 'l' || one->value[0] == '='
			? "other pods are not reached by the loopback interface"
			: "it takes names of interfaces, not addresses");
	finding->severity = SEVERITY_FATAL;
	finding_todo(finding, "take it out, or name the interface, such as eth0");
	edit_drop(scene, finding, one);
	return true;
}

static void judge(const struct scene *scene, const struct setting *one)
{
	enum env_name_kind kind;
	const char *why;

	if (one->value && !*one->value && env_name_is_ours(one->name)) {
		empty(scene, one);
		return;
	}
	if (interface(scene, one))
		return;
	for (size_t i = 0; i < sizeof(table) / sizeof(table[0]); i++) {
		struct finding *finding;

		if (strcmp(table[i].name, one->name) != 0 ||
			!applies(scene, table[i].when) ||
			!matches(table[i].values, one->value))
			continue;
		finding = finding_add(scene->view->findings, table[i].rule, &one->at,
			"%s=%s: %s", one->name, one->value ? one->value : "..",
			table[i].what);
		finding_todo(
			finding, "%s", table[i].todo ? table[i].todo : "take it out");
		edit_drop(scene, finding, one);
		return;
	}
	kind = env_name_kind(one->name, &why);
	if (kind == ENV_NAME_UNKNOWN || kind == ENV_NAME_OBSOLETE)
		unknown(scene, one, why);
}

static void env_list(const struct scene *scene, const struct node *list)
{
	for (uint32_t i = 0; list && list->kind == NODE_LIST && i < list->count; i++) {
		const struct node *item = list->items[i];
		const struct node *name = node_get(item, "name");
		struct setting one = {.item = item};

		if (!node_text(name) || strlen(name->text) >= NAME_BYTES)
			continue;
		snprintf(one.name, sizeof(one.name), "%s", name->text);
		one.at = *name;
		if (!node_get(item, "valueFrom"))
			one.value = node_text(node_get(item, "value"));
		/* No value, or null, is an empty one to Kubernetes. */
		if (!one.value && !node_get(item, "valueFrom"))
			one.value = "";
		judge(scene, &one);
	}
}

/* -x NAME=VALUE, export NAME=VALUE, NAME=VALUE before a command. */
static void env_words(const struct scene *scene, const struct node *container)
{
	struct words words;

	words_read(scene->view->work->file, container, &words);
	for (uint32_t i = 0; i < words.count; i++) {
		const struct word *word = &words.list[i];
		size_t bytes = strcspn(word->text, "=");
		struct setting one = {.word = word, .value = word->text + bytes + 1};

		if (!word->text[bytes] || bytes >= NAME_BYTES || !bytes ||
			strspn(word->text, name_letters) != bytes)
			continue;
		snprintf(one.name, sizeof(one.name), "%.*s", (int)bytes, word->text);
		if (strchr(one.value, '$'))
			one.value = NULL;
		one.at = (struct node){.line = word->line,
			.column = word->column,
			.start = word->start,
			.end = word->end};
		judge(scene, &one);
	}
	words_free(&words);
}

static bool has_nvlink(const char *machine)
{
	const struct instance_info *info = instance_find(machine);

	return info &&
	       (strstr(info->summary, "NVSwitch") || strstr(info->summary, "NVLink"));
}

static struct scene scene_of(const struct rule_view *view, const struct pod_set *set)
{
	const struct pod_set *main_set = work_main_set(view->work);
	const struct pod_set *ranks = main_set ? main_set : set;

	return (struct scene){.view = view,
		.set = set,
		.is_wide = work_rank_pods(view->work) > 1,
		.has_efa = ranks->efa > 0,
		.knows_machine = ranks->machine != NULL,
		.has_nvlink = ranks->machine && has_nvlink(ranks->machine->name)};
}

void rules_environment(const struct rule_view *view)
{
	const struct work *work = view->work;

	for (uint32_t i = 0; i < work->set_count; i++) {
		const struct pod_set *set = &work->sets[i];
		struct scene scene = scene_of(view, set);
		const struct node *list = set->containers;

		if (!list || list->kind != NODE_LIST) {
			env_list(&scene, node_get(set->container, "env"));
			env_words(&scene, set->container);
			continue;
		}
		for (uint32_t j = 0; j < list->count; j++) {
			env_list(&scene, node_get(list->items[j], "env"));
			env_words(&scene, list->items[j]);
		}
	}
}

void rules_override_environment(const struct rule_view *view, const struct node *list)
{
	const struct pod_set *set = work_main_set(view->work);
	struct scene scene;

	if (!set)
		return;
	scene = scene_of(view, set);
	env_list(&scene, list);
}
