#include "graph/channel_rules.h"

#include "base/param.h"

static uint32_t asked(enum param id)
{
	int64_t value = param_int(id);

	return value > 0 ? (uint32_t)value : 0;
}

/* The newer of two names for one thing goes before the older. */
static uint32_t asked_by(enum param newer, enum param older)
{
	return asked(newer) ? asked(newer) : asked(older);
}

void channel_rules_read(struct channel_rules *rules)
{
	*rules = (struct channel_rules){.min_ctas = asked(PARAM_MIN_CTAS),
		.max_ctas = asked(PARAM_MAX_CTAS),
		.min_channels = asked_by(PARAM_MIN_NCHANNELS, PARAM_MIN_NRINGS),
		.max_channels = asked_by(PARAM_MAX_NCHANNELS, PARAM_MAX_NRINGS),
		.min_p2p = asked(PARAM_MIN_P2P_NCHANNELS),
		.max_p2p = asked(PARAM_MAX_P2P_NCHANNELS),
		.per_net_peer = asked(PARAM_NCHANNELS_PER_NET_PEER),
		.net_bw_per_channel = asked(PARAM_P2P_PER_CHANNEL_NET_BW),
		.p2p_peers = asked(PARAM_P2P_MAX_PEERS),
		.nvls_channels = asked(PARAM_NVLS_NCHANNELS),
		.nvls_chunk = asked(PARAM_NVLS_CHUNKSIZE),
		.nvls_tree_chunk = asked(PARAM_NVLSTREE_MAX_CHUNKSIZE),
		.collnet_nodes = asked(PARAM_COLLNET_NODE_THRESHOLD)};
}
