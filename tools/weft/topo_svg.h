/*
 * topo_svg.h - a picture of a machine, to look at in a browser or a manual.
 */
#ifndef TOOLS_WEFT_TOPO_SVG_H
#define TOOLS_WEFT_TOPO_SVG_H

#include <stdio.h>

#include "base/err.h"
#include "topo/topo.h"

struct drawing;

/* What is drawn over a machine, and told in lines below it. */
struct topo_svg_over {
	const char *style; /* CSS of its classes */
	void (*draw)(FILE *file, const struct drawing *drawing, const void *context);
	const void *context;
	const char *const *classes; /* of the sample before each line */
	const char *const *lines;
	int line_count;
};

/* Write one SVG file, in light or dark as the reader's browser likes it. `name` is the
 * heading. Links are drawn as topo_build() made them; paths are not needed. */
enum err topo_svg(FILE *file, const struct topo *topo, const char *name);

/* The same with something over it; NULL: nothing. */
enum err topo_svg_over(FILE *file, const struct topo *topo, const char *name,
	const struct topo_svg_over *over);

#endif
