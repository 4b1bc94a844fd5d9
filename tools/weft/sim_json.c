/* weft sim --json. */
#include <jansson.h>

#include "weft/json_print.h"
#include "weft/sim.h"

static json_t *row_json(uint64_t bytes, const struct sim_answer *a)
{
	return json_pack("{s:I, s:f, s:f, s:f, s:f, s:f, s:s, s:s, s:f, s:f, s:f, s:i, "
			 "s:i, s:b}",
		"size", (json_int_t)bytes, "timeUs", a->time_us, "algbw", a->algbw,
		"busbw", a->busbw, "low", a->low, "high", a->high, "method",
		sim_method_name(a->terms.method), "wire", sim_wire_name(a->terms.wire),
		"latencyUs", a->latency_us, "rampUs", a->ramp_us, "transferUs",
		a->transfer_us, "rows", (int)a->rows, "sources", (int)a->sources,
		"ownClass", (int)a->is_own_class);
}

static json_t *run_json(const struct sim_run *run)
{
	const struct sim_site *site = &run->scene.site;
	json_t *rows = json_array();

	for (uint32_t i = 0; i < run->count; i++)
		json_array_append_new(rows, row_json(run->sizes[i], &run->rows[i]));
	return json_pack("{s:s, s:s, s:i, s:i, s:i, s:i, s:f, s:s, s:s, s:o}", "machine",
		site->machine, "collective", sim_coll_name(run->args->coll), "nodes",
		(int)site->nodes, "gpusPerNode", (int)site->gpus, "ranks",
		(int)run->scene.ranks, "nics", (int)site->nics, "nicGBs", site->nic_GBps,
		"inner", sim_wire_name(site->inner), "outer", sim_wire_name(site->outer),
		"rows", rows);
}

int sim_json(const struct sim_run *run)
{
	return json_print("sim", run_json(run));
}

/* Two tables of the same sizes, and B's time over A's. */
int sim_versus_json(const struct sim_run *run, const struct sim_run *other)
{
	json_t *ratios = json_array();

	for (uint32_t i = 0; i < run->count; i++)
		json_array_append_new(
			ratios, json_real(other->rows[i].time_us / run->rows[i].time_us));
	return json_print("sim", json_pack("{s:o, s:o, s:o}", "a", run_json(run), "b",
					 run_json(other), "timeRatios", ratios));
}
