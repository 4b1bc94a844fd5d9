/*
 * topo_svg.h - a picture of a machine, to look at in a browser, a manual or on a slide.
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

struct topo_picture {
	const char *name; /* the heading; borrowed */
	uint32_t nodes;	  /* machines of this kind; of more than one, two are drawn */
	const struct topo_svg_over
		*over; /* borrowed; of one machine only; NULL: nothing */
};

/* Write one SVG file, in light or dark as the reader's browser likes it. Links are drawn
 * as topo_build() made them; paths are not needed. Two machines stand one above the
 * other, and their ports of one number are joined: a rail. */
enum err topo_svg(
	FILE *file, const struct topo *topo, const struct topo_picture *picture);

#endif
