/* Predictions: words become sites, the table is sound, more bandwidth is never slower,
 * the same question has the same answer, cases that are wrong are refused. */
#include <math.h>
#include <string.h>

#include "sim/cases.h"
#include "sim/fit.h"
#include "sim/resolve.h"
#include "test.h"

static struct sim_site resolved(
	const char *platform, const char *net, uint32_t nodes, uint32_t gpus)
{
	struct sim_words words = {platform, net, "", nodes, gpus};
	struct sim_site site;

	EQ(sim_resolve(&words, &site), OK);
	return site;
}

static void test_words(void)
{
	struct sim_site site = resolved("p4d.24xlarge", "EFA (4 interfaces)", 2, 16);
	struct sim_words none = {"abacus", "string", "", 1, 1};

	EQ_STR(site.machine, "p4d.24xlarge");
	EQ(site.outer, SIM_EFA_OLD);
	EQ(site.nics, 4);
	site = resolved("p4d.24xlarge", "TCP (no EFA)", 2, 16);
	EQ(site.outer, SIM_ENA);
	EQ(site.nics, 1);
	site = resolved("Nebius H100", "InfiniBand (k8s)", 2, 16);
	EQ_STR(site.machine, "dgx-h100");
	EQ(site.outer, SIM_IB);
	site = resolved("GB200 NVL72", "MNNVL + InfiniBand (2 racks)", 36, 144);
	EQ(site.domain, 18);
	site = resolved("H200 SXM 8-GPU node", "NVLink algo=Ring", 1, 8);
	EQ_STR(site.algo, "ring");
	site = resolved("L40S (Dell R760xa, 2 GPU/pod)", "RoCE (SR-IOV)", 2, 4);
	EQ_STR(site.machine, "pcie-l40s-4gpu");
	site = resolved("H100 PCIe pair with NVLink bridge", "NVLink bridge", 1, 2);
	EQ_STR(site.machine, "pcie-h100-nvbridge-4gpu");
	EQ(site.inner, SIM_NVLINK_BRIDGE);
	site = resolved("AWS p5.48xlarge, k8s", "EFA, 32 interfaces", 2, 16);
	EQ_STR(site.machine, "p5.48xlarge");
	site = resolved("p5.48xlarge-32efa", "EFA", 2, 16);
	EQ_STR(site.machine, "p5.48xlarge-32efa");
	EQ(sim_resolve(&none, &site), ERR_USAGE);
	none.platform = "H100";
	none.nodes = 3;
	none.gpus = 16;
	EQ(sim_resolve(&none, &site), ERR_USAGE);
}

/* One word on the command line: parts of names count, a rack is its trays. */
static void test_named(void)
{
	struct sim_site site = {0};

	EQ(sim_site_named(&site, "gb200-nvl72"), OK);
	EQ_STR(site.machine, "p6e-gb200.36xlarge");
	EQ(site.nodes, 18);
	EQ(site.domain, 18);
	site = (struct sim_site){.nodes = 4, .algo = "tree"};
	EQ(sim_site_named(&site, "a3-highgpu-8g"), OK);
	EQ(site.outer, SIM_TCPX);
	EQ_STR(site.algo, "tree");
	EQ_STR(site.proto, "simple");
	EQ(sim_site_named(&site, "G5"), OK);
	EQ_STR(site.machine, "g5.48xlarge");
	EQ(sim_site_named(&site, "dgx-h1000"), ERR_USAGE);
	EQ(sim_site_named(&site, ""), ERR_USAGE);
}

static uint32_t nets_seen(const struct sim_site *site, int *speed, const char *latency)
{
	struct xml_node *tree;
	uint32_t count = 0;

	EQ(sim_site_tree(site, &tree), OK);
	for (struct xml_node *net = xml_find(tree, "net", NULL); net;
		net = xml_find(tree, "net", net)) {
		*speed = (int)xml_int(net, "speed", 0);
		if (latency)
			EQ_STR(xml_attr(net, "latency"), latency);
		count++;
	}
	xml_free(tree);
	return count;
}

/* What takes no part is not there to decide with; an ENA tells no speed. */
static void test_nets(void)
{
	struct sim_site site = resolved("p4d.24xlarge", "EFA (4 interfaces)", 2, 16);
	int speed = 0;

	EQ(nets_seen(&site, &speed, "75"), 4);
	EQ(speed, 100000);
	site = resolved("p4d.24xlarge", "EFA (1 interface only)", 2, 16);
	EQ(nets_seen(&site, &speed, "75"), 1);
	site = resolved("p4d.24xlarge", "TCP (1 ENI)", 2, 16);
	EQ(nets_seen(&site, &speed, "0"), 1);
	EQ(speed, 10000);
	site = resolved("CoreWeave H100", "InfiniBand, 4 NICs", 2, 16);
	EQ(nets_seen(&site, &speed, NULL), 4);
}

/* Every row names what there is and says what it rests on; all of a method or a class is
 * there before a part of both. */
static void test_table(void)
{
	bool has_root = false;

	TRUE(sim_calib_row_count > 20);
	for (uint32_t i = 0; i < sim_calib_row_count; i++) {
		const struct sim_calib_row *row = &sim_calib_rows[i];
		bool is_all = !strcmp(row->method, "any");

		TRUE(sim_wire_find(row->wire) != SIM_WIRES);
		TRUE(is_all || sim_method_find(row->method) != SIM_METHODS);
		TRUE(row->rows >= 1 && row->sources >= 1 && row->sources <= row->rows);
		TRUE(row->origin && *row->origin);
		for (int p = 0; p < SIM_PARAMS; p++)
			TRUE(row->factor[p] > 0);
		has_root |= is_all && !strcmp(row->wire, "any");
	}
	TRUE(has_root);
}

/* A class without rows of its own has its parent's numbers, says so, and is less sure. */
static void test_kin(void)
{
	static struct sim_calib calib;
	struct sim_params own, kin;

	sim_calib_load(&calib);
	sim_calib_find(
		&calib, SIM_NVLINK_HOPPER, SIM_NVLINK_HOPPER, SIM_RING_SIMPLE, &own);
	sim_calib_find(
		&calib, SIM_NVLINK_AMPERE, SIM_NVLINK_AMPERE, SIM_RING_SIMPLE, &kin);
	EQ(own.steps, 0);
	TRUE(kin.steps > 0);
	TRUE(kin.rows > 0);
	for (int size = 0; size < SIM_SIZE_CLASSES; size++)
		TRUE(own.spread[size] > 0 && kin.spread[size] > 0);
	sim_calib_find(&calib, SIM_NVLINK, SIM_NVLINK, SIM_RING_SIMPLE, &own);
	for (int p = 0; p < SIM_PARAMS; p++)
		TRUE(fabs(own.value[p] / kin.value[p] - 1) < 1e-9);
}

static double busbw(const struct sim_site *site, int coll, uint64_t bytes)
{
	static struct sim_calib calib;
	struct sim_scene scene;
	struct sim_answer answer;

	sim_calib_load(&calib);
	EQ(sim_scene_make(site, &scene), OK);
	EQ(sim_predict(&scene, &calib, coll, bytes, &answer), OK);
	TRUE(answer.low < answer.busbw && answer.busbw < answer.high);
	TRUE(answer.latency_us > 0 && answer.transfer_us >= 0 && answer.ramp_us >= 0);
	sim_scene_free(&scene);
	return answer.busbw;
}

static void test_known(void)
{
	struct sim_site site = resolved("DGX Cloud H100", "NVLink", 1, 8);

	TRUE(fabs(busbw(&site, COLL_ALL_REDUCE, (uint64_t)8 << 30) / 480 - 1) < .05);
	site = resolved("A100 SXM node", "NVLink", 1, 8);
	TRUE(fabs(busbw(&site, COLL_ALL_REDUCE, (uint64_t)8 << 30) / 232 - 1) < .05);
	site = resolved("p5.48xlarge", "EFA", 2, 16);
	TRUE(fabs(busbw(&site, COLL_ALL_REDUCE, (uint64_t)8 << 30) / 478 - 1) < .05);
}

/* A wider wire is never slower, with the choice of algorithm held. */
static void test_monotony(void)
{
	static const int colls[] = {COLL_ALL_REDUCE, COLL_ALL_GATHER, COLL_ALL_TO_ALL};

	for (int c = 0; c < 3; c++)
		for (uint64_t bytes = 1 << 20; bytes <= 1 << 30; bytes <<= 5) {
			struct sim_site slow = resolved("H100", "InfiniBand", 4, 32);
			struct sim_site fast = slow;

			strcpy(slow.algo, "ring");
			strcpy(slow.proto, "simple");
			fast = slow;
			fast.nic_GBps *= 2;
			TRUE(busbw(&fast, colls[c], bytes) >=
				busbw(&slow, colls[c], bytes) * (1 - 1e-9));
			TRUE(busbw(&slow, colls[c], bytes) ==
				busbw(&slow, colls[c], bytes));
		}
}

/* A chain waits as often whatever NICs there are; one GPU gathers no faster than its PCI
 * link or the thread of its sockets. */
static void test_roots(void)
{
	struct sim_site many = resolved("H100", "InfiniBand", 4, 32), one = many;
	struct sim_site tcp = resolved("H100", "TCP", 4, 32), fast = many;

	one.nics = 1;
	for (uint64_t bytes = 1 << 10; bytes <= 1 << 28; bytes <<= 6) {
		EQ(busbw(&many, COLL_REDUCE, bytes) >=
				busbw(&one, COLL_REDUCE, bytes) * (1 - 1e-9),
			true);
		EQ(busbw(&many, COLL_BROADCAST, bytes) >=
				busbw(&one, COLL_BROADCAST, bytes) * (1 - 1e-9),
			true);
	}
	fast.nic_GBps = 200;
	TRUE(busbw(&fast, COLL_GATHER, 1 << 30) < 64);
	TRUE(busbw(&tcp, COLL_SCATTER, 1 << 30) < 4);
	TRUE(busbw(&tcp, COLL_GATHER, 1 << 30) > .5);
}

static struct sim_terms terms_of(const struct sim_site *site, uint64_t bytes)
{
	struct sim_scene scene;
	struct sim_terms terms;

	EQ(sim_scene_make(site, &scene), OK);
	EQ(sim_terms_make(&scene, COLL_ALL_REDUCE, bytes, NULL, &terms), OK);
	sim_scene_free(&scene);
	return terms;
}

/* What the busiest link of a method carries, by hand. */
static void test_loads(void)
{
	const double G = 1e9, NVLINK = 18 * 20.6, BRIDGE = 12 * 20.6;
	struct sim_site site = resolved("H100", "NVLink algo=NVLS", 1, 4);
	struct sim_terms four = terms_of(&site, (uint64_t)G), eight;

	site = resolved("H100", "NVLink algo=NVLS", 1, 8);
	eight = terms_of(&site, (uint64_t)G);
	EQ(four.method, SIM_NVLS_SIMPLE);
	TRUE(fabs(four.inner_us / eight.inner_us / (1.25 / 1.125) - 1) < 1e-6);
	TRUE(fabs(eight.width - 1) < 1e-9 && fabs(four.width - .5) < 1e-9);
	site = resolved("H100 PCIe pair with NVLink bridge", "NVLink", 1, 2);
	TRUE(fabs(terms_of(&site, (uint64_t)G).inner_us / (1e6 / BRIDGE) - 1) < 1e-3);
	site = resolved("H100", "InfiniBand SHARP", 4, 32);
	eight = terms_of(&site, (uint64_t)G);
	EQ(eight.method, SIM_COLLNET_SIMPLE);
	TRUE(fabs(eight.inner_us / (1.75e6 / NVLINK) - 1) < 1e-3);
	TRUE(fabs(eight.outer_us / (1e6 / (8 * 48)) - 1) < 1e-3);
	site = resolved("H100", "InfiniBand algo=ring", 4, 32);
	TRUE(fabs(terms_of(&site, (uint64_t)G).cut - 4) < 1e-9);
}

/* A tree whose middle passes on what has flags takes longer than one of two nodes. */
static void test_trees(void)
{
	struct sim_site two = resolved("H100", "InfiniBand algo=tree", 2, 16);
	struct sim_site four = resolved("H100", "InfiniBand algo=tree", 4, 32);

	strcpy(two.proto, "ll128");
	strcpy(four.proto, "ll128");
	TRUE(fabs(terms_of(&four, 1 << 26).outer_us / terms_of(&two, 1 << 26).outer_us -
		     3.2) < 1e-6);
	strcpy(two.proto, "simple");
	strcpy(four.proto, "simple");
	TRUE(fabs(terms_of(&four, 1 << 26).outer_us / terms_of(&two, 1 << 26).outer_us -
		     2) < 1e-6);
}

enum { MADE = 24 };

/* Measurements of two sources that follow the formula, each by a constant of its own. */
static void samples_make(double second, struct sim_sample samples[MADE])
{
	struct sim_params made = {.value = {.9, 4, 2, 1 << 20, .8, .4}};

	for (int i = 0; i < MADE; i++) {
		struct sim_load load = {20, 2, exp2(i / 1.5), exp2(i / 1.5) * 50e3, 1, 1};
		struct sim_time time;

		sim_params_time(&made, &load, &time);
		samples[i] = (struct sim_sample){.wire = SIM_IB,
			.net = SIM_IB,
			.method = SIM_RING_SIMPLE,
			.bytes = (uint64_t)load.bytes,
			.load = load,
			.time_us = time.time_us * (i % 2 ? second : 1),
			.source = (uint32_t)i % 2};
	}
}

/* What was made by the formula is found again. */
static void test_fit(void)
{
	static struct sim_calib calib, without;
	struct sim_sample samples[MADE];

	samples_make(1, samples);
	EQ(sim_fit(samples, MADE, SIM_NO_SOURCE, NULL, &calib), OK);
	EQ(calib.effects[SIM_IB][SIM_RING_SIMPLE].rows, MADE);
	EQ(calib.effects[SIM_IB][SIM_ALL_METHODS].sources, 2);
	EQ(calib.effects[SIM_ROCE][SIM_ALL_METHODS].rows, 0);
	for (int i = 0; i < MADE; i++) {
		struct sim_params found;
		struct sim_time time;

		sim_calib_find(&calib, SIM_IB, SIM_IB, SIM_RING_SIMPLE, &found);
		sim_params_time(&found, &samples[i].load, &time);
		TRUE(fabs(log(time.time_us / samples[i].time_us)) < .05);
	}
	EQ(sim_fit(samples, MADE, 0, &calib, &without), OK);
	EQ(without.effects[SIM_IB][SIM_RING_SIMPLE].rows, MADE / 2);
}

/* A source that is left out has no say, wherever the search begins. */
static void test_left_out(void)
{
	static struct sim_calib all, one, two;
	struct sim_sample samples[MADE];

	samples_make(3, samples);
	EQ(sim_fit(samples, MADE, SIM_NO_SOURCE, NULL, &all), OK);
	EQ(sim_fit(samples, MADE, 1, &all, &one), OK);
	for (int i = 1; i < MADE; i += 2)
		samples[i].time_us *= 100;
	EQ(sim_fit(samples, MADE, 1, NULL, &two), OK);
	for (int i = 0; i < MADE; i++) {
		struct sim_params a, b;
		struct sim_time from_all, from_none;

		sim_calib_find(&one, SIM_IB, SIM_IB, SIM_RING_SIMPLE, &a);
		sim_calib_find(&two, SIM_IB, SIM_IB, SIM_RING_SIMPLE, &b);
		sim_params_time(&a, &samples[i].load, &from_all);
		sim_params_time(&b, &samples[i].load, &from_none);
		TRUE(fabs(log(from_all.time_us / from_none.time_us)) < .03);
	}
}

static enum err cases(const char *text, struct sim_cases *out)
{
	return sim_cases_parse(text, strlen(text), "test", out);
}

#define HEAD "case,platform,nodes,gpus,collective,bytes,nccl_version,net\n"

static void test_cases(void)
{
	struct sim_cases c;

	EQ(cases(HEAD "7,\"H100, \"\"big\"\"\",2,16,all_reduce,1048576,,InfiniBand\r\n"
		      "8,p5.48xlarge,1,8,alltoall,1024,2.27,NVLink\n",
		   &c),
		OK);
	EQ(c.count, 2);
	EQ(c.group_count, 2);
	EQ_STR(table_at(&c.table, 0, 1), "H100, \"big\"");
	sim_cases_free(&c);
	EQ(cases("", &c), ERR_USAGE);
	EQ(cases("a,b\n1,2\n", &c), ERR_USAGE);
	EQ(cases(HEAD "1,H100,2,16,all_reduce,1048576,,\"IB\n", &c), ERR_USAGE);
	EQ(cases(HEAD "1,H100,2,16,all_reduce\n", &c), ERR_USAGE);
	EQ(cases(HEAD "1,H100,2,16,knit,1048576,,IB\n", &c), ERR_USAGE);
	EQ(cases(HEAD "1,H100,-2,16,all_reduce,1048576,,IB\n", &c), ERR_USAGE);
	EQ(cases(HEAD "1,H100,2,16,all_reduce,1e99,,IB\n", &c), ERR_USAGE);
	EQ(cases(HEAD "1,H100,1,64,all_reduce,1024,,IB\n", &c), ERR_USAGE);
}

/* What its network cannot carry is left out, with the rest of its series. */
static void test_above_wire(void)
{
	struct sim_sample samples[2];
	struct sim_cases c;

	EQ(cases("platform,nodes,gpus,collective,bytes,busbw_GBps,net,source\n"
		 "H100,2,16,all_gather,1073741824,390,InfiniBand 1 NIC,a\n"
		 "H100,2,16,all_gather,1024,0.9,InfiniBand 1 NIC,a\n",
		   &c),
		OK);
	TRUE(c.cases[0].wrong != NULL);
	TRUE(c.cases[1].wrong != NULL);
	EQ(sim_cases_samples(&c, samples), 0);
	sim_cases_free(&c);
}

int main(void)
{
	test_words();
	test_named();
	test_nets();
	test_table();
	test_kin();
	test_known();
	test_monotony();
	test_roots();
	test_loads();
	test_trees();
	test_fit();
	test_left_out();
	test_cases();
	test_above_wire();
	return 0;
}
