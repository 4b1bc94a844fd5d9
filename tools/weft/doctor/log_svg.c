/* The table of connections as a picture. */
#include <stdio.h>

#include "weft/doctor/log_view.h"
#include "weft/svg.h"

enum { CELL = 22, LEFT = 150, TOP = 110, RIGHT = 40, BELOW = 90, WIDTH_MIN = 760 };

static const char *const style =
	"<style>\n"
	".way1 { fill: #2f8f4e; } .way2 { fill: #d9a514; } .way3 { fill: #4668b0; }\n"
	".way4 { fill: #c0392b; } .way0 { fill: none; stroke: #8a939c; "
	"stroke-opacity: .35; }\n"
	"</style>\n";

static const char *const classes[WAY_COUNT] = {"way0", "way1", "way2", "way3", "way4"};

static void draw_cells(const struct svg *svg, const struct log_view *view)
{
	for (uint32_t row = 0; row < view->cells; row++)
		for (uint32_t column = 0; column < view->cells; column++) {
			struct svg_box box = {(float)(LEFT + CELL * column),
				(float)(TOP + CELL * row), CELL - 2, CELL - 2};

			fprintf(svg->file,
				"<g><title>%u to %u: %s, %u connections</title>",
				row * view->per_cell, column * view->per_cell,
				log_way_name((enum log_way)view->way[row][column]),
				view->connections[row][column]);
			svg_rect(svg, classes[view->way[row][column]], &box);
			fputs("</g>\n", svg->file);
		}
}

static void draw_names(const struct svg *svg, const struct log_view *view)
{
	struct svg_label soft = {"soft", 11, SVG_MIDDLE, false};
	struct svg_label name = {"soft", 11, SVG_END, false};

	for (uint32_t i = 0; i < view->cells; i++) {
		char text[FACTS_NAME_BYTES + 16];
		const float at[2] = {LEFT - 10, (float)(TOP + CELL * i + 15)};

		snprintf(text, sizeof(text), "%u", i * view->per_cell);
		svg_text(svg, &soft, (float)(LEFT + CELL * i) + (float)CELL / 2 - 1,
			TOP - 8, text);
		if (view->hosts[i][0])
			snprintf(text, sizeof(text), "%s  %u", view->hosts[i],
				i * view->per_cell);
		svg_text_fitting(svg, &name, at, LEFT - 20, text);
	}
}

static void draw_legend(const struct svg *svg, const struct log_view *view)
{
	struct svg_label soft = {"soft", 13, SVG_START, false};
	float x = LEFT, y = (float)(TOP + CELL * view->cells + 30);

	for (int way = WAY_P2P; way < WAY_COUNT; way++) {
		struct svg_box box = {x, y, 16, 16};
		char text[64];

		if (!view->totals[way])
			continue;
		svg_rect(svg, classes[way], &box);
		snprintf(text, sizeof(text), "%s (%llu)", log_way_name((enum log_way)way),
			(unsigned long long)view->totals[way]);
		svg_text(svg, &soft, x + 24, y + 13, text);
		x += 190;
	}
}

void log_view_svg(FILE *file, const struct log_facts *facts, const struct log_view *view)
{
	float width = (float)(LEFT + CELL * view->cells + RIGHT);
	float size[2] = {width < WIDTH_MIN ? WIDTH_MIN : width,
		(float)(TOP + CELL * view->cells + BELOW)};
	struct svg svg = {.file = file};
	struct svg_label title = {"", 20, SVG_START, true};
	struct svg_label soft = {"soft", 13, SVG_START, false};
	char text[256];

	svg_begin(file, size, "who talks to whom", style);
	snprintf(text, sizeof(text), "%u ranks%s%s", view->rank_count,
		facts->networks.count ? ", network " : "",
		facts->networks.count ? facts->networks.words[0].text : "");
	svg_text(&svg, &title, 28, 38, text);
	snprintf(text, sizeof(text), "rows send, columns receive%s",
		view->per_cell > 1 ? "; a cell shows the slowest way of its ranks" : "");
	svg_text(&svg, &soft, 28, 62, text);
	draw_cells(&svg, view);
	draw_names(&svg, view);
	draw_legend(&svg, view);
	svg_end(file);
}
