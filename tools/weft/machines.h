/*
 * machines.h - the machines a command is asked about, by name.
 *
 * A name is an NCCL topology file; what is not a file is the name of an instance type
 * that we have a description of, in any case of letters; "this", or no name at all, is
 * the machine we run on.
 */
#ifndef TOOLS_WEFT_MACHINES_H
#define TOOLS_WEFT_MACHINES_H

#include <stdbool.h>
#include <stdint.h>

#include "base/err.h"
#include "topo/xml.h"

enum { MACHINES_MAX = 1024 };

struct machines {
	struct xml_node **trees; /* owned */
	char **names;		 /* owned; without folder and ".xml" */
	uint32_t count;
	bool is_p2p_refused; /* NVML of this machine was asked, and said no */
};

/* Read them all, or none: ERR_USAGE or ERR_SYSTEM with a sentence. What cannot be seen of
 * this machine is said on standard error. Free with machines_free(). */
enum err machines_load(int count, char **names, struct machines *out);

/* machine_tree(), with the devices of the network plugin that NCCL_NET_PLUGIN names. */
struct discover_report;
enum err machine_tree_plugged(struct xml_node **tree, struct discover_report *report);

/* Fine for zeroed and half-filled ones. */
void machines_free(struct machines *machines);

#endif
