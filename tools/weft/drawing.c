#include "weft/drawing.h"

#include <assert.h>
#include <limits.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
	MESH_HEIGHT = 40, /* of the line that joins CPUs */
	CPU_HEIGHT = 52,
	CPU_HEIGHT_COMPACT = 32,
	SWITCH_HEIGHT = 28,
	LEVEL_GAP = 36,
	LEVEL_GAP_COMPACT = 30,
	GPU_WIDTH = 108,
	GPU_HEIGHT = 66,
	GPU_HEIGHT_COMPACT = 48,
	NIC_WIDTH = 100,
	NIC_PADDING = 12, /* above and below its lines together */
	LEAF_GAP = 14,
	GROUP_GAP = 18,
	CPU_GAP = 36,
	CPU_WIDTH = 250,
	GUTTER = 98,	 /* of a C2C link and its number */
	GUTTER_PCI = 18, /* of a GPU's link beside the NIC above it */
	WIDTH_MIN = 640,
	LANES_MAX = 512,
	DEPTH_MAX = XML_DEPTH_MAX
};

static bool is_compact(const struct drawing *drawing)
{
	return drawing->machine_count > 1;
}

static float cpu_height(const struct drawing *drawing)
{
	return is_compact(drawing) ? CPU_HEIGHT_COMPACT : CPU_HEIGHT;
}

static float level_gap(const struct drawing *drawing)
{
	return is_compact(drawing) ? LEVEL_GAP_COMPACT : LEVEL_GAP;
}

/* What a picture is made for. */
static const float slide_width = 1280, slide_height = 720;

/* Mean width of a character over its size in sans-serif fonts, rounded up. */
static const float glyph_width = 0.62f;

float drawing_text_width(const char *text, float size)
{
	size_t glyphs = 0;

	for (; *text; text++)
		glyphs += ((unsigned char)*text & 0xc0) != 0x80; /* UTF-8 */
	return (float)glyphs * size * glyph_width;
}

const char *drawing_rate(float bw, char text[DRAW_RATE_BYTES])
{
	long tenths = lroundf(bw * 10);

	snprintf(text, DRAW_RATE_BYTES, tenths % 10 ? "%ld.%ld GB/s" : "%ld GB/s",
		tenths / 10, tenths % 10);
	return text;
}

void drawing_busid(const struct topo_node *node, char text[20])
{
	char whole[20];

	topo_busid_print(topo_local(node->id), whole);
	snprintf(text, 20, "%s", strncmp(whole, "0000:", 5) ? whole : whole + 5);
}

static int box_add(struct drawing *drawing, const struct topo_node *node, int parent)
{
	struct draw_box *box = &drawing->boxes[drawing->count];

	*box = (struct draw_box){.node = node,
		.parent = parent,
		.next = -1,
		.rider = -1,
		.below = -1,
		.first = INT_MAX,
		.kind = node->kind == TOPO_CPU	 ? DRAW_CPU
			: node->kind == TOPO_PCI ? DRAW_SWITCH
			: node->kind == TOPO_DEV ? DRAW_GPU
						 : DRAW_NIC};
	if (parent >= 0)
		box->depth = drawing->boxes[parent].depth + 1;
	return drawing->count++;
}

/* A NIC beside another that is reached the same way goes into its box. */
static void join_nics(struct drawing *drawing, int index)
{
	struct draw_box *box = &drawing->boxes[index];

	for (int i = 0; i < index; i++) {
		struct draw_box *other = &drawing->boxes[i];

		if (other->kind != DRAW_NIC || other->parent != box->parent ||
			other->hidden || other->bw != box->bw)
			continue;
		while (other->next >= 0)
			other = &drawing->boxes[other->next];
		other->next = index;
		box->hidden = true;
		return;
	}
}

/* Everything one PCI link below a box. Boxes are visited in the order they are added. */
static void add_below(struct drawing *drawing, int index, int capacity)
{
	const struct draw_box *box = &drawing->boxes[index];
	const struct topo_node *above = box->parent < 0
						? NULL
						: drawing->boxes[box->parent].node;

	assert(box->node);
	if (box->depth >= DEPTH_MAX)
		return;
	for (uint32_t i = 0; i < box->node->link_count; i++) {
		const struct topo_link *link = &box->node->links[i];
		enum topo_kind kind = link->to->kind;
		int added;

		if (link->type == LINK_C2C && box->kind == DRAW_GPU)
			drawing->boxes[index].c2c = link->bw;
		if (link->type != LINK_PCI || link->to == above || kind == TOPO_CPU ||
			drawing->count >= capacity)
			continue;
		added = box_add(drawing, link->to, index);
		drawing->boxes[added].bw = link->bw < TOPO_LOC_BW ? link->bw : 0;
	}
}

static int number_of(const struct topo_node *node)
{
	enum { NETS_AFTER_GPUS = 100000 };
	int first = INT_MAX - 1;

	assert(node);
	if (node->kind == TOPO_DEV)
		return node->gpu.dev;
	for (uint32_t i = 0; node->kind == TOPO_NIC && i < node->link_count; i++)
		if (node->links[i].to->kind == TOPO_NET &&
			node->links[i].to->net.dev < first - NETS_AFTER_GPUS)
			first = NETS_AFTER_GPUS + node->links[i].to->net.dev;
	return first;
}

static int net_count(const struct topo_node *nic)
{
	int count = 0;

	for (uint32_t i = 0; i < nic->link_count; i++)
		count += nic->links[i].to->kind == TOPO_NET;
	return count;
}

/* NETs of one NIC by number; there are few. */
static int nic_nets(const struct topo_node *nic, const struct topo_node **nets, int room)
{
	int count = 0;

	for (uint32_t i = 0; i < nic->link_count && count < room; i++) {
		const struct topo_node *net = nic->links[i].to;
		int at = count;

		if (net->kind != TOPO_NET)
			continue;
		for (; at > 0 && nets[at - 1]->net.dev > net->net.dev; at--)
			nets[at] = nets[at - 1];
		nets[at] = net;
		count++;
	}
	return count;
}

int drawing_nets(const struct drawing *drawing, const struct draw_box *box,
	const struct topo_node **nets, int room)
{
	int count = 0, written = 0;

	for (;;) {
		count += net_count(box->node);
		written += nic_nets(box->node, nets + written, room - written);
		if (box->next < 0)
			return count;
		box = &drawing->boxes[box->next];
	}
}

bool drawing_nets_equal(const struct topo_node *const *nets, int count)
{
	for (int i = 1; i < count; i++)
		if (nets[i]->net.bw != nets[0]->net.bw)
			return false;
	return true;
}

/* A line per port, with its bandwidth if that is not the same for all; then a line with
 * the bandwidth, the number that are not shown, or where it is. */
static void size_nic(const struct drawing *drawing, struct draw_box *box)
{
	const struct topo_node *nets[DRAW_NETS_MAX];
	int count = drawing_nets(drawing, box, nets, DRAW_NETS_MAX);
	int shown = count > DRAW_NETS_MAX ? DRAW_NETS_MAX : count;
	bool equal = drawing_nets_equal(nets, shown);

	box->width = NIC_WIDTH;
	for (int i = 0; i < shown; i++) {
		float width = drawing_text_width(nets[i]->net.name, 13) + 20;

		width += equal ? 0 : drawing_text_width("1000.5 GB/s", 12);
		box->width = width > box->width ? width : box->width;
	}
	box->height = NIC_PADDING +
		      DRAW_NIC_LINE * (float)(shown + equal + (count > shown) +
					      (box->next < 0 && !is_compact(drawing)));
}

static void size_gpu(struct drawing *drawing, struct draw_box *box)
{
	box->width = GPU_WIDTH;
	box->height = is_compact(drawing) ? GPU_HEIGHT_COMPACT : GPU_HEIGHT;
	box->gutter = box->c2c > 0 ? GUTTER : 0;
	if (box->rider >= 0) {
		struct draw_box *nic = &drawing->boxes[box->rider];

		size_nic(drawing, nic);
		if (nic->width + GUTTER_PCI > box->width)
			box->width = nic->width + GUTTER_PCI;
	}
}

static void size_leaf(struct drawing *drawing, struct draw_box *box)
{
	char busid[20];

	if (box->kind == DRAW_NIC) {
		size_nic(drawing, box);
	} else if (box->kind == DRAW_GPU) {
		size_gpu(drawing, box);
	} else if (box->kind == DRAW_SWITCH) {
		drawing_busid(box->node, busid);
		box->width = drawing_text_width(busid, 12) + 16;
		box->height = SWITCH_HEIGHT;
	} else {
		box->width = CPU_WIDTH;
		box->height = cpu_height(drawing);
	}
}

static bool is_child(const struct drawing *drawing, int index, int parent)
{
	const struct draw_box *box = &drawing->boxes[index];

	return box->parent == parent && !box->hidden && box->below < 0;
}

static float gap_between(const struct draw_box *left, const struct draw_box *right)
{
	if (left->kind == DRAW_CPU)
		return CPU_GAP;
	return left->kind == DRAW_SWITCH || right->kind == DRAW_SWITCH ? GROUP_GAP
								       : LEAF_GAP;
}

/* The child of `parent` that comes next after `after` from left to right; -1: none. */
static int next_child(const struct drawing *drawing, int parent, int after)
{
	int best = -1;

	for (int i = 0; i < drawing->count; i++) {
		int first = drawing->boxes[i].first;

		if (!is_child(drawing, i, parent))
			continue;
		if (after >= 0 &&
			(first < drawing->boxes[after].first ||
				(first == drawing->boxes[after].first && i <= after)))
			continue;
		if (best < 0 || first < drawing->boxes[best].first)
			best = i;
	}
	return best;
}

/* Children stand behind their parents in the list, so from the end upwards every width is
 * known when it is needed. A gutter on the far left is handed up: the bar leaves it out.
 */
static void size_boxes(struct drawing *drawing)
{
	for (int i = drawing->count - 1; i >= 0; i--) {
		struct draw_box *box = &drawing->boxes[i];
		float width = 0;
		int child = -1, before = -1;

		if (box->hidden)
			continue;
		size_leaf(drawing, box);
		while ((child = next_child(drawing, i, before)) >= 0) {
			const struct draw_box *right = &drawing->boxes[child];

			if (before < 0 && box->kind == DRAW_SWITCH)
				box->gutter = right->gutter;
			else
				width += right->gutter;
			if (before >= 0)
				width += gap_between(&drawing->boxes[before], right);
			width += right->width;
			before = child;
		}
		box->width = width > box->width ? width : box->width;
	}
}

/* Place the children of `parent` in a row that starts at `x`, centred in `room`. */
static void place_children(struct drawing *drawing, int parent, float x, float room)
{
	float width = 0;
	int child = -1, before = -1;
	bool outside = parent >= 0 && drawing->boxes[parent].kind == DRAW_SWITCH;

	for (int pass = 0; pass < 2; pass++, before = -1) {
		while ((child = next_child(drawing, parent, before)) >= 0) {
			struct draw_box *box = &drawing->boxes[child];
			float step = before < 0 && outside ? 0 : box->gutter;

			if (before >= 0)
				step += gap_between(&drawing->boxes[before], box);
			if (pass) {
				x += step;
				box->x = x;
				x += box->width;
			} else {
				width += step + box->width;
			}
			before = child;
		}
		if (!pass && room > width)
			x += (room - width) / 2;
	}
}

/* NICs that stand above GPUs, now that these have their place. */
static void place_riders(struct drawing *drawing)
{
	for (int i = 0; i < drawing->count; i++) {
		const struct draw_box *box = &drawing->boxes[i];
		struct draw_box *nic;

		if (box->rider < 0)
			continue;
		nic = &drawing->boxes[box->rider];
		nic->x = box->x + GUTTER_PCI;
		nic->width = box->width - GUTTER_PCI;
	}
}

static float place_across(struct drawing *drawing)
{
	int depth_max = 0;

	place_children(drawing, -1, DRAW_MARGIN, 0);
	for (int i = 0; i < drawing->count; i++) {
		struct draw_box *box = &drawing->boxes[i];

		if (box->hidden)
			continue;
		place_children(drawing, i, box->x, box->width);
		if (box->kind == DRAW_SWITCH && box->depth > depth_max)
			depth_max = box->depth;
		if (box->x + box->width + DRAW_MARGIN > drawing->width)
			drawing->width = box->x + box->width + DRAW_MARGIN;
	}
	place_riders(drawing);
	return (float)depth_max * (SWITCH_HEIGHT + level_gap(drawing));
}

static void place_boxes(struct drawing *drawing, float y)
{
	float switches = place_across(drawing), rider_height = 0;

	drawing->cpu_y = y;
	drawing->leaf_y = y + cpu_height(drawing) + level_gap(drawing) + switches;
	for (int i = 0; i < drawing->count; i++) {
		const struct draw_box *box = &drawing->boxes[i];

		if (box->below >= 0 && box->height > rider_height)
			rider_height = box->height;
	}
	drawing->gpu_y = drawing->leaf_y + rider_height +
			 (rider_height > 0 ? level_gap(drawing) : 0);
	drawing->below_y = drawing->leaf_y;
	for (int i = 0; i < drawing->count; i++) {
		struct draw_box *box = &drawing->boxes[i];

		if (box->kind == DRAW_CPU)
			box->y = y;
		else if (box->kind == DRAW_SWITCH)
			box->y = y + cpu_height(drawing) + level_gap(drawing) +
				 (float)(box->depth - 1) *
					 (SWITCH_HEIGHT + level_gap(drawing));
		else
			box->y = box->kind == DRAW_GPU ? drawing->gpu_y : drawing->leaf_y;
		if (!box->hidden && box->y + box->height > drawing->below_y)
			drawing->below_y = box->y + box->height;
	}
}

static int box_of(const struct drawing *drawing, const struct topo_node *node)
{
	for (int i = 0; i < drawing->count; i++)
		if (drawing->boxes[i].node == node)
			return i;
	return -1;
}

static int lane_order(const void *left, const void *right)
{
	const struct draw_lane *a = left, *b = right;
	float span_a = a->xb - a->xa, span_b = b->xb - b->xa;

	if (span_a != span_b)
		return span_a < span_b ? -1 : 1;
	return (a->xa > b->xa) - (a->xa < b->xa);
}

static float centre(const struct draw_box *box)
{
	return box->x + box->width / 2;
}

static enum err find_lanes(struct drawing *drawing, const struct topo *topo)
{
	size_t gpus = topo->counts[TOPO_DEV];

	drawing->lanes = calloc(gpus * gpus + 1, sizeof(*drawing->lanes));
	if (!drawing->lanes)
		return err_set(ERR_SYSTEM, "no memory for a picture");
	for (int i = 0; i < drawing->count; i++) {
		const struct draw_box *box = &drawing->boxes[i];

		for (uint32_t l = 0; box->kind == DRAW_GPU && l < box->node->link_count;
			l++) {
			const struct topo_link *link = &box->node->links[l];
			int to = box_of(drawing, link->to);

			if (link->type != LINK_NVL || to < 0 ||
				link->to->kind != TOPO_DEV ||
				centre(&drawing->boxes[to]) <= centre(box) ||
				(size_t)drawing->lane_count >= gpus * gpus)
				continue;
			drawing->lanes[drawing->lane_count++] = (struct draw_lane){.a = i,
				.b = to,
				.bw = link->bw,
				.xa = centre(box),
				.xb = centre(&drawing->boxes[to])};
		}
	}
	return OK;
}

/* Short ones first, each into the uppermost lane where nothing is in its way. */
static void stack_lanes(struct drawing *drawing)
{
	qsort(drawing->lanes, (size_t)drawing->lane_count, sizeof(*drawing->lanes),
		lane_order);
	for (int i = 0; i < drawing->lane_count; i++) {
		struct draw_lane *lane = &drawing->lanes[i];
		bool moved = true;

		while (moved) {
			moved = false;
			for (int j = 0; j < i; j++) {
				const struct draw_lane *other = &drawing->lanes[j];

				if (other->lane == lane->lane && other->xa < lane->xb &&
					lane->xa < other->xb) {
					lane->lane++;
					moved = true;
				}
			}
		}
		if (lane->lane >= drawing->lane_rows)
			drawing->lane_rows = lane->lane + 1;
	}
}

/* Where a lane leaves its GPU so that no two cross without need: what goes left stands
 * left, shallow before deep; what goes right stands right, shallow last. */
static float port_of(const struct drawing *drawing, int gpu, const struct draw_lane *lane)
{
	const struct draw_box *box = &drawing->boxes[gpu];
	int rank = lane->b == gpu ? lane->lane : 10000 - lane->lane;
	int count = 0, before = 0;

	for (int i = 0; i < drawing->lane_count; i++) {
		const struct draw_lane *other = &drawing->lanes[i];
		int other_rank = other->b == gpu ? other->lane : 10000 - other->lane;

		if (other->a != gpu && other->b != gpu)
			continue;
		count++;
		before += other_rank < rank;
	}
	return box->x + box->width * (float)(before + 1) / (float)(count + 1);
}

/* The bar of the NVSwitches lies below everything, from the first box to the last. */
static void place_bar(struct drawing *drawing)
{
	float first = drawing->width, last = 0;

	for (int i = 0; i < drawing->count; i++) {
		const struct draw_box *box = &drawing->boxes[i];

		if (box->hidden)
			continue;
		first = box->x < first ? box->x : first;
		last = box->x + box->width > last ? box->x + box->width : last;
	}
	drawing->nvs_x = first;
	drawing->nvs_width = last - first;
	drawing->nvs_y += level_gap(drawing);
	drawing->foot_y = drawing->nvs_y + DRAW_NVS_HEIGHT;
}

static void place_nvlink(struct drawing *drawing, const struct topo *topo)
{
	drawing->nvs_y = drawing->foot_y = drawing->below_y;
	for (int i = 0; i < drawing->lane_count; i++) {
		struct draw_lane *lane = &drawing->lanes[i];

		lane->xa = port_of(drawing, lane->a, lane);
		lane->xb = port_of(drawing, lane->b, lane);
	}
	if (drawing->lane_rows)
		drawing->nvs_y += (float)(drawing->lane_rows + 1) * DRAW_LANE_HEIGHT;
	drawing->foot_y = drawing->nvs_y;
	if (topo->counts[TOPO_NVS] && topo->counts[TOPO_DEV])
		place_bar(drawing);
}

static enum err find_boxes(struct drawing *drawing, const struct topo *topo)
{
	int capacity = (int)(topo->counts[TOPO_CPU] + topo->counts[TOPO_PCI] +
			     topo->counts[TOPO_DEV] + topo->counts[TOPO_NIC]);

	drawing->boxes = calloc((size_t)capacity + 1, sizeof(*drawing->boxes));
	if (!drawing->boxes)
		return err_set(ERR_SYSTEM, "no memory for a picture");
	for (uint32_t i = 0; i < topo->counts[TOPO_CPU]; i++)
		box_add(drawing, topo->nodes[TOPO_CPU][i], -1);
	for (int i = 0; i < drawing->count; i++) {
		if (drawing->boxes[i].kind == DRAW_NIC)
			join_nics(drawing, i);
		add_below(drawing, i, capacity);
	}
	for (int i = drawing->count - 1; i >= 0; i--) {
		struct draw_box *box = &drawing->boxes[i];
		int first = number_of(box->node);

		box->first = first < box->first ? first : box->first;
		if (box->parent >= 0 && drawing->boxes[box->parent].first > box->first)
			drawing->boxes[box->parent].first = box->first;
	}
	return OK;
}

/* The next GPU of the same parent that has nothing above it yet; -1: none. */
static int free_gpu(const struct drawing *drawing, int parent)
{
	int gpu = -1;

	while ((gpu = next_child(drawing, parent, gpu)) >= 0)
		if (drawing->boxes[gpu].kind == DRAW_GPU && drawing->boxes[gpu].rider < 0)
			return gpu;
	return -1;
}

static void stack_nics(struct drawing *drawing)
{
	for (int i = 0; i < drawing->count; i++) {
		struct draw_box *box = &drawing->boxes[i];
		int gpu;

		if (box->kind != DRAW_NIC || box->hidden || box->parent < 0)
			continue;
		gpu = free_gpu(drawing, box->parent);
		if (gpu < 0)
			continue;
		box->below = gpu;
		drawing->boxes[gpu].rider = i;
	}
}

static enum err lay_out(struct drawing *drawing, const struct topo *topo)
{
	bool has_mesh = topo->counts[TOPO_CPU] > 1 && !is_compact(drawing);
	enum err e = find_boxes(drawing, topo);

	if (e)
		return e;
	if (drawing->stacked)
		stack_nics(drawing);
	size_boxes(drawing);
	place_boxes(drawing, DRAW_TITLE_HEIGHT + (has_mesh ? MESH_HEIGHT : 0));
	e = find_lanes(drawing, topo);
	if (e)
		return e;
	if (drawing->lane_count > LANES_MAX)
		drawing->lane_count = 0; /* a file that nobody could look at anyway */
	stack_lanes(drawing);
	place_nvlink(drawing, topo);
	return OK;
}

float drawing_height(const struct drawing *drawing)
{
	float height = drawing->foot_y + DRAW_FOOT_HEIGHT;

	if (drawing->machine_count > 1)
		height += drawing->foot_y - DRAW_TITLE_HEIGHT + 2 * DRAW_RAIL_GAP +
			  DRAW_RAIL_HEIGHT;
	return height;
}

/* How much a slide enlarges the picture. */
static float scale_on_slide(const struct drawing *drawing)
{
	float across = slide_width / drawing->width;
	float down = slide_height / drawing_height(drawing);

	return across < down ? across : down;
}

enum err drawing_init(
	struct drawing *drawing, const struct topo *topo, uint32_t machine_count)
{
	struct drawing stacked = {
		.width = WIDTH_MIN, .machine_count = machine_count, .stacked = true};
	enum err e;

	*drawing = stacked;
	drawing->stacked = false;
	e = lay_out(drawing, topo);
	if (!e)
		e = lay_out(&stacked, topo);
	if (!e && scale_on_slide(&stacked) > scale_on_slide(drawing)) {
		struct drawing flat = *drawing;

		*drawing = stacked;
		stacked = flat;
	}
	drawing_fini(&stacked);
	return e;
}

void drawing_fini(struct drawing *drawing)
{
	free(drawing->boxes);
	free(drawing->lanes);
	*drawing = (struct drawing){0};
}
