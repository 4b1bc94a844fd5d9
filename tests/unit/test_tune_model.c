/* The model says what NCCL 2.30.7 says: every latency, bandwidth and choice of the
 * captured machines. One line per machine, and one per difference. */
#include "tune/model.h"

#include <dirent.h>
#include <jansson.h>
#include <math.h>

#include "base/dtype.h"
#include "test.h"

enum { FILES_MAX = 4096, PATH_BYTES = 1024 };

static const char *const path_names[PATH_TYPES] = {"LOC", "NVL", "NVB", "C2C", "PIX",
	"PXB", "P2C", "PXN", "PHB", "SYS", "NET", "DIS"};

struct tally {
	const char *name;
	int equal, different;
};

static int whole(const json_t *object, const char *key)
{
	return (int)json_integer_value(json_object_get(object, key));
}

static float number(const json_t *object, const char *key)
{
	return (float)json_number_value(json_object_get(object, key));
}

static enum path_type path_type(const json_t *graph, const char *key)
{
	const char *name = json_string_value(json_object_get(graph, key));

	for (int i = 0; name && i < PATH_TYPES; i++)
		if (!strcmp(name, path_names[i]))
			return (enum path_type)i;
	return PATH_LOC;
}

static void graph_fill(const json_t *graphs, const char *name, struct graph_info *info)
{
	const json_t *graph = json_object_get(graphs, name);

	/* a graph that was not searched, or only for information, is not NCCL's */
	if (!graph || (json_object_get(graph, "note")))
		return;
	*info = (struct graph_info){
		.pattern = (enum graph_pattern)whole(graph, "pattern"),
		.channel_count = whole(graph, "nChannels"),
		.cross_nic = whole(graph, "crossNic"),
		.same_channels = whole(graph, "sameChannels"),
		.bw_intra = number(graph, "speedIntra"),
		.bw_inter = number(graph, "speedInter"),
		.type_intra = path_type(graph, "typeIntra"),
		.type_inter = path_type(graph, "typeInter"),
		.latency_inter = number(graph, "latencyInter")};
}

/* The first GPUs of a graph's channels, one bit each. */
static uint64_t heads(const json_t *graphs, const char *name)
{
	const json_t *channels = json_object_get(
		json_object_get(graphs, name), "channels");
	uint64_t mask = 0;

	for (size_t i = 0; i < json_array_size(channels); i++) {
		const json_t *gpus = json_object_get(json_array_get(channels, i), "gpus");
		long long rank = json_integer_value(json_array_get(gpus, 0));

		mask |= (uint64_t)1 << (rank & 63);
	}
	return mask;
}

/* Ranks of the smallest and the largest node. */
static void local_ranks_fill(const json_t *comm, struct cluster *cluster)
{
	const json_t *nodes = json_object_get(comm, "rankToNode");
	int *count = calloc((size_t)cluster->node_count, sizeof(*count));

	TRUE(count);
	for (size_t i = 0; i < json_array_size(nodes); i++)
		count[json_integer_value(json_array_get(nodes, i))]++;
	cluster->min_local_ranks = cluster->max_local_ranks = count[0];
	for (int i = 1; i < cluster->node_count; i++) {
		if (count[i] < cluster->min_local_ranks)
			cluster->min_local_ranks = count[i];
		if (count[i] > cluster->max_local_ranks)
			cluster->max_local_ranks = count[i];
	}
	free(count);
}

static bool has_switch(const json_t *system)
{
	const json_t *links = json_object_get(system, "links");

	for (size_t i = 0; i < json_array_size(links); i++) {
		const char *from = json_string_value(
			json_array_get(json_array_get(links, i), 0));

		if (from && !strncmp(from, "NVS/", 4))
			return true;
	}
	return false;
}

static void cluster_fill(const json_t *root, struct cluster *c)
{
	const json_t *comm = json_object_get(root, "comm");
	const json_t *graphs = json_object_get(root, "graphs");
	uint64_t direct = heads(graphs, "collnetDirect");
	uint64_t used;

	*c = (struct cluster){.rank_count = whole(comm, "nRanks"),
		.node_count = whole(comm, "nNodes"),
		.local_ranks = whole(comm, "localRanks"),
		.channel_count = whole(comm, "nChannels"),
		.coll_channels = whole(comm, "collChannels"),
		.nvls_channels = whole(comm, "nvlsChannels"),
		.nvls_support = whole(comm, "nvlsSupport"),
		.collnet_enable = whole(comm, "collnetEnable"),
		.min_sm = whole(comm, "minCompCap"),
		.max_sm = whole(comm, "maxCompCap"),
		.max_tree_pattern = whole(comm, "maxTreePattern"),
		.cpu_arch = whole(comm, "cpuArch"),
		.cpu_vendor = whole(comm, "cpuVendor"),
		.nvs_count = has_switch(json_object_get(root, "system"))};
	local_ranks_fill(comm, c);
	graph_fill(graphs, "tree", &c->info[ALGO_TREE]);
	graph_fill(graphs, "ring", &c->info[ALGO_RING]);
	graph_fill(graphs, "collnetDirect", &c->info[ALGO_COLLNET_DIRECT]);
	graph_fill(graphs, "collnetChain", &c->info[ALGO_COLLNET_CHAIN]);
	graph_fill(graphs, "nvls", &c->info[ALGO_NVLS]);
	c->info[ALGO_NVLS_TREE] = c->info[ALGO_NVLS];
	c->info[ALGO_PAT] = c->info[ALGO_TREE];
	used = c->nvls_support ? heads(graphs, "nvls") : direct;
	c->collnet_heads = __builtin_popcountll(used);
	c->collnet_direct_heads = __builtin_popcountll(direct);
	c->collnet_chain = (heads(graphs, "collnetChain") & ~used) == 0;
}

static bool near(double a, double b)
{
	return fabs(a - b) <= 1e-3 * fabs(b) + 1e-9;
}

static void compare(struct tally *tally, bool equal, const char *what, double a, double b)
{
	if (equal) {
		tally->equal++;
		return;
	}
	tally->different++;
	printf("  %s: %s: %.9g is not %.9g\n", tally->name, what, a, b);
}

static void table_compare(
	const json_t *tuning, const struct model *model, struct tally *tally)
{
	for (int i = 0; i < MODEL_FUNCS * ALGO_COUNT * PROTO_COUNT; i++) {
		int f = i / PROTO_COUNT / ALGO_COUNT, a = i / PROTO_COUNT % ALGO_COUNT;
		int p = i % PROTO_COUNT;
		const json_t *row = json_object_get(
			json_object_get(tuning, model_func_name((enum model_func)f)),
			algo_name((enum algo)a));
		const json_t *cell = json_object_get(row, proto_name((enum proto)p));
		double lat = number(cell, "lat"), bw = number(cell, "bw");
		char what[128];

		snprintf(what, sizeof(what), "%s %s %s",
			model_func_name((enum model_func)f), algo_name((enum algo)a),
			proto_name((enum proto)p));
		TRUE(cell);
		compare(tally, near(model->latency[f][a][p], lat), what,
			model->latency[f][a][p], lat);
		compare(tally, near(model->bandwidth[f][a][p], bw), what,
			model->bandwidth[f][a][p], bw);
	}
	for (int i = 0; i < ALGO_COUNT * PROTO_COUNT; i++) {
		int a = i / PROTO_COUNT, p = i % PROTO_COUNT;
		const json_t *row = json_object_get(
			json_object_get(tuning, "maxThreads"), algo_name((enum algo)a));
		int threads = (int)json_integer_value(json_array_get(row, (size_t)p));

		compare(tally, threads == model->max_threads[a][p], "threads",
			model->max_threads[a][p], threads);
	}
}

static void choice_compare(const json_t *entry, const struct model *model,
	struct model_call *call, struct tally *tally)
{
	const char *algo = json_string_value(json_object_get(entry, "algo"));
	const char *proto = json_string_value(json_object_get(entry, "proto"));
	struct model_choice choice;
	char what[128];

	call->bytes = (uint64_t)json_integer_value(json_object_get(entry, "size"));
	snprintf(what, sizeof(what), "%s %llu", model_func_name(call->func),
		(unsigned long long)call->bytes);
	call->bytes = model_round(model, call);
	if (!call->bytes || !algo) {
		compare(tally, !call->bytes && !algo, what, (double)call->bytes, !!algo);
		return;
	}
	EQ(model_choose(model, call, &choice), OK);
	snprintf(what + strlen(what), sizeof(what) - strlen(what), " %s %s, not %s %s",
		algo_name(choice.algo), proto_name(choice.proto), algo, proto);
	compare(tally,
		!strcmp(algo, algo_name(choice.algo)) &&
			!strcmp(proto, proto_name(choice.proto)),
		what, choice.time_us, number(entry, "timeUs"));
	compare(tally, choice.channels == whole(entry, "nChannels"), what,
		choice.channels, whole(entry, "nChannels"));
	compare(tally, choice.channels_used == whole(entry, "channelsUsed"), what,
		choice.channels_used, whole(entry, "channelsUsed"));
	compare(tally, choice.threads == whole(entry, "nThreads"), what, choice.threads,
		whole(entry, "nThreads"));
	compare(tally, near(choice.time_us, number(entry, "timeUs")), what,
		choice.time_us, number(entry, "timeUs"));
}

static void choices_compare(
	const json_t *choices, const struct model *model, struct tally *tally)
{
	for (int f = 0; f < MODEL_FUNCS; f++) {
		const json_t *list = json_object_get(
			choices, model_func_name((enum model_func)f));
		struct model_call call = {.func = (enum model_func)f,
			.pipe_ops = 1,
			.type = DTYPE_FLOAT32,
			.op = REDOP_SUM};

		TRUE(json_array_size(list) > 0);
		for (size_t i = 0; i < json_array_size(list); i++)
			choice_compare(json_array_get(list, i), model, &call, tally);
	}
}

static struct tally file_compare(const char *folder, const char *name)
{
	struct tally tally = {name, 0, 0};
	struct model_rules rules;
	struct cluster cluster;
	struct model model;
	char path[2 * PATH_BYTES];
	json_t *root;

	snprintf(path, sizeof(path), "%s/%s", folder, name);
	root = json_load_file(path, 0, NULL);
	TRUE(root);
	cluster_fill(root, &cluster);
	model_rules_default(&rules);
	EQ(model_make(&cluster, &rules, &model), OK);
	table_compare(json_object_get(root, "tuning"), &model, &tally);
	choices_compare(json_object_get(root, "choices"), &model, &tally);
	printf("%-60s %5d equal, %d different\n", name, tally.equal, tally.different);
	json_decref(root);
	return tally;
}

static int is_json(const struct dirent *entry)
{
	size_t length = strlen(entry->d_name);

	return length > 5 && !strcmp(entry->d_name + length - 5, ".json");
}

int main(int argc, char **argv)
{
	const char *data = getenv("WEFT_DATA");
	struct dirent **entries;
	struct tally all = {0};
	char folder[PATH_BYTES];
	int count;

	snprintf(folder, sizeof(folder), "%s/nccl-decisions",
		data ? data : WEFT_SHARED_DATA);
	count = scandir(folder, &entries, is_json, alphasort);
	if (count <= 0)
		return TEST_SKIP;
	for (int i = 0; i < count; i++) {
		if (argc < 2 || strstr(entries[i]->d_name, argv[1])) {
			struct tally one = file_compare(folder, entries[i]->d_name);

			all.equal += one.equal;
			all.different += one.different;
		}
		free(entries[i]);
	}
	free(entries);
	printf("%d files: %d equal, %d different\n", count, all.equal, all.different);
	EQ(all.different, 0);
	return 0;
}
