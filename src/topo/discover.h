/*
 * discover.h - the machine we run on, as the topology tree NCCL would make of it.
 *
 * GPUs and NVLinks come from NVML, places and speeds from sysfs, cores from hwloc. Only
 * what GPUs and network devices hang on is in the tree, in the order in which NCCL's
 * first rank meets it, then CPUs that nothing hangs on. Parts that are hidden get NCCL's
 * assumptions and a sentence in the report.
 */
#ifndef TOPO_DISCOVER_H
#define TOPO_DISCOVER_H

#include "base/err.h"
#include "topo/report.h"
#include "topo/xml.h"

struct nets_seen;

/* All zero: this machine. A test shows another one. */
struct discover_args {
	const char *sysfs;	  /* NULL: /sys */
	const char *hwloc_xml;	  /* a file of lstopo; NULL: this machine's cores */
	const char *nvml_library; /* NULL: WEFT_NVML_LIBRARY, else the driver's */
	/* borrowed: the devices that a network plugin has; NULL: what the machine has */
	const struct nets_seen *nets;
	bool no_dump; /* leave NCCL_TOPO_DUMP_FILE alone: the caller adds to the tree */
};

/* Detection alone. The tree is the caller's. Fails only for want of memory or of hwloc.
 */
enum err discover(const struct discover_args *args, struct xml_node **tree,
	struct discover_report *report);

/* Add to a tree what it leaves out: missing attributes, GPUs and network devices. */
enum err discover_into(const struct discover_args *args, struct xml_node *tree,
	struct discover_report *report);

/* The whole of it, as NCCL does: NCCL_TOPO_FILE, else the file a virtual machine's host
 * left, else nothing; then detection; then NCCL_TOPO_DUMP_FILE. A file that is not there
 * is passed over; one that is no topology is ERR_USAGE. */
enum err machine_tree(struct xml_node **tree, struct discover_report *report);
enum err machine_tree_of(const struct discover_args *args, struct xml_node **tree,
	struct discover_report *report);

#endif
