/* One configuration: the site with its pods and fabric, and every size answered. */
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "base/environment.h"
#include "base/param.h"
#include "common/units.h"
#include "sim/resolve.h"
#include "sim/tiles.h"
#include "topo/instance.h"
#include "weft/sim.h"

/* What the job is told to do without, sockets do. */
static bool is_told_sockets(const struct sim_site *site)
{
	const char *net = param_text(PARAM_NET);
	bool is_verbs = site->outer == SIM_IB || site->outer == SIM_ROCE ||
			site->outer == SIM_VIRTUAL || site->outer == SIM_RDMA;

	return (net && !strcasecmp(net, "Socket")) ||
	       (is_verbs && param_int(PARAM_IB_DISABLE));
}

static enum err net_apply(enum sim_net net, struct sim_site *site)
{
	if (net == SIM_NET_OFI && !site->is_aws)
		return err_set(ERR_USAGE,
			"--net ofi: what the plugin does is known for instance types of "
			"AWS, such as p4d.24xlarge, and not for a %s",
			site->machine);
	if (net == SIM_NET_SOCKET)
		sim_site_sockets(site);
	if (net == SIM_NET_PLAIN) {
		site->is_aws = false;
		site->regions = REGION_NONE;
	}
	return OK;
}

/* What is out of range, or no whole number, is nothing to predict with. `threads` stays
 * where the environment says nothing. */
static enum err threads_read(double *threads)
{
	enum { MOST = 16 };
	const char *text = environment_find("NCCL_SOCKET_NTHREADS");
	int64_t number;

	if (!text || !*text)
		return OK;
	if (!units_int(text, 0, MOST, &number))
		return err_set(ERR_USAGE,
			"NCCL_SOCKET_NTHREADS='%.32s': give a whole number from 0 to %d, "
			"or unset it",
			text, MOST);
	*threads = (double)number;
	return OK;
}

static enum err site_make(const struct sim_args *args, struct sim_site *site)
{
	const struct instance_info *info;
	uint32_t gpus = args->site.gpus;
	enum err e;

	*site = args->site;
	e = sim_site_named(site, args->files[0]);
	if (e)
		return e;
	site->nodes += !site->nodes;
	info = instance_find(site->machine);
	if (gpus > info->gpu_count)
		return err_set(ERR_USAGE, "a %s has %u GPU%s; --gpus-per-node %u is more",
			site->machine, info->gpu_count, info->gpu_count == 1 ? "" : "s",
			gpus);
	if (args->nics > site->nics)
		return err_set(ERR_USAGE, "a %s has %u NIC%s; --nics %u is more",
			site->machine, site->nics, site->nics == 1 ? "" : "s",
			args->nics);
	e = net_apply(
		args->net == SIM_NET_MACHINE && !args->own_choice && is_told_sockets(site)
			? SIM_NET_SOCKET
			: args->net,
		site);
	if (e)
		return e;
	site->gpus = gpus ? gpus : info->gpu_count;
	site->is_environment = !args->own_choice;
	e = sim_site_version(site, args->nccl);
	if (!e)
		e = threads_read(&site->threads);
	if (e)
		return e;
	fabric_plan_apply(&args->plan, site);
	if (args->nics)
		site->nics = args->nics;
	if (args->pods)
		e = sim_site_pods(site, args->pods, args->pod_gpus, args->pod_nics);
	if (!e && site->domain > site->nodes)
		site->domain = site->nodes;
	if (!e && site->domain > 1 && site->nodes % site->domain)
		e = err_set(ERR_USAGE,
			"%u nodes are no whole number of NVLink domains of %u",
			site->nodes, site->domain);
	if (!e && site->nodes * site->gpus < 2)
		e = err_set(ERR_USAGE, "one GPU alone sends nothing; raise --nodes");
	return e;
}

enum err sim_run_ask(const struct sim_run *run, uint64_t bytes, struct sim_answer *out)
{
	struct sim_terms terms;
	enum err e = sim_terms_make(
		&run->scene, run->args->coll, bytes, &run->strain, &terms);

	if (!e)
		sim_answer_make(&run->calib, &terms, bytes,
			sim_bus_factor(run->args->coll, run->scene.ranks), out);
	return e;
}

static enum err rows_fill(struct sim_run *run)
{
	double size = (double)run->args->first;
	enum err e = OK;

	while (!e && size <= (double)run->args->last && run->count < SIM_ROWS_MAX) {
		uint64_t bytes = (uint64_t)llround(size);

		run->sizes[run->count] = bytes;
		e = sim_run_ask(run, bytes, &run->rows[run->count]);
		run->count++;
		size *= run->args->factor;
	}
	return e;
}

enum err sim_run_make(const struct sim_args *args, struct sim_run *run)
{
	struct sim_site site;
	enum err e;

	memset(run, 0, sizeof(*run));
	run->args = args;
	e = site_make(args, &site);
	if (!e)
		e = fabric_build(&args->plan, &site, &run->fabric);
	if (!e)
		e = traffic_strain(&run->fabric, &run->strain);
	if (!e && (args->plan.shape != FABRIC_SWITCH || args->plan.harm_count))
		e = tiles_strain(&run->fabric, &run->strain);
	if (!e)
		e = sim_scene_make(&site, &run->scene);
	if (!e) {
		sim_calib_load(&run->calib);
		e = rows_fill(run);
	}
	if (e)
		sim_run_free(run);
	return e;
}

void sim_run_free(struct sim_run *run)
{
	sim_scene_free(&run->scene);
	fabric_free(&run->fabric);
}

void sim_run_title(const struct sim_run *run, char text[200])
{
	char site[SIM_TAKEN_BYTES];

	sim_site_text(&run->scene.site, site);
	snprintf(text, 200, "%s, %s", sim_coll_name(run->args->coll), site);
}
