/*
 * place.h - put a device where it belongs in the topology tree.
 *
 * The rules are NCCL's: a switch is one element, named after its upper port; ports below
 * it and root ports are left out; a CPU is a NUMA node; children of a PCI element are in
 * the order of their bus ids. What the tree has already is kept: only missing attributes
 * are filled, but for the class, which sysfs knows best.
 */
#ifndef TOPO_PLACE_H
#define TOPO_PLACE_H

#include "base/err.h"
#include "topo/nvml.h"
#include "topo/report.h"
#include "topo/seen.h"
#include "topo/xml.h"

/* All borrowed. */
struct placing {
	struct xml_node *tree;
	const struct seen *seen;
	const struct nvml_gpu *gpus; /* NVML's word on them beats sysfs's */
	uint32_t gpu_count;
	struct discover_report *report; /* NULL: nobody listens */
};

/* The <pci> of a bus id, made if need be with everything above it, and filled.
 * `class_id` is what it must be if nobody can tell. */
enum err place_pci(const struct placing *place, const char *busid, const char *class_id,
	struct xml_node **pci);

/* The <cpu> of a NUMA node ("0", "-1"), made if need be, and filled. */
enum err place_cpu(const struct placing *place, const char *numa, struct xml_node **cpu);

/* The first <cpu>, made if there is none: where devices without a place hang. */
enum err place_first_cpu(const struct placing *place, struct xml_node **cpu);

#endif
