/*
 * rules.h - the knobs that decide paths: NCCL_P2P_LEVEL and its kin, read once.
 */
#ifndef TOPO_RULES_H
#define TOPO_RULES_H

#include <stdbool.h>

#include "base/err.h"

enum { RULES_AUTO = -2 };

/* Whose rules: those of NCCL 2.30, or those that 2.31 brought and 2.32 has. */
enum nccl_rules { NCCL_RULES_2_30, NCCL_RULES_2_32, NCCL_RULES_NEWEST = NCCL_RULES_2_32 };

/* "2.30", "2.32.3": the rules of that version; false when they are not known. */
bool nccl_rules_named(const char *version, enum nccl_rules *rules);
/* The version they were compared with: "2.30.7", "2.32.3". */
const char *nccl_rules_version(enum nccl_rules rules);

enum netdevs_policy { NETDEVS_AUTO, NETDEVS_ALL, NETDEVS_MAX };

struct topo_rules {
	enum nccl_rules nccl;
	int p2p_level;	   /* enum path_type; RULES_AUTO: PXB, SYS on AMD with two GPUs */
	int gdr_level;	   /* enum path_type; RULES_AUTO: P2C, PXB when !gdr_c2c */
	int gdr_read;	   /* 0, 1, RULES_AUTO */
	int p2p_read;	   /* 0, 1, RULES_AUTO */
	int cross_nic;	   /* 0, 1, 2 */
	int p2p_pxn_level; /* 0, 1, 2 */
	bool gdr_c2c, pxn_disable, pxn_c2c, nvb_disable, shm_disable, net_disable_intra;
	bool nvml_p2p_ok;	 /* what NVML says of every pair: false on GeForce */
	int ignore_disabled_p2p; /* 1: no P2P where NVML says so; 2: do not ask NVML */
	bool merge_nics;
	int merge_level; /* enum path_type */
	enum netdevs_policy netdevs;
	int netdevs_max; /* of NETDEVS_MAX */
};

/* From the environment. ERR_USAGE on a level nobody knows. */
enum err topo_rules_read(struct topo_rules *rules);

/* As if no variable were set: what a tool that describes another machine starts from. */
void topo_rules_default(struct topo_rules *rules);

#endif
