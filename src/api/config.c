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
};

enum { MEMBER_COUNT = sizeof(members) / sizeof(members[0]) };

/* The caller's members over undefined ones. */
static enum err copy(const ncclConfig_t *user, ncclConfig_t *config)
{
	const ncclConfig_t fresh = NCCL_CONFIG_INITIALIZER;
	bool ours = user->size == sizeof(fresh) && user->version == NCCL_VERSION_CODE;

	*config = fresh;
	if (user->magic != NCCL_API_MAGIC || user->size < SIZE_OLDEST)
		return err_set(ERR_ARGUMENT,
			"config was not initialized with NCCL_CONFIG_INITIALIZER "
			"(magic %#x, size %zu)",
			user->magic, user->size);
	memcpy(config, user, user->size < sizeof(fresh) ? user->size : sizeof(fresh));
	/* Our own header says 2.28.9 and yet has the members of 2.30. */
	if (ours)
		return OK;
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

static enum err check_ranges(const ncclConfig_t *config)
{
	for (int i = 0; i < MEMBER_COUNT; i++) {
		const struct member *member = &members[i];
		int value;

		memcpy(&value, (const char *)config + member->offset, sizeof(value));
		if (value == NCCL_CONFIG_UNDEF_INT)
			continue;
		if (value < member->lowest || value > member->highest)
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
	out->min_ctas = or_default(config.minCTAs, out->min_ctas);
	out->max_ctas = or_default(config.maxCTAs, out->max_ctas);
	out->split_share = or_default(config.splitShare, out->split_share);
	out->shrink_share = or_default(config.shrinkShare, out->shrink_share);
	out->cta_policy = or_default(config.CTAPolicy, out->cta_policy);
	out->traffic_class = or_default(config.trafficClass, out->traffic_class);
	copy_name(out->net_name, config.netName, "Net name");
	copy_name(out->comm_name, config.commName, "Comm name");
	if (out->min_ctas > out->max_ctas)
		return err_set(ERR_ARGUMENT,
			"config Min CTAs %d is more than Max CTAs %d", out->min_ctas,
			out->max_ctas);
	return OK;
}

enum err config_read(const ncclConfig_t *user, const struct comm_config *parent,
	struct comm_config *out)
{
	int64_t blocking = param_int(PARAM_COMM_BLOCKING);
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
	*out = config;
	return OK;
}
