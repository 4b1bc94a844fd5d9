#include "weft/doctor/env_rules.h"

#include <stdio.h>
#include <string.h>

#include "base/env_names.h"

/* Names after NCCL_, what is right for most, and what they do. */
static const struct {
	const char *name, *usual, *what;
} overrides[] = {
	{"ALGO", "", "by default NCCL chooses the algorithm by size"},
	{"PROTO", "", "by default NCCL chooses the protocol by size"},
	{"MIN_NCHANNELS", "", "the default follows the topology"},
	{"MAX_NCHANNELS", "", "the default follows the topology"},
	{"MIN_NRINGS", "", "the default follows the topology"},
	{"MAX_NRINGS", "", "the default follows the topology"},
	{"MIN_CTAS", "", "the default follows the topology"},
	{"MAX_CTAS", "", "the default follows the topology"},
	{"BUFFSIZE", "4194304", "the default is 4 MiB"},
	{"NTHREADS", "", "the default follows the GPU"},
	{"IB_DISABLE", "0", "the default is 0; it has no effect on EFA"},
	{"P2P_DISABLE", "0", "the default is 0"},
	{"SHM_DISABLE", "0", "the default is 0"},
	{"CROSS_NIC", "2", "the default is 2"},
	{"IB_GID_INDEX", "-1", "NCCL 2.21 and later find it themselves"},
	{"NET_GDR_LEVEL", "", "the default follows the machine"},
	{"P2P_LEVEL", "", "the default is PXB"},
	{"NVLS_ENABLE", "2", "the default uses NVLink SHARP where it is there"},
	{"CUMEM_ENABLE", "", "the default follows the driver"},
	{"IB_TIMEOUT", "20", "the default is 20; longer only hides the cause"},
	{"IB_QPS_PER_CONNECTION", "1", "the default is 1"},
	{"LAUNCH_MODE", "PARALLEL", "the default is PARALLEL"},
	{"PXN_DISABLE", "0", "the default is 0"},
	{"DMABUF_ENABLE", "1", "the default is 1"},
	{"NET", "", "by default NCCL takes the best network it finds"},
};

/* What aws-ofi-nccl writes into the environment by itself. */
static bool is_plugins_own(
	const struct env_context *context, const char *rest, const char *value)
{
	if (!strcmp(rest, "PROTO") && context->is_forced_simple)
		return true;
	return context->has_ofi &&
	       ((!strcmp(rest, "BUFFSIZE") && !strcmp(value, "8388608")) ||
		       (!strcmp(rest, "P2P_NET_CHUNKSIZE") && !strcmp(value, "524288")));
}

static enum env_verdict judge_name(const char *name, char *why, size_t room)
{
	const char *reason;
	char nearest[ENV_NAME_BYTES];

	switch (env_name_kind(name, &reason)) {
	case ENV_NAME_OBSOLETE:
		snprintf(why, room, "%s", reason);
		return ENV_UNKNOWN;
	case ENV_NAME_UNKNOWN:
		if (env_name_nearest(name, nearest))
			snprintf(why, room, "nobody knows it; is %s meant?", nearest);
		else
			snprintf(why, room, "nobody knows it");
		return ENV_UNKNOWN;
	case ENV_NAME_KNOWN:
	case ENV_NAME_FOREIGN:
		break;
	}
	return ENV_FINE;
}

enum env_verdict env_judge(const struct env_context *context, const char *name,
	const char *value, char *why, size_t room)
{
	enum env_verdict verdict = judge_name(name, why, room);

	if (verdict != ENV_FINE)
		return verdict;
	if (!value[0]) {
		snprintf(why, room, "it is set to nothing");
		return ENV_EMPTY;
	}
	if (strncmp(name, "NCCL_", 5) != 0 || is_plugins_own(context, name + 5, value))
		return ENV_FINE;
	for (size_t i = 0; i < sizeof(overrides) / sizeof(overrides[0]); i++)
		if (!strcmp(overrides[i].name, name + 5) &&
			strcmp(overrides[i].usual, value) != 0) {
			snprintf(why, room, "%s", overrides[i].what);
			return ENV_OVERRIDES;
		}
	return ENV_FINE;
}
