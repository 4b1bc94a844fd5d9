/*
 * fabric.h - the network between nodes as data: NICs, leaves, spines, and what of them is
 * broken or slow.
 *
 * A plan is a preset, written KIND[:KEY=VALUE,..], or a file with one KEY VALUE a line:
 *
 *   switch                          every NIC on one switch
 *   fat-tree:leaf=16,spine=8,over=2 leaves of 16 nodes, 8 spines, uplinks half as fast
 *   rail:leaf=32,spine=8            NIC k of 32 nodes on one leaf; rails meet in the
 * spine dual:leaf=16,spine=8            two planes; even and odd NICs efa leaf and spine,
 * every packet by another way ib, roce, tcp:100Gb             one switch; the class of
 * wire, and the rate of a NIC nvl:18                          NVLink domains of 18 nodes,
 * joined by a switch
 *
 * Between two leaves a flow takes one spine, by its number (ECMP), or all of them at
 * once where the network sprays.
 */
#ifndef SIM_FABRIC_H
#define SIM_FABRIC_H

#include <stdbool.h>

#include "sim/flow.h"
#include "sim/site.h"

enum fabric_shape { FABRIC_SWITCH, FABRIC_LEAVES, FABRIC_RAILS };

enum { FABRIC_HARM_MAX = 64, FABRIC_LEAF_MAX = 4096, FABRIC_SPINE_MAX = 1024 };

/* One thing that is broken (share 0) or slow. */
struct fabric_harm {
	enum { HARM_NIC, HARM_NODE, HARM_LEAF, HARM_SPINE, HARM_LINK, HARM_GPU } what;
	uint32_t first, second; /* nic:NODE.NIC, link:LEAF.SPINE; else first only */
	double share;		/* of its rate that is left */
};

struct fabric_plan {
	enum fabric_shape shape;
	bool sprays;
	uint32_t leaf, spine, planes;
	double over;	    /* oversubscription of the leaves; 1: none */
	double nic_GBps;    /* 0: the machine's */
	uint32_t domain;    /* nodes of an NVLink domain; 0: as the site */
	enum sim_wire wire; /* SIM_WIRES: as the site */
	struct fabric_harm harms[FABRIC_HARM_MAX];
	uint32_t harm_count;
};

void fabric_plan_default(struct fabric_plan *plan);

/* A preset, or else the name of a file that exists. ERR_USAGE names what is not known and
 * what is near it. */
enum err fabric_plan_read(const char *text, struct fabric_plan *plan);
enum err fabric_plan_parse(
	const char *text, size_t bytes, const char *name, struct fabric_plan *plan);

/* "nic:3.1", "spine:2"; for slow ones "gpu:17=0.5". */
enum err fabric_harm_read(const char *text, bool is_slow, struct fabric_plan *plan);

/* What the plan says of the site: class, rate, domain. */
void fabric_plan_apply(const struct fabric_plan *plan, struct sim_site *site);

struct fabric {
	struct fabric_plan plan;
	uint32_t nodes, nics, leaves, spines, leaf_nodes;
	struct flow_link *links; /* owned */
	uint32_t link_count;
	double inner_share; /* of the slowest GPU */
};

/* ERR_USAGE where something is broken that is not there, or a node is cut off. */
enum err fabric_build(const struct fabric_plan *plan, const struct sim_site *site,
	struct fabric *fabric);
void fabric_free(struct fabric *fabric);

/* The NIC of `node` that does the work of `nic`: itself, or the next that is alive. */
uint32_t fabric_nic(const struct fabric *fabric, uint32_t node, uint32_t nic);

/* The links from one NIC to another; nodes and NIC pick the spine. */
void fabric_path(const struct fabric *fabric, uint32_t from, uint32_t to, uint32_t nic,
	struct sim_flow *flow);

/* "node 3 NIC 1 out", "leaf 2 to spine 5". */
enum { FABRIC_NAME_BYTES = 48 };
void fabric_link_name(
	const struct fabric *fabric, uint32_t link, char name[FABRIC_NAME_BYTES]);

/* Links of each kind; for loads that are counted and not run. */
uint32_t fabric_out(const struct fabric *fabric, uint32_t node, uint32_t nic);
uint32_t fabric_in(const struct fabric *fabric, uint32_t node, uint32_t nic);
uint32_t fabric_leaf_of(const struct fabric *fabric, uint32_t node, uint32_t nic);
/* Of a leaf that sprays there is one link each way, whatever the spine. */
uint32_t fabric_up(const struct fabric *fabric, uint32_t leaf, uint32_t spine);
uint32_t fabric_down(const struct fabric *fabric, uint32_t leaf, uint32_t spine);

#endif
