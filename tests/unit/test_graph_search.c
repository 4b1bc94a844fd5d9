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
	int equal, different;		/* fields */
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
	for (int h = 0; h < host_count; h++)
		hosts[h] = (struct fuse_host){run->machine, (uint64_t)h + 1, devs,
			fuse_devs(run->machine, devs, DEVS_MAX)};
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
	rules.nvml_p2p_ok = run_int(run, "nvmlP2p");
	EQ(topo_build(tree, 1, &run->topo), OK);
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

static void check_number(struct run *run, json_t *graph, const char *name,
	const char *field, double ours)
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

static bool channel_equal(const struct run *run, const struct graph *ours, json_t *theirs,
	int c)
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
	char path[4096];
	double start;

	snprintf(path, sizeof(path), "%s/nccl-decisions/%s", data, file);
	run.root = json_load_file(path, 0, NULL);
	TRUE(run.root);
	run.run = json_object_get(run.root, "run");
	run_build(&run, data);
	start = now_ms();
	EQ(graph_set_search(run.topo, &options, &run.set), OK);
	run.tally.ms = now_ms() - start;
	for (int g = 0; g < GRAPH_COUNT; g++)
		check_graph(&run, &run.set.graphs[g]);
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
