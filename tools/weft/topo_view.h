/*
 * topo_view.h - one machine as `weft topo` looks at it: its tree, NCCL's topology of it
 * with one rank per GPU, and nvidia-smi's table.
 */
#ifndef TOOLS_WEFT_TOPO_VIEW_H
#define TOOLS_WEFT_TOPO_VIEW_H

#include <stdbool.h>
#include <stdio.h>

#include "topo/instance.h"
#include "topo/matrix.h"
#include "topo/report.h"
#include "topo/topo.h"
#include "weft/net_choice.h"

struct topo_view {
	char *name;		/* owned */
	struct xml_node *tree;	/* owned */
	struct xml_node *fused; /* owned; as the ranks agree on it */
	struct topo_rules rules;
	struct topo *topo; /* owned; by `rules`, as one of several such machines */
	struct matrix
		*matrix; /* owned; of a tree that knows host bridges if it is here */
	struct xml_node *bridged; /* owned; that tree, NULL when it is not this machine */
	bool is_here;
	struct discover_report report;	      /* when it is here */
	const struct instance_info *instance; /* when it is known by name */
	struct net_assumed net;
};

/* Look at a machine: a file, an instance type, NULL for this one. The rules are those of
 * the environment. `no_p2p`: as if NVML said no to every pair. */
enum err topo_view_open(
	struct topo_view *view, const char *name, bool no_p2p, enum net_choice net);

/* The same machine by other rules; the caller's. */
enum err topo_view_ask(
	const struct topo_view *view, const struct topo_rules *rules, struct topo **topo);

/* The same machine with every direct way between GPUs still there, and `rules` in force
 * for questions: topo_paths() leads refused pairs through the host, and then nobody can
 * say any more what was refused. The caller's. */
enum err topo_view_direct(const struct topo_view *view, struct topo **topo);

/* The machine as its tree has it, for pictures: no ports joined, no rank's view. It has
 * no paths; the caller's. */
enum err topo_view_whole(const struct topo_view *view, struct topo **topo);

/* Fine for zeroed ones. */
void topo_view_close(struct topo_view *view);

/* What the table infers and leaves out, a line each, with `prefix` before it. */
void topo_view_notes(const struct topo_view *view, FILE *file, const char *prefix);

/* "GPU3", "mlx5_0", "NVSwitch", "PCIe switch 04:00.0", "NUMA node 1". */
enum { TOPO_VIEW_NAME_MAX = 80 };
void topo_view_name(const struct topo_node *node, char name[TOPO_VIEW_NAME_MAX]);

/* The node people mean by "GPU3", "3", "NIC1", "NET2", "mlx5_0" or a bus id, in any case
 * of letters: a GPU or a NET. NULL when there is none. */
const struct topo_node *topo_view_find(const struct topo_view *view, const char *name);

#endif
