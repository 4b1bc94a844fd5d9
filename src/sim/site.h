/*
 * site.h - what is asked about: so many of one machine, and the network between them.
 *
 * A machine is a name that topo/instance.h knows. The network is a class: what software
 * and hardware carry a message between two nodes, which decides what share of the wire a
 * collective gets. How the switches are wired is fabric.h.
 */
#ifndef SIM_SITE_H
#define SIM_SITE_H

#include <stdbool.h>
#include <stdint.h>

#include "sched/sched.h"
#include "topo/xml.h"
#include "tune/regions.h"

/* Classes of wire, inside a node and between nodes. A class has a parent that stands in
 * for it where nothing was measured; SIM_ANY is the parent of all. */
enum sim_wire {
	SIM_ANY,
	SIM_NVLINK, /* NVSwitch of any generation */
	SIM_NVLINK_AMPERE,
	SIM_NVLINK_HOPPER,
	SIM_NVLINK_BLACKWELL,
	SIM_NVLINK_BRIDGE, /* pairs of PCIe cards */
	SIM_PCIE,
	SIM_MNNVL,   /* NVLink domains of several trays */
	SIM_RDMA,    /* of any kind, straight from and to GPU memory */
	SIM_IB,	     /* InfiniBand */
	SIM_ROCE,    /* RDMA over Ethernet */
	SIM_EFA,     /* GPUDirect over EFA, 400 Gb/s or more per GPU pair */
	SIM_EFA_OLD, /* the same of the first generation: four of 100 Gb/s a machine */
	SIM_STAGED,  /* RDMA NICs that cannot reach GPU memory: by way of the host */
	SIM_VIRTUAL, /* one RDMA function of a shared NIC */
	SIM_KERNEL,  /* anything that goes through the kernel's network */
	SIM_TCP,     /* plain sockets */
	SIM_ENA,     /* sockets over the interfaces of AWS */
	SIM_TCPX,    /* TCP with the payload put into GPU memory */
	SIM_TCPXO,   /* the same with the protocol offloaded */
	SIM_WIRES
};

const char *sim_wire_name(enum sim_wire wire);
enum sim_wire sim_wire_find(const char *name); /* SIM_WIRES: there is none */
enum sim_wire sim_wire_parent(enum sim_wire wire);

/* Send and receive of pairs comes beside the collectives. */
enum { SIM_SENDRECV = COLL_COUNT, SIM_COLLS };
const char *sim_coll_name(int coll);
int sim_coll_find(const char *name); /* also nccl-tests' spellings; -1 */

/* Bus bandwidth per algorithm bandwidth, nccl-tests' definition. */
double sim_bus_factor(int coll, double ranks);

enum { SIM_NAME_BYTES = 48, SIM_LIST_BYTES = 64 };

struct sim_site {
	char machine[SIM_NAME_BYTES]; /* of topo/instance.h, unless `tree` is set */
	const struct xml_node *tree;  /* borrowed: a machine of the caller's */
	uint32_t nodes;
	uint32_t gpus;	     /* of a node that take part */
	uint32_t nics;	     /* of a node that take part; 0: the machine's */
	double nic_GBps;     /* of each; 0: the machine's */
	double threads;	     /* of the host for the sockets of a NIC; 0: NCCL's own */
	enum sim_wire inner; /* inside a node */
	enum sim_wire outer; /* between nodes; SIM_ANY on one node */
	uint32_t domain;     /* nodes of an NVLink domain; 0, 1: none */
	bool is_aws;	     /* the plugin's own choices hold */
	bool one_net;	     /* and one is NCCL_NETDEVS_POLICY=max:1 */
	bool no_nvls;
	unsigned minor;		   /* of NCCL 2.x; 0: the newest */
	bool is_environment;	   /* NCCL_ALGO and the like of the environment count */
	bool sharp;		   /* the switches reduce */
	char algo[SIM_LIST_BYTES]; /* as NCCL_ALGO; "" all */
	char proto[SIM_LIST_BYTES];
	enum region_machine regions; /* of the AWS tuner */
};

/* The classes a machine brings: wires inside and between, NICs, the plugin. `nodes` and
 * `gpus` stay as they are. ERR_USAGE with the nearest name when nobody knows it. */
enum err sim_site_machine(struct sim_site *site, const char *name);

/* Plain TCP between nodes: over the one ordinary interface of a cloud's machine, or over
 * those for the GPUs where it has several. */
void sim_site_sockets(struct sim_site *site);

/* What an NCCL of this version ("2.18.5", "2.9.9 era") cannot choose: it has no switch
 * before 2.17, no tree over switches before 2.18, no plugin's tuner before 2.19 and no
 * PAT before 2.23. Words that begin with no digit say nothing; what begins with
 * one and is no version is ERR_USAGE. After sim_site_machine(). */
enum err sim_site_version(struct sim_site *site, const char *version);

/* The same as XML, with the site's NICs; the caller's. */
enum err sim_site_tree(const struct sim_site *site, struct xml_node **tree);

/* Each machine cut into so many pods that are nodes of their own; the NICs that they have
 * beyond those of the machine they share. `nics` of a pod, 0: an equal share. */
enum err sim_site_pods(
	struct sim_site *site, uint32_t pods, uint32_t gpus, uint32_t nics);

/* GB/s that a node can send and receive at once, by its NICs. */
double sim_site_nic_total(const struct sim_site *site);

#endif
