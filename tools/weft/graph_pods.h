/*
 * graph_pods.h - one machine whole and in pods, measured alike: what graph_pods.c finds
 * and prints, and graph_pods_json.c writes as JSON.
 */
#ifndef TOOLS_WEFT_GRAPH_PODS_H
#define TOOLS_WEFT_GRAPH_PODS_H

#include <jansson.h>

#include "weft/graph.h"

/* How a ring's neighbours reach each other. */
struct pods_reach {
	int p2p, shm, net, net_gdr;
	enum path_type worst; /* of P2P */
};

/* One way to run the GPUs. */
struct pods_side {
	uint32_t pods, gpus, nics; /* of a machine; of a pod */
	int nodes, local_ranks, channels;
	float ring_intra, ring_inter; /* all channels together, GB/s */
	struct pods_reach reach;
	struct model_choice small, large;
	double bus_gbps; /* of the large one, as the model sees it */
	double nic_load; /* of the first machine's busiest NIC; 1 is all it can */
};

struct pods_answer {
	struct pods_side whole, split;
	uint32_t nics;	       /* of a machine */
	uint32_t pods_per_nic; /* that one NIC was given to, at most */
	bool is_said;	       /* the user said how many a pod has */
	double slowdown;       /* of large all-reduces in pods; 0: nothing to compare */
};

/* How one rank reaches another: the transport that NCCL takes. */
enum pods_way { PODS_P2P, PODS_SHM, PODS_NET, PODS_NET_GDR };

/* `type` is set for PODS_P2P. Between nodes it is by the NIC that the sender uses on
 * channel 0. */
enum pods_way pods_way(
	const struct cluster *cluster, int from, int to, enum path_type *type);

/* The pods of `args` against the same GPUs in one pod of each machine. The job has the
 * machines whole when it returns. */
enum err pods_compare(
	struct graph_job *job, const struct graph_args *args, struct pods_answer *answer);

/* NICs that are asked for more than they can give slow everything down alike. */
double pods_real_gbps(const struct pods_side *side);

/* "each pod has 1 of the machine's 4 NICs (an equal share), the nearest that is free" */
enum { PODS_TEXT_BYTES = 200 };
void pods_assumed(const struct pods_answer *answer, char text[PODS_TEXT_BYTES]);

/* The caller's; NULL after err_set(). */
json_t *graph_pods_json(const struct graph_job *job, const struct pods_answer *answer);

#endif
