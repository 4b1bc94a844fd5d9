/* weft sim and the environment: what is set and does not count is said, once. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "base/environment.h"
#include "base/param.h"
#include "weft/graph_env.h"
#include "weft/sim.h"

static bool is_passed_over(enum param id)
{
	const struct param_info *info = param_info(id);
	const char *text = environment_find(info->name);

	if (info->kind != PARAM_INT || strncmp(info->name, "NCCL_", 5) != 0 || !text ||
		!*text || graph_env_why(info->name, true) != GRAPH_ENV_COUNTS)
		return false;
	param_int(id);
	return param_origin(id) == PARAM_FROM_DEFAULT;
}

/* What carries messages has no verbs that could be left out. */
static bool is_fabric_only(const struct sim_site *site)
{
	return site->outer == SIM_EFA || site->outer == SIM_EFA_OLD ||
	       site->outer == SIM_STAGED;
}

/* NCCL_NET names sockets, or what the site has anyway. */
static bool is_net_of(const struct sim_site *site)
{
	const char *net = environment_find("NCCL_NET");

	if (!net || !strcasecmp(net, "Socket"))
		return true;
	return !strcasecmp(net, site->is_aws ? "AWS Libfabric" : "IB");
}

/* As in a job, where the log says it, the default holds. */
void sim_env_tell(const struct sim_site *site)
{
	char also[64];

	snprintf(also, sizeof(also), " SOCKET_NTHREADS %s%s",
		is_net_of(site) ? "NET " : "", is_fabric_only(site) ? "" : "IB_DISABLE ");
	graph_env_tell_but("sim", also);
	for (int i = 0; i < PARAM_COUNT; i++) {
		const struct param_info *info = param_info((enum param)i);

		if (!is_passed_over((enum param)i))
			continue;
		fprintf(stderr,
			"weft sim: %s='%.32s' does not count: give a whole number",
			info->name, environment_find(info->name));
		if (info->lowest > INT32_MIN)
			fprintf(stderr, " from %" PRId64, info->lowest);
		if (info->highest < INT32_MAX)
			fprintf(stderr, " to %" PRId64, info->highest);
		fprintf(stderr, "\n");
	}
}
