#include "weft/doctor/gain.h"

#include <stdio.h>
#include <string.h>

#include "common/units.h"
#include "topo/instance.h"

enum { USUAL_BYTES = 1 << 30, FEW_BYTES = 1 << 20 };

/* Less than so much faster is nothing to promise. */
static const double worth = 1.1;

enum err gain_site(const struct log_facts *facts, const char *machine, uint32_t nodes,
	struct sim_site *site)
{
	const struct instance_info *info;
	enum err e;

	*site = (struct sim_site){.nodes = nodes ? nodes : 1};
	e = sim_site_machine(site, machine);
	if (e)
		return e;
	info = instance_find(site->machine);
	site->gpus = facts->local_max > 0 && (uint32_t)facts->local_max < info->gpu_count
			     ? (uint32_t)facts->local_max
			     : info->gpu_count;
	if (site->nodes < 2)
		site->outer = SIM_ANY;
	return OK;
}

static int coll_of(const struct log_facts *facts)
{
	char name[FACTS_NAME_BYTES];
	char *end;
	int coll;

	if (!facts->tests.count)
		return sim_coll_find("all_reduce");
	snprintf(name, sizeof(name), "%s", facts->tests.words[0].text);
	end = strstr(name, "_perf");
	if (end)
		*end = 0;
	coll = sim_coll_find(name);
	return coll >= 0 ? coll : sim_coll_find("all_reduce");
}

enum err gain_ask(const struct log_facts *facts, const struct sim_site *site,
	uint64_t bytes, struct sim_answer *answer)
{
	static struct sim_calib calib;
	struct sim_scene scene = {0};
	enum err e = sim_scene_make(site, &scene);

	if (e)
		return e;
	sim_calib_load(&calib);
	e = sim_predict(&scene, &calib, coll_of(facts), bytes, answer);
	sim_scene_free(&scene);
	return e;
}

/* The whole machines that so many ranks would fill, one after the other. */
static void gather(struct sim_site *site, const struct log_facts *facts)
{
	uint32_t ranks = (uint32_t)facts->rank_count;
	uint32_t gpus = instance_find(site->machine)->gpu_count;

	site->gpus = ranks < gpus ? ranks : gpus;
	site->nodes = (ranks + gpus - 1) / gpus;
	if (site->nodes < 2)
		site->outer = SIM_ANY;
}

/* From the sound site to the one with this fault, and where the cure is another shape, to
 * the cured one. False: the engine has nothing to say of it. */
static bool spoil(enum finding_id id, const struct log_facts *facts, struct sim_site *bad,
	struct sim_site *good)
{
	switch (id) {
	case FIND_OFI_NO_PROVIDER:
	case FIND_OFI_INIT_FAILED:
	case FIND_NO_PLUGIN_SOCKET:
	case FIND_NET_FORCED_SOCKET:
		/* one NIC of the kernel's, whatever hangs beside it */
		bad->outer = bad->is_aws ? SIM_ENA : SIM_TCP;
		bad->is_aws = false;
		bad->regions = REGION_NONE;
		bad->nics = 1;
		return bad->nodes > 1 && good->outer != bad->outer;
	case FIND_GDR_DISABLED_OFI:
	case FIND_GDR_MISSING_IB:
		bad->outer = SIM_STAGED;
		return bad->nodes > 1 && good->outer != SIM_STAGED;
	case FIND_NIC_UNDERUSED:
		bad->nics = 1;
		return bad->nodes > 1 && good->nics > 1;
	case FIND_PODS_SPLIT_NODE:
		bad->gpus = 1;
		bad->nodes = (uint32_t)facts->rank_count;
		gather(good, facts);
		bad->nics = bad->nics > bad->gpus ? bad->nics / good->gpus : 1;
		bad->nics = bad->nics ? bad->nics : 1;
		return facts->rank_count > 1;
	default:
		return false;
	}
}

/* The largest size of the table, where there is one worth the name. */
static const struct fact_row *last_row(const struct log_facts *facts)
{
	const struct fact_row *last = NULL;

	for (uint32_t i = 0; i < facts->row_count; i++)
		if (!last || facts->rows[i].bytes > last->bytes)
			last = &facts->rows[i];
	return last && last->bytes >= FEW_BYTES && last->busbw > 0 ? last : NULL;
}

static void promise(const struct log_facts *facts, const struct sim_site *sound,
	struct finding *finding)
{
	const struct fact_row *row = last_row(facts);
	struct sim_site bad = *sound, good = *sound;
	struct sim_answer now, then;
	uint64_t bytes = row ? row->bytes : USUAL_BYTES;
	double here;
	char size[32];

	if (!spoil(finding->id, facts, &bad, &good) ||
		gain_ask(facts, &good, bytes, &then) ||
		(!row && gain_ask(facts, &bad, bytes, &now)))
		return;
	here = row ? row->busbw : now.busbw;
	if (then.busbw < worth * here)
		return;
	units_print_size(bytes, size, sizeof(size));
	snprintf(finding->gain, sizeof(finding->gain),
		"%.1f GB/s of bus bandwidth at %s %s, %.1f (%.0f to %.0f) on %u x %s "
		"with "
		"%u GPU%s each, by weft sim",
		here, size, row ? "measured here" : "as it is", then.busbw, then.low,
		then.high, good.nodes, good.machine, good.gpus,
		good.gpus == 1 ? "" : "s");
}

void gain_add(
	const struct log_facts *facts, const char *machine, struct diagnosis *diagnosis)
{
	struct sim_site sound;
	const char *name = machine ? machine : facts_platform(facts);
	uint32_t nodes = facts->node_count > 0		  ? (uint32_t)facts->node_count
			 : facts_has_several_nodes(facts) ? facts->host_count
							  : 1;

	if (!name || gain_site(facts, name, nodes, &sound))
		return;
	for (uint32_t i = 0; i < diagnosis->count; i++)
		if (diagnosis->findings[i].severity >= SEVERITY_PERFORMANCE)
			promise(facts, &sound, &diagnosis->findings[i]);
}
