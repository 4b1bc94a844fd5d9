/*
 * nvml.h - what NVIDIA's management library tells about the GPUs of this machine.
 *
 * The library is found at run time; nothing of it is needed to build. Everything worth
 * knowing about a GPU is read in one go into a struct nvml_gpu, so nobody else calls
 * NVML. A question that this driver does not answer leaves the field at "unknown".
 */
#ifndef TOPO_NVML_H
#define TOPO_NVML_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
	NVML_GPUS_MAX = 256,
	NVML_LINKS_MAX = 18, /* that NCCL asks about */
	NVML_NAME_BYTES = 96,
	NVML_BUSID_BYTES = 32,
	NVML_REMOTE_BYTES = 16 /* NVML's old bus id: "0000:D0:00.0" */
};

enum nvml_fabric { FABRIC_NONE, FABRIC_NOT_STARTED, FABRIC_IN_PROGRESS, FABRIC_READY };

struct nvml_gpu {
	int index;
	char busid[NVML_BUSID_BYTES]; /* "0000:53:00.0" */
	char name[NVML_NAME_BYTES];
	int sm;				    /* 90 for 9.0; 0 unknown */
	uint32_t pci_device, pci_subsystem; /* device << 16 | vendor; 0 unknown */
	unsigned gen, width, gen_max,
		width_max; /* of the PCI link now, at best; 0 unknown */
	/* The far end of each NVLink that is up, lower case; equal ones are parallel. */
	char links[NVML_LINKS_MAX][NVML_REMOTE_BYTES];
	uint32_t link_count;
	uint32_t links_down; /* that could carry traffic between GPUs and do not */
	uint32_t c2c_count, c2c_bw_mbs; /* links to the CPU that are up; MB/s of one */
	bool is_mig;
	enum nvml_fabric fabric;
	int fabric_status; /* NVML's code when FABRIC_READY; 0 is well */
	uint32_t clique;
	unsigned char cluster[16];
};

struct nvml;

/* Load `library` (NULL: the driver's own name) and start it. NULL when that fails, after
 * a reason without a full stop was written to `why`. */
struct nvml *nvml_open(const char *library, char *why, size_t room);
void nvml_close(struct nvml *nvml);

uint32_t nvml_gpu_count(const struct nvml *nvml);
/* "580.95.05"; "" unknown. */
const char *nvml_driver(const struct nvml *nvml);

/* All about one GPU. False with a reason when it cannot be reached at all. */
bool nvml_gpu_read(const struct nvml *nvml, uint32_t index, struct nvml_gpu *gpu,
	char *why, size_t room);

/* May two GPUs (indices) read and write each other's memory? `known` is false where the
 * driver does not answer. */
bool nvml_p2p_ok(const struct nvml *nvml, uint32_t a, uint32_t b, bool *known);

#endif
