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
#include <stdint.h>

#include "base/err.h"

enum {
	HOST_TEXT = 128,
	HOST_NICS_MAX = 64,
	HOST_ENVS_MAX = 256,
	HOST_IFACES_MAX = 64,
	HOST_UNSEEN_MAX = 12
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
	struct host_nic nics[HOST_NICS_MAX];
	uint32_t nic_count;
	int verbs_files;
	char plugin[256]; /* path, or "" */
	int64_t shm_bytes, memlock_bytes, files_max, hugepages_free;
	double cpus; /* by affinity and control group */
	int64_t memory_limit, memory_used;
	char ifaces[HOST_IFACES_MAX][32];
	uint32_t iface_count;
	struct host_env envs[HOST_ENVS_MAX];
	uint32_t env_count;
	enum host_master master;
	char unseen[HOST_UNSEEN_MAX][HOST_TEXT]; /* what we could not look at */
	uint32_t unseen_count;
};

/* Look. `root` NULL: this host. ERR_ARGUMENT when it is no folder. */
enum err host_facts_read(struct host_facts *facts, const char *root);

/* Write what host_facts_read() needs of this host into a new folder; variables that are
 * not NCCL's, libfabric's or a launcher's, and everything that looks like a secret, stay
 * out. */
enum err host_facts_capture(const struct host_facts *facts, const char *folder);

const char *host_env(const struct host_facts *facts, const char *name);

/* The parts: files of the kernel's, and the rest. */
void host_read_files(struct host_facts *facts, const char *root);
void host_read_process(struct host_facts *facts);
enum err host_read_saved(struct host_facts *facts, const char *root);

#endif
