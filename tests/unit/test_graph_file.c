/* Graph files: what NCCL wrote and writes is read, what does not fit is refused with its
 * line, and what we write comes back. */
#include "graph/graph.h"

#include <unistd.h>

#include "test.h"

enum { GPUS = 4, NETS = 12 };

/* Four GPUs whose ranks and indices go opposite ways, and twelve NICs. */
static struct topo *make_topo(bool is_inter)
{
	struct topo *topo = calloc(1, sizeof(*topo));
	struct topo_node *nodes = calloc(GPUS + NETS, sizeof(*nodes));

	for (uint32_t g = 0; g < GPUS; g++) {
		nodes[g].kind = TOPO_GPU;
		nodes[g].id = 0x14000 + g;
		nodes[g].gpu.dev = (int)g;
		nodes[g].gpu.rank = GPUS - 1 - (int)g;
		topo->nodes[TOPO_GPU][g] = &nodes[g];
	}
	for (uint32_t n = 0; n < NETS; n++) {
		nodes[GPUS + n].kind = TOPO_NET;
		nodes[GPUS + n].id = n;
		topo->nodes[TOPO_NET][n] = &nodes[GPUS + n];
	}
	topo->counts[TOPO_GPU] = GPUS;
	topo->counts[TOPO_NET] = is_inter ? NETS : 0;
	topo->is_inter = is_inter;
	topo->rules.cross_nic = 2;
	return topo;
}

static void free_topo(struct topo *topo)
{
	free(topo->nodes[TOPO_GPU][0]);
	free(topo);
}

#define HEAD "<graphs version='1'>\n<graph id='0' pattern='4' crossnic='0' nchannels='1' "
#define TYPES                                                                            \
	"speedintra='20' speedinter='17.5' typeintra='NVL' typeinter='PIX' "             \
	"samechannels='1'>\n"
#define RING HEAD TYPES "<channel>\n"
#define DEVS "<gpu dev='0'/><gpu dev='0x1'/><gpu dev='2'/><gpu dev='0x3'/>"
#define TAIL "\n</channel></graph></graphs>"

static enum err read_text(
	const char *text, const struct topo *topo, struct graph_set *set, bool *has)
{
	struct xml_node *tree;
	enum err e;

	EQ(xml_parse(text, strlen(text), "g.xml", "graphs", &tree), OK);
	e = graph_file_parse(tree, topo, set, has);
	xml_free(tree);
	return e;
}

static struct graph_set set, other;
static bool has[GRAPH_COUNT];

static void refused(const char *text, const struct topo *topo, const char *sentence)
{
	memset(&set, 0x55, sizeof(set));
	memset(has, 1, sizeof(has));
	other = set;
	EQ(read_text(text, topo, &set, has), ERR_USAGE);
	if (!strstr(err_last(), sentence))
		EQ_STR(err_last(), sentence);
	EQ(memcmp(&set, &other, sizeof(set)), 0); /* untouched */
	TRUE(has[0]);
}

static void test_read(void)
{
	struct topo *topo = make_topo(false);
	const struct graph *ring = &set.graphs[GRAPH_RING];

	EQ(read_text(RING DEVS TAIL, topo, &set, has), OK);
	TRUE(has[GRAPH_RING] && !has[GRAPH_TREE] && !has[GRAPH_NVLS]);
	EQ(ring->pattern, PATTERN_RING);
	EQ(ring->channel_count, 1);
	EQ(ring->gpu_count, GPUS);
	TRUE(ring->bw_intra == 20 && ring->bw_inter == 17.5f && ring->latency_inter == 0);
	EQ(ring->type_intra, PATH_NVL);
	EQ(ring->type_inter, PATH_PIX);
	TRUE(ring->same_channels && !ring->collnet);
	for (int g = 0; g < GPUS; g++)
		EQ(ring->intra[0][g], GPUS - 1 - g);
	/* The rank is believed first; nets are of no use without other hosts. */
	EQ(read_text(RING
		   "<net dev='0x77'/><gpu dev='0' rank='0'/><gpu dev='0' rank='2'/>"
		   "<x/><gpu dev='1' rank='1'/><gpu dev='0'/><net dev='1'/>" TAIL,
		   topo, &set, has),
		OK);
	EQ(ring->intra[0][0], 0);
	EQ(ring->intra[0][1], 2);
	EQ(ring->intra[0][3], 3);
	/* No channels: to be searched. Graphs nobody knows: nothing. */
	EQ(read_text("<graphs version='1'><graph id='1' pattern='1' crossnic='0' "
		     "nchannels='0' " TYPES "</graph><graph id='9'/></graphs>",
		   topo, &set, has),
		OK);
	TRUE(!has[GRAPH_RING] && !has[GRAPH_TREE]);
	free_topo(topo);
}

static void test_nets(void)
{
	struct topo *topo = make_topo(true);
	const struct graph *ring = &set.graphs[GRAPH_RING];

	EQ(read_text(
		   RING "<net dev='0xb'/>" DEVS "<net dev='11'/>" TAIL, topo, &set, has),
		OK);
	EQ(ring->inter[0][0], 11);
	EQ(ring->inter[0][1], 11); /* 0x11 is nobody's: an old file's decimal */
	EQ(read_text(RING DEVS TAIL, topo, &set, has), OK);
	EQ(ring->inter[0][0], 0);
	refused(RING "<net dev='12'/>" DEVS "<net dev='0'/>" TAIL, topo,
		"graphs:4: this machine has no net with dev \"12\"");
	refused(RING "<net dev='0'/>" DEVS TAIL, topo,
		"graphs:3: a channel with one <net>");
	refused(RING "<net dev='0'/><net/><net dev='0'/>" DEVS TAIL, topo,
		"graphs:4: this machine has no net with dev \"\"");
	refused(RING "<net dev='0'/><net dev='0'/><net dev='0'/>" DEVS TAIL, topo,
		"graphs:4: one <net> too many");
	topo->counts[TOPO_NET] = 0;
	refused(RING DEVS TAIL, topo, "graphs:3: a channel without <net>");
	/* NCCL_CROSS_NIC=0 forbids this one: as if it were not there. */
	topo->rules.cross_nic = 0;
	EQ(read_text("<graphs version='1'><graph id='0' crossnic='1'/></graphs>", topo,
		   &set, has),
		OK);
	TRUE(!has[GRAPH_RING]);
	free_topo(topo);
}

static void test_nvls(void)
{
	struct topo *topo = make_topo(false);

	EQ(read_text("<graphs version='1'><graph id='3' pattern='5' crossnic='0' "
		     "nchannels='2' " TYPES "<channel><gpu dev='1'/></channel>"
		     "<channel><gpu dev='0'/></channel></graph></graphs>",
		   topo, &set, has),
		OK);
	TRUE(has[GRAPH_NVLS] && !has[GRAPH_RING]);
	EQ(set.graphs[GRAPH_NVLS].intra[0][0], 2);
	EQ(set.graphs[GRAPH_NVLS].intra[1][0], 3);
	refused("<graphs version='1'><graph id='3' pattern='5' crossnic='0' "
		"nchannels='1' " TYPES "<channel/></graph></graphs>",
		topo, "graphs:2: a channel of 0 GPUs");
	free_topo(topo);
}

static void test_refused(void)
{
	struct topo *topo = make_topo(false);

	refused(RING "<gpu dev='0'/><gpu dev='1'/><gpu dev='2'/>" TAIL, topo,
		"graphs:3: a channel of 3 GPUs, but 4 take part");
	refused(RING DEVS "<gpu dev='0'/>" TAIL, topo, "graphs:4: one <gpu> too many");
	refused(RING "<gpu dev='0'/><gpu dev='1'/><gpu dev='2'/><gpu dev='2'/>" TAIL,
		topo, "graphs:3: a channel visits rank 1 twice");
	refused(RING "\n<gpu dev='4'/>" TAIL, topo,
		"graphs:5: this machine has no gpu with dev \"4\"");
	refused(RING "<gpu dev='x'/>" TAIL, topo,
		"this machine has no gpu with dev \"x\"");
	refused(RING "<gpu dev='0' rank='4'/>" TAIL, topo,
		"graphs:4: rank 4 is not here");
	refused(RING "<gpu dev='0' rank='-1'/>" TAIL, topo, "rank of <gpu> is -1");
	refused("<graphs version='1'><graph/></graphs>", topo, "needs a number as id");
	refused("<graphs version='1'><graph id='-1'/></graphs>", topo,
		"id of <graph> is -1");
	refused("<graphs version='1'>\n<graph id='0' pattern='3' crossnic='0' "
		"nchannels='0' " TYPES "</graph></graphs>",
		topo, "graphs:2: graph 0 cannot have pattern 3");
	refused("<graphs version='1'><graph id='1' pattern='7' crossnic='0' "
		"nchannels='0' " TYPES "</graph></graphs>",
		topo, "pattern of <graph> is 7; it must be 1 to 6");
	refused("<graphs version='1'><graph id='0' pattern='4' crossnic='0' "
		"nchannels='65' " TYPES "</graph></graphs>",
		topo, "nchannels of <graph> is 65; it must be 0 to 64");
	refused("<graphs version='1'><graph id='0' pattern='4' crossnic='0' "
		"nchannels='2' " TYPES "<channel>" DEVS "</channel></graph></graphs>",
		topo, "nchannels is 2, but there are 1");
	refused(HEAD "speedintra='-1' speedinter='1' typeintra='NVL' typeinter='PIX' "
		     "samechannels='1'><channel>" DEVS TAIL,
		topo, "speedintra of <graph> is -1; it must be a number");
	refused(HEAD "speedintra='1' typeintra='NVL' typeinter='PIX' "
		     "samechannels='1'><channel>" DEVS TAIL,
		topo, "speedinter of <graph> is missing");
	refused(HEAD "speedintra='1' speedinter='nan' typeintra='NVL' typeinter='PIX' "
		     "samechannels='1'><channel>" DEVS TAIL,
		topo, "speedinter of <graph> is nan");
	refused(HEAD "speedintra='1' speedinter='1e30' typeintra='NVL' typeinter='PIX' "
		     "samechannels='1'><channel>" DEVS TAIL,
		topo, "speedinter of <graph> is 1e30");
	refused(HEAD "speedintra='1' speedinter='1' typeintra='nvl' typeinter='PIX' "
		     "samechannels='1'><channel>" DEVS TAIL,
		topo, "typeintra of <graph> is nvl; it must be a path type");
	topo->counts[TOPO_GPU] = TOPO_GPUS_MAX + 1;
	refused(RING DEVS TAIL, topo, "129 GPUs in one domain");
	free_topo(topo);
}

static void fill(struct graph *graph, enum graph_id id, enum graph_pattern pattern)
{
	*graph = (struct graph){.id = id,
		.pattern = pattern,
		.channel_count = 2 * (id < 4),
		.bw_intra = 22.5f,
		.bw_inter = 0.24f,
		.latency_inter = 5.5f,
		.type_intra = PATH_NVB,
		.type_inter = PATH_PXN,
		.same_channels = id & 1,
		.gpu_count = GPUS,
		.cross_nic = 2 * (id == 0)};
	for (int c = 0; c < graph->channel_count; c++) {
		for (int g = 0; g < (id == GRAPH_NVLS ? 1 : GPUS); g++)
			graph->intra[c][g] = (g + c) % GPUS;
		graph->inter[c][1] = 11;
	}
}

static char *slurp(const char *path)
{
	static char text[16384];
	FILE *file = fopen(path, "r");

	text[fread(text, 1, sizeof(text) - 1, file)] = 0;
	fclose(file);
	return text;
}

static void test_write(void)
{
	char path[] = "/tmp/test_graph_file.XXXXXX";
	struct topo *topo = make_topo(true);
	char *text, *first;

	close(mkstemp(path));
	fill(&set.graphs[GRAPH_RING], GRAPH_RING, PATTERN_RING);
	fill(&set.graphs[GRAPH_TREE], GRAPH_TREE, PATTERN_BALANCED_TREE);
	fill(&set.graphs[GRAPH_COLLNET_CHAIN], GRAPH_COLLNET_CHAIN, PATTERN_TREE);
	fill(&set.graphs[GRAPH_NVLS], GRAPH_NVLS, PATTERN_NVLS);
	fill(&set.graphs[GRAPH_COLLNET_DIRECT], GRAPH_COLLNET_DIRECT,
		PATTERN_COLLNET_DIRECT);
	topo->nodes[TOPO_GPU][1]->id |= 1ull << 56; /* one is on another host */
	EQ(graph_file_write(path, topo, &set), OK);
	first = strdup(slurp(path));
	TRUE(strstr(first,
		     "<graphs version=\"1\">\n"
		     "  <graph id=\"0\" pattern=\"4\" crossnic=\"2\" nchannels=\"2\" "
		     "speedintra=\"22.5\" speedinter=\"0.24\" latencyinter=\"5.5\" "
		     "typeintra=\"NVB\" typeinter=\"PXN\" samechannels=\"0\">\n"
		     "    <channel>\n"
		     "      <net dev=\"0\"/>\n"
		     "      <gpu dev=\"0x3\" rank=\"0\"/>\n"
		     "      <gpu dev=\"0x2\" rank=\"1\"/>\n"
		     "      <gpu dev=\"0x100000000000001\" rank=\"2\"/>\n"
		     "      <gpu dev=\"0\" rank=\"3\"/>\n"
		     "      <net dev=\"0xb\"/>\n"
		     "    </channel>\n") == first);
	TRUE(strstr(first, "id=\"1\"") < strstr(first, "id=\"4\""));
	TRUE(strstr(first, "id=\"4\"") < strstr(first, "id=\"2\""));
	TRUE(strstr(first, "id=\"2\"") < strstr(first, "id=\"3\""));
	EQ(graph_file_read(path, topo, &other, has), OK);
	for (int id = 0; id < GRAPH_COUNT; id++)
		EQ(has[id], id != GRAPH_COLLNET_DIRECT);
	other.graphs[GRAPH_COLLNET_DIRECT] = set.graphs[GRAPH_COLLNET_DIRECT];
	EQ(graph_file_write(path, topo, &other), OK);
	text = slurp(path);
	EQ_STR(text, first);
	free(first);
	set.graphs[GRAPH_RING].intra[0][0] = 9;
	EQ(graph_file_write(path, topo, &set), ERR_INTERNAL);
	EQ(unlink(path), 0);
	EQ(graph_file_read(path, topo, &other, has), ERR_SYSTEM);
	free_topo(topo);
}

int main(void)
{
	test_read();
	test_nets();
	test_nvls();
	test_refused();
	test_write();
	return 0;
}
