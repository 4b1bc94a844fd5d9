/*
 * plan_svg.h - the parts of the picture of `weft plan`.
 */
#ifndef TOOLS_WEFT_PLAN_SVG_H
#define TOOLS_WEFT_PLAN_SVG_H

#include "train/search.h"
#include "weft/svg.h"

/* What the map of a search takes on paper; 0 of NULL. */
float plan_map_height(const struct search_result *found);

/* From `y` on: rows of tp, columns of pp, each the step of its fastest layout. */
void plan_map_draw(const struct svg *svg, const struct search_result *found, float y);

#endif
