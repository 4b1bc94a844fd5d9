#include "weft/svg.h"

#include <string.h>

#include "weft/drawing.h"

enum { TEXT_BYTES = 256 };

static const char *const style =
	"<style>\n"
	"text { font-family: Verdana, 'DejaVu Sans', Helvetica, Arial, sans-serif; "
	"fill: #1b2430; }\n"
	".back { fill: #ffffff; }\n"
	".soft { fill: #4a5561; }\n"
	".box { stroke-width: 1.6; }\n"
	".cpu { fill: #e3ebfa; stroke: #4668b0; }\n"
	".switch { fill: #eef0f2; stroke: #8a939c; }\n"
	".gpu { fill: #dff3e4; stroke: #2f8f4e; }\n"
	".nic { fill: #fdeedd; stroke: #c9761d; }\n"
	".line { fill: none; stroke-width: 1.8; }\n"
	".pci { stroke: #8a939c; }\n"
	".nvl { stroke: #2f8f4e; stroke-width: 2.2; }\n"
	".c2c { stroke: #9a4fc4; stroke-width: 2.2; }\n"
	".sys { stroke: #4668b0; }\n"
	".net { stroke: #c9761d; stroke-width: 2.2; }\n"
	".other { stroke: #8a939c; stroke-dasharray: 3 4; }\n"
	"@media (prefers-color-scheme: dark) {\n"
	"text { fill: #e6eaef; }\n"
	".back { fill: #12171d; }\n"
	".soft { fill: #aab4bf; }\n"
	".cpu { fill: #1d2b4a; stroke: #6f92dc; }\n"
	".switch { fill: #252c34; stroke: #7d8791; }\n"
	".gpu { fill: #17351f; stroke: #54b873; }\n"
	".nic { fill: #40290f; stroke: #e29a4b; }\n"
	".pci, .other { stroke: #7d8791; }\n"
	".nvl { stroke: #54b873; }\n"
	".c2c { stroke: #c084e6; }\n"
	".sys { stroke: #6f92dc; }\n"
	".net { stroke: #e29a4b; }\n"
	"}\n"
	"</style>\n";

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

void svg_begin(FILE *file, const float size[2], const char *title, const char *more)
{
	fprintf(file,
		"<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 %.0f %.0f\" "
		"width=\"%.0f\" height=\"%.0f\" role=\"img\">\n<title>",
		(double)size[0], (double)size[1], (double)size[0], (double)size[1]);
	put_escaped(file, title);
	fprintf(file,
		"</title>\n%s%s<rect class=\"back\" width=\"100%%\" "
		"height=\"100%%\"/>\n",
		style, more);
}

void svg_end(FILE *file)
{
	fputs("</svg>\n", file);
}

float svg_y(const struct svg *svg, float y)
{
	return svg->flip > 0 ? svg->flip - y : y;
}

float svg_top(const struct svg *svg, const struct svg_box *box)
{
	return svg->flip > 0 ? svg_y(svg, box->y + box->height) : box->y;
}

void svg_rect(const struct svg *svg, const char *class, const struct svg_box *box)
{
	fprintf(svg->file,
		"<rect class=\"box %s\" x=\"%.1f\" y=\"%.1f\" width=\"%.1f\" "
		"height=\"%.1f\" rx=\"5\"/>\n",
		class, (double)box->x, (double)svg_top(svg, box), (double)box->width,
		(double)box->height);
}

void svg_line(
	const struct svg *svg, const char *class, const float from[2], const float to[2])
{
	fprintf(svg->file, "<path class=\"line %s\" d=\"M%.1f %.1fL%.1f %.1f\"/>\n",
		class, (double)from[0], (double)svg_y(svg, from[1]), (double)to[0],
		(double)svg_y(svg, to[1]));
}

void svg_text(const struct svg *svg, const struct svg_label *label, float x, float y,
	const char *text)
{
	static const char *const anchors[] = {"start", "middle", "end"};

	fprintf(svg->file,
		"<text class=\"%s\" x=\"%.1f\" y=\"%.1f\" font-size=\"%.0f\" "
		"text-anchor=\"%s\"%s>",
		label->class, (double)x, (double)y, (double)label->size,
		anchors[label->anchor], label->bold ? " font-weight=\"bold\"" : "");
	put_escaped(svg->file, text);
	fputs("</text>\n", svg->file);
}

/* Bytes of one UTF-8 glyph stay together. */
void svg_text_fitting(const struct svg *svg, const struct svg_label *label,
	const float at[2], float width, const char *text)
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
	svg_text(svg, label, at[0], at[1], cut);
}

/* The ground behind the text is a shape of its own: not every viewer draws the stroke of
 * a letter before its inside. */
void svg_text_on_line(const struct svg *svg, const struct svg_label *label,
	const float at[2], const char *text)
{
	float width = drawing_text_width(text, label->size);
	float left = label->anchor == SVG_MIDDLE ? at[0] - width / 2
		     : label->anchor == SVG_END	 ? at[0] - width
						 : at[0];
	float middle = svg_y(svg, at[1]);

	fprintf(svg->file,
		"<rect class=\"back\" x=\"%.1f\" y=\"%.1f\" width=\"%.1f\" "
		"height=\"%.1f\"/>\n",
		(double)(left - 2), (double)(middle - 0.55f * label->size),
		(double)(width + 4), (double)(1.1f * label->size));
	svg_text(svg, label, at[0], middle + 0.36f * label->size, text);
}
