/*
 * topo.h - what one NVLink domain (usually: one host) is made of, and the way from each
 * part to each other.
 *
 * The model is NCCL's: a GPU is a rank; it hangs on a DEV, the physical device,
 * which has the PCI and NVLink links. All NVSwitches are one NVS node. A CPU is a NUMA
 * node. A NIC is the PCI function, a NET is one port of it as the network plugin counts
 * them. Bandwidths are GB/s in one direction, in float: the search depends on the
 * rounding.
 */
#ifndef TOPO_TOPO_H
#define TOPO_TOPO_H

#include <stdbool.h>
#include <stdint.h>

#include "base/err.h"
#include "topo/rules.h"
#include "topo/xml.h"

enum topo_kind {
	TOPO_GPU,
	TOPO_PCI,
	TOPO_NVS,
	TOPO_CPU,
	TOPO_NIC,
	TOPO_NET,
	TOPO_GIN, /* a NET that also takes GPU-initiated traffic; no path depends on it */
	TOPO_DEV,
	TOPO_KINDS
};

enum link_type { LINK_LOC, LINK_NVL, LINK_C2C, LINK_PCI, LINK_SYS, LINK_NET };

/* From good to bad; the numbers are NCCL's since 2.27. */
enum path_type {
	PATH_LOC,
	PATH_NVL,
	PATH_NVB, /* NVLink through another GPU */
	PATH_C2C,
	PATH_PIX,
	PATH_PXB,
	PATH_P2C, /* GPU to NIC through C2C and one host bridge */
	PATH_PXN, /* GPU to NIC through another GPU */
	PATH_PHB,
	PATH_SYS,
	PATH_NET,
	PATH_DIS,
	PATH_TYPES
};
/* For NIC fusion: two ports of one NIC. */
enum { PATH_PORT = PATH_NVL };

enum cpu_arch {
	CPU_ARCH_X86 = 1,
	CPU_ARCH_POWER = 2,
	CPU_ARCH_ARM = 3,
	CPU_ARCH_MIXED = 4
};
enum cpu_vendor { CPU_INTEL = 1, CPU_AMD = 2, CPU_ZHAOXIN = 3, CPU_VENDOR_MIXED = 4 };
enum { CPU_UNKNOWN = -1, CPU_OTHER = 0 };
enum cpu_model {
	CPU_INTEL_BDW = 1,
	CPU_INTEL_SKL = 2,
	CPU_INTEL_SPR = 3,
	CPU_INTEL_EMR = 4,
	CPU_AMD_ZEN12 = 1,
	CPU_AMD_ZEN34 = 2,
	CPU_AMD_ZEN5 = 3,
	CPU_YONGFENG = 1
};

#define TOPO_LOC_BW 5000.0f

enum {
	TOPO_NODES_MAX = 640, /* of one kind */
	TOPO_LINKS_MAX = 576, /* of one node */
	TOPO_GPUS_MAX = 128,
	TOPO_HOPS_MAX = 64,   /* of one path */
	TOPO_CPUS_MAX = 4096, /* bits in an affinity mask */
	TOPO_NAME_MAX = 64
};

struct topo_node;

struct topo_link {
	enum link_type type;
	float bw; /* what is left of it while searching */
	struct topo_node *to;
};

struct topo_path {
	enum path_type type;
	float bw;
	uint32_t hop_count;
	struct topo_link **hops; /* owned; NULL when hop_count is 0 */
};

struct topo_gpu {
	int dev;	 /* NVML index */
	int rank;	 /* among the ranks the topology was built for */
	int sm;		 /* compute capability, 90 for 9.0 */
	uint32_t device; /* PCI's vendor << 16 | device, 0 unknown; gpu_name() reads it */
	bool gdr;
};

struct topo_net {
	int dev;       /* plugin index */
	uint64_t asic; /* guid; ports of one NIC share it */
	int port;
	float bw, latency;
	bool gdr, coll;
	int max_channels;
	int local_gpu;	 /* index of the nearest GPU; -1 none */
	int rail, plane; /* -1 unknown */
	char name[TOPO_NAME_MAX];
};

struct topo_cpu {
	int arch, vendor, model; /* CPU_UNKNOWN: not asked; CPU_OTHER: none of those */
	uint64_t affinity[TOPO_CPUS_MAX / 64];
};

struct topo_node {
	enum topo_kind kind;
	uint64_t id;	/* system << 56 | local; NVS: 0 */
	uint32_t index; /* in topo->nodes[kind] */
	union {
		struct topo_gpu gpu;
		struct topo_net net;
		struct topo_cpu cpu;
		uint64_t pci_device; /* vendor:device:subsystem, for PCI */
	};
	struct topo_link *links; /* owned; best first, the way up the PCI tree last */
	uint32_t link_count, link_capacity;
	/* To every node of a kind, by index; NULL where none were computed. Owned. */
	struct topo_path *paths[TOPO_KINDS];
	uint64_t used; /* scratch of the search */
};

struct topo {
	struct topo_node *nodes[TOPO_KINDS][TOPO_NODES_MAX]; /* owned */
	uint32_t counts[TOPO_KINDS];
	uint64_t system_hashes[TOPO_NODES_MAX]; /* host_hash per system id */
	uint32_t system_count;
	uint32_t host_count;
	int system;		 /* the system id of the host we look from */
	bool is_inter;		 /* other domains take part */
	float max_bw, total_bw;	 /* set by topo_bandwidths() */
	struct topo_rules rules; /* those the paths were computed with */
};

/* What of an id is the host, and what the part. */
static inline uint32_t topo_system(uint64_t id)
{
	return (uint32_t)(id >> 56);
}

static inline uint64_t topo_local(uint64_t id)
{
	return id & 0x00ffffffffffffffu;
}

static inline struct topo_node *topo_gpu_at(const struct topo *topo, uint32_t index)
{
	return topo->nodes[TOPO_GPU][index];
}

/* Where a part reaches none of a kind there is no table: a path that leads nowhere then,
 * good until the next call. */
struct topo_path *topo_path_none(void);

static inline struct topo_path *topo_path(
	const struct topo_node *from, enum topo_kind kind, uint32_t index)
{
	return from->paths[kind] ? &from->paths[kind][index] : topo_path_none();
}

/* Nodes and links from a fused tree (see fuse.h); no paths yet. `nccl`: which version's
 * speeds between processors. */
enum err topo_build(const struct xml_node *tree, uint64_t host_hash, enum nccl_rules nccl,
	struct topo **topo);
void topo_free(struct topo *topo);

/* All paths, with the P2P, GDR and PXN decisions of `rules` (path.c). Again: anew. */
enum err topo_paths(struct topo *topo, const struct topo_rules *rules);

/* Drop the GPUs that rank `rank` cannot reach but over the network, then the paths anew.
 * NICs stay even when all `rank_count` ranks are here; is_inter says whether they count.
 */
enum err topo_trim(struct topo *topo, int rank, int rank_count);

/* Fill max_bw and total_bw, where the search begins. */
void topo_bandwidths(struct topo *topo);

/* "PIX", "LOC", "GPU". */
const char *path_name(enum path_type type);
const char *link_name(enum link_type type);
const char *topo_kind_name(enum topo_kind kind);
/* The other way round, exact upper case; false when there is none. */
bool path_named(const char *name, enum path_type *type);

/* "GPU/0-14000": kind, system, local id in hex. */
enum { TOPO_LABEL_MAX = 40 };
void topo_label(const struct topo_node *node, char label[TOPO_LABEL_MAX]);

/* "0000:14:00.0" and 0x14000, either way. */
uint64_t topo_busid_parse(const char *text);
void topo_busid_print(uint64_t id, char text[20]);

/* Index of the GPU of this rank, -1 when it is not here. */
int topo_gpu_of_rank(const struct topo *topo, int rank);
/* Index of the NET with this whole id, -1 when there is none. */
int topo_net_of_id(const struct topo *topo, uint64_t id);

/* The nodes of `kind` nearest to `from`: best bandwidth, then type. Returns how many;
 * `list` has room for TOPO_NODES_MAX. */
uint32_t topo_local_nodes(const struct topo *topo, const struct topo_node *from,
	enum topo_kind kind, uint32_t *list);

/* Which NIC this GPU uses on this channel: a NET id and dev; ERR_INTERNAL when none. */
enum err topo_local_net(const struct topo *topo, int rank, int channel, uint64_t *id);
/* Which GPU is the nearest to a NET, by index; -1 when none. */
int topo_local_gpu(const struct topo *topo, uint64_t net_id);

/* Can these two GPUs (indices) read each other's memory? `middle`: through which GPU, -1
 * none. `why` may be NULL. */
struct topo_p2p {
	bool ok, read; /* read: the receiver pulls */
	bool is_fault; /* NVLink joins them and NVML says no: NCCL stops there */
	int middle;
	enum path_type type, level; /* of the pair; the cut-off that was applied */
	const char *rule;	    /* which rule said so, in a few words; static */
};
void topo_p2p(const struct topo *topo, uint32_t a, uint32_t b, struct topo_p2p *verdict);

/* GPUDirect RDMA between the GPU of `rank` and a NET. */
enum gdr_mode { GDR_OFF, GDR_ON, GDR_PCI };
struct topo_gdr {
	enum gdr_mode mode;
	enum path_type distance, level;
	int relay; /* the rank whose GPU talks to the NET; `rank` itself without PXN */
	bool is_measured; /* the distance counted; else the rule came before it */
	const char *rule;
};
void topo_gdr(const struct topo *topo, int rank, uint64_t net_id, bool is_send,
	struct topo_gdr *verdict);
/* Must received data be flushed before the GPU reads it? */
bool topo_gdr_needs_flush(const struct topo *topo, int rank, uint64_t net_id);

/* The NET and the relay rank a send from `rank` to another domain uses on a channel when
 * the graph says NET `net_id` (0 with `any`: the nearest). */
int topo_proxy_rank(const struct topo *topo, int rank, uint64_t net_id);

#endif
