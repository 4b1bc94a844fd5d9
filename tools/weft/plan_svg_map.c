/* The map of a search: for each tp and pp the fastest layout that fits. */
#include <math.h>
#include <string.h>

#include "weft/plan_svg.h"

enum { MAP_LEFT = 90, MAP_WIDTH = 64, MAP_ROW = 26, COLUMNS_MAX = 13 };

/* The pp that there are, ascending, the first so many. */
static uint32_t columns_of(const struct search_result *found, uint32_t columns[])
{
	uint32_t count = 0;

	for (uint32_t pp = 1; pp && count < COLUMNS_MAX;) {
		uint32_t next = 0;

		for (uint32_t i = 0; i < found->cell_count; i++) {
			uint32_t one = found->cells[i].pp;

			if (one >= pp && (!next || one < next))
				next = one;
		}
		if (next)
			columns[count++] = next;
		pp = next ? next + 1 : 0;
	}
	return count;
}

static const struct search_cell *cell_of(
	const struct search_result *found, uint32_t tp, uint32_t pp)
{
	for (uint32_t i = 0; i < found->cell_count; i++)
		if (found->cells[i].tp == tp && found->cells[i].pp == pp)
			return &found->cells[i];
	return NULL;
}

/* Green near the best, then blue, then orange; grey where nothing fits. */
static const char *class_of(double seconds, double best)
{
	if (seconds <= 0)
		return "switch";
	if (seconds <= 1.05 * best)
		return "b";
	return seconds <= 1.3 * best ? "f" : "c";
}

static void cell_draw(const struct svg *svg, const struct search_cell *cell, double best,
	const float at[2])
{
	const struct svg_label small = {"", 10, SVG_MIDDLE, false};
	struct svg_box box = {at[0], at[1], MAP_WIDTH - 6, MAP_ROW - 6};
	char text[16] = "none";

	svg_rect(svg, class_of(cell->seconds, best), &box);
	if (cell->seconds > 0)
		snprintf(text, sizeof(text), "%.3g s", cell->seconds);
	svg_text(svg, &small, at[0] + box.width / 2, at[1] + 14, text);
}

static float row_draw(const struct svg *svg, const struct search_result *found,
	uint32_t tp, const float *y)
{
	const struct svg_label side = {"soft", 11, SVG_END, false};
	uint32_t columns[COLUMNS_MAX], count = columns_of(found, columns);
	char text[16];

	snprintf(text, sizeof(text), "tp %u", tp);
	svg_text(svg, &side, MAP_LEFT - 8, *y + 14, text);
	for (uint32_t i = 0; i < count; i++) {
		const struct search_cell *cell = cell_of(found, tp, columns[i]);

		if (cell)
			cell_draw(svg, cell, found->hits[0].seconds,
				(const float[2]){MAP_LEFT + (float)i * MAP_WIDTH, *y});
	}
	return *y + MAP_ROW;
}

static uint32_t rows_of(const struct search_result *found)
{
	uint32_t rows = 0;

	for (uint32_t i = 0; i < found->cell_count; i++)
		rows += !i || found->cells[i].tp != found->cells[i - 1].tp;
	return rows;
}

float plan_map_height(const struct search_result *found)
{
	return found ? 60 + (float)rows_of(found) * MAP_ROW : 0;
}

void plan_map_draw(const struct svg *svg, const struct search_result *found, float y)
{
	const struct svg_label bold = {"", 13, SVG_START, true};
	const struct svg_label top = {"soft", 11, SVG_MIDDLE, false};
	uint32_t columns[COLUMNS_MAX], count = columns_of(found, columns);

	svg_text(svg, &bold, 20, y + 14,
		"The fastest layout of each tp and pp (green: within 5 % of the best, "
		"blue: 30 %)");
	y += 34;
	for (uint32_t i = 0; i < count; i++) {
		char text[16];

		snprintf(text, sizeof(text), "pp %u", columns[i]);
		svg_text(svg, &top, MAP_LEFT + ((float)i + .5f) * (float)MAP_WIDTH - 3, y,
			text);
	}
	y += 8;
	for (uint32_t i = 0; i < found->cell_count; i++)
		if (!i || found->cells[i].tp != found->cells[i - 1].tp)
			y = row_draw(svg, found, found->cells[i].tp, &y);
}
