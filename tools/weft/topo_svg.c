#include "weft/topo_svg.h"

#include <stdlib.h>
#include <string.h>

#include "topo/gpu_name.h"
#include "topo/matrix.h"
#include "weft/drawing.h"
#include "weft/svg.h"

enum { TEXT_BYTES = 256, OVER_LINE = 20, OVER_GAP = 10, OVER_INDENT = 32 };

static const struct svg_label heading = {"head", 22, SVG_START, true};
static const struct svg_label summary = {"soft", 14, SVG_START, false};
static const struct svg_label name_label = {"name", 15, SVG_MIDDLE, true};
static const struct svg_label model_label = {"name", 13, SVG_MIDDLE, false};
static const struct svg_label small_label = {"soft", 12, SVG_MIDDLE, false};
static const struct svg_label left_label = {"name", 13, SVG_START, false};
static const struct svg_label right_label = {"soft", 12, SVG_END, false};
static const struct svg_label foot_label = {"soft", 13, SVG_START, false};
static const struct svg_label number_label = {"soft", 12, SVG_START, false};
static const struct svg_label lane_label = {"soft", 12, SVG_MIDDLE, false};

static struct svg_box place_of(const struct draw_box *box)
{
	return (struct svg_box){box->x, box->y, box->width, box->height};
}

static float top_of(const struct svg *svg, const struct draw_box *box)
{
	struct svg_box place = place_of(box);

	return svg_top(svg, &place);
}

static void put_box(const struct svg *svg, const char *class, const struct draw_box *box)
{
	struct svg_box place = place_of(box);

	svg_rect(svg, class, &place);
}

static float middle(const struct draw_box *box)
{
	return box->x + box->width / 2;
}

static const char *vendor_name(const struct topo_cpu *cpu)
{
	if (cpu->arch == CPU_ARCH_ARM)
		return "Arm";
	if (cpu->arch == CPU_ARCH_POWER)
		return "POWER";
	return cpu->vendor == CPU_INTEL	    ? "Intel"
	       : cpu->vendor == CPU_AMD	    ? "AMD"
	       : cpu->vendor == CPU_ZHAOXIN ? "Zhaoxin"
					    : "processor";
}

/* "0-23,48-71" of a CPU's mask. */
static void cpu_text(const struct topo_cpu *cpu, char text[TEXT_BYTES])
{
	char mask[TOPO_CPUS_MAX / 4 + 1];
	char *list;
	size_t at = 0;

	for (int word = TOPO_CPUS_MAX / 64 - 1; word >= 0; word--) {
		snprintf(mask + at, sizeof(mask) - at, "%016lx",
			(unsigned long)cpu->affinity[word]);
		at += 16;
	}
	list = matrix_cpu_list(mask);
	snprintf(text, TEXT_BYTES, "%s%s%s", vendor_name(cpu), list ? ", CPUs " : "",
		list ? list : "");
	free(list);
}

/* One of two machines says which in its CPUs: there is no room for more. */
static void draw_cpu(
	const struct svg *svg, const struct drawing *drawing, const struct draw_box *box)
{
	int numa = (int32_t)topo_local(box->node->id);
	float top = top_of(svg, box);
	char text[TEXT_BYTES], node[TEXT_BYTES];

	put_box(svg, "cpu", box);
	if (numa < 0)
		snprintf(node, sizeof(node), "processor");
	else
		snprintf(node, sizeof(node), "NUMA node %d", numa);
	if (drawing->machine_count > 1) {
		snprintf(text, sizeof(text), "machine %d, %.64s", svg->flip > 0, node);
		svg_text(svg, &name_label, middle(box), top + 21, text);
		return;
	}
	svg_text(svg, &name_label, middle(box), top + 22, node);
	cpu_text(&box->node->cpu, text);
	svg_text_fitting(svg, &small_label, (float[]){middle(box), top + 41},
		box->width - 12, text);
}

static void draw_switch(
	const struct svg *svg, const struct drawing *drawing, const struct draw_box *box)
{
	static const char *const words[] = {"PCIe switch ", "switch ", ""};
	char busid[20], text[TEXT_BYTES];
	int word = 0;

	put_box(svg, "switch", box);
	if (drawing->machine_count > 1) {
		svg_text(svg, &small_label, middle(box), top_of(svg, box) + 18,
			"PCIe switch");
		return;
	}
	drawing_busid(box->node, busid);
	do
		snprintf(text, sizeof(text), "%s%s", words[word++], busid);
	while (word < 3 && drawing_text_width(text, small_label.size) > box->width - 6);
	svg_text(svg, &small_label, middle(box), top_of(svg, box) + 18, text);
}

static void draw_gpu(
	const struct svg *svg, const struct drawing *drawing, const struct draw_box *box)
{
	float top = top_of(svg, box);
	char text[TEXT_BYTES], busid[20];

	put_box(svg, "gpu", box);
	snprintf(text, sizeof(text), "GPU%d", box->node->gpu.dev);
	svg_text(svg, &name_label, middle(box), top + 21, text);
	svg_text(svg, &model_label, middle(box), top + 39,
		gpu_name(box->node->gpu.device, box->node->gpu.sm));
	if (drawing->machine_count > 1)
		return;
	drawing_busid(box->node, busid);
	svg_text(svg, &small_label, middle(box), top + 56, busid);
}

/* The lines below the ports: how many more, what each has, where it is. */
static void draw_nic_foot(const struct svg *svg, const struct drawing *drawing,
	const struct draw_box *box, float y)
{
	const struct topo_node *nets[DRAW_NETS_MAX];
	int count = drawing_nets(drawing, box, nets, DRAW_NETS_MAX);
	int shown = count < DRAW_NETS_MAX ? count : DRAW_NETS_MAX;
	char text[TEXT_BYTES], rate[DRAW_RATE_BYTES], busid[20];

	if (count > shown) {
		snprintf(text, sizeof(text), "and %d more", count - shown);
		svg_text(svg, &small_label, middle(box), y, text);
		y += DRAW_NIC_LINE;
	}
	if (drawing_nets_equal(nets, shown)) {
		snprintf(text, sizeof(text), "%s%s", count > 1 ? "each " : "",
			shown ? drawing_rate(nets[0]->net.bw, rate) : "no port");
		svg_text(svg, &small_label, middle(box), y, text);
		y += DRAW_NIC_LINE;
	}
	drawing_busid(box->node, busid);
	if (box->next < 0 && drawing->machine_count < 2)
		svg_text(svg, &small_label, middle(box), y,
			box->bw > 0 ? busid : "not on PCIe");
}

static void draw_nic(
	const struct svg *svg, const struct drawing *drawing, const struct draw_box *box)
{
	const struct topo_node *nets[DRAW_NETS_MAX];
	int count = drawing_nets(drawing, box, nets, DRAW_NETS_MAX);
	int shown = count < DRAW_NETS_MAX ? count : DRAW_NETS_MAX;
	bool equal = drawing_nets_equal(nets, shown);
	char rate[DRAW_RATE_BYTES];
	float first = top_of(svg, box) + 19;

	put_box(svg, "nic", box);
	for (int i = 0; i < shown; i++) {
		float y = first + (float)(i * DRAW_NIC_LINE);
		const char *name = nets[i]->net.name[0] ? nets[i]->net.name : "?";

		if (equal) {
			svg_text_fitting(svg, &model_label, (float[]){middle(box), y},
				box->width - 10, name);
			continue;
		}
		svg_text_fitting(svg, &left_label, (float[]){box->x + 8, y},
			box->width - 98, name);
		svg_text(svg, &right_label, box->x + box->width - 8, y,
			drawing_rate(nets[i]->net.bw, rate));
	}
	draw_nic_foot(svg, drawing, box, first + (float)(shown * DRAW_NIC_LINE));
}

/* Where the link upwards of a box leaves it. */
static float port_up(const struct draw_box *box)
{
	if (box->kind == DRAW_GPU && box->rider >= 0)
		return box->x + DRAW_PORT / 2.0f;
	return box->kind == DRAW_SWITCH ? middle(box) : box->x + DRAW_PORT;
}

/* The link up, with its bandwidth beside it. */
static void draw_up(
	const struct svg *svg, const struct drawing *drawing, const struct draw_box *box)
{
	const struct draw_box *parent;
	char rate[DRAW_RATE_BYTES], text[TEXT_BYTES];
	float x = port_up(box);
	int nics = 1;

	if (box->parent < 0)
		return;
	parent = &drawing->boxes[box->parent];
	svg_line(svg, box->bw > 0 ? "pci" : "other",
		(float[]){x, parent->y + parent->height}, (float[]){x, box->y});
	for (int next = box->next; next >= 0; next = drawing->boxes[next].next)
		nics++;
	drawing_rate(box->bw, rate);
	snprintf(text, sizeof(text), "%d \xc3\x97 %s", nics, rate);
	if (box->bw > 0 && !(svg->covered && box->kind == DRAW_GPU))
		svg_text_on_line(svg, &number_label, (float[]){x + 6, box->y - 14},
			nics > 1 ? text : rate);
}

static void draw_c2c(
	const struct svg *svg, const struct drawing *drawing, const struct draw_box *box)
{
	const struct draw_box *cpu = box;
	float x = box->x - box->gutter + 8, y = box->y + box->height / 2;
	char rate[DRAW_RATE_BYTES];

	if (!(box->c2c > 0))
		return;
	while (cpu->parent >= 0)
		cpu = &drawing->boxes[cpu->parent];
	svg_line(svg, "c2c", (float[]){x, cpu->y + cpu->height}, (float[]){x, y});
	svg_line(svg, "c2c", (float[]){x, y}, (float[]){box->x, y});
	svg_text_on_line(svg, &number_label, (float[]){x + 5, y - 13},
		drawing_rate(box->c2c, rate));
}

/* All CPUs of a host are joined pairwise: one line above them stands for that. */
static void draw_cpu_mesh(
	const struct svg *svg, const struct drawing *drawing, const struct topo *topo)
{
	float y = drawing->cpu_y - 18, first = 0, last = 0, bw = 0;
	char text[TEXT_BYTES], rate[DRAW_RATE_BYTES];

	if (topo->counts[TOPO_CPU] < 2 || drawing->machine_count > 1)
		return;
	for (int i = 0; i < drawing->count; i++) {
		const struct draw_box *box = &drawing->boxes[i];
		float x = middle(box);

		if (box->kind != DRAW_CPU)
			continue;
		first = first <= 0 || x < first ? x : first;
		last = x > last ? x : last;
		svg_line(svg, "sys", (float[]){x, y}, (float[]){x, box->y});
		for (uint32_t l = 0; l < box->node->link_count; l++)
			if (box->node->links[l].type == LINK_SYS)
				bw = box->node->links[l].bw;
	}
	svg_line(svg, "sys", (float[]){first, y}, (float[]){last, y});
	snprintf(text, sizeof(text), "%s%s",
		topo->counts[TOPO_CPU] > 2 ? "between any two " : "",
		drawing_rate(bw, rate));
	svg_text_on_line(svg, &lane_label, (float[]){(first + last) / 2, y}, text);
}

static float nvs_bandwidth(const struct topo_node *dev)
{
	for (uint32_t i = 0; i < dev->link_count; i++)
		if (dev->links[i].to->kind == TOPO_NVS)
			return dev->links[i].bw;
	return 0;
}

static void draw_nvswitch(const struct svg *svg, const struct drawing *drawing)
{
	struct svg_box bar = {
		drawing->nvs_x, drawing->nvs_y, drawing->nvs_width, DRAW_NVS_HEIGHT};
	char rate[DRAW_RATE_BYTES];

	if (!(bar.width > 0))
		return;
	for (int i = 0; i < drawing->count; i++) {
		const struct draw_box *box = &drawing->boxes[i];
		float bw, x = box->x + DRAW_PORT;

		if (box->kind != DRAW_GPU)
			continue;
		bw = nvs_bandwidth(box->node);
		if (!(bw > 0))
			continue;
		svg_line(svg, "nvl", (float[]){x, box->y + box->height},
			(float[]){x, bar.y});
		if (!svg->covered)
			svg_text_on_line(svg, &number_label, (float[]){x + 6, bar.y - 15},
				drawing_rate(bw, rate));
	}
	svg_rect(svg, "gpu", &bar);
	svg_text(svg, &name_label, bar.x + bar.width / 2, svg_top(svg, &bar) + 22,
		"NVSwitch");
}

static float lane_y(const struct drawing *drawing, const struct draw_lane *lane)
{
	return drawing->below_y + (float)(lane->lane + 1) * DRAW_LANE_HEIGHT;
}

static void draw_lanes(const struct svg *svg, const struct drawing *drawing)
{
	char rate[DRAW_RATE_BYTES];

	for (int i = 0; i < drawing->lane_count; i++) {
		const struct draw_lane *lane = &drawing->lanes[i];
		const struct draw_box *box = &drawing->boxes[lane->a];
		double top = (double)svg_y(svg, box->y + box->height);
		double left = (double)lane->xa, right = (double)lane->xb;
		double y = (double)svg_y(svg, lane_y(drawing, lane));
		double before = (double)svg_y(svg, lane_y(drawing, lane) - 6);

		fprintf(svg->file,
			"<path class=\"line nvl\" d=\"M%.1f %.1fV%.1fQ%.1f %.1f %.1f %.1f"
			"H%.1fQ%.1f %.1f %.1f %.1fV%.1f\"/>\n",
			left, top, before, left, y, left + 6, y, right - 6, right, y,
			right, before, top);
	}
	for (int i = 0; i < drawing->lane_count; i++) {
		const struct draw_lane *lane = &drawing->lanes[i];
		float y = lane_y(drawing, lane);

		drawing_rate(lane->bw, rate);
		/* A number that would hide its line stands below it. */
		if (lane->xb - lane->xa < drawing_text_width(rate, lane_label.size) + 20)
			y += DRAW_LANE_HEIGHT / 2.0f;
		svg_text_on_line(
			svg, &lane_label, (float[]){(lane->xa + lane->xb) / 2, y}, rate);
	}
}

/* One sample of each kind of line that is there. */
static void draw_foot(
	const struct svg *svg, const struct drawing *drawing, const struct topo *topo)
{
	const struct {
		const char *class, *text;
	} kinds[] = {{"pci", "PCIe"}, {"nvl", "NVLink"}, {"c2c", "chip to chip"},
		{"sys", "between processors"}, {"net", "network"}};
	bool there[] = {false, drawing->nvs_width > 0 || drawing->lane_count, false,
		topo->counts[TOPO_CPU] > 1 &&
			drawing->machine_count<2, drawing->machine_count> 1 &&
			topo->counts[TOPO_NET] > 0};
	float x = DRAW_MARGIN, y = drawing_height(drawing) - DRAW_FOOT_HEIGHT + 30;

	for (int i = 0; i < drawing->count; i++) {
		there[0] = there[0] || drawing->boxes[i].bw > 0;
		there[2] = there[2] || drawing->boxes[i].c2c > 0;
	}
	for (size_t i = 0; i < sizeof(there) / sizeof(there[0]); i++) {
		if (!there[i])
			continue;
		svg_line(svg, kinds[i].class, (float[]){x, y - 4},
			(float[]){x + 26, y - 4});
		svg_text(svg, &foot_label, x + 32, y, kinds[i].text);
		x += 32 + drawing_text_width(kinds[i].text, 13) + 18;
	}
	svg_text(svg, &foot_label, DRAW_MARGIN, y + 20,
		drawing->machine_count > 1
			? "GB/s in one direction, as NCCL counts them; a rail joins the "
			  "ports of one number"
			: "GB/s in one direction, as NCCL counts them");
}

/* "8 x H100"; of several kinds the first and how many kinds more. */
static void gpus_text(const struct topo *topo, char text[TEXT_BYTES])
{
	uint32_t gpus = topo->counts[TOPO_GPU], same = 0;
	const char *first = NULL;

	for (uint32_t i = 0; i < gpus; i++) {
		const struct topo_gpu *gpu = &topo->nodes[TOPO_GPU][i]->gpu;
		const char *name = gpu_name(gpu->device, gpu->sm);

		first = first ? first : name;
		same += !strcmp(first, name);
	}
	if (!gpus)
		snprintf(text, TEXT_BYTES, "no GPU");
	else if (same == gpus)
		snprintf(text, TEXT_BYTES, "%u \xc3\x97 %s", gpus, first);
	else
		snprintf(text, TEXT_BYTES, "%u \xc3\x97 %s and %u other GPUs", same,
			first, gpus - same);
}

static void draw_head(const struct svg *svg, const struct drawing *drawing,
	const struct topo *topo, const struct topo_picture *picture)
{
	uint32_t nets = topo->counts[TOPO_NET], nodes = picture->nodes;
	float room = drawing->width - 2 * DRAW_MARGIN;
	char text[2 * TEXT_BYTES], gpus[TEXT_BYTES], before[64] = "";

	gpus_text(topo, gpus);
	if (nodes > 2)
		snprintf(before, sizeof(before), "two of %u machines, each ", nodes);
	else if (nodes == 2)
		snprintf(before, sizeof(before), "2 machines, each ");
	snprintf(text, sizeof(text), "%s%s, %u network port%s, %u NUMA node%s", before,
		gpus, nets, nets == 1 ? "" : "s", topo->counts[TOPO_CPU],
		topo->counts[TOPO_CPU] == 1 ? "" : "s");
	svg_text_fitting(svg, &heading, (float[]){DRAW_MARGIN, 34}, room, picture->name);
	svg_text_fitting(svg, &summary, (float[]){DRAW_MARGIN, 56}, room, text);
}

static void draw_boxes(const struct svg *svg, const struct drawing *drawing)
{
	for (int i = 0; i < drawing->count; i++) {
		const struct draw_box *box = &drawing->boxes[i];

		if (box->hidden)
			continue;
		draw_up(svg, drawing, box);
		draw_c2c(svg, drawing, box);
	}
	for (int i = 0; i < drawing->count; i++) {
		const struct draw_box *box = &drawing->boxes[i];

		if (box->hidden)
			continue;
		if (box->kind == DRAW_CPU)
			draw_cpu(svg, drawing, box);
		else if (box->kind == DRAW_SWITCH)
			draw_switch(svg, drawing, box);
		else if (box->kind == DRAW_GPU)
			draw_gpu(svg, drawing, box);
		else
			draw_nic(svg, drawing, box);
	}
}

static void draw_machine(
	const struct svg *svg, const struct drawing *drawing, const struct topo *topo)
{
	draw_cpu_mesh(svg, drawing, topo);
	draw_lanes(svg, drawing);
	draw_nvswitch(svg, drawing);
	draw_boxes(svg, drawing);
}

/* Where a NIC's rail leaves it: below, or beside where a GPU is below. */
static float rail_x(const struct draw_box *nic)
{
	return nic->below < 0 ? middle(nic) : nic->x + nic->width + 7;
}

static void draw_rail_end(
	const struct svg *svg, const struct drawing *drawing, const struct draw_box *nic)
{
	float x = rail_x(nic), y = nic->y + nic->height;

	if (nic->below >= 0) {
		y = nic->y + nic->height - 10;
		svg_line(svg, "net", (float[]){nic->x + nic->width, y}, (float[]){x, y});
	}
	svg_line(svg, "net", (float[]){x, y},
		(float[]){x, drawing->foot_y + DRAW_RAIL_GAP});
}

/* "rail 3", "rails 0-3" where the ports of the box follow each other, else "4 rails". */
static void rail_text(const struct topo_node *const nets[], int counts[2], char *text)
{
	int count = counts[0], shown = counts[1];
	bool in_order = count == shown;

	for (int i = 1; in_order && i < shown; i++)
		in_order = nets[i]->net.dev == nets[i - 1]->net.dev + 1;
	if (count == 1)
		snprintf(text, TEXT_BYTES, "rail %d", nets[0]->net.dev);
	else if (in_order)
		snprintf(text, TEXT_BYTES, "rails %d-%d", nets[0]->net.dev,
			nets[shown - 1]->net.dev);
	else
		snprintf(text, TEXT_BYTES, "%d rails", count);
}

static void draw_rail(
	const struct svg *svg, const struct drawing *drawing, const struct draw_box *nic)
{
	const struct topo_node *nets[DRAW_NETS_MAX];
	int count = drawing_nets(drawing, nic, nets, DRAW_NETS_MAX);
	int shown = count < DRAW_NETS_MAX ? count : DRAW_NETS_MAX;
	char text[TEXT_BYTES], rate[DRAW_RATE_BYTES], speed[TEXT_BYTES];
	struct svg_box box = {
		.y = drawing->foot_y + DRAW_RAIL_GAP, .height = DRAW_RAIL_HEIGHT};

	rail_text(nets, (int[]){count, shown}, text);
	drawing_rate(nets[0]->net.bw, rate);
	if (count > 1)
		snprintf(speed, sizeof(speed), "%d \xc3\x97 %s", count, rate);
	else
		snprintf(speed, sizeof(speed), "%s", rate);
	box.width = drawing_text_width(speed, small_label.size) + 12;
	if (box.width < drawing_text_width(text, model_label.size) + 12)
		box.width = drawing_text_width(text, model_label.size) + 12;
	box.x = rail_x(nic) - box.width / 2;
	if (box.x + box.width > drawing->width - 4)
		box.x = drawing->width - 4 - box.width;
	svg_rect(svg, "nic", &box);
	svg_text(svg, &model_label, box.x + box.width / 2, box.y + 17, text);
	if (drawing_nets_equal(nets, shown))
		svg_text(svg, &small_label, box.x + box.width / 2, box.y + 34, speed);
}

static bool has_rail(const struct drawing *drawing, const struct draw_box *box)
{
	const struct topo_node *nets[DRAW_NETS_MAX];

	return box->kind == DRAW_NIC && !box->hidden &&
	       drawing_nets(drawing, box, nets, DRAW_NETS_MAX) > 0;
}

/* Two machines, the second upside down, and the rails between them. */
static void draw_two(
	const struct svg *svg, const struct drawing *drawing, const struct topo *topo)
{
	struct svg below = *svg;

	below.flip = 2 * (drawing->foot_y + DRAW_RAIL_GAP) + DRAW_RAIL_HEIGHT;
	for (int i = 0; i < drawing->count; i++) {
		const struct draw_box *box = &drawing->boxes[i];

		if (!has_rail(drawing, box))
			continue;
		draw_rail_end(svg, drawing, box);
		draw_rail_end(&below, drawing, box);
		draw_rail(svg, drawing, box);
	}
	draw_machine(svg, drawing, topo);
	draw_machine(&below, drawing, topo);
	if (!topo->counts[TOPO_NET])
		svg_text(svg, &foot_label, DRAW_MARGIN,
			drawing->foot_y + DRAW_RAIL_GAP + 26,
			"no network port: nothing joins these machines");
}

/* Below everything else; the picture is so much higher. */
static float over_height(const struct topo_svg_over *over)
{
	return over ? (float)(over->line_count * OVER_LINE + OVER_GAP) : 0;
}

static void draw_over(const struct svg *svg, const struct drawing *drawing,
	const struct topo_svg_over *over)
{
	float bottom = drawing_height(drawing) - OVER_GAP;

	over->draw(svg->file, drawing, over->context);
	for (int i = 0; i < over->line_count; i++) {
		float y = bottom + (float)((i + 1) * OVER_LINE);
		float x = DRAW_MARGIN + OVER_INDENT;

		svg_line(svg, over->classes[i], (float[]){DRAW_MARGIN, y - 4},
			(float[]){DRAW_MARGIN + 26, y - 4});
		svg_text_fitting(svg, &foot_label, (float[]){x, y},
			drawing->width - x - DRAW_MARGIN, over->lines[i]);
	}
}

enum err topo_svg(FILE *file, const struct topo *topo, const struct topo_picture *picture)
{
	const struct topo_svg_over *over = picture->over;
	struct svg svg = {.file = file, .covered = over != NULL};
	struct drawing drawing;
	enum err e = drawing_init(&drawing, topo, picture->nodes > 1 ? 2 : 1);

	if (e) {
		drawing_fini(&drawing);
		return e;
	}
	svg_begin(file,
		(float[]){drawing.width, drawing_height(&drawing) + over_height(over)},
		picture->name, over ? over->style : "");
	draw_head(&svg, &drawing, topo, picture);
	if (picture->nodes > 1)
		draw_two(&svg, &drawing, topo);
	else
		draw_machine(&svg, &drawing, topo);
	draw_foot(&svg, &drawing, topo);
	if (over)
		draw_over(&svg, &drawing, over);
	svg_end(file);
	drawing_fini(&drawing);
	return OK;
}
