/* The library's own schedules, run tile by tile over a fabric, against the flows that
 * stand for them where ranks are many. */
#include <math.h>
#include <string.h>

#include "sim/tiles.h"
#include "test.h"

static void build(const char *text, const char *harm, uint32_t nodes, uint32_t nics,
	struct fabric *fabric)
{
	struct sim_site site = {.nodes = nodes,
		.gpus = nics,
		.nics = nics,
		.nic_GBps = 50,
		.outer = SIM_IB};
	struct fabric_plan plan;

	EQ(fabric_plan_read(text, &plan), OK);
	if (harm)
		EQ(fabric_harm_read(harm, strchr(harm, '=') != NULL, &plan), OK);
	EQ(fabric_build(&plan, &site, fabric), OK);
}

/* Two nodes, one NIC of 50 GB/s each: 100 MB take two milliseconds, and the first and the
 * last tile. */
static void test_by_hand(void)
{
	struct tiles_report report;
	struct fabric fabric;

	build("switch", NULL, 2, 1, &fabric);
	EQ(tiles_measure(&fabric, SIM_TRAFFIC_RING, 1e8, &report), OK);
	EQ_STR(report.schedule, "hosts-ring");
	EQ(report.nics, 2);
	TRUE(report.tiles > 100);
	TRUE(report.time_us >= 2000 && report.time_us < 2020);
	fabric_free(&fabric);
	build("switch", "nic:1.0=0.5", 2, 1, &fabric);
	EQ(tiles_measure(&fabric, SIM_TRAFFIC_RING, 1e8, &report), OK);
	TRUE(report.time_us >= 4000 && report.time_us < 4040);
	fabric_free(&fabric);
}

/* How much longer the tiles take than the flows. */
static double ratio_of(const char *text, const char *harm, enum sim_traffic kind,
	uint32_t nodes, uint32_t nics)
{
	struct traffic_report flows;
	struct tiles_report tiles;
	struct fabric fabric;

	build(text, harm, nodes, nics, &fabric);
	TRUE(tiles_can(&fabric, kind));
	EQ(tiles_measure(&fabric, kind, 1e9, &tiles), OK);
	EQ(traffic_measure(&fabric, kind, 1e9, TRAFFIC_RUN, &flows), OK);
	fabric_free(&fabric);
	return tiles.time_us / flows.time_us;
}

static double ratio(const char *text, const char *harm, enum sim_traffic kind)
{
	return ratio_of(text, harm, kind, 8, 2);
}

static const char *const harms[] = {NULL, "nic:3.1", "node:2=0.5"};

/* Within 1 %, whatever is broken. */
static void test_agree(void)
{
	static const char *const fabrics[] = {"switch", "efa:leaf=4,spine=2,over=8",
		"fat-tree:leaf=4,spine=2,over=4", "rail:leaf=2,spine=2"};
	enum { RAIL = 3 };

	for (int f = 0; f <= RAIL; f++)
		for (int h = 0; h < 3; h++) {
			TRUE(fabs(ratio(fabrics[f], harms[h], SIM_TRAFFIC_RING) - 1) <
				.01);
			TRUE(f == RAIL ||
				fabs(ratio(fabrics[f], harms[h], SIM_TRAFFIC_ALL) - 1) <
					.01);
		}
}

/* Where two kinds of link are full at once, or the rounds of all pairs meet on a link in
 * some rounds and in others not, a schedule takes longer than a fluid, never less. */
static void test_never_faster(void)
{
	static const char *const fabrics[] = {
		"efa:leaf=2,spine=2,over=2", "rail:leaf=2,spine=2"};

	for (int f = 0; f < 2; f++)
		for (int h = 0; h < 3; h++)
			for (int all = 0; all < 2; all++) {
				double r = ratio(fabrics[f], harms[h],
					all ? SIM_TRAFFIC_ALL : SIM_TRAFFIC_RING);

				TRUE(r > .999 && r < 1.15);
			}
}

/* A way up that is as wide as the NICs below it holds nobody up, with its neighbours'
 * tiles between his own. */
static void test_full_ways(void)
{
	double few = ratio_of(
		"fat-tree:leaf=1,spine=4,spray=yes", NULL, SIM_TRAFFIC_RING, 3, 4);
	double many = ratio_of("efa:leaf=2,spine=4", NULL, SIM_TRAFFIC_RING, 8, 8);

	TRUE(few > .999 && few < 1.06);
	TRUE(many > .999 && many < 1.02);
}

/* What has no schedule of its own, or too many ranks for one, is not run. */
static void test_limits(void)
{
	struct sim_strain strain = {1, {7, 7, 7, 7}};
	struct tiles_report report;
	struct fabric fabric;

	build("switch", NULL, 4, 2, &fabric);
	TRUE(!tiles_can(&fabric, SIM_TRAFFIC_ONE));
	EQ(tiles_measure(&fabric, SIM_TRAFFIC_ONE, 1e9, &report), ERR_USAGE);
	EQ(tiles_strain(&fabric, &strain), OK);
	TRUE(strain.outer[SIM_TRAFFIC_RING] < 1.01);
	TRUE(strain.outer[SIM_TRAFFIC_ONE] == 7);
	fabric_free(&fabric);
	build("switch", NULL, TILES_NICS_MAX, 2, &fabric);
	TRUE(!tiles_can(&fabric, SIM_TRAFFIC_RING));
	fabric_free(&fabric);
}

int main(void)
{
	test_by_hand();
	test_agree();
	test_never_faster();
	test_full_ways();
	test_limits();
	return 0;
}
