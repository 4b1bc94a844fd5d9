#include "weft/k8s/reach.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "weft/graph_pods.h"

enum { HOSTS_MAX = 64, DRAWN_MAX = 16, LISTED_MAX = 256, WAY_BYTES = 24, WAYS_MAX = 32 };

/* The ranks of one job on the machines it gets. */
struct reach {
	const struct work *work;
	const struct pod_set *set;
	uint32_t ranks, pods, per_node, nodes;
	bool is_tcp; /* no device of the network is asked for */
	struct graph_job job;
	struct pods_answer answer; /* the cut against whole machines */
};

/* "NVL", "SHM", "NET": as it stands in a table. */
static void way_text(const struct reach *reach, int from, int to, char text[WAY_BYTES])
{
	const struct cluster *cluster = reach->job.decision->cluster;
	enum path_type type = PATH_SYS;
	enum pods_way way = pods_way(cluster, from, to, &type);

	if (from == to)
		snprintf(text, WAY_BYTES, "X");
	else if (way == PODS_P2P)
		snprintf(text, WAY_BYTES, "%s", path_name(type));
	else if (way == PODS_SHM)
		snprintf(text, WAY_BYTES, "SHM");
	else if (reach->is_tcp)
		snprintf(text, WAY_BYTES, "TCP");
	else
		snprintf(text, WAY_BYTES, "%s", way == PODS_NET_GDR ? "GDR" : "NET");
}

/* The value of a variable of the ranks' container; NULL. */
static const char *variable(const struct pod_set *set, const char *name)
{
	const struct node *list = node_get(set->container, "env");

	for (uint32_t i = 0; list && list->kind == NODE_LIST && i < list->count; i++)
		if (node_is(node_get(list->items[i], "name"), name))
			return node_text(node_get(list->items[i], "value"));
	return NULL;
}

/* What the manifest's own variables change. */
static void apply_variables(struct reach *reach)
{
	struct topo_rules *wanted = &reach->job.args.rules;
	const char *level = variable(reach->set, "NCCL_P2P_LEVEL");
	const char *disable = variable(reach->set, "NCCL_P2P_DISABLE");
	enum path_type type;

	if (level && path_named(level, &type))
		wanted->p2p_level = (int)type;
	if (disable && !strcmp(disable, "1"))
		wanted->p2p_level = PATH_LOC;
	disable = variable(reach->set, "NCCL_SHM_DISABLE");
	if (disable && !strcmp(disable, "1"))
		wanted->shm_disable = true;
	level = variable(reach->set, "NCCL_NET_GDR_LEVEL");
	if (level && path_named(level, &type))
		wanted->gdr_level = (int)type;
}

/* How many of the pods fit on a machine, and so on how many machines they are. */
static bool place(struct reach *reach)
{
	const struct pod_set *set = reach->set;
	const struct machine_kind *machine = set->machine;
	int64_t pods = work_rank_pods(reach->work);
	int64_t per_node = set->gpus ? machine->gpus / set->gpus : 0;

	if (set->efa && machine->efa > 0 && machine->efa / set->efa < per_node)
		per_node = machine->efa / set->efa;
	if (per_node < 1 || pods < 1 || pods > INT32_MAX / 1024)
		return false;
	if (per_node > pods)
		per_node = pods;
	reach->pods = (uint32_t)pods;
	reach->per_node = (uint32_t)per_node;
	reach->nodes = (uint32_t)((pods + per_node - 1) / per_node);
	reach->ranks = (uint32_t)(pods * set->gpus);
	reach->is_tcp = !set->efa && !set->has_rdma;
	return reach->nodes <= HOSTS_MAX;
}

static uint32_t nics_per_pod(const struct reach *reach)
{
	const struct instance_info *info = instance_find(reach->set->machine->name);
	int64_t all = reach->set->machine->efa;

	if (!reach->set->efa || all < 1 || !info)
		return 0;
	return (uint32_t)((reach->set->efa * info->net_count + all - 1) / all);
}

static enum err decide_pods(struct reach *reach)
{
	char *name = (char *)reach->set->machine->name;
	struct graph_args args = {.pods = reach->per_node,
		.gpus_per_pod = (uint32_t)reach->set->gpus,
		.nics_per_pod = nics_per_pod(reach)};
	enum err e;

	graph_job_init(&reach->job);
	apply_variables(reach);
	reach->job.args.host_count = reach->nodes;
	e = graph_job_load(&reach->job, 1, &name);
	if (!e)
		e = pods_compare(&reach->job, &args, &reach->answer);
	if (e)
		return e;
	/* The comparison ends with the machine whole; the pairs are those of the pods. */
	reach->job.args.pods = args.pods;
	reach->job.args.gpus_per_pod = args.gpus_per_pod;
	reach->job.args.nets_per_pod = args.nics_per_pod;
	return graph_job_run(&reach->job);
}

/* One kind of way, and between how many pairs. */
struct way_count {
	char text[WAY_BYTES];
	uint32_t pairs;
};

static uint32_t count_ways(const struct reach *reach, struct way_count ways[WAYS_MAX])
{
	uint32_t count = 0;

	for (uint32_t a = 0; a < reach->ranks; a++)
		for (uint32_t b = a + 1; b < reach->ranks; b++) {
			char text[WAY_BYTES];
			uint32_t i = 0;

			way_text(reach, (int)a, (int)b, text);
			while (i < count && strcmp(ways[i].text, text) != 0)
				i++;
			if (i == WAYS_MAX)
				continue;
			if (i == count) {
				ways[count].pairs = 0;
				memcpy(ways[count++].text, text, sizeof(text));
			}
			ways[i].pairs++;
		}
	return count;
}

static const char *meaning(const char *way)
{
	if (!strcmp(way, "GDR"))
		return "network, GPUDirect RDMA";
	if (!strcmp(way, "NET"))
		return "network, through host memory";
	if (!strcmp(way, "TCP"))
		return "TCP sockets, through host memory";
	if (!strcmp(way, "SHM"))
		return "shared memory of the host";
	if (!strcmp(way, "NVL"))
		return "peer-to-peer by NVLink";
	return "peer-to-peer by PCIe";
}

static void print_matrix(const struct reach *reach)
{
	printf("        ");
	for (uint32_t b = 0; b < reach->ranks; b++)
		printf(" %4u", b);
	putchar('\n');
	for (uint32_t a = 0; a < reach->ranks; a++) {
		printf("  rank %2u", a);
		for (uint32_t b = 0; b < reach->ranks; b++) {
			char text[WAY_BYTES];

			way_text(reach, (int)a, (int)b, text);
			printf(" %4s", text);
		}
		putchar('\n');
	}
}

static void print_price(const struct reach *reach)
{
	const struct pods_answer *answer = &reach->answer;

	if (reach->is_tcp) {
		if (reach->pods > 1)
			printf("  Between pods there is TCP only: no network device is "
			       "asked "
			       "for.\n");
		return;
	}
	if (reach->per_node < 2)
		return;
	if (answer->slowdown > 1.05)
		printf("  One pod per machine would make large all-reduces %.1f times "
		       "faster: "
		       "%.1f instead of %.1f GB/s.\n",
			answer->slowdown, pods_real_gbps(&answer->whole),
			pods_real_gbps(&answer->split));
	else
		printf("  One pod per machine would not make large all-reduces faster: "
		       "%.1f "
		       "and %.1f GB/s.\n",
			pods_real_gbps(&answer->whole), pods_real_gbps(&answer->split));
}

static void print_reach(const struct reach *reach)
{
	struct way_count ways[WAYS_MAX];
	uint32_t count = count_ways(reach, ways);

	printf("What NCCL will see of %s: %u rank%s in %u pod%s on %u %s\n",
		*reach->work->name ? reach->work->name : "the job", reach->ranks,
		reach->ranks == 1 ? "" : "s", reach->pods, reach->pods == 1 ? "" : "s",
		reach->nodes, reach->set->machine->name);
	for (uint32_t i = 0; i < count; i++)
		printf("  %6u pair%s %-4s %s\n", ways[i].pairs,
			ways[i].pairs == 1 ? " " : "s", ways[i].text,
			meaning(ways[i].text));
	if (reach->ranks > 1 && reach->ranks <= DRAWN_MAX)
		print_matrix(reach);
	print_price(reach);
	putchar('\n');
}

static json_t *matrix_json(const struct reach *reach)
{
	json_t *rows = json_array();

	for (uint32_t a = 0; a < reach->ranks; a++) {
		json_t *row = json_array();

		for (uint32_t b = 0; b < reach->ranks; b++) {
			char text[WAY_BYTES];

			way_text(reach, (int)a, (int)b, text);
			json_array_append_new(row, json_string(text));
		}
		json_array_append_new(rows, row);
	}
	return rows;
}

static json_t *as_json(const struct reach *reach)
{
	struct way_count ways[WAYS_MAX];
	uint32_t count = count_ways(reach, ways);
	json_t *pairs = json_object(), *top;

	for (uint32_t i = 0; i < count; i++)
		json_object_set_new(
			pairs, ways[i].text, json_integer((json_int_t)ways[i].pairs));
	top = json_pack("{s:s,s:s,s:i,s:i,s:i,s:o,s:f,s:f,s:f}", "name",
		reach->work->name, "machine", reach->set->machine->name, "ranks",
		(int)reach->ranks, "pods", (int)reach->pods, "machines",
		(int)reach->nodes, "pairs", pairs, "slowdown", reach->answer.slowdown,
		"busGBpsWhole", pods_real_gbps(&reach->answer.whole), "busGBps",
		pods_real_gbps(&reach->answer.split));
	if (top && reach->ranks <= LISTED_MAX)
		json_object_set_new(top, "matrix", matrix_json(reach));
	return top;
}

/* Of one document; into `list`, or printed where that is NULL. */
static void look(const struct check_options *options, const struct check_result *result,
	struct node *root, json_t *list)
{
	struct work *work = malloc(sizeof(*work));
	struct reach *reach = calloc(1, sizeof(*reach));

	if (work && reach) {
		work_read(&result->file, root, options->machine, work);
		reach->work = work;
		reach->set = work_main_set(work);
		if (reach->set && reach->set->machine && work->kind != WORK_DAEMONSET &&
			work->kind != WORK_RUNTIME && place(reach) &&
			!decide_pods(reach)) {
			if (list)
				json_array_append_new(list, as_json(reach));
			else
				print_reach(reach);
		}
		graph_job_fini(&reach->job);
	}
	free(reach);
	free(work);
}

static void look_all(const struct check_options *options,
	const struct check_result *result, json_t *list)
{
	struct object_walk walk = {0};
	struct node *root;

	while ((root = work_next(&result->file, &walk)))
		look(options, result, root, list);
}

void reach_text(const struct check_options *options, const struct check_result *result)
{
	look_all(options, result, NULL);
}

void reach_json(const struct check_options *options, const struct check_result *result,
	json_t *list)
{
	look_all(options, result, list);
}
