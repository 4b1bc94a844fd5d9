/* weft sim --timeline: the flows of one call between nodes as a trace for Perfetto. The
 * call is the one of --explain, else the largest. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "weft/command.h"
#include "weft/sim.h"

/* What a node sends for the call, as traffic.h counts it: the time of the busiest link,
 * by the rate of all NICs. */
static double bytes_of(
	const struct sim_run *run, const struct sim_answer *a, enum sim_traffic kind)
{
	double sound = a->terms.outer_us / run->strain.outer[kind];

	return sound / traffic_ideal(&run->fabric, kind, 1);
}

static uint32_t node_of(const struct fabric *f, const struct sim_flow *flow)
{
	return flow->hop_count ? flow->hops[0] / f->nics : 0;
}

static void flows_write(
	FILE *file, const struct fabric *f, const struct sim_flow *flows, uint32_t count)
{
	fprintf(file, "{\"displayTimeUnit\":\"ns\",\"traceEvents\":[\n");
	for (uint32_t node = 0; node < f->nodes; node++)
		fprintf(file,
			"{\"ph\":\"M\",\"pid\":%u,\"name\":\"process_name\",\"args\":{"
			"\"name\":\"node %u\"}},\n",
			node, node);
	for (uint32_t i = 0; i < count; i++) {
		const struct sim_flow *flow = &flows[i];
		char name[FABRIC_NAME_BYTES] = "inside";

		if (flow->hop_count)
			fabric_link_name(f, flow->hops[flow->hop_count - 1], name);
		fprintf(file,
			"{\"ph\":\"X\",\"pid\":%u,\"tid\":%u,\"ts\":%.3f,\"dur\":%.3f,"
			"\"name\":\"to %s\",\"args\":{\"bytes\":%.0f}}%s\n",
			node_of(f, flow), i, flow->start_us,
			flow->end_us - flow->start_us, name, flow->bytes,
			i + 1 < count ? "," : "");
	}
	fprintf(file, "]}\n");
}

int sim_timeline(struct sim_run *run, const char *path)
{
	uint64_t bytes = run->args->has_explain ? run->args->explain : run->args->last;
	struct sim_answer answer;
	struct sim_flow *flows = NULL;
	uint32_t count = 0;
	double end;
	FILE *file;
	enum err e = run->scene.nvl_groups < 2
			     ? err_set(ERR_USAGE,
				       "on one node nothing goes between nodes; raise "
				       "--nodes")
			     : sim_run_ask(run, bytes, &answer);
	enum sim_traffic kind;

	if (e)
		return sim_failed(e);
	kind = sim_traffic_of(run->args->coll, answer.terms.method);
	e = traffic_flows(
		&run->fabric, kind, bytes_of(run, &answer, kind), &flows, &count);
	if (!e)
		e = flow_run(
			flows, count, run->fabric.links, run->fabric.link_count, &end);
	file = e ? NULL : strcmp(path, "-") ? fopen(path, "we") : stdout;
	if (!e && !file)
		e = err_set(
			ERR_SYSTEM, "%s cannot be written: %s", path, strerror(errno));
	if (!e)
		flows_write(file, &run->fabric, flows, count);
	if (file && file != stdout && fclose(file))
		e = err_set(
			ERR_SYSTEM, "%s cannot be written: %s", path, strerror(errno));
	free(flows);
	return e ? sim_failed(e) : EXIT_GOOD;
}
