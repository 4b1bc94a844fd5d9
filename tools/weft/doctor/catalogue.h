/*
 * catalogue.h - everything the doctor can find, as data: its name, how bad it is, what it
 * means, what to do. The detectors (diagnose.h, live.h) only say which entry applies, and
 * may say more of what they saw.
 */
#ifndef TOOLS_WEFT_DOCTOR_CATALOGUE_H
#define TOOLS_WEFT_DOCTOR_CATALOGUE_H

#include <stdint.h>

#include "weft/severity.h"

/* Where in a chain of events: what began it comes before what it did to others. */
enum depth { DEPTH_CAUSE, DEPTH_SYMPTOM, DEPTH_CASCADE };

/* In the order in which findings of one severity and depth are told, unless time says
 * otherwise: what costs most first. */
enum finding_id {
	/* a rank cannot work at all */
	FIND_SHM_TOO_SMALL,
	FIND_SHM_UNLINKED,
	FIND_MEMLOCK,
	FIND_DUP_GPU,
	FIND_VERSION_MIX,
	FIND_BOOTSTRAP_NO_IFACE,
	FIND_BOOTSTRAP_DUP_RANK,
	FIND_BOOTSTRAP_ALIEN,
	FIND_FABRIC_NOT_READY,
	FIND_NVLS_BIND,
	FIND_IMEX,
	FIND_CUMEM_HOST,
	FIND_DRIVER_OLD,
	FIND_OOM,
	FIND_HOST_OOM,
	FIND_GPU_ERROR,
	FIND_EFA_REG,
	FIND_EFA_ENOMEM,
	FIND_ROCE_GID,
	FIND_IB_OPEN_FAILED,
	FIND_XML_TOO_BIG,
	FIND_GIN_EXTERNAL,
	FIND_NET_NOT_FOUND,
	FIND_P2P_REFUSED,
	FIND_NO_TRANSPORT,
	FIND_COLL_MISMATCH,
	FIND_WRONG_RESULTS,
	FIND_ONE_RANK_JOB,
	FIND_LAUNCH_FAILED,
	FIND_JOB_ENDED,
	FIND_RANK_CRASHED,
	/* a rank cannot reach another */
	FIND_EFA_UNREACHABLE,
	FIND_BOOTSTRAP_WRONG_IFACE,
	FIND_MASTER_UNREACHABLE,
	FIND_IB_RETRY,
	FIND_IB_OTHER,
	FIND_EFA_PEER_GONE,
	FIND_EFA_OTHER,
	FIND_ACS_HANG,
	FIND_WATCHDOG,
	FIND_CUDA_ERROR,
	FIND_UNKNOWN_WARNING,
	FIND_UNKNOWN_ERROR,
	FIND_INIT_UNFINISHED,
	/* what the others say of it */
	FIND_IB_FLUSH,
	FIND_EXIT_CASCADE,
	/* it works, and slowly */
	FIND_OFI_NO_PROVIDER,
	FIND_OFI_INIT_FAILED,
	FIND_NET_FORCED_SOCKET,
	FIND_NO_PLUGIN_SOCKET,
	FIND_PODS_SPLIT_NODE,
	FIND_TOPO_FILE_DEGRADED,
	FIND_P2P_LEVEL,
	FIND_P2P_DISABLED,
	FIND_OPA_VIA_VERBS,
	FIND_SHM_INSTEAD_OF_P2P,
	FIND_GDR_DISABLED_OFI,
	FIND_GDR_MISSING_IB,
	FIND_NIC_UNDERUSED,
	FIND_SOCKET_MULTI_IFACE,
	FIND_CHANNEL_COUNT_LOW,
	FIND_BELOW_EXPECTATION,
	/* what may matter later */
	FIND_TOPO_FILE_EMPTY,
	FIND_TOPO_FILE_UNREADABLE,
	FIND_TOPO_VIRTUAL,
	FIND_PROTO_SIMPLE,
	FIND_ENV_UNKNOWN,
	FIND_ENV_EMPTY,
	FIND_ENV_AUDIT,
	FIND_ENV_DIFFERS,
	/* this host, looked at from inside */
	FIND_LIVE_GPU,
	FIND_LIVE_DRIVER,
	FIND_LIVE_SIBLINGS,
	FIND_LIVE_FABRIC,
	FIND_LIVE_NVLINK,
	FIND_LIVE_P2P,
	FIND_LIVE_IMEX,
	FIND_LIVE_ACS,
	FIND_LIVE_NUMA,
	FIND_LIVE_NIC,
	FIND_LIVE_EFA,
	FIND_LIVE_PLUGIN,
	FIND_LIVE_PROVIDER,
	FIND_LIVE_SHM,
	FIND_LIVE_MEMLOCK,
	FIND_LIVE_HUGEPAGES,
	FIND_LIVE_FILES,
	FIND_LIVE_CPU,
	FIND_LIVE_MEMORY,
	FIND_LIVE_GDR,
	FIND_LIVE_MASTER,
	FIND_LIVE_IFACE,
	FIND_LIVE_PORTS,
	/* hosts beside each other */
	FIND_SAME_NAME,
	FIND_DRIVERS_DIFFER,
	FIND_COUNT
};

struct finding_info {
	const char *name;
	enum severity severity; /* unless the detector knows better */
	enum depth depth;
	const char *title;	 /* half a line */
	const char *explanation; /* two sentences */
	const char *remedy;	 /* what to type */
	const char *cost;	 /* measured elsewhere, or NULL */
};

/* Never NULL for a valid id. */
const struct finding_info *catalogue_info(enum finding_id id);

/* "note", "performance", "fatal". */

#endif
