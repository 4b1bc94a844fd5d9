#include "sim/predict.h"

#include <math.h>

/* Both ways are busy at once; the nearer they are, the more they disturb each other. */
static double together(double a, double b)
{
	return pow(pow(a, 8) + pow(b, 8), .125);
}

static bool is_tree(enum sim_method method)
{
	return method >= SIM_TREE_LL && method <= SIM_TREE_SIMPLE;
}

/* Of its NVLinks a GPU has so much for a reduction in the switch. It sends all it has to
 * be reduced and, of one part of the result, what the switch gives to all. */
static const double NVLS_SHARE = .83;

static double nvls_load(double local)
{
	return 1 + 1 / local;
}

/* By way of the host the bytes of both directions pass a PCI link that does not quite
 * double for it. */
static const double STAGED_PASSES = 1.6;

/* Who is in the middle of a tree over switches also passes on what it got: the links of
 * a whole domain of trays carry all of it twice. */
static const double NVLS_FORWARD = 1.45, NVLS_FORWARD_DOMAIN = 2;

/* The same of a plain tree, where threads and not copies of whole chunks move what has
 * flags in it. */
static const double TREE_FLAGS_FORWARD = 1.6;

static double nvls_tree_load(const struct sim_scene *scene, double local)
{
	double load = nvls_load(local);

	if (scene->nvl_groups > 2)
		load *= scene->site.domain > 1 ? NVLS_FORWARD_DOMAIN : NVLS_FORWARD;
	return load;
}

/* GB that the busiest GPU sends inside its node per GB of the call, by the rate that the
 * method can use. */
static double inner_load(const struct sim_scene *scene, int coll, enum sim_method method)
{
	double n = scene->ranks, factor = sim_bus_factor(coll, n);
	double local = (double)scene->ranks / scene->nvl_groups;

	if (local <= 1)
		return 0;
	switch (method) {
	case SIM_NVLS_SIMPLE:
		return (coll == COLL_ALL_REDUCE ? nvls_load(local) : factor) /
		       (NVLS_SHARE * scene->nvlink_GBps);
	case SIM_COLLNET_SIMPLE: /* each scatters to its neighbours, and gathers */
		return 2 * (local - 1) / local / scene->nvlink_GBps;
	case SIM_NVLS_TREE_SIMPLE:
		return nvls_tree_load(scene, local) / (NVLS_SHARE * scene->nvlink_GBps);
	case SIM_P2P:
		if (coll == SIM_SENDRECV)
			return scene->nvl_groups > 1 ? 0 : 1 / scene->nvlink_GBps;
		return (local - 1) / n / scene->nvlink_GBps;
	default:
		return (is_tree(method) ? 2 : factor) / scene->ring_GBps;
	}
}

static double tree_load(int coll, double groups, enum sim_method method)
{
	bool has_flags = method == SIM_TREE_LL || method == SIM_TREE_LL128;

	if (coll != COLL_ALL_REDUCE || groups < 3)
		return 1;
	return has_flags ? 2 * TREE_FLAGS_FORWARD : 2;
}

/* GB/s that a group's GPUs reach its NICs with; see STAGED_PASSES. */
static double outer_reach(const struct sim_scene *scene)
{
	double local = (double)scene->ranks / scene->nvl_groups;

	return local * scene->pcie_GBps /
	       (scene->site.outer == SIM_STAGED ? STAGED_PASSES : 1);
}

static double outer_rate(const struct sim_scene *scene)
{
	return sim_site_nic_total(&scene->site) * scene->site.nodes / scene->nvl_groups;
}

/* The same of one NIC and one GPU: where all of a gather ends. */
static double one_rate(const struct sim_scene *scene)
{
	double local = (double)scene->ranks / scene->nvl_groups;
	double rate = sim_site_nic_total(&scene->site) / scene->site.nics;
	double reach = outer_reach(scene) / local;

	return reach > 0 && reach < rate ? reach : rate;
}

/* Of two that are nearly alike the NIC is what people know. */
enum sim_bound sim_outer_bound(const struct sim_scene *scene)
{
	static const double ALIKE = .9;
	double reach = outer_reach(scene), rate = outer_rate(scene);
	const struct sim_site *site = &scene->site;

	if (reach > 0 && reach < ALIKE * rate)
		return SIM_BOUND_PCI;
	return sim_site_nic_total(site) < ALIKE * site->nics * site->nic_GBps
		       ? SIM_BOUND_THREADS
		       : SIM_BOUND_NICS;
}

/* The same of the busiest node's NICs. A tree over two nodes has each send the other what
 * it has and get the sum; over more, a node in the middle has two below it. A node sends
 * no faster than its GPUs reach the NICs. */
static double outer_load(const struct sim_scene *scene, int coll, enum sim_method method)
{
	double n = scene->ranks, groups = scene->nvl_groups;
	double rate = outer_rate(scene), reach = outer_reach(scene), local = n / groups;

	if (reach > 0 && reach < rate)
		rate = reach;
	if (groups <= 1 || rate <= 0)
		return 0;
	switch (method) {
	case SIM_TREE_LL:
	case SIM_TREE_LL128:
	case SIM_TREE_SIMPLE:
	case SIM_NVLS_TREE_SIMPLE:
		return tree_load(coll, groups, method) / rate;
	case SIM_COLLNET_SIMPLE:
		return 1 / rate;
	case SIM_NVLS_SIMPLE:
		return 1 / rate;
	case SIM_P2P:
		if (coll == SIM_SENDRECV)
			return local / rate;
		if (coll == COLL_GATHER || coll == COLL_SCATTER)
			return (n - local) / n / one_rate(scene);
		return (n - local) / n * local / rate;
	default:
		return sim_bus_factor(coll, n) / rate;
	}
}

/* What the network between nodes needs for the call, whatever the method. */
static double least_load(const struct sim_scene *scene, int coll, enum sim_method method)
{
	double groups = scene->nvl_groups, rate = outer_rate(scene);
	double reach = outer_reach(scene);

	if (reach > 0 && reach < rate)
		rate = reach;
	if (groups <= 1 || rate <= 0 || method == SIM_P2P)
		return outer_load(scene, coll, method);
	switch (coll) {
	case COLL_ALL_REDUCE:
		return (scene->site.sharp ? 1 : 2 * (groups - 1) / groups) / rate;
	case COLL_BROADCAST:
	case COLL_REDUCE:
		return 1 / rate;
	default:
		return (groups - 1) / groups / rate;
	}
}

/* From the call to the first byte: the kernel's launch, which NCCL's model leaves out. */
static const double LAUNCH_US = 6;

/* Point to point has no latency in NCCL's model: a start and a little for each peer;
 * peers of other nodes are served several at once. */
static void waits_of_pairs(
	const struct sim_scene *scene, int coll, struct sim_terms *terms)
{
	double local = (double)scene->ranks / scene->nvl_groups;
	double far = scene->ranks - local;

	terms->latency_us = coll == SIM_SENDRECV ? 6 : 6 + .2 * scene->ranks;
	terms->hops = scene->nvl_groups < 2 ? 0 : coll == SIM_SENDRECV ? 2 : 4 + far / 8;
}

/* What a method waits for, by NCCL's model. Beyond two nodes, who is in the middle of a
 * tree hears two others, one after the other, on every further level. A chain from or to
 * a root passes as many as a ring of blocks does: NCCL's model has no network in it, and
 * no chain where all channels have the same order. */
static void waits_of(const struct sim_scene *scene, int coll, struct sim_terms *terms)
{
	static const enum algo algos[SIM_METHODS] = {ALGO_RING, ALGO_RING, ALGO_RING,
		ALGO_TREE, ALGO_TREE, ALGO_TREE, ALGO_NVLS, ALGO_NVLS_TREE, ALGO_PAT,
		ALGO_COLLNET_DIRECT};
	static const enum model_func funcs[COLL_COUNT] = {
		[COLL_ALL_REDUCE] = MODEL_ALL_REDUCE,
		[COLL_BROADCAST] = MODEL_ALL_GATHER,
		[COLL_REDUCE] = MODEL_ALL_GATHER,
		[COLL_ALL_GATHER] = MODEL_ALL_GATHER,
		[COLL_REDUCE_SCATTER] = MODEL_REDUCE_SCATTER};
	enum sim_method method = terms->method;
	enum proto proto = method <= SIM_TREE_SIMPLE ? (enum proto)(method % 3)
						     : PROTO_SIMPLE;
	double levels = floor(log2(scene->nvl_groups));

	if (method == SIM_P2P) {
		waits_of_pairs(scene, coll, terms);
		return;
	}
	terms->latency_us = (double)scene->bare_us[funcs[coll]][algos[method]][proto];
	terms->hops = (double)scene->hops[funcs[coll]][algos[method]][proto];
	if (!(terms->latency_us > 0))
		terms->latency_us = 20;
	if ((is_tree(method) || method == SIM_NVLS_TREE_SIMPLE) && levels > 1)
		terms->hops *= 2 - 1 / levels;
}

static enum sim_wire wire_of(const struct sim_scene *scene)
{
	if (scene->site.domain > 1)
		return SIM_MNNVL;
	return scene->nvl_groups > 1 ? scene->site.outer : scene->site.inner;
}

/* An EFA waits as long for the host's memory as for a GPU's. */
static enum sim_wire net_of(const struct sim_scene *scene)
{
	if (scene->nvl_groups < 2)
		return wire_of(scene);
	return scene->site.outer == SIM_STAGED && scene->site.is_aws ? SIM_EFA
								     : scene->site.outer;
}

enum sim_traffic sim_traffic_of(int coll, enum sim_method method)
{
	if (is_tree(method) || method == SIM_NVLS_TREE_SIMPLE)
		return SIM_TRAFFIC_TREE;
	if (method != SIM_P2P || coll == SIM_SENDRECV)
		return SIM_TRAFFIC_RING;
	return coll == COLL_GATHER || coll == COLL_SCATTER ? SIM_TRAFFIC_ONE
							   : SIM_TRAFFIC_ALL;
}

/* A ring cuts a call into a part for each rank, a switch into one for each GPU below it,
 * and has a chunk of each under way. */
static void cuts_set(const struct sim_scene *scene, struct sim_terms *terms)
{
	static const double USUAL = 8;

	terms->cut = terms->width = 1;
	if (terms->method <= SIM_RING_SIMPLE)
		terms->cut = scene->ranks / USUAL;
	if (terms->method == SIM_NVLS_SIMPLE || terms->method == SIM_NVLS_TREE_SIMPLE)
		terms->cut = terms->width = scene->ranks / USUAL / scene->nvl_groups;
}

enum err sim_terms_make(const struct sim_scene *scene, int coll, uint64_t bytes,
	const struct sim_strain *strain, struct sim_terms *terms)
{
	enum err e = sim_scene_choose(scene, coll, bytes, &terms->method);

	if (e)
		return e;
	if (scene->site.sharp && coll == COLL_ALL_REDUCE && scene->nvl_groups > 2 &&
		terms->method >= SIM_RING_LL128)
		terms->method = SIM_COLLNET_SIMPLE;
	terms->wire = wire_of(scene);
	terms->net = net_of(scene);
	waits_of(scene, coll, terms);
	terms->latency_us += LAUNCH_US;
	terms->inner_us = (double)bytes * inner_load(scene, coll, terms->method) / 1e3;
	terms->outer_us = (double)bytes * outer_load(scene, coll, terms->method) / 1e3;
	terms->least_us = (double)bytes * least_load(scene, coll, terms->method) / 1e3;
	if (strain) {
		terms->inner_us *= strain->inner;
		terms->outer_us *= strain->outer[sim_traffic_of(coll, terms->method)];
	}
	cuts_set(scene, terms);
	terms->ideal_us = together(terms->inner_us, terms->outer_us);
	return OK;
}

const double SIM_ABOVE_WIRE = 1.03;

/* What the network cannot carry nobody measures. */
static double high_of(const struct sim_terms *terms, uint64_t bytes, double bus_factor,
	const struct sim_answer *answer, double wide)
{
	double high = answer->busbw * wide, most;

	if (!(terms->least_us > 0))
		return high;
	most = SIM_ABOVE_WIRE * (double)bytes * bus_factor / terms->least_us / 1e3;
	return fmin(high, fmax(most, answer->busbw));
}

void sim_answer_make(const struct sim_calib *calib, const struct sim_terms *terms,
	uint64_t bytes, double bus_factor, struct sim_answer *answer)
{
	struct sim_load load = {terms->latency_us, terms->hops, terms->ideal_us,
		(double)bytes, terms->width, terms->cut};
	struct sim_params params;
	struct sim_time time;
	double wide;

	sim_calib_find(calib, terms->wire, terms->net, terms->method, &params);
	sim_params_time(&params, &load, &time);
	wide = exp(params.spread[bytes >= 1 << 20] * (1 + .1 * params.steps));
	*answer = (struct sim_answer){.terms = *terms,
		.rows = params.rows,
		.sources = params.sources,
		.is_own_class = params.steps == 0};
	answer->time_us = time.time_us;
	answer->latency_us = time.latency_us;
	answer->transfer_us = time.transfer_us;
	answer->ramp_us = time.ramp_us;
	answer->algbw = (double)bytes / answer->time_us / 1e3;
	answer->busbw = answer->algbw * bus_factor;
	answer->low = answer->busbw / wide;
	answer->high = high_of(terms, bytes, bus_factor, answer, wide);
}

enum err sim_predict(const struct sim_scene *scene, const struct sim_calib *calib,
	int coll, uint64_t bytes, struct sim_answer *answer)
{
	struct sim_terms terms;
	enum err e = sim_terms_make(scene, coll, bytes, NULL, &terms);

	if (!e)
		sim_answer_make(
			calib, &terms, bytes, sim_bus_factor(coll, scene->ranks), answer);
	return e;
}
