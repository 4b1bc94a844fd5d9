/*
 * instance_table.h - the machines of a cloud, described by what they are made of.
 *
 * A row names its parts and how they hang together. The layout is a short text: groups
 * divided by ';', each `NUMA/SWITCH PART PART ..`, where SWITCH is the bus id of a PCI
 * switch or '-' for none, and PART is g (GPU) or n (network device) and a bus id. Bus ids
 * are cut short: 53 is 0000:53:00.0, 10:1c is 0000:10:1c.0, ffff:ff:01 is ffff:ff:01.0.
 * GPUs and network devices are numbered in the order of the text.
 */
#ifndef TOPO_INSTANCE_TABLE_H
#define TOPO_INSTANCE_TABLE_H

#include <stdbool.h>
#include <stdint.h>

#include "base/err.h"
#include "topo/xml.h"

struct part_cpu {
	const char *arch, *vendor; /* "0" on arm64, where NCCL asks for none */
	int family, model;	   /* NCCL's numbers */
	bool has_threads;	   /* two to a core */
};

struct part_switch {
	const char *vendor, *device, *link_speed;
	int link_width;
};

struct part_gpu {
	const char *model, *device, *subsystem;
	int sm;
	const char *link_speed;
	int link_width;
	/* "TARGET*COUNT TARGET*COUNT ..": links to NVSwitches. "mesh": to the other GPUs
	 * as in a DGX-1. NULL: none. */
	const char *nvlinks;
	int c2c_bw_mbs, c2c_count; /* 0: none */
	bool gdr;
};

/* A group of EFA devices is one network device to NCCL. */
enum net_naming { NET_EFA, NET_EFA_GROUP, NET_ENA };

struct part_net {
	enum net_naming naming;
	const char *device, *link_speed;
	int link_width, latency_us;
	bool gdr;
};

struct instance_row {
	const char *name;
	const struct part_cpu *cpu;
	const struct part_switch *pci_switch; /* NULL: the layout has none */
	const struct part_gpu *gpu;
	const struct part_net *net;
	int net_mbps, core_count, numa_count; /* cores as the guest counts them */
	const char *layout;
	const char *source, *inferred;
};

extern const struct instance_row instance_rows[];
uint32_t instance_row_count(void);

/* The tree of a row (instance_build.c). */
enum err instance_build(const struct instance_row *row, struct xml_node **tree);

#endif
