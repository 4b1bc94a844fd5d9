/* Graphs: on every machine of the data folder the search finds what NCCL found. */
#include <dirent.h>
#include <jansson.h>
#include <math.h>
#include <time.h>

#include "graph/graph.h"
#include "test.h"
#include "topo/fuse.h"

enum { HOSTS_MAX = 64, DEVS_MAX = 32, FILES_MAX = 1024 };

static const char *const graph_names[GRAPH_COUNT] = {
	[GRAPH_RING] = "ring",
	[GRAPH_TREE] = "tree",
	[GRAPH_COLLNET_CHAIN] = "collnetChain",
	[GRAPH_NVLS] = "nvls",
	[GRAPH_COLLNET_DIRECT] = "collnetDirect",
};

struct tally {
	int equal, different;	      /* fields */
	int channels, other_channels; /* channels, and those that go another way */
	double ms;
};

/* One machine file and what is asked of it. */
struct run {
	const char *name;
	json_t *root, *run;
	struct xml_node *machine;
	struct topo *topo;
	struct graph_set set;
	struct tally tally;
};

static int run_int(const struct run *run, const char *key)
{
	return (int)json_integer_value(json_object_get(run->run, key));
}

/* As many equal hosts as share NVLink, laid over each other. */
static struct xml_node *domain_tree(struct run *run, const char *data, int *rank_count)
{
	static int devs[DEVS_MAX];
	struct fuse_host hosts[HOSTS_MAX];
	struct topo_rules rules;
	struct xml_node *tree;
	char path[4096];
	int host_count = run_int(run, "mnnvlHostsPerDomain");

	host_count = host_count > 1 ? host_count : 1;
	TRUE(host_count <= HOSTS_MAX);
	snprintf(path, sizeof(path), "%s/%s", data,
		json_string_value(json_object_get(run->run, "xml")));
	EQ(xml_read(path, "system", &run->machine), OK);
	topo_rules_default(&rules);
	rules.nccl = NCCL_RULES_2_30;
	for (int h = 0; h < host_count; h++)
		hosts[h] = (struct fuse_host){.tree = run->machine,
			.host_hash = (uint64_t)h + 1,
			.devs = devs,
			.dev_count = fuse_devs(run->machine, devs, DEVS_MAX)};
	*rank_count = run_int(run, "machines") * (int)hosts[0].dev_count;
	EQ(fuse_domain(&(struct fuse_args){.hosts = hosts,
			       .host_count = (uint32_t)host_count,
			       .collnet = run_int(run, "collnet"),
			       .merge_nics = run_int(run, "vnicMerge"),
			       .merge_level = rules.merge_level},
		   &tree),
		OK);
	return tree;
}

static void run_build(struct run *run, const char *data)
{
	struct topo_rules rules;
	int rank_count;
	struct xml_node *tree = domain_tree(run, data, &rank_count);

	topo_rules_default(&rules);
	rules.nccl = NCCL_RULES_2_30;
	rules.nvml_p2p_ok = run_int(run, "nvmlP2p");
	EQ(topo_build(tree, 1, NCCL_RULES_2_30, &run->topo), OK);
	EQ(topo_paths(run->topo, &rules), OK);
	EQ(topo_trim(run->topo, 0, rank_count), OK);
	topo_bandwidths(run->topo);
	xml_free(tree);
	xml_free(run->machine);
}

static void note(struct run *run, const char *graph, const char *field, bool is_equal,
	const char *text)
{
	if (is_equal) {
		run->tally.equal++;
		return;
	}
	run->tally.different++;
	printf("  %s: %s.%s: %s\n", run->name, graph, field, text);
}

static void check_number(
	struct run *run, json_t *graph, const char *name, const char *field, double ours)
{
	double theirs = json_number_value(json_object_get(graph, field));
	char text[64];

	snprintf(text, sizeof(text), "%g, NCCL %g", ours, theirs);
	note(run, name, field, fabs(ours - theirs) < 1e-4 * (1 + fabs(theirs)), text);
}

static void check_type(struct run *run, json_t *graph, const char *name,
	const char *field, enum path_type ours)
{
	const char *theirs = json_string_value(json_object_get(graph, field));
	char text[64];

	snprintf(text, sizeof(text), "%s, NCCL %s", path_name(ours), theirs);
	note(run, name, field, !strcmp(path_name(ours), theirs), text);
}

static bool channel_equal(
	const struct run *run, const struct graph *ours, json_t *theirs, int c)
{
	json_t *gpus = json_object_get(theirs, "gpus");
	json_t *nets = json_object_get(theirs, "nets");
	char text[40];

	for (size_t i = 0; i < json_array_size(gpus); i++)
		if (json_integer_value(json_array_get(gpus, i)) != ours->intra[c][i])
			return false;
	for (size_t i = 0; run->topo->is_inter && i < 2; i++) {
		uint64_t id = ours->inter[c][i];
		const char *net = json_string_value(json_array_get(nets, i));

		snprintf(text, sizeof(text), "%x-%llx", topo_system(id),
			(unsigned long long)topo_local(id));
		if (!net || strcmp(text, net) != 0)
			return false;
	}
	return true;
}

static void print_channel(const struct graph *ours, json_t *theirs, int c)
{
	char *text = json_dumps(theirs, JSON_COMPACT);

	printf("    %d: %llx", c, (unsigned long long)ours->inter[c][0]);
	for (int i = 0; i < ours->gpu_count; i++)
		printf(" %d", ours->intra[c][i]);
	printf(" %llx, NCCL %s\n", (unsigned long long)ours->inter[c][1], text);
	free(text);
}

static void check_channels(struct run *run, json_t *graph, const struct graph *ours)
{
	json_t *channels = json_object_get(graph, "channels");

	for (int c = 0; c < ours->channel_count; c++) {
		json_t *theirs = json_array_get(channels, (size_t)c);

		run->tally.channels++;
		if (theirs && channel_equal(run, ours, theirs, c))
			continue;
		run->tally.other_channels++;
		printf("  %s: %s: another way\n", run->name, graph_names[ours->id]);
		if (theirs)
			print_channel(ours, theirs, c);
	}
}

static void check_graph(struct run *run, const struct graph *ours)
{
	const char *name = graph_names[ours->id];
	json_t *graph = json_object_get(json_object_get(run->root, "graphs"), name);

	TRUE(graph);
	check_number(run, graph, name, "pattern", ours->pattern);
	check_number(run, graph, name, "crossNic", ours->cross_nic);
	check_number(run, graph, name, "nChannels", ours->channel_count);
	check_number(run, graph, name, "minChannels", ours->min_channels);
	check_number(run, graph, name, "maxChannels", ours->max_channels);
	check_number(run, graph, name, "speedIntra", ours->bw_intra);
	check_number(run, graph, name, "speedInter", ours->bw_inter);
	check_number(run, graph, name, "latencyInter", ours->latency_inter);
	check_number(run, graph, name, "sameChannels", ours->same_channels);
	check_number(run, graph, name, "nHops", ours->hop_count);
	check_type(run, graph, name, "typeIntra", ours->type_intra);
	check_type(run, graph, name, "typeInter", ours->type_inter);
	check_channels(run, graph, ours);
}

static void check_link(struct run *run, const struct topo_node *from,
	const struct topo_link *link, json_t *theirs)
{
	char a[TOPO_LABEL_MAX], b[TOPO_LABEL_MAX], text[160];
	const char *parts[3] = {"", "", ""};
	float bw = (float)json_number_value(json_array_get(theirs, 3));

	for (size_t i = 0; i < 3 && theirs; i++)
		parts[i] = json_string_value(json_array_get(theirs, i));
	topo_label(from, a);
	topo_label(link->to, b);
	snprintf(text, sizeof(text), "%s %s %s %.9g, NCCL %s %s %s %.9g", a, b,
		link_name(link->type), (double)link->bw, parts[0], parts[1], parts[2],
		(double)bw);
	note(run, "links", "left",
		!strcmp(a, parts[0]) && !strcmp(b, parts[1]) &&
			!strcmp(link_name(link->type), parts[2]) && link->bw == bw,
		text);
}

/* What the search left on the links, to the last bit: every subtraction leaves its trace
 * there, so equal links mean an equal search, step by step. */
static void check_links(struct run *run)
{
	json_t *links = json_object_get(json_object_get(run->root, "system"), "links");
	size_t at = 0;

	for (int kind = 0; kind < TOPO_KINDS; kind++)
		for (uint32_t i = 0; i < run->topo->counts[kind]; i++) {
			const struct topo_node *node = run->topo->nodes[kind][i];

			for (uint32_t l = 0; l < node->link_count; l++, at++)
				check_link(run, node, &node->links[l],
					json_array_get(links, at));
		}
	note(run, "links", "count", at == json_array_size(links), "not as many");
}

/* Whatever was found: all GPUs once in each channel, over NETs that exist. */
static void check_sane(const struct run *run, const struct graph *graph)
{
	for (int c = 0; c < graph->channel_count; c++) {
		bool seen[TOPO_GPUS_MAX] = {0};
		int count = graph->id == GRAPH_NVLS ? 1 : graph->gpu_count;

		for (int i = 0; i < count; i++) {
			int gpu = topo_gpu_of_rank(run->topo, graph->intra[c][i]);

			TRUE(gpu >= 0 && !seen[gpu]);
			seen[gpu] = true;
		}
		for (int i = 0; i < 2 && run->topo->is_inter; i++)
			TRUE(topo_net_of_id(run->topo, graph->inter[c][i]) >= 0);
	}
	for (uint32_t g = 0; g < run->topo->counts[TOPO_GPU]; g++)
		EQ(topo_gpu_at(run->topo, g)->used, 0);
}

static double now_ms(void)
{
	struct timespec time;

	clock_gettime(CLOCK_MONOTONIC, &time);
	return (double)time.tv_sec * 1e3 + (double)time.tv_nsec * 1e-6;
}

static struct tally check_file(const char *data, const char *file)
{
	struct search_options options = {0};
	struct run run = {.name = file};
	json_t *multicast;
	char path[4096];
	double start;

	snprintf(path, sizeof(path), "%s/nccl-decisions/%s", data, file);
	run.root = json_load_file(path, 0, NULL);
	TRUE(run.root);
	run.run = json_object_get(run.root, "run");
	multicast = json_object_get(run.run, "multicast");
	options.no_multicast = !json_integer_value(multicast);
	run_build(&run, data);
	start = now_ms();
	EQ(graph_set_search(run.topo, &options, &run.set), OK);
	run.tally.ms = now_ms() - start;
	for (int g = 0; g < GRAPH_COUNT; g++) {
		check_graph(&run, &run.set.graphs[g]);
		check_sane(&run, &run.set.graphs[g]);
	}
	check_links(&run);
	printf("%-60s fields %d/%d channels %d/%d %.2f ms\n", file, run.tally.equal,
		run.tally.equal + run.tally.different,
		run.tally.channels - run.tally.other_channels, run.tally.channels,
		run.tally.ms);
	topo_free(run.topo);
	json_decref(run.root);
	return run.tally;
}

static int is_json(const struct dirent *entry)
{
	size_t length = strlen(entry->d_name);

	return length > 5 && !strcmp(entry->d_name + length - 5, ".json");
}

/* With no data folder: a graph is asked for nonsense. */
static void check_refusals(void)
{
	static struct topo empty;
	static struct graph graph;
	struct search_options options = {0};

	EQ(graph_search(&empty, &options, &graph), ERR_USAGE);
	empty.counts[TOPO_GPU] = 1;
	EQ(graph_search(&empty, &options, &graph), ERR_ARGUMENT);
	EQ_STR(pattern_name(PATTERN_RING), "RING");
	EQ_STR(pattern_name((enum graph_pattern)99), "UNKNOWN");
}

int main(int argc, char **argv)
{
	const char *data = getenv("WEFT_DATA") ? getenv("WEFT_DATA") : WEFT_SHARED_DATA;
	struct tally all = {0};
	struct dirent **entries;
	char path[4096];
	int count;

	check_refusals();
	snprintf(path, sizeof(path), "%s/nccl-decisions", data);
	count = scandir(path, &entries, is_json, alphasort);
	if (count <= 0)
		return TEST_SKIP;
	for (int i = 0; i < count; i++) {
		if (argc < 2 || strstr(entries[i]->d_name, argv[1])) {
			struct tally one = check_file(data, entries[i]->d_name);

			all.equal += one.equal;
			all.different += one.different;
			all.channels += one.channels;
			all.other_channels += one.other_channels;
		}
		free(entries[i]);
	}
	free(entries);
	printf("fields: %d equal, %d different; channels: %d equal, %d different\n",
		all.equal, all.different, all.channels - all.other_channels,
		all.other_channels);
	EQ(all.different, 0);
	EQ(all.other_channels, 0);
	return 0;
}
