/*
 * drawing.h - where everything stands in a picture of a machine.
 *
 * From top to bottom: CPUs, the PCIe switches below each, GPUs and NICs, then what NVLink
 * joins. A box is as wide as all that hangs on it. NICs side by side on one switch share
 * a box. NVLinks between two GPUs run in lanes below the GPUs, one per pair.
 *
 * Wide machines are stacked: a NIC stands above a GPU of the same switch, whose own link
 * runs down in a gutter beside the NIC. Of the two ways to draw a machine the one is
 * taken that is larger on a slide.
 */
#ifndef TOOLS_WEFT_DRAWING_H
#define TOOLS_WEFT_DRAWING_H

#include <stdbool.h>

#include "base/err.h"
#include "topo/topo.h"

enum draw_kind { DRAW_CPU, DRAW_SWITCH, DRAW_GPU, DRAW_NIC };

struct draw_box {
	enum draw_kind kind;
	const struct topo_node *node; /* borrowed; of GPUs the DEV, of NICs the first */
	int parent;		      /* index; -1 for a CPU */
	int next;		      /* the next NIC of the same box, -1: none */
	bool hidden;		      /* a NIC in an earlier one's box */
	int depth;		      /* switches above */
	int first;		      /* lowest GPU or NIC number below: the order */
	int rider;		      /* GPU: the NIC that stands above it, -1: none */
	int below;		      /* NIC: the GPU it stands above, -1: none */
	float bw;		      /* of the link upwards, 0 when it has no number */
	float c2c;		      /* of the link to the CPU beside PCIe, 0: none */
	float x, y, width, height;
	float gutter; /* kept free at the left for the C2C line */
};

/* NVLinks of a pair of GPUs. */
struct draw_lane {
	int a, b; /* boxes, a left of b */
	float bw;
	int lane; /* 0 is the uppermost */
	float xa, xb;
};

struct drawing {
	struct draw_box *boxes; /* owned; parents before their children */
	int count;
	struct draw_lane *lanes; /* owned */
	int lane_count, lane_rows;
	bool stacked;
	uint32_t machine_count;	       /* 2: compact, without bus ids and links of CPUs */
	float nvs_x, nvs_y, nvs_width; /* the bar for all NVSwitches; width 0: none */
	float leaf_y, gpu_y, below_y; /* upper edge of NICs and GPUs; lower edge of all */
	float cpu_y, foot_y, width;
};

/* NIC lines a box shows before it only counts. */
enum { DRAW_NETS_MAX = 12 };

enum {
	DRAW_MARGIN = 28,
	DRAW_TITLE_HEIGHT = 70,
	DRAW_NIC_LINE = 17,
	DRAW_LANE_HEIGHT = 22,
	DRAW_NVS_HEIGHT = 34,
	DRAW_RAIL_GAP = 30,
	DRAW_RAIL_HEIGHT = 42,
	DRAW_FOOT_HEIGHT = 66,
	DRAW_PORT = 18 /* from a GPU's or NIC's left edge to its links */
};

/* Lay a topology out, for a picture of one machine or of two one above the other. Free
 * with drawing_fini(), also after a failure. */
enum err drawing_init(
	struct drawing *drawing, const struct topo *topo, uint32_t machine_count);
void drawing_fini(struct drawing *drawing);

/* Height of the whole picture. */
float drawing_height(const struct drawing *drawing);

/* The NETs of a NIC box in order; returns how many, writes at most `room`. */
int drawing_nets(const struct drawing *drawing, const struct draw_box *box,
	const struct topo_node **nets, int room);

/* Do all ports of a NIC box have one bandwidth? Then it is said once. */
bool drawing_nets_equal(const struct topo_node *const *nets, int count);

/* "240 GB/s", "12.5 GB/s". */
enum { DRAW_RATE_BYTES = 24 };
const char *drawing_rate(float bw, char text[DRAW_RATE_BYTES]);

/* How wide a text is at a font size, generously, in any of the usual fonts. */
float drawing_text_width(const char *text, float size);

/* "14:00.0", or with the domain when it is not 0. */
void drawing_busid(const struct topo_node *node, char text[20]);

#endif
