/* The table of connections as a picture, with its rings below. */
#include <stdio.h>
#include <string.h>

#include "weft/doctor/log_view.h"
#include "weft/drawing.h"
#include "weft/svg.h"

enum {
	EDGE = 28,
	CELL = 22,
	TOP = 110,
	NUMBERS = 40, /* the column of ranks */
	HOSTS_MAX = 260,
	WIDTH_MIN = 620,
	LEGEND = 210, /* one entry */
	LEGEND_BELOW = 24,
	RINGS_BELOW = 76,
	RING_STEP = 34,
	RING_ROW = 30,
	RING_BOX = 22
};

static const char *const style =
	"<style>\n"
	".way1 { fill: #2f8f4e; } .way2 { fill: #d9a514; } .way3 { fill: #4668b0; }\n"
	".way4 { fill: #c0392b; } .way0, .rank { fill: none; stroke: #8a939c; "
	"stroke-opacity: .35; }\n"
	".go { stroke-width: 5; } .go0 { stroke: #8a939c; stroke-width: 1; }\n"
	".go1 { stroke: #2f8f4e; } .go2 { stroke: #d9a514; } .go3 { stroke: #4668b0; }\n"
	".go4 { stroke: #c0392b; }\n"
	"</style>\n";

static const char *const fills[WAY_COUNT] = {"way0", "way1", "way2", "way3", "way4"};
static const char *const strokes[WAY_COUNT] = {
	"go go0", "go go1", "go go2", "go go3", "go go4"};

static const struct svg_label small = {"soft", 11, SVG_MIDDLE, false};
static const struct svg_label small_end = {"soft", 11, SVG_END, false};
static const struct svg_label normal = {"soft", 13, SVG_START, false};

struct sheet {
	struct svg svg;
	const struct log_facts *facts;
	const struct log_view *view;
	float left;	 /* of the table */
	uint32_t in_row; /* ranks of a ring side by side */
	uint32_t ring_rows;
};

static float at_cell(float first, uint32_t cell)
{
	return first + (float)(CELL * cell);
}

/* Rows of one host, from `first`; they have one name. */
static uint32_t rows_of_host(const struct log_view *view, uint32_t first)
{
	uint32_t end = first + 1;

	while (end < view->cells && !strcmp(view->hosts[end], view->hosts[first]))
		end++;
	return end - first;
}

/* Hosts of a job differ at the end of their names: that is what must stay. */
static void draw_host(const struct sheet *sheet, float y, const char *name)
{
	const char *text = name;
	char cut[FACTS_NAME_BYTES + 4];

	while (*text && drawing_text_width(text, 12) > HOSTS_MAX)
		text++;
	snprintf(cut, sizeof(cut), "%s%s", text > name ? "\xe2\x80\xa6" : "", text);
	svg_text(&sheet->svg, &(struct svg_label){"soft", 12, SVG_END, false},
		sheet->left - NUMBERS - 8, y, cut);
}

static void draw_hosts(const struct sheet *sheet)
{
	const struct log_view *view = sheet->view;
	uint32_t rows;

	for (uint32_t first = 0; first < view->cells; first += rows) {
		float top = at_cell(TOP, first) - 1;
		float from[2] = {sheet->left - NUMBERS, top + 2}, to[2];

		rows = rows_of_host(view, first);
		if (!view->hosts[first][0])
			continue;
		to[0] = from[0];
		to[1] = at_cell(top, rows) - 2;
		svg_line(&sheet->svg, "sys", from, to);
		draw_host(sheet, (from[1] + to[1]) / 2 + 4, view->hosts[first]);
	}
}

static void draw_cells(const struct sheet *sheet)
{
	const struct log_view *view = sheet->view;

	for (uint32_t row = 0; row < view->cells; row++)
		for (uint32_t column = 0; column < view->cells; column++) {
			struct svg_box box = {at_cell(sheet->left, column),
				at_cell(TOP, row), CELL - 2, CELL - 2};

			fprintf(sheet->svg.file,
				"<g><title>%u to %u: %s, %u connections</title>",
				row * view->per_cell, column * view->per_cell,
				log_way_name((enum log_way)view->way[row][column]),
				view->connections[row][column]);
			svg_rect(&sheet->svg, fills[view->way[row][column]], &box);
			fputs("</g>\n", sheet->svg.file);
		}
}

static void draw_ranks(const struct sheet *sheet)
{
	for (uint32_t i = 0; i < sheet->view->cells; i++) {
		char text[16];

		snprintf(text, sizeof(text), "%u", i * sheet->view->per_cell);
		svg_text(&sheet->svg, &small,
			at_cell(sheet->left, i) + (float)CELL / 2 - 1, TOP - 8, text);
		svg_text(&sheet->svg, &small_end, sheet->left - 10, at_cell(TOP, i) + 15,
			text);
	}
}

static void draw_legend(const struct sheet *sheet)
{
	float x = sheet->left, y = at_cell(TOP + LEGEND_BELOW, sheet->view->cells);

	for (int way = WAY_P2P; way < WAY_COUNT; way++) {
		struct svg_box box = {x, y, 16, 16};
		char text[64];

		if (!sheet->view->totals[way])
			continue;
		svg_rect(&sheet->svg, fills[way], &box);
		snprintf(text, sizeof(text), "%s (%llu)", log_way_name((enum log_way)way),
			(unsigned long long)sheet->view->totals[way]);
		svg_text(&sheet->svg, &normal, x + 24, y + 13, text);
		x += LEGEND;
	}
}

static enum log_way way_between(const struct log_view *view, uint32_t from, uint32_t to)
{
	if (from >= view->rank_count || to >= view->rank_count)
		return WAY_NONE;
	return (enum log_way)view->way[from / view->per_cell][to / view->per_cell];
}

/* The place of a ring's n-th rank; longer rings go on in the next row. */
static struct svg_box ring_box(const struct sheet *sheet, float top, uint32_t n)
{
	uint32_t row = n / sheet->in_row;

	return (struct svg_box){sheet->left + (float)(RING_STEP * (n % sheet->in_row)),
		top + (float)(RING_ROW * row), RING_BOX, RING_BOX};
}

static void draw_ring_rank(const struct sheet *sheet, const struct svg_box *box,
	uint32_t rank, enum log_way next)
{
	float from[2] = {box->x + RING_BOX + 1, box->y + (float)RING_BOX / 2};
	float to[2] = {box->x + RING_STEP - 1, from[1]};
	char text[16];

	svg_rect(&sheet->svg, "rank", box);
	snprintf(text, sizeof(text), "%u", rank);
	svg_text(&sheet->svg, &small, box->x + (float)RING_BOX / 2, box->y + 15, text);
	svg_line(&sheet->svg, strokes[next], from, to);
}

/* Every rank, and a line of the way to the next one; at the end the first comes again. */
static void draw_ring(const struct sheet *sheet, uint32_t ring, float top)
{
	uint32_t channel = sheet->view->rings[ring], first, rank, next, n = 0;
	const char *text = sheet->facts->rings[channel];
	bool whole = sheet->facts->ring_ranks[channel] >= sheet->view->rank_count &&
		     !strstr(text, "..");
	struct svg_box box;
	char name[24];

	snprintf(name, sizeof(name), "ring %u", channel);
	svg_text(&sheet->svg, &small_end, sheet->left - 10, top + 15, name);
	if (!log_ring_next(&text, &first))
		return;
	for (rank = first; log_ring_next(&text, &next); rank = next) {
		box = ring_box(sheet, top, n++);
		draw_ring_rank(sheet, &box, rank, way_between(sheet->view, rank, next));
	}
	box = ring_box(sheet, top, n++);
	draw_ring_rank(sheet, &box, rank,
		whole ? way_between(sheet->view, rank, first) : WAY_NONE);
	box = ring_box(sheet, top, n);
	snprintf(name, sizeof(name), "%u", first);
	svg_text(&sheet->svg, &small, box.x + (float)RING_BOX / 2, box.y + 15,
		whole ? name : "\xe2\x80\xa6");
}

static void draw_title(const struct sheet *sheet)
{
	const struct log_facts *facts = sheet->facts;
	struct svg_label title = {"", 20, SVG_START, true};
	char text[256];
	int used;

	used = snprintf(text, sizeof(text), "%u ranks", sheet->view->rank_count);
	if (facts->node_count)
		snprintf(text + used, sizeof(text) - (size_t)used, " on %d node%s",
			facts->node_count, facts->node_count == 1 ? "" : "s");
	svg_text(&sheet->svg, &title, EDGE, 38, text);
	snprintf(text, sizeof(text), "rows send, columns receive%s%s%s",
		sheet->view->per_cell > 1 ? "; a cell shows the slowest way of its ranks"
					  : "",
		facts->networks.count ? "; network " : "",
		facts->networks.count ? facts->networks.words[0].text : "");
	svg_text(&sheet->svg, &normal, EDGE, 62, text);
	if (!sheet->view->cells)
		svg_text(&sheet->svg, &normal, EDGE, 86,
			"this log names no connections between ranks");
}

/* Room for the names of hosts, and for the rings below the table. */
static void lay_out(struct sheet *sheet, float size[2])
{
	const struct log_view *view = sheet->view;
	float hosts = 0, right;
	uint32_t longest = 0;

	for (uint32_t i = 0; i < view->cells; i++) {
		float width = drawing_text_width(view->hosts[i], 12);

		if (width > hosts)
			hosts = width;
	}
	for (uint32_t i = 0; i < view->ring_count; i++)
		if (sheet->facts->ring_ranks[view->rings[i]] > longest)
			longest = sheet->facts->ring_ranks[view->rings[i]];
	if (longest > FACTS_TEXT_BYTES / 2)
		longest = FACTS_TEXT_BYTES / 2;
	sheet->left = EDGE + NUMBERS + 8 + (hosts < HOSTS_MAX ? hosts : HOSTS_MAX + 12);
	right = at_cell(sheet->left, view->cells) + EDGE;
	size[0] = right < WIDTH_MIN ? WIDTH_MIN : right;
	if (size[0] < sheet->left + 2 * LEGEND)
		size[0] = sheet->left + 2 * LEGEND;
	/* the ring of two machines in one row */
	if (longest <= 16 && size[0] < sheet->left + (float)(RING_STEP * (longest + 1)))
		size[0] = sheet->left + (float)(RING_STEP * (longest + 1));
	sheet->in_row = (uint32_t)((size[0] - sheet->left) / RING_STEP);
	sheet->ring_rows = longest / sheet->in_row + 1;
	size[1] = at_cell(TOP + RINGS_BELOW, view->cells) +
		  (float)(view->ring_count * (sheet->ring_rows * RING_ROW + 6));
}

void log_view_svg(FILE *file, const struct log_facts *facts, const struct log_view *view)
{
	struct sheet sheet = {.svg = {.file = file}, .facts = facts, .view = view};
	float size[2];

	lay_out(&sheet, size);
	svg_begin(file, size, "who talks to whom", style);
	draw_title(&sheet);
	draw_hosts(&sheet);
	draw_cells(&sheet);
	draw_ranks(&sheet);
	draw_legend(&sheet);
	for (uint32_t i = 0; i < view->ring_count; i++)
		draw_ring(&sheet, i,
			at_cell(TOP + RINGS_BELOW - 10, view->cells) +
				(float)(i * (sheet.ring_rows * RING_ROW + 6)));
	svg_end(file);
}
