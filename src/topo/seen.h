/*
 * seen.h - what the operating system shows of this machine: sysfs first, then hwloc.
 *
 * One place answers what a PCI device is and hangs on, and what the cores of a NUMA node
 * are, whether the answer comes from /sys, from another machine's hwloc file or not at
 * all. Texts are those NCCL puts into its topology: bus ids and classes as sysfs spells
 * them.
 */
#ifndef TOPO_SEEN_H
#define TOPO_SEEN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"

enum {
	SEEN_BUSID_BYTES = 32,
	SEEN_TEXT_BYTES = 64,
	SEEN_AFFINITY_BYTES = 1024,
	SEEN_NAMES_MAX = 4096
};

struct seen_args {
	const char *sysfs;     /* NULL: "/sys", or none when another machine is shown */
	const char *hwloc_xml; /* another machine, saved by lstopo; NULL: this one */
};

/* "" is "unknown" everywhere. */
struct seen_pci {
	char busid[SEEN_BUSID_BYTES];
	char class_id[16], vendor[16], device[16], subsystem_vendor[16],
		subsystem_device[16];
	char link_speed[SEEN_TEXT_BYTES]; /* the slower of the device and its port */
	int link_width;			  /* 0 unknown */
	char numa[16];			  /* "-1": the firmware does not say */
	/* The upper port of the switch it hangs on; "": it hangs on a root port or on
	 * the root complex itself. */
	char above[SEEN_BUSID_BYTES];
};

struct seen_cpu {
	char affinity[SEEN_AFFINITY_BYTES]; /* "0000ffff,ffffffff" */
	char arch[16], vendor[16];
	int family, model; /* NCCL's numbers; -1 unknown */
};

/* A sorted list of file names. */
struct seen_names {
	char names[SEEN_NAMES_MAX][SEEN_TEXT_BYTES];
	uint32_t count;
};

struct seen;

/* Look. ERR_SYSTEM when hwloc cannot start, ERR_USAGE when the file is not hwloc's. */
enum err seen_open(const struct seen_args *args, struct seen **seen);
void seen_close(struct seen *seen);

/* Is it the machine we run on? */
bool seen_is_here(const struct seen *seen);
/* Can any PCI device be seen? */
bool seen_has_pci(const struct seen *seen);

/* A PCI device by bus id; false when nothing shows it. */
bool seen_pci(const struct seen *seen, const char *busid, struct seen_pci *pci);
/* The class alone, for the far end of an NVLink. */
bool seen_class(const struct seen *seen, const char *busid, char class_id[16]);

/* The cores of a NUMA node given as text ("0", "-1"), and what all cores are. */
void seen_cpu(const struct seen *seen, const char *numa, struct seen_cpu *cpu);
/* How many NUMA nodes have cores, and their numbers in order. */
uint32_t seen_numa_count(const struct seen *seen);
int seen_numa_at(const struct seen *seen, uint32_t index);

/* A file below sysfs, white space at its end cut off; false when it cannot be read. */
bool seen_text(const struct seen *seen, char *text, size_t room, const char *format, ...)
	__attribute__((format(printf, 4, 5)));
/* What a link below sysfs leads to, as a bus id; false when that is no PCI device. */
bool seen_busid(const struct seen *seen, char busid[SEEN_BUSID_BYTES], const char *format,
	...) __attribute__((format(printf, 3, 4)));
/* The entries of a folder below sysfs, numbers inside names in numeric order. */
void seen_list(const struct seen *seen, const char *folder, struct seen_names *names);

#endif
