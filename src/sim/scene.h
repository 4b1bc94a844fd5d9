/*
 * scene.h - a site with what the library decides there: paths, graphs, channels, and the
 * algorithm and protocol of a call.
 *
 * The choice is NCCL's (tune/model.h), after what the machine's plugin has its own mind
 * about: no protocol but Simple over the first EFA, and the regions of the AWS tuner.
 * Above SIM_NODES_SEARCHED nodes the graphs are those of fewer, and the model is told the
 * real number: it asks for nothing else of a cluster.
 */
#ifndef SIM_SCENE_H
#define SIM_SCENE_H

#include "graph/decide.h"
#include "sim/site.h"
#include "tune/model.h"

enum { SIM_NODES_SEARCHED = 16 };

/* How a call goes: an algorithm with a protocol, or point to point. */
enum sim_method {
	SIM_RING_LL,
	SIM_RING_LL128,
	SIM_RING_SIMPLE,
	SIM_TREE_LL,
	SIM_TREE_LL128,
	SIM_TREE_SIMPLE,
	SIM_NVLS_SIMPLE,
	SIM_NVLS_TREE_SIMPLE,
	SIM_PAT_SIMPLE,
	SIM_COLLNET_SIMPLE,
	SIM_P2P,
	SIM_METHODS
};

const char *sim_method_name(enum sim_method method);
enum sim_method sim_method_find(const char *name); /* SIM_METHODS: there is none */

struct sim_scene {
	struct sim_site site;
	struct xml_node *tree;	   /* owned */
	struct decision *decision; /* owned */
	struct model model;
	/* What a method waits for: its latency as if the network had none of its own,
	 * and how often it waits for the network's. */
	float bare_us[MODEL_FUNCS][ALGO_COUNT][PROTO_COUNT];
	float hops[MODEL_FUNCS][ALGO_COUNT][PROTO_COUNT];
	double nvlink_GBps;	    /* that a GPU can send inside its node */
	double ring_GBps;	    /* of all channels together, inside a node */
	double pcie_GBps;	    /* of a GPU towards the NICs; 0: by other links */
	uint32_t ranks, nvl_groups; /* groups: nodes, or NVLink domains of several */
};

enum err sim_scene_make(const struct sim_site *site, struct sim_scene *scene);
void sim_scene_free(struct sim_scene *scene);

/* What a call of `bytes` (nccl-tests' size) gets. ERR_USAGE when the lists of the user
 * leave nothing. */
enum err sim_scene_choose(
	const struct sim_scene *scene, int coll, uint64_t bytes, enum sim_method *method);

#endif
