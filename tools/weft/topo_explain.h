/*
 * topo_explain.h - which way data take between two parts, in sentences: hop by hop, by
 * which rule, and what would change it.
 */
#ifndef TOOLS_WEFT_TOPO_EXPLAIN_H
#define TOOLS_WEFT_TOPO_EXPLAIN_H

#include <stdio.h>

#include "weft/topo_view.h"

/* `a` and `b` as topo_view_find() takes them; one of them at least is a GPU. ERR_USAGE
 * with a sentence when not. */
enum err topo_explain(
	FILE *file, const struct topo_view *view, const char *a, const char *b);

#endif
