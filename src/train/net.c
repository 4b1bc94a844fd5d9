#include "train/net.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "sim/resolve.h"
#include "topo/instance.h"

enum err net_make(
	struct train_net *net, const char *machine, uint32_t nodes, uint32_t gpus)
{
	const struct instance_info *info;
	enum err e;

	*net = (struct train_net){.scale = 1};
	net->site.nodes = nodes;
	e = sim_site_named(&net->site, machine);
	if (e)
		return e;
	if (net->site.domain > nodes) /* a rack's name says of how many trays it is */
		net->site.domain = nodes;
	info = instance_find(net->site.machine);
	if (gpus > info->gpu_count)
		return err_set(ERR_USAGE, "a %s has %u GPUs; %u are more",
			net->site.machine, info->gpu_count, gpus);
	net->site.gpus = gpus ? gpus : info->gpu_count;
	if (net->site.inner == SIM_MNNVL)
		net->domain = 18;
	sim_calib_load(&net->calib);
	net->curves = calloc(NET_CURVES_MAX, sizeof(*net->curves));
	if (!net->curves)
		return err_set(ERR_SYSTEM, "no memory for the curves of %u nodes", nodes);
	return OK;
}

void net_free(struct train_net *net)
{
	free(net->curves);
	net->curves = NULL;
	net->curve_count = 0;
}

/* The NVLink domain holds whole nodes of the group: the most that divides them. */
static uint32_t domain_of(const struct train_net *net, const struct net_group *group)
{
	uint32_t domain = net->domain < group->nodes ? net->domain : group->nodes;

	if (net->domain <= 1 || group->is_far)
		return 0;
	while (domain > 1 && group->nodes % domain)
		domain--;
	return domain;
}

static void group_site(
	const struct train_net *net, const struct net_group *group, struct sim_site *site)
{
	double beside = (double)net->site.gpus / group->per_node;
	double share = net->site.nics / beside;

	*site = net->site;
	site->gpus = group->per_node;
	site->nodes = group->nodes;
	site->domain = domain_of(net, group);
	site->nics = share < 1 ? 1 : (uint32_t)share;
	site->nic_GBps *= net->scale * share / site->nics;
}

static enum err curve_fill(const struct train_net *net, const struct sim_scene *scene,
	struct net_curve *curve)
{
	enum err e = OK;

	for (int i = 0; !e && i < NET_POINTS; i++) {
		struct sim_answer answer;

		e = sim_predict(scene, &net->calib, curve->coll,
			(uint64_t)1 << (NET_FIRST_BITS + 2 * i), &answer);
		if (!e)
			curve->seconds[i] = answer.time_us * 1e-6;
	}
	return e;
}

static struct net_curve *curve_find(
	const struct train_net *net, int coll, const struct net_group *group)
{
	for (uint32_t i = 0; i < net->curve_count; i++) {
		struct net_curve *old = &net->curves[i];

		if (old->coll == coll && old->per_node == group->per_node &&
			old->nodes == group->nodes && old->is_far == group->is_far)
			return old;
	}
	return NULL;
}

/* A scene costs most: what a group of this shape may be asked for later is taken too. */
static enum err curves_add(struct train_net *net, int coll, const struct net_group *group)
{
	const int colls[] = {coll, COLL_ALL_GATHER, COLL_REDUCE_SCATTER, COLL_ALL_REDUCE};
	bool is_pair = coll == SIM_SENDRECV;
	struct sim_scene scene;
	struct sim_site site;
	enum err e;

	group_site(net, group, &site);
	e = sim_scene_make(&site, &scene);
	if (e)
		return e;
	for (int i = 0; !e && i < (is_pair ? 1 : 4); i++) {
		struct net_curve *fresh = &net->curves[net->curve_count];

		if (curve_find(net, colls[i], group))
			continue;
		if (net->curve_count == NET_CURVES_MAX) {
			e = err_set(ERR_INTERNAL, "more than %d kinds of groups",
				NET_CURVES_MAX);
			break;
		}
		*fresh = (struct net_curve){.coll = colls[i],
			.per_node = group->per_node,
			.nodes = group->nodes,
			.is_far = group->is_far};
		e = curve_fill(net, &scene, fresh);
		net->curve_count += !e;
	}
	sim_scene_free(&scene);
	return e;
}

enum err net_curve_get(struct train_net *net, int coll, const struct net_group *group,
	const struct net_curve **curve)
{
	enum err e = OK;

	*curve = NULL;
	if ((uint64_t)group->per_node * group->nodes < 2)
		return OK;
	if (!curve_find(net, coll, group)) {
		uint64_t start = clock_ns();

		e = curves_add(net, coll, group);
		net->asked_ns += clock_ns() - start;
	}
	if (!e)
		*curve = curve_find(net, coll, group);
	return e;
}

double net_curve_time(const struct net_curve *curve, double bytes)
{
	double at, low, high;
	int i;

	if (!curve || bytes <= 0)
		return 0;
	at = (log2(bytes) - NET_FIRST_BITS) / 2;
	if (at <= 0)
		return curve->seconds[0];
	if (at >= NET_POINTS - 1)
		return curve->seconds[NET_POINTS - 1] * bytes /
		       exp2(NET_FIRST_BITS + 2.0 * (NET_POINTS - 1));
	i = (int)at;
	low = curve->seconds[i];
	high = curve->seconds[i + 1];
	at = (bytes - exp2(NET_FIRST_BITS + 2.0 * i)) /
	     (exp2(NET_FIRST_BITS + 2.0 * i) * 3);
	return low + (high - low) * at;
}
