/*
 * host_facts.h - what a process can see of its host or pod, read from files below a root
 * that may be a captured one.
 *
 * What is no file of the kernel's (limits, the environment, the size of /dev/shm, whether
 * MASTER_ADDR answers) lies in ROOT/weft of a captured host, one "name value" per line.
 */
#ifndef TOOLS_WEFT_DOCTOR_HOST_FACTS_H
#define TOOLS_WEFT_DOCTOR_HOST_FACTS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"

enum {
	HOST_TEXT = 128,
	HOST_NICS_MAX = 64,
	HOST_ENVS_MAX = 256,
	HOST_IFACES_MAX = 64,
	HOST_UNSEEN_MAX = 16,
	HOST_NUMA_MAX = 64
};

/* Of numbers: not known. */
enum { HOST_UNKNOWN = -1 };

struct host_nic {
	char name[32], state[24], link[16], driver[32];
	int gbps; /* HOST_UNKNOWN */
};

struct host_env {
	char name[64], value[256];
};

enum host_master {
	MASTER_UNSET,
	MASTER_REACHED,
	MASTER_REFUSED,
	MASTER_UNRESOLVED,
	MASTER_SILENT
};

struct host_facts {
	bool is_captured;
	char name[HOST_TEXT], boot_id[HOST_TEXT], product[HOST_TEXT],
		container[HOST_TEXT];
	int gpu_count, gpu_files, switch_count; /* on PCI; /dev/nvidiaN; NVSwitches */
	char driver[HOST_TEXT];
	bool is_open_driver, has_peermem, has_gdrcopy, has_imex;
	int fabric_manager; /* 1 runs, 0 does not, HOST_UNKNOWN */
	bool has_iommu, is_passthrough;
	int bridge_count, bridges_hidden; /* hidden: only root may read them whole */
	int acs_count;			  /* bridges that redirect what peers send */
	char acs_bridge[32];		  /* the first of them */
	int links_up, links_down;	  /* NVLinks; HOST_UNKNOWN */
	int64_t link_errors;		  /* HOST_UNKNOWN */
	int p2p_refused;		  /* pairs of GPUs, both ways; HOST_UNKNOWN */
	char p2p_why[8];		  /* as nvidia-smi says it: CNS, GNS, TNS, DR */
	char fabric_state[32];
	int imex_service;    /* 1 runs, HOST_UNKNOWN */
	char providers[256]; /* of libfabric, blanks between; "": nobody was asked */
	struct host_nic nics[HOST_NICS_MAX];
	uint32_t nic_count;
	int verbs_files;
	char plugin[256];	/* path, or "" */
	char plugin_error[256]; /* why it cannot be loaded, or "" */
	int64_t shm_bytes, memlock_bytes, files_max, hugepages_free;
	double cpus; /* by affinity and control group */
	int64_t memory_limit, memory_used;
	char ifaces[HOST_IFACES_MAX][32];
	int iface_mbps[HOST_IFACES_MAX]; /* HOST_UNKNOWN */
	uint32_t iface_count;
	int numa_count; /* nodes of memory; 0: it does not say */
	uint64_t numa_allowed, gpu_nodes, nic_nodes; /* a bit for each node */
	int numa_hidden;			     /* devices whose node nobody tells */
	int port_first, port_last; /* for connections; 0: it does not say */
	struct host_env envs[HOST_ENVS_MAX];
	uint32_t env_count;
	enum host_master master;
	char unseen[HOST_UNSEEN_MAX][HOST_TEXT]; /* what we could not look at */
	uint32_t unseen_count;
};

/* Look. `root` NULL: this host; a folder or a tar: a captured one. ERR_ARGUMENT when it
 * is neither. */
enum err host_facts_read(struct host_facts *facts, const char *root);

/* Write what host_facts_read() needs of this host into a new folder, or into a new tar
 * where the path ends so; variables that are not NCCL's, libfabric's or a launcher's, and
 * everything that looks like a secret, stay out. */
enum err host_facts_capture(const struct host_facts *facts, const char *path);

/* What is asked of other programs; live only, a captured host has the answers. */
enum host_tool {
	HOST_TOOL_NVLINK,
	HOST_TOOL_ERRORS,
	HOST_TOOL_P2P,
	HOST_TOOL_FABRIC,
	HOST_TOOL_PROVIDERS,
	HOST_TOOL_PLUGIN,
	HOST_TOOL_MASTER,
	HOST_TOOLS
};
void host_ask_tools(struct host_facts *facts);
void host_take_output(struct host_facts *facts, enum host_tool tool, const char *text);

/* The ACS control register in a device's configuration space: 0 when it has none,
 * HOST_UNKNOWN when so little of the space is there that nobody can tell. */
int host_acs_control(const unsigned char *config, size_t bytes);

const char *host_env(const struct host_facts *facts, const char *name);

/* The beginning of a file below the root, without its last white space; false: no such.
 */
bool host_read_text(const char *root, const char *path, char *text, size_t room);

/* The parts: folders; files of the kernel's, and the rest. */
enum err host_read_folder(struct host_facts *facts, const char *root);
enum err host_capture_folder(const struct host_facts *facts, const char *folder);
void host_read_files(struct host_facts *facts, const char *root);
void host_read_bus(struct host_facts *facts, const char *root);
void host_read_place(struct host_facts *facts, const char *root);
void host_read_process(struct host_facts *facts);

/* Ask for MASTER_ADDR and wait for the answer, and for that of the name service. */
enum host_master host_try_master(const struct host_facts *facts);
enum err host_read_saved(struct host_facts *facts, const char *root);

#endif
