/* Flows and fabrics: what can be worked out by hand comes out, nothing is lost or carried
 * faster than its link, more is never slower, counting agrees with running. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "sim/traffic.h"
#include "test.h"

static bool near(double a, double b, double share)
{
	return fabs(a - b) <= share * fabs(b);
}

static void test_one_link(void)
{
	struct flow_link links[1] = {{.rate = 100}};
	struct sim_flow flow = {.bytes = 1000, .hops = {0}, .hop_count = 1};
	double end;

	EQ(flow_run(&flow, 1, links, 1, &end), OK);
	TRUE(near(end, 10, 1e-9));
	TRUE(near(links[0].bytes, 1000, 1e-9));
	links[0].rate = 0;
	EQ(flow_run(&flow, 1, links, 1, &end), ERR_USAGE);
}

/* A and B share link 0, B and C link 1 which is twice as fast: A and B get 50 each, C
 * 150. A ends at 10, C at 4, then B has link 0 alone after A is done. */
static void test_three_flows(void)
{
	struct flow_link links[2] = {{.rate = 100}, {.rate = 200}};
	struct sim_flow flows[3] = {{.bytes = 500, .hops = {0}, .hop_count = 1},
		{.bytes = 1000, .hops = {0, 1}, .hop_count = 2},
		{.bytes = 600, .hops = {1}, .hop_count = 1}};
	double end;

	EQ(flow_run(flows, 3, links, 2, &end), OK);
	TRUE(near(flows[0].end_us, 10, 1e-9));
	TRUE(near(flows[2].end_us, 4, 1e-9));
	TRUE(near(flows[1].end_us, 15, 1e-9));
	TRUE(near(end, 15, 1e-9));
	TRUE(near(links[0].bytes, 1500, 1e-9));
	TRUE(near(links[1].bytes, 1600, 1e-9));
	TRUE(links[0].busiest <= 1 + 1e-9 && links[1].busiest <= 1 + 1e-9);
}

static void test_late_start(void)
{
	struct flow_link links[1] = {{.rate = 100}};
	struct sim_flow flows[2] = {{.bytes = 1000, .hops = {0}, .hop_count = 1},
		{.bytes = 500, .start_us = 5, .hops = {0}, .hop_count = 1}};
	double end;

	EQ(flow_run(flows, 2, links, 1, &end), OK);
	TRUE(near(flows[0].end_us, 15, 1e-6));
	TRUE(near(flows[1].end_us, 15, 1e-6));
}

static struct sim_site site(uint32_t nodes, uint32_t nics)
{
	return (struct sim_site){
		.nodes = nodes, .gpus = 8, .nics = nics, .nic_GBps = 50, .outer = SIM_IB};
}

static double took(const char *text, const char *harm, uint32_t nodes,
	enum sim_traffic kind, enum traffic_way way)
{
	struct sim_site at = site(nodes, 8);
	struct traffic_report report;
	struct fabric_plan plan;
	struct fabric fabric;

	EQ(fabric_plan_read(text, &plan), OK);
	if (harm)
		EQ(fabric_harm_read(harm, strchr(harm, '=') != NULL, &plan), OK);
	EQ(fabric_build(&plan, &at, &fabric), OK);
	EQ(traffic_measure(&fabric, kind, 4e8, way, &report), OK);
	for (uint32_t i = 0; i < fabric.link_count; i++)
		TRUE(fabric.links[i].bytes <=
			fabric.links[i].rate * report.time_us * (1 + 1e-6));
	fabric_free(&fabric);
	return report.time_us;
}

/* Two nodes, eight NICs of 50 GB/s: 400 MB along a ring take a millisecond. */
static void test_by_hand(void)
{
	TRUE(near(took("switch", NULL, 2, SIM_TRAFFIC_RING, TRAFFIC_RUN), 1000, 1e-6));
	TRUE(near(took("switch", NULL, 2, SIM_TRAFFIC_TREE, TRAFFIC_RUN), 1000, 1e-6));
	TRUE(near(took("switch", NULL, 8, SIM_TRAFFIC_TREE, TRAFFIC_RUN), 2000, 1e-6));
	/* one NIC dead: its neighbour does the work of two */
	TRUE(near(
		took("switch", "nic:1.3", 2, SIM_TRAFFIC_RING, TRAFFIC_RUN), 2000, 1e-6));
	TRUE(near(took("switch", "nic:1.3=0.5", 2, SIM_TRAFFIC_RING, TRAFFIC_RUN), 2000,
		1e-6));
	/* half of the nodes are on the other leaf, and its uplinks are four times over:
	 * 8 of 15 parts of 4 nodes by a quarter of their rate */
	TRUE(near(took("fat-tree:leaf=8,spine=4,over=4", NULL, 16, SIM_TRAFFIC_ALL,
			  TRAFFIC_COUNT),
		1000 * 4 * 8 / 15.0, 1e-6));
}

static void test_count_is_run(void)
{
	static const char *const fabrics[] = {"switch", "efa:leaf=4,spine=4",
		"efa:leaf=4,spine=4,over=2", "rail:leaf=4,spine=4",
		"fat-tree:leaf=4,spine=4,over=2"};
	static const char *const harms[] = {NULL, "nic:3.1", "node:2=0.5"};

	for (size_t f = 0; f < sizeof(fabrics) / sizeof(fabrics[0]); f++)
		for (int h = 0; h < 3; h++)
			for (int kind = 0; kind < SIM_TRAFFICS; kind++) {
				double run = took(fabrics[f], harms[h], 16,
					(enum sim_traffic)kind, TRAFFIC_RUN);
				double count = took(fabrics[f], harms[h], 16,
					(enum sim_traffic)kind, TRAFFIC_COUNT);

				if (!near(run, count, .01))
					printf("%s %s %d: run %g count %g\n", fabrics[f],
						harms[h] ? harms[h] : "", kind, run,
						count);
				TRUE(near(run, count, .01));
			}
}

static void test_monotony(void)
{
	for (int kind = 0; kind < SIM_TRAFFICS; kind++) {
		enum sim_traffic k = (enum sim_traffic)kind;
		double slow = took("efa:leaf=4,spine=4,over=4", NULL, 16, k, TRAFFIC_RUN);
		double fast = took("efa:leaf=4,spine=4,over=2", NULL, 16, k, TRAFFIC_RUN);
		double dead = took(
			"efa:leaf=4,spine=4,over=4", "spine:1", 16, k, TRAFFIC_RUN);

		TRUE(fast <= slow * (1 + 1e-9));
		TRUE(slow <= dead * (1 + 1e-9));
	}
}

/* Two planes that join four nodes with so many NICs each. */
static struct traffic_report two_planes(uint32_t nics, enum sim_traffic traffic)
{
	struct sim_site at = site(4, nics);
	struct traffic_report report;
	struct fabric_plan plan;
	struct fabric fabric;

	EQ(fabric_plan_read("dual:leaf=1,spine=2", &plan), OK);
	EQ(fabric_build(&plan, &at, &fabric), OK);
	EQ(traffic_measure(&fabric, traffic, 4e8, TRAFFIC_COUNT, &report), OK);
	fabric_free(&fabric);
	return report;
}

/* Five NICs on two planes: three and two, and every leaf has the way up of its own. */
static void test_odd_planes(void)
{
	struct traffic_report report = two_planes(5, SIM_TRAFFIC_ALL);

	TRUE(near(report.time_us, report.ideal_us, 1e-6));
}

/* One NIC is in the first plane; nobody needs the second. */
static void test_empty_plane(void)
{
	struct traffic_report report = two_planes(1, SIM_TRAFFIC_RING);

	TRUE(report.time_us >= report.ideal_us && isfinite(report.time_us));
}

/* As many links as 32 bits cannot count. */
static void test_too_large(void)
{
	struct sim_site at = site(65536, 32);
	struct fabric_plan plan;
	struct fabric fabric;

	EQ(fabric_plan_read("rail:leaf=1,spine=1023", &plan), OK);
	EQ(fabric_build(&plan, &at, &fabric), ERR_USAGE);
	TRUE(strstr(err_last(), "4294967296 links is too large") != NULL);
}

/* One of four spines is dead: what crosses has three quarters. */
static void test_dead_spine(void)
{
	double sound = took(
		"efa:leaf=4,spine=4,over=4", NULL, 64, SIM_TRAFFIC_ALL, TRAFFIC_COUNT);
	double dead = took("efa:leaf=4,spine=4,over=4", "spine:1", 64, SIM_TRAFFIC_ALL,
		TRAFFIC_COUNT);

	TRUE(near(dead, sound * 4 / 3, 1e-6));
}

/* What a fabric with these harms says when it is built. */
static enum err built(const char *text, const char *harm, const char *other)
{
	struct sim_site at = site(8, 8);
	struct fabric_plan plan;
	struct fabric fabric;
	enum err e;

	EQ(fabric_plan_read(text, &plan), OK);
	EQ(fabric_harm_read(harm, false, &plan), OK);
	EQ(fabric_harm_read(other, false, &plan), OK);
	e = fabric_build(&plan, &at, &fabric);
	if (!e)
		fabric_free(&fabric);
	return e;
}

/* Leaves that spread packets have a way while a spine lives; the same spine dies once.
 * Others need a spine that both reach. */
static void test_holes(void)
{
	EQ(built("efa:leaf=4,spine=2", "spine:0", "spine:1"), ERR_USAGE);
	EQ(built("efa:leaf=4,spine=2", "spine:0", "link:0.0"), OK);
	EQ(built("efa:leaf=4,spine=2", "spine:0", "link:0.1"), ERR_USAGE);
	EQ(built("efa:leaf=4,spine=2", "link:0.0", "link:1.1"), OK);
	EQ(built("fat-tree:leaf=4,spine=2", "link:0.0", "link:1.1"), ERR_USAGE);
	TRUE(strstr(err_last(), "leaf 0 and leaf 1 have no spine in common") != NULL);
	EQ(built("fat-tree:leaf=4,spine=2", "link:0.0", "link:1.0"), OK);
	EQ(built("rail:leaf=4,spine=2", "link:0.0", "link:8.1"), ERR_USAGE);
	EQ(built("rail:leaf=4,spine=2", "link:0.0", "link:9.1"), OK);
	EQ(built("dual:leaf=4,spine=2", "link:0.0", "link:3.1"), OK);
}

static void refuse(const char *text)
{
	struct fabric_plan plan;

	EQ(fabric_plan_read(text, &plan), ERR_USAGE);
}

static void refuse_file(const char *text)
{
	struct fabric_plan plan;

	EQ(fabric_plan_parse(text, strlen(text), "test", &plan), ERR_USAGE);
}

static void test_bad_plans(void)
{
	static const char good[] = "kind fat-tree # comment\nleaf 4\nspine 2\nover 2\n"
				   "nic 400Gb\nfail spine:1\nslow nic:0.1=0.5\n";
	struct fabric_plan plan;
	struct sim_site at = site(8, 8);
	struct fabric fabric;

	refuse("torus");
	refuse("fat-tree:leaf=0");
	refuse("fat-tree:leaf=1.5");
	refuse("fat-tree:over=0.5");
	refuse("tcp:fast");
	refuse("rail:colour=red");
	refuse("nvl");
	refuse_file("kind nvl\n");
	refuse_file("");
	refuse_file("leaf 4\n");
	refuse_file("kind fat-tree\nkind rail\n");
	refuse_file("kind fat-tree\nleaf\n");
	refuse_file("kind fat-tree\nleaf 4 5\n");
	refuse_file("kind fat-tree\nfail spine\n");
	EQ(fabric_plan_parse(good, strlen(good), "test", &plan), OK);
	EQ(plan.harm_count, 2);
	EQ(fabric_build(&plan, &at, &fabric), OK);
	fabric_free(&fabric);
	EQ(fabric_harm_read("spine:7", false, &plan), OK);
	EQ(fabric_build(&plan, &at, &fabric), ERR_USAGE);
	EQ(fabric_plan_read("switch", &plan), OK);
	EQ(fabric_harm_read("node:3", false, &plan), OK);
	EQ(fabric_build(&plan, &at, &fabric), ERR_USAGE); /* cut off */
	EQ(fabric_plan_read("fat-tree:leaf=4,spine=1", &plan), OK);
	EQ(fabric_harm_read("spine:0", false, &plan), OK);
	EQ(fabric_build(&plan, &at, &fabric), ERR_USAGE); /* no way up */
}

int main(void)
{
	test_one_link();
	test_three_flows();
	test_late_start();
	test_by_hand();
	test_count_is_run();
	test_monotony();
	test_dead_spine();
	test_holes();
	test_odd_planes();
	test_empty_plane();
	test_too_large();
	test_bad_plans();
	return 0;
}
