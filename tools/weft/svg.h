/*
 * svg.h - the few shapes our pictures are made of, and their style sheet: light or dark
 * as the reader's browser likes it.
 *
 * A machine is laid out once (drawing.h) and may be drawn upside down below another:
 * lines and boxes are given in the layout's coordinates and turned here, texts on paper,
 * where the reader's head stays as it is.
 */
#ifndef TOOLS_WEFT_SVG_H
#define TOOLS_WEFT_SVG_H

#include <stdbool.h>
#include <stdio.h>

struct svg {
	FILE *file;
	float flip;   /* 0: as laid out; else y on paper is this less the layout's y */
	bool covered; /* something is drawn over it: no numbers at the GPUs, where it runs
		       */
};

enum svg_anchor { SVG_START, SVG_MIDDLE, SVG_END };

struct svg_label {
	const char *class;
	float size;
	enum svg_anchor anchor;
	bool bold;
};

struct svg_box {
	float x, y, width, height;
};

/* The head of the file, with its style and background; `more`: further styles. */
void svg_begin(FILE *file, const float size[2], const char *title, const char *more);
void svg_end(FILE *file);

/* From the layout to paper: a height, and the upper edge of a box. */
float svg_y(const struct svg *svg, float y);
float svg_top(const struct svg *svg, const struct svg_box *box);

/* In the layout's coordinates. `class` is one of the style sheet. */
void svg_rect(const struct svg *svg, const char *class, const struct svg_box *box);
void svg_line(
	const struct svg *svg, const char *class, const float from[2], const float to[2]);

/* On paper: a text whose base line is at `y`; the second cuts what is wider than `width`
 * and puts dots there. */
void svg_text(const struct svg *svg, const struct svg_label *label, float x, float y,
	const char *text);
void svg_text_fitting(const struct svg *svg, const struct svg_label *label,
	const float at[2], float width, const char *text);

/* A text on a line, which it interrupts; `at` is its middle in the layout's y. */
void svg_text_on_line(const struct svg *svg, const struct svg_label *label,
	const float at[2], const char *text);

#endif
