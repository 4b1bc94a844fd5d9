#include "weft/topo_svg.h"

#include <stdlib.h>
#include <string.h>

#include "topo/matrix.h"
#include "weft/drawing.h"

enum { TEXT_BYTES = 256 };
enum { OVER_LINE = 20, OVER_GAP = 10, OVER_INDENT = 32 };

static const char *const style =
	"<style>\n"
	"text { font-family: Verdana, 'DejaVu Sans', Helvetica, Arial, sans-serif; "
	"fill: #1b2430; }\n"
	".back { fill: #ffffff; }\n"
	".soft { fill: #5c6773; }\n"
	".number { paint-order: stroke; stroke: #ffffff; stroke-width: 4px; fill: "
	"#3d4753; "
	"}\n"
	".box { stroke-width: 1.4; }\n"
	".cpu { fill: #e3ebfa; stroke: #4668b0; }\n"
	".switch { fill: #eef0f2; stroke: #8a939c; }\n"
	".gpu { fill: #dff3e4; stroke: #2f8f4e; }\n"
	".nic { fill: #fdeedd; stroke: #c9761d; }\n"
	".line { fill: none; stroke-width: 1.6; }\n"
	".pci { stroke: #8a939c; }\n"
	".nvl { stroke: #2f8f4e; stroke-width: 2; }\n"
	".c2c { stroke: #9a4fc4; stroke-width: 2; }\n"
	".sys { stroke: #4668b0; }\n"
	".other { stroke: #8a939c; stroke-dasharray: 3 4; }\n"
	"@media (prefers-color-scheme: dark) {\n"
	"text { fill: #e6eaef; }\n"
	".back { fill: #12171d; }\n"
	".soft { fill: #9aa5b1; }\n"
	".number { stroke: #12171d; fill: #c4ccd5; }\n"
	".cpu { fill: #1d2b4a; stroke: #6f92dc; }\n"
	".switch { fill: #252c34; stroke: #7d8791; }\n"
	".gpu { fill: #17351f; stroke: #54b873; }\n"
	".nic { fill: #40290f; stroke: #e29a4b; }\n"
	".pci, .other { stroke: #7d8791; }\n"
	".nvl { stroke: #54b873; }\n"
	".c2c { stroke: #c084e6; }\n"
	".sys { stroke: #6f92dc; }\n"
	"}\n"
	"</style>\n";

enum anchor { ANCHOR_START, ANCHOR_MIDDLE, ANCHOR_END };

struct label {
	const char *class;
	float size;
	enum anchor anchor;
	bool bold;
};

static const struct label heading = {"head", 17, ANCHOR_START, true};
static const struct label summary = {"soft", 12, ANCHOR_START, false};
static const struct label name_label = {"name", 13, ANCHOR_MIDDLE, true};
static const struct label small_label = {"soft", 11, ANCHOR_MIDDLE, false};
static const struct label left_label = {"name", 11, ANCHOR_START, false};
static const struct label right_label = {"soft", 11, ANCHOR_END, false};
static const struct label foot_label = {"soft", 11, ANCHOR_START, false};
static const struct label number_label = {"number", 11, ANCHOR_START, false};
static const struct label lane_label = {"number", 11, ANCHOR_MIDDLE, false};

static void put_escaped(FILE *file, const char *text)
{
	for (; *text; text++) {
		unsigned char c = (unsigned char)*text;

		if (c == '<')
			fputs("&lt;", file);
		else if (c == '>')
			fputs("&gt;", file);
		else if (c == '&')
			fputs("&amp;", file);
		else if (c == '"')
			fputs("&quot;", file);
		else if (c >= ' ')
			fputc(c, file);
	}
}

static void put_text(
	FILE *file, const struct label *label, float x, float y, const char *text)
{
	static const char *const anchors[] = {"start", "middle", "end"};

	fprintf(file,
		"<text class=\"%s\" x=\"%.1f\" y=\"%.1f\" font-size=\"%.0f\" "
		"text-anchor=\"%s\"%s>",
		label->class, (double)x, (double)y, (double)label->size,
		anchors[label->anchor], label->bold ? " font-weight=\"bold\"" : "");
	put_escaped(file, text);
	fputs("</text>\n", file);
}

/* As much of a text as fits, with dots for the rest. Bytes of one UTF-8 glyph stay
 * together.
 */
static void put_fitting(FILE *file, const struct label *label, const float at[2],
	float width, const char *text)
{
	char cut[TEXT_BYTES];
	size_t bytes;

	snprintf(cut, sizeof(cut) - 4, "%s", text);
	bytes = strlen(cut);
	while (bytes && drawing_text_width(cut, label->size) > width) {
		do
			bytes--;
		while (bytes && ((unsigned char)cut[bytes] & 0xc0) == 0x80);
		while (bytes && strchr(" ,-", cut[bytes - 1]))
			bytes--;
		memcpy(cut + bytes, "\xe2\x80\xa6", 4);
	}
	put_text(file, label, at[0], at[1], cut);
}

/* "240", "12.5", "223.6". */
static const char *number(float bw, char text[TEXT_BYTES])
{
	snprintf(text, TEXT_BYTES, "%.1f", (double)bw);
	if (!strcmp(text + strlen(text) - 2, ".0"))
		text[strlen(text) - 2] = 0;
	return text;
}

static void put_rect(FILE *file, const char *class, const struct draw_box *box)
{
	fprintf(file,
		"<rect class=\"box %s\" x=\"%.1f\" y=\"%.1f\" width=\"%.1f\" "
		"height=\"%.1f\" rx=\"5\"/>\n",
		class, (double)box->x, (double)box->y, (double)box->width,
		(double)box->height);
}

static void put_line(
	FILE *file, const char *class, const float from[2], const float to[2])
{
	fprintf(file, "<path class=\"line %s\" d=\"M%.1f %.1fL%.1f %.1f\"/>\n", class,
		(double)from[0], (double)from[1], (double)to[0], (double)to[1]);
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

static void draw_cpu(FILE *file, const struct draw_box *box)
{
	char text[TEXT_BYTES];
	int numa;

	put_rect(file, "cpu", box);
	numa = (int32_t)topo_local(box->node->id);
	if (numa < 0)
		snprintf(text, sizeof(text), "Processor");
	else
		snprintf(text, sizeof(text), "NUMA node %d", numa);
	put_text(file, &name_label, middle(box), box->y + 20, text);
	cpu_text(&box->node->cpu, text);
	put_fitting(file, &small_label, (float[]){middle(box), box->y + 37},
		box->width - 12, text);
}

static void draw_switch(FILE *file, const struct draw_box *box)
{
	char busid[20], text[TEXT_BYTES];

	put_rect(file, "switch", box);
	drawing_busid(box->node, busid);
	snprintf(text, sizeof(text), "%s %s", box->width > 180 ? "PCIe switch" : "switch",
		busid);
	put_text(file, &small_label, middle(box), box->y + 18, text);
}

static void draw_gpu(FILE *file, const struct draw_box *box)
{
	char text[TEXT_BYTES], busid[20];

	put_rect(file, "gpu", box);
	snprintf(text, sizeof(text), "GPU%d", box->node->gpu.dev);
	put_text(file, &name_label, middle(box), box->y + 22, text);
	drawing_busid(box->node, busid);
	put_text(file, &small_label, middle(box), box->y + 39, busid);
}

static void draw_nic(
	FILE *file, const struct drawing *drawing, const struct draw_box *box)
{
	const struct topo_node *nets[DRAW_NETS_MAX];
	int count = drawing_nets(drawing, box, nets, DRAW_NETS_MAX);
	int shown = count < DRAW_NETS_MAX ? count : DRAW_NETS_MAX;
	char text[TEXT_BYTES], busid[20];
	float y = box->y + 17;

	put_rect(file, "nic", box);
	drawing_busid(box->node, busid);
	if (box->next >= 0)
		snprintf(text, sizeof(text), "%d ports", count);
	else if (box->bw > 0)
		snprintf(text, sizeof(text), "NIC %s", busid);
	else
		snprintf(text, sizeof(text), "not on PCIe");
	put_text(file, &small_label, middle(box), y, text);
	for (int i = 0; i < shown; i++) {
		y += DRAW_NIC_LINE;
		put_fitting(file, &left_label, (float[]){box->x + 8, y}, box->width - 50,
			nets[i]->net.name[0] ? nets[i]->net.name : "?");
		put_text(file, &right_label, box->x + box->width - 8, y,
			number(nets[i]->net.bw, text));
	}
	if (count == shown)
		return;
	snprintf(text, sizeof(text), "and %d more", count - shown);
	put_text(file, &left_label, box->x + 8, y + DRAW_NIC_LINE, text);
}

/* The link up, with its bandwidth beside it. */
static void draw_up(FILE *file, const struct drawing *drawing, const struct draw_box *box)
{
	const struct draw_box *parent;
	float bottom, x = middle(box);
	char text[TEXT_BYTES], each[TEXT_BYTES];
	int nics = 1;

	if (box->parent < 0)
		return;
	parent = &drawing->boxes[box->parent];
	bottom = parent->y + parent->height;
	put_line(file, box->bw > 0 ? "pci" : "other", (float[]){x, bottom},
		(float[]){x, box->y});
	for (int next = box->next; next >= 0; next = drawing->boxes[next].next)
		nics++;
	number(box->bw, text);
	snprintf(each, sizeof(each), "%d \xc3\x97 %.32s", nics, text);
	if (box->bw > 0)
		put_text(file, &number_label, x + 5, box->y - 11, nics > 1 ? each : text);
}

static void draw_c2c(
	FILE *file, const struct drawing *drawing, const struct draw_box *box)
{
	const struct draw_box *cpu = box;
	float x = box->x - box->gutter + 8, y = box->y + box->height / 2;
	char text[TEXT_BYTES];

	if (!(box->c2c > 0))
		return;
	while (cpu->parent >= 0)
		cpu = &drawing->boxes[cpu->parent];
	fprintf(file, "<path class=\"line c2c\" d=\"M%.1f %.1fL%.1f %.1fL%.1f %.1f\"/>\n",
		(double)x, (double)(cpu->y + cpu->height), (double)x, (double)y,
		(double)box->x, (double)y);
	put_text(file, &number_label, x + 4, y - 6, number(box->c2c, text));
}

/* All CPUs of a host are joined pairwise: one line above them stands for that. */
static void draw_cpu_mesh(
	FILE *file, const struct drawing *drawing, const struct topo *topo)
{
	float y = drawing->cpu_y - 14, first = 0, last = 0, bw = 0;
	char text[TEXT_BYTES], value[TEXT_BYTES];

	if (topo->counts[TOPO_CPU] < 2)
		return;
	for (int i = 0; i < drawing->count; i++) {
		const struct draw_box *box = &drawing->boxes[i];
		float x = middle(box);

		if (box->kind != DRAW_CPU)
			continue;
		first = first <= 0 || x < first ? x : first;
		last = x > last ? x : last;
		put_line(file, "sys", (float[]){x, y}, (float[]){x, box->y});
		for (uint32_t l = 0; l < box->node->link_count; l++)
			if (box->node->links[l].type == LINK_SYS)
				bw = box->node->links[l].bw;
	}
	put_line(file, "sys", (float[]){first, y}, (float[]){last, y});
	snprintf(text, sizeof(text),
		topo->counts[TOPO_CPU] > 2 ? "between any two nodes %.32s"
					   : "between the nodes %.32s",
		number(bw, value));
	put_text(file, &lane_label, (first + last) / 2, y - 9, text);
}

static float nvs_bandwidth(const struct topo_node *dev)
{
	for (uint32_t i = 0; i < dev->link_count; i++)
		if (dev->links[i].to->kind == TOPO_NVS)
			return dev->links[i].bw;
	return 0;
}

static void draw_nvswitch(FILE *file, const struct drawing *drawing)
{
	struct draw_box bar = {.x = drawing->nvs_x,
		.y = drawing->nvs_y,
		.width = drawing->nvs_width,
		.height = DRAW_NVS_HEIGHT};
	char text[TEXT_BYTES];

	if (!(bar.width > 0))
		return;
	for (int i = 0; i < drawing->count; i++) {
		const struct draw_box *box = &drawing->boxes[i];
		float bw, x = middle(box);

		if (box->kind != DRAW_GPU)
			continue;
		bw = nvs_bandwidth(box->node);
		if (!(bw > 0))
			continue;
		put_line(file, "nvl", (float[]){x, box->y + box->height},
			(float[]){x, bar.y});
		put_text(file, &number_label, x + 5, bar.y - 10, number(bw, text));
	}
	put_rect(file, "gpu", &bar);
	put_text(file, &name_label, middle(&bar), bar.y + 21, "NVSwitch");
}

static void draw_lanes(FILE *file, const struct drawing *drawing)
{
	char text[TEXT_BYTES];

	for (int i = 0; i < drawing->lane_count; i++) {
		const struct draw_lane *lane = &drawing->lanes[i];
		const struct draw_box *box = &drawing->boxes[lane->a];
		double top = (double)(box->y + box->height), left = (double)lane->xa;
		double right = (double)lane->xb;
		double y = (double)(drawing->below_y +
				    (float)(lane->lane + 1) * DRAW_LANE_HEIGHT);

		fprintf(file,
			"<path class=\"line nvl\" d=\"M%.1f %.1fV%.1fQ%.1f %.1f %.1f %.1f"
			"H%.1fQ%.1f %.1f %.1f %.1fV%.1f\"/>\n",
			left, top, y - 6, left, y, left + 6, y, right - 6, right, y,
			right, y - 6, top);
	}
	for (int i = 0; i < drawing->lane_count; i++) {
		const struct draw_lane *lane = &drawing->lanes[i];
		float y = drawing->below_y + (float)(lane->lane + 1) * DRAW_LANE_HEIGHT;

		put_text(file, &lane_label, (lane->xa + lane->xb) / 2, y + 4,
			number(lane->bw, text));
	}
}

/* One sample of each kind of line that is there. */
static void draw_foot(FILE *file, const struct drawing *drawing, const struct topo *topo)
{
	const struct {
		const char *class, *text;
	} kinds[] = {{"pci", "PCIe"}, {"nvl", "NVLink"}, {"c2c", "chip to chip"},
		{"sys", "between processors"}};
	bool there[4] = {false, drawing->nvs_width > 0 || drawing->lane_count, false,
		topo->counts[TOPO_CPU] > 1};
	float x = DRAW_MARGIN, y = drawing->foot_y + 30;

	for (int i = 0; i < drawing->count; i++) {
		there[0] = there[0] || drawing->boxes[i].bw > 0;
		there[2] = there[2] || drawing->boxes[i].c2c > 0;
	}
	for (int i = 0; i < 4; i++) {
		if (!there[i])
			continue;
		put_line(file, kinds[i].class, (float[]){x, y - 4},
			(float[]){x + 26, y - 4});
		put_text(file, &foot_label, x + 32, y, kinds[i].text);
		x += 32 + drawing_text_width(kinds[i].text, 11) + 18;
	}
	put_text(file, &foot_label, DRAW_MARGIN, y + 18,
		"Numbers are GB/s in one direction, as NCCL counts them.");
}

static void draw_head(FILE *file, const struct drawing *drawing, const struct topo *topo,
	const char *name)
{
	uint32_t gpus = topo->counts[TOPO_GPU], nets = topo->counts[TOPO_NET];
	char text[TEXT_BYTES], sm[TEXT_BYTES] = "";

	if (gpus)
		snprintf(sm, sizeof(sm), " of compute capability %d.%d",
			topo->nodes[TOPO_GPU][0]->gpu.sm / 10,
			topo->nodes[TOPO_GPU][0]->gpu.sm % 10);
	snprintf(text, sizeof(text), "%u GPU%s%.60s, %u network port%s, %u NUMA node%s",
		gpus, gpus == 1 ? "" : "s", sm, nets, nets == 1 ? "" : "s",
		topo->counts[TOPO_CPU], topo->counts[TOPO_CPU] == 1 ? "" : "s");
	put_fitting(file, &heading, (float[]){DRAW_MARGIN, 28},
		drawing->width - 2 * DRAW_MARGIN, name);
	put_fitting(file, &summary, (float[]){DRAW_MARGIN, 47},
		drawing->width - 2 * DRAW_MARGIN, text);
}

static void draw_boxes(FILE *file, const struct drawing *drawing)
{
	for (int i = 0; i < drawing->count; i++) {
		const struct draw_box *box = &drawing->boxes[i];

		if (box->hidden)
			continue;
		draw_up(file, drawing, box);
		draw_c2c(file, drawing, box);
		if (box->kind == DRAW_CPU)
			draw_cpu(file, box);
		else if (box->kind == DRAW_SWITCH)
			draw_switch(file, box);
		else if (box->kind == DRAW_GPU)
			draw_gpu(file, box);
		else
			draw_nic(file, drawing, box);
	}
}

/* Below everything else; the picture is so much higher. */
static float over_height(const struct topo_svg_over *over)
{
	return over ? (float)(over->line_count * OVER_LINE + OVER_GAP) : 0;
}

static void draw_over(FILE *file, const struct drawing *drawing, float bottom,
	const struct topo_svg_over *over)
{
	over->draw(file, drawing, over->context);
	for (int i = 0; i < over->line_count; i++) {
		float y = bottom + (float)((i + 1) * OVER_LINE);
		float x = DRAW_MARGIN + OVER_INDENT;

		put_line(file, over->classes[i], (float[]){DRAW_MARGIN, y - 4},
			(float[]){DRAW_MARGIN + 26, y - 4});
		put_fitting(file, &foot_label, (float[]){x, y},
			drawing->width - x - DRAW_MARGIN, over->lines[i]);
	}
}

enum err topo_svg_over(FILE *file, const struct topo *topo, const char *name,
	const struct topo_svg_over *over)
{
	struct drawing drawing;
	enum err e = drawing_init(&drawing, topo);
	float height;

	if (e) {
		drawing_fini(&drawing);
		return e;
	}
	height = drawing.height + over_height(over);
	fprintf(file,
		"<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 %.0f %.0f\" "
		"width=\"%.0f\" height=\"%.0f\" role=\"img\">\n<title>",
		(double)drawing.width, (double)height, (double)drawing.width,
		(double)height);
	put_escaped(file, name);
	fprintf(file,
		"</title>\n%s%s<rect class=\"back\" width=\"100%%\" "
		"height=\"100%%\"/>\n",
		style, over ? over->style : "");
	draw_head(file, &drawing, topo, name);
	draw_cpu_mesh(file, &drawing, topo);
	draw_lanes(file, &drawing);
	draw_nvswitch(file, &drawing);
	draw_boxes(file, &drawing);
	draw_foot(file, &drawing, topo);
	if (over)
		draw_over(file, &drawing, drawing.height - OVER_GAP, over);
	fputs("</svg>\n", file);
	drawing_fini(&drawing);
	return OK;
}

enum err topo_svg(FILE *file, const struct topo *topo, const char *name)
{
	return topo_svg_over(file, topo, name, NULL);
}
