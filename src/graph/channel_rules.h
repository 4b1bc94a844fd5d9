/*
 * channel_rules.h - how many channels a user wants: NCCL_MIN_CTAS and its kin, read once.
 *
 * Graphs are searched as if nobody had bounded anything; the rules count when they are
 * joined. All zeros means that nothing is asked for.
 */
#ifndef GRAPH_CHANNEL_RULES_H
#define GRAPH_CHANNEL_RULES_H

#include <stdint.h>

struct channel_rules {
	uint32_t min_ctas, max_ctas;	     /* of NVLS too */
	uint32_t min_channels, max_channels; /* NCCL_MIN_NCHANNELS; not of NVLS */
	uint32_t min_p2p, max_p2p;	     /* of sends and receives */
	uint32_t per_net_peer;		     /* channels of a send to another node */
	uint32_t net_bw_per_channel;	     /* GB/s one of them carries */
	uint32_t p2p_peers;		     /* at once */
	uint32_t nvls_channels, nvls_chunk, nvls_tree_chunk;
	uint32_t collnet_nodes; /* fewer than these do without CollNet */
};

/* From the environment. */
void channel_rules_read(struct channel_rules *rules);

#endif
