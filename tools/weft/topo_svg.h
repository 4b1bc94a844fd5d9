/*
 * topo_svg.h - a picture of a machine, to look at in a browser or a manual.
 */
#ifndef TOOLS_WEFT_TOPO_SVG_H
#define TOOLS_WEFT_TOPO_SVG_H

#include <stdio.h>

#include "base/err.h"
#include "topo/topo.h"

/* Write one SVG file, in light or dark as the reader's browser likes it. `name` is the
 * heading. Links are drawn as topo_build() made them; paths are not needed. */
enum err topo_svg(FILE *file, const struct topo *topo, const char *name);

#endif
