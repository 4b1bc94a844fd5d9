/* The library's own schedules over a fabric: exec/sim steps them, the fabric's links are
 * what their messages share. */
#include "sim/tiles.h"

#include <stdlib.h>

#include "exec/sim/sim.h"

/* As many tiles as make the filling of a pipeline small, and fewer where many ranks share
 * the work. */
enum { TILES = 128, RANKS_FEW = 64 };

static uint32_t tiles_of(uint32_t ranks)
{
	return ranks > RANKS_FEW ? TILES * RANKS_FEW / ranks : TILES;
}

/* Messages by what they are for: rings in each rail, all pairs. A ring has one tile under
 * way in each rank, so one that waits for a full link leaves the NIC idle; NCCL has
 * several channels on a NIC, and each has chunks under way. */
static const struct {
	enum coll coll;
	const char *name;
	uint32_t each; /* so many through every NIC */
} schedules[SIM_TRAFFICS] = {
	[SIM_TRAFFIC_RING] = {COLL_ALL_REDUCE, "hosts-ring", 4},
	[SIM_TRAFFIC_ALL] = {COLL_ALL_TO_ALL, "direct", 1},
};

/* A fabric as exec/sim wants it. */
struct way {
	const struct fabric *fabric;
	uint32_t local, each; /* ranks of a node, and of a NIC */
	uint16_t *hosts;      /* owned: by rank */
	double *rates;	      /* owned: bytes per ns, by link */
};

/* Rank r is on node r / local, whose ranks are on its NICs, so many on each. */
static uint32_t way_path(
	const void *cookie, uint32_t from, uint32_t to, uint32_t hops[SIM_HOPS_MAX])
{
	const struct way *way = cookie;
	uint32_t local = way->local;
	struct sim_flow flow = {0};

	if (from / local == to / local)
		return 0;
	fabric_path(
		way->fabric, from / local, to / local, from % local / way->each, &flow);
	for (uint32_t i = 0; i < flow.hop_count; i++)
		hops[i] = flow.hops[i];
	return flow.hop_count;
}

bool tiles_can(const struct fabric *fabric, enum sim_traffic kind)
{
	return schedules[kind].name && fabric->nodes > 1 &&
	       fabric->nodes * fabric->nics <= TILES_NICS_MAX;
}

/* The count of a call in which a node sends `bytes` to others. */
static size_t count_of(const struct way *way, enum sim_traffic kind, double bytes)
{
	double nodes = way->fabric->nodes, local = way->local;

	if (kind == SIM_TRAFFIC_RING)
		return (size_t)(bytes * nodes / (2 * (nodes - 1)));
	return (size_t)(bytes / local / (nodes * local - local));
}

static enum err schedule_run(const struct way *way, enum sim_traffic kind, double bytes,
	struct tiles_report *report)
{
	const struct fabric *fabric = way->fabric;
	size_t count = count_of(way, kind, bytes);
	uint32_t ranks = fabric->nodes * way->local;
	struct sim_args args = {
		.kind = catalog_find(schedules[kind].coll, schedules[kind].name),
		.rank_count = ranks,
		.key = {.coll = schedules[kind].coll,
			.type = DTYPE_UINT8,
			.count = count},
		.op = REDOP_SUM,
		.hosts = way->hosts,
		.shared = {way->rates, fabric->link_count, way_path},
		.cookie = way};
	struct sim_report run;
	enum err e;

	if (!ranks)
		return err_set(ERR_USAGE, "a fabric without a NIC carries nothing");
	args.tile_bytes =
		count / (kind == SIM_TRAFFIC_RING ? ranks : 1) / tiles_of(ranks) + 1;
	e = sim_time(&args, &run);
	if (e)
		return e;
	*report = (struct tiles_report){.time_us = (double)run.time_ps * 1e-6,
		.schedule = schedules[kind].name,
		.nics = fabric->nodes * fabric->nics,
		.each = way->each,
		.tiles = run.tile_count};
	sim_report_fini(&run);
	return OK;
}

enum err tiles_measure(const struct fabric *fabric, enum sim_traffic kind, double bytes,
	struct tiles_report *report)
{
	uint32_t each = schedules[kind].each, local = fabric->nics * each;
	uint32_t ranks = fabric->nodes * local;
	struct way way = {fabric, local, each, calloc(ranks + 1, sizeof(*way.hosts)),
		calloc(fabric->link_count + 1, sizeof(*way.rates))};
	enum err e = OK;

	if (!tiles_can(fabric, kind))
		e = err_set(ERR_USAGE, "no schedule is run tile by tile on %u NICs",
			fabric->nodes * fabric->nics);
	else if (!way.hosts || !way.rates)
		e = err_set(ERR_SYSTEM, "no memory for %u ranks", ranks);
	for (uint32_t i = 0; !e && i < ranks; i++)
		way.hosts[i] = (uint16_t)(i / local);
	for (uint32_t i = 0; !e && i < fabric->link_count; i++)
		way.rates[i] = fabric->links[i].rate / 1e3; /* dead ones are on no path */
	if (!e)
		e = schedule_run(&way, kind, bytes, report);
	free(way.hosts);
	free(way.rates);
	return e;
}

enum err tiles_strain(const struct fabric *fabric, struct sim_strain *strain)
{
	const double bytes = 1e9;
	double ideal = traffic_ideal(fabric, SIM_TRAFFIC_RING, bytes);
	struct tiles_report report;
	enum err e;

	if (!tiles_can(fabric, SIM_TRAFFIC_RING))
		return OK;
	e = tiles_measure(fabric, SIM_TRAFFIC_RING, bytes, &report);
	if (!e)
		strain->outer[SIM_TRAFFIC_RING] = report.time_us > ideal
							  ? report.time_us / ideal
							  : 1;
	return e;
}
