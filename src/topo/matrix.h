/*
 * matrix.h - the table that `nvidia-smi topo -m` prints, from a topology tree.
 *
 * Its words are nvidia-smi's, not NCCL's: NODE means another PCIe host bridge of the same
 * NUMA node, which NCCL also calls PHB; NV4 counts links. NCCL's trees do not name host
 * bridges. Where the tree does not say, matrix_build() infers them:
 *
 *   - another PCI domain is another host bridge;
 *   - the same bus, or buses that follow each other without a gap, are the same one;
 *   - Intel processors before Skylake have one a socket;
 *   - everything else is another one.
 *
 * A host_bridge attribute on the topmost <pci> elements (matrix_bridges_read()) settles
 * it without inferring.
 */
#ifndef TOPO_MATRIX_H
#define TOPO_MATRIX_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include "base/err.h"
#include "topo/xml.h"

enum matrix_level {
	MATRIX_SELF,
	MATRIX_PIX,
	MATRIX_PXB,
	MATRIX_PHB,
	MATRIX_NODE,
	MATRIX_SYS,
	MATRIX_NVLINK /* `links` says how many */
};

struct matrix_cell {
	enum matrix_level level;
	int links;
};

enum { MATRIX_NAME_MAX = 64, MATRIX_PARTS_MAX = 1024 };

/* A row and a column. */
struct matrix_part {
	int number; /* GPU: NVML's index; NIC: counted from 0 in the order of names */
	char name[MATRIX_NAME_MAX]; /* NIC: of the device, for the legend; GPU: bus id */
	char *cpus;		    /* GPU: "0-23,48-71" or NULL; owned */
	char numa[16];		    /* GPU: memory node, "N/A" */
	char gpu_numa[16];	    /* GPU: memory node it is itself, "N/A" */
	const struct xml_node *place; /* the <gpu> or <net>; borrowed, may be NULL */
};

struct matrix {
	uint32_t gpu_count, nic_count;
	struct matrix_part *parts; /* owned; the GPUs first */
	struct matrix_cell *cells; /* owned; row by row */
	uint32_t inferred;	   /* pairs whose PHB or NODE is inferred */
	uint32_t hidden_nics;	   /* network devices that are on no PCI bus */
	uint32_t bare_gpus;	   /* PCI functions of a GPU's class without <gpu> */
};

/* The table of a tree. It borrows the tree's nodes. ERR_USAGE when there are more than
 * MATRIX_PARTS_MAX parts. */
enum err matrix_build(const struct xml_node *tree, struct matrix **matrix);

/* An empty table of this size, for those who fill it themselves. */
enum err matrix_create(uint32_t gpu_count, uint32_t nic_count, struct matrix **matrix);
void matrix_free(struct matrix *matrix);

static inline struct matrix_cell *matrix_at(
	const struct matrix *matrix, uint32_t row, uint32_t column)
{
	return &matrix->cells[row * (matrix->gpu_count + matrix->nic_count) + column];
}

/* "PIX", "NV12", " X ". */
enum { MATRIX_CELL_MAX = 16 };
void matrix_cell_text(struct matrix_cell cell, char text[MATRIX_CELL_MAX]);

/* Byte for byte what nvidia-smi of driver 535 and later prints. `underline`: with the
 * escape sequences around the header, which nvidia-smi prints into files as well. */
void matrix_print(FILE *file, const struct matrix *matrix, bool underline);

/* What the words mean, a line each, after an empty line and "Legend:". */
void matrix_print_legend(FILE *file);

/* "0-3,8" from "0000010f" or "1,0000000f". NULL when there is no CPU in it or no memory;
 * free() it. */
char *matrix_cpu_list(const char *mask);

/* Note on every topmost <pci> element which host bridge it is below, as sysfs has it:
 * for trees of this machine. What sysfs does not know stays to be inferred. */
enum err matrix_bridges_read(struct xml_node *tree, const char *sysfs);

#endif
