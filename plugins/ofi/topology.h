/*
 * topology.h - the topology file that NCCL is given.
 *
 * For p4d, p4de and g5.48xlarge, whose guests do not show how their PCI devices hang
 * together, it is one that the plugin carries (topology_made.c makes them of the tables
 * that the tools use). Where one device stands for several interfaces, it is one that
 * gives the first of them the link of them all: NCCL takes a network for no faster than
 * its link. All else NCCL finds out by itself.
 */
#ifndef PLUGINS_OFI_TOPOLOGY_H
#define PLUGINS_OFI_TOPOLOGY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

/* Those that the plugin carries; the last has no name. */
struct topology_file {
	const char *name; /* as aws-ofi-nccl calls it */
	const char *text;
};

extern const struct topology_file topology_files[];

/* Have NCCL_TOPO_FILE name a file for this machine and these devices, unless the user has
 * set it or none is needed; the log says which. */
void topology_offer(void);

/* ---- what topology_offer() is made of, for its test ---- */

struct topology_nic {
	const char *path; /* in sysfs */
	int count;	  /* of the interfaces that it stands for */
};

/* The file for such devices, with the GPUs below `root`; false: it says nothing that NCCL
 * would not see. */
bool topology_write(
	FILE *file, const char *root, const struct topology_nic *nics, int count);

#endif
