/*
 * The structure grew over the years and sits in the caller's binary, so two things say
 * which members are there: `size`, beyond which nothing may be read, and `version`,
 * because some releases share a size and have padding where later ones have a member.
 */
#include "api/config.h"

#include <stdio.h>
#include <string.h>

#include "base/log.h"
#include "base/param.h"

enum { CHANNELS_MAX = 64, SIZE_OLDEST = 24 };

struct member {
	const char *label; /* as in the log line */
	size_t offset;
	unsigned since; /* version code */
	int lowest, highest;
};

#define AT(member) offsetof(ncclConfig_t, member)
static const struct member members[] = {
	{"Blocking", AT(blocking), 21400, 0, 1},
	{"CGA cluster size", AT(cgaClusterSize), 21700, 0, 8},
	{"Min CTAs", AT(minCTAs), 21700, 1, INT_MAX},
	{"Max CTAs", AT(maxCTAs), 21700, 1, INT_MAX},
	{"Split share", AT(splitShare), 21800, 0, 1},
	{"Traffic class", AT(trafficClass), 22500, 0, INT_MAX},
	{"Collnet enable", AT(collnetEnable), 22700, 0, 1},
	{"CTA policy flags", AT(CTAPolicy), 22700, 0, 3},
	{"shrinkShare", AT(shrinkShare), 22700, 0, 1},
	{"nvlsCTAs", AT(nvlsCTAs), 22700, 1, INT_MAX},
	{"nChannelsPerNetPeer", AT(nChannelsPerNetPeer), 22800, 1, CHANNELS_MAX},
	{"nvlinkCentricSched", AT(nvlinkCentricSched), 22800, 0, 1},
	{"graphUsageMode", AT(graphUsageMode), 22900, 0, 2},
	{"numRmaCtx", AT(numRmaCtx), 22900, 0, INT_MAX},
	{"maxP2pPeers", AT(maxP2pPeers), 23000, 1, INT_MAX},
	{"graphStreamOrdering", AT(graphStreamOrdering), 23005, 0, 1},
	{"launchOrderImplicit", AT(launchOrderImplicit), 23100, 0, 1},
	{"numRmaSig", AT(numRmaSig), 23100, 0, INT_MAX},
	{"rmaEagerInit", AT(rmaEagerInit), 23100, 0, 1},
	{"hostCftMode", AT(hostCftMode), 23100, ncclHostCftEnable, ncclHostCftFallback},
	/* NCCL's gate, too, is a release before the member came */
	{"nvlsHostMode", AT(nvlsHostMode), 23100, 0, 3},
};

enum { MEMBER_COUNT = sizeof(members) / sizeof(members[0]) };

/* The caller's members over undefined ones. */
static enum err copy(const ncclConfig_t *user, ncclConfig_t *config)
{
	const ncclConfig_t fresh = NCCL_CONFIG_INITIALIZER;

	*config = fresh;
	if (user->magic != NCCL_API_MAGIC || user->size < SIZE_OLDEST)
		return err_set(ERR_ARGUMENT,
			"config was not initialized with NCCL_CONFIG_INITIALIZER "
			"(magic %#x, size %zu)",
			user->magic, user->size);
	memcpy(config, user, user->size < sizeof(fresh) ? user->size : sizeof(fresh));
	for (int i = 0; i < MEMBER_COUNT; i++)
		if (user->version < members[i].since)
			memcpy((char *)config + members[i].offset,
				(const char *)&fresh + members[i].offset, sizeof(int));
	if (user->version < 21700)
		config->netName = NULL;
	if (user->version < 22700)
		config->commName = NULL;
	return OK;
}

/* Bits, or "all of them, whatever will be". */
static bool is_valid(const struct member *member, int value)
{
	if (member->offset == AT(nvlsHostMode) && value == ncclNvlsHostModeDisable)
		return true;
	return value >= member->lowest && value <= member->highest;
}

static enum err check_ranges(const ncclConfig_t *config)
{
	for (int i = 0; i < MEMBER_COUNT; i++) {
		const struct member *member = &members[i];
		int value;

		memcpy(&value, (const char *)config + member->offset, sizeof(value));
		if (value == NCCL_CONFIG_UNDEF_INT)
			continue;
		if (!is_valid(member, value))
			return err_set(ERR_ARGUMENT,
				"config %s is %d and should be in the %d..%d range",
				member->label, value, member->lowest, member->highest);
		log_info(LOG_ENV, "Comm config %s set to %d", member->label, value);
	}
	return OK;
}

static void copy_name(char to[64], const char *from, const char *label)
{
	if (!from)
		return;
	snprintf(to, 64, "%s", from);
	log_info(LOG_ENV, "Comm config %s set to %s", label, to);
}

static int or_default(int value, int fallback)
{
	return value == NCCL_CONFIG_UNDEF_INT ? fallback : value;
}

/* One of the two alone moves the other's default out of its way. */
static enum err apply_ctas(const ncclConfig_t *config, struct comm_config *out)
{
	bool both = config->minCTAs != NCCL_CONFIG_UNDEF_INT &&
		    config->maxCTAs != NCCL_CONFIG_UNDEF_INT;

	out->min_ctas = or_default(config->minCTAs, out->min_ctas);
	out->max_ctas = or_default(config->maxCTAs, out->max_ctas);
	if (out->min_ctas <= out->max_ctas)
		return OK;
	if (both)
		return err_set(ERR_ARGUMENT,
			"config Min CTAs %d is more than Max CTAs %d", out->min_ctas,
			out->max_ctas);
	if (config->minCTAs == NCCL_CONFIG_UNDEF_INT)
		out->min_ctas = out->max_ctas;
	else
		out->max_ctas = out->min_ctas;
	return OK;
}

static enum err apply_rma(const ncclConfig_t *config, struct comm_config *out)
{
	out->rma_contexts = or_default(config->numRmaCtx, out->rma_contexts);
	out->rma_signals = or_default(config->numRmaSig, out->rma_signals);
	out->rma_eager = or_default(config->rmaEagerInit, out->rma_eager);
	out->host_cft_mode = or_default(config->hostCftMode, out->host_cft_mode);
	if (out->rma_signals && out->rma_contexts > COMM_SIGNALS_MAX / out->rma_signals)
		return err_set(ERR_ARGUMENT,
			"config numRmaCtx %d and numRmaSig %d make more than %d signals "
			"from each rank to each other",
			out->rma_contexts, out->rma_signals, COMM_SIGNALS_MAX);
	return OK;
}

static enum err apply(const ncclConfig_t *user, struct comm_config *out)
{
	ncclConfig_t config;
	enum err e = copy(user, &config);

	if (e)
		return e;
	e = check_ranges(&config);
	if (e)
		return e;
	out->blocking = or_default(config.blocking, out->blocking);
	out->cga_cluster_size = or_default(config.cgaClusterSize, out->cga_cluster_size);
	out->split_share = or_default(config.splitShare, out->split_share);
	out->shrink_share = or_default(config.shrinkShare, out->shrink_share);
	out->cta_policy = or_default(config.CTAPolicy, out->cta_policy);
	out->traffic_class = or_default(config.trafficClass, out->traffic_class);
	copy_name(out->net_name, config.netName, "Net name");
	copy_name(out->comm_name, config.commName, "Comm name");
	e = apply_ctas(&config, out);
	return e ? e : apply_rma(&config, out);
}

enum err config_read(const ncclConfig_t *user, const struct comm_config *parent,
	struct comm_config *out)
{
	int64_t blocking = param_int(PARAM_COMM_BLOCKING);
	int64_t eager = param_int(PARAM_RMA_EAGER_INIT);
	struct comm_config config;
	enum err e = OK;

	if (!user && parent)
		config = *parent;
	else
		comm_config_default(&config);
	if (user)
		e = apply(user, &config);
	if (e)
		return e;
	if (blocking == 0 || blocking == 1)
		config.blocking = blocking;
	if (eager == 0 || eager == 1)
		config.rma_eager = eager;
	*out = config;
	return OK;
}
