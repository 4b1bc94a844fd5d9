/*
 * seen_hwloc.h - seen.h's questions, answered by hwloc.
 *
 * Cores always come from here. PCI devices do when there is no sysfs to ask: a file saved
 * on another machine. hwloc knows no class below the second byte and one number for the
 * speed of a link, so both are completed.
 */
#ifndef TOPO_SEEN_HWLOC_H
#define TOPO_SEEN_HWLOC_H

#include <hwloc.h>

#include "topo/seen.h"

/* This machine, or the one in the file `xml` (NULL: none). */
enum err seen_hwloc_load(const char *xml, hwloc_topology_t *topology);

bool seen_hwloc_has_pci(hwloc_topology_t topology);
/* Fill what hwloc knows of a device; false when it does not know it. */
bool seen_hwloc_pci(hwloc_topology_t topology, const char *busid, struct seen_pci *pci);

/* Fill everything but what is unknown, which stays as it is. */
void seen_hwloc_cpu(hwloc_topology_t topology, const char *numa, struct seen_cpu *cpu);

/* NUMA nodes that have cores. */
uint32_t seen_hwloc_numa_count(hwloc_topology_t topology);
int seen_hwloc_numa_at(hwloc_topology_t topology, uint32_t index);

#endif
