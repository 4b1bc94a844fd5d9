/* weft sim --svg: busbw over size with its interval, and what others measured there. */
#include <errno.h>
#include <math.h>
#include <string.h>

#include "common/units.h"
#include "weft/command.h"
#include "weft/drawing.h"
#include "weft/sim.h"
#include "weft/svg.h"

enum { WIDTH = 860, HEIGHT = 460, LEFT = 70, RIGHT = 20, TOP = 76, BOTTOM = 60 };
enum { NAMES_BYTES = 120 };

struct chart {
	struct svg svg;
	double first, last; /* logarithms of sizes */
	double top;	    /* GB/s */
};

static float x_of(const struct chart *c, double bytes)
{
	double span = c->last > c->first ? c->last - c->first : 1;

	return (float)(LEFT + (WIDTH - LEFT - RIGHT) * (log2(bytes) - c->first) / span);
}

static float y_of(const struct chart *c, double busbw)
{
	return (float)(HEIGHT - BOTTOM - (HEIGHT - TOP - BOTTOM) * busbw / c->top);
}

static void axes_draw(const struct chart *c)
{
	const struct svg_label small = {"soft", 11, SVG_MIDDLE, false};
	const struct svg_label side = {"soft", 11, SVG_END, false};

	for (int i = 0; i <= 4; i++) {
		float y = y_of(c, c->top * i / 4);
		char text[24];

		fprintf(c->svg.file,
			"<line class=\"grid\" x1=\"%d\" y1=\"%.1f\" x2=\"%d\" "
			"y2=\"%.1f\"/>\n",
			LEFT, (double)y, WIDTH - RIGHT, (double)y);
		snprintf(text, sizeof(text), "%.4g", c->top * i / 4);
		svg_text(&c->svg, &side, LEFT - 6, y + 4, text);
	}
	for (int at = (int)ceil(c->first); at <= (int)c->last;
		at += c->last - c->first > 12 ? 4 : 2) {
		char text[24];

		units_print_size((uint64_t)exp2(at), text, sizeof(text));
		svg_text(&c->svg, &small, x_of(c, exp2(at)), HEIGHT - BOTTOM + 18, text);
	}
	svg_text(&c->svg, &small, (float)WIDTH / 2, HEIGHT - 16, "size, bytes");
	svg_text(&c->svg, &small, 40, TOP - 12, "busbw, GB/s");
}

static void curves_draw(const struct chart *c, const struct sim_run *run)
{
	FILE *file = c->svg.file;

	fprintf(file, "<path class=\"band\" d=\"");
	for (uint32_t i = 0; i < run->count; i++)
		fprintf(file, "%c%.1f %.1f", i ? 'L' : 'M',
			(double)x_of(c, (double)run->sizes[i]),
			(double)y_of(c, fmin(run->rows[i].high, c->top)));
	for (uint32_t i = run->count; i-- > 0;)
		fprintf(file, "L%.1f %.1f", (double)x_of(c, (double)run->sizes[i]),
			(double)y_of(c, run->rows[i].low));
	fprintf(file, "Z\"/>\n<path class=\"curve\" d=\"");
	for (uint32_t i = 0; i < run->count; i++)
		fprintf(file, "%c%.1f %.1f", i ? 'L' : 'M',
			(double)x_of(c, (double)run->sizes[i]),
			(double)y_of(c, run->rows[i].busbw));
	fprintf(file, "\"/>\n");
}

/* Whether NVLS is off changes nothing where there is none. */
static bool has_nvls(const struct sim_run *run)
{
	const struct model *model = &run->scene.model;

	return model->bandwidth[MODEL_ALL_REDUCE][ALGO_NVLS][PROTO_SIMPLE] > 0 ||
	       model->bandwidth[MODEL_ALL_REDUCE][ALGO_NVLS_TREE][PROTO_SIMPLE] > 0;
}

static bool is_point(const struct sim_run *run, const struct sim_cases *cases,
	const struct sim_case *c)
{
	const struct sim_site *a = &run->scene.site, *b = &cases->groups[c->group].site;

	return c->time_us > 0 && !c->wrong && c->coll == run->args->coll &&
	       !strcmp(a->machine, b->machine) && a->nodes == b->nodes &&
	       a->gpus == b->gpus && (a->nodes == 1 || a->outer == b->outer) &&
	       !strcmp(a->algo, b->algo) && !strcmp(a->proto, b->proto) &&
	       (a->no_nvls == b->no_nvls || !has_nvls(run));
}

/* Under the title, who measured the points: each platform once, as many as fit. */
static void platform_name(
	const struct sim_cases *cases, const struct sim_case *p, char text[NAMES_BYTES])
{
	const char *name = table_at(
		&cases->table, p->row, table_column(&cases->table, "platform"));
	size_t used = strlen(text);

	if (!strstr(text, name) && used + strlen(name) + 2 < NAMES_BYTES)
		snprintf(text + used, NAMES_BYTES - used, "%s%s", used ? "; " : "", name);
}

static void points_draw(
	const struct chart *c, const struct sim_run *run, const struct sim_cases *cases)
{
	const struct svg_label small = {"soft", 11, SVG_START, false};
	char names[NAMES_BYTES] = "", text[NAMES_BYTES + 32];

	for (uint32_t i = 0; i < cases->count; i++) {
		const struct sim_case *p = &cases->cases[i];
		double busbw = (double)p->bytes * p->bus_factor / p->time_us / 1e3;

		if (!is_point(run, cases, p) || log2((double)p->bytes) < c->first ||
			log2((double)p->bytes) > c->last)
			continue;
		fprintf(c->svg.file,
			"<circle class=\"point\" cx=\"%.1f\" cy=\"%.1f\" r=\"3\"/>\n",
			(double)x_of(c, (double)p->bytes),
			(double)y_of(c, fmin(busbw, c->top)));
		platform_name(cases, p, names);
	}
	if (!*names)
		return;
	snprintf(text, sizeof(text), "points: measured on %s", names);
	svg_text(&c->svg, &small, LEFT, 46, text);
}

/* 1, 2, 2.5 or 5 of a power of ten, at least that. */
static double round_up(double value)
{
	static const double steps[] = {1, 2, 2.5, 5, 10};
	double power = pow(10, floor(log10(value)));
	int i = 0;

	while (i < 4 && steps[i] * power < value)
		i++;
	return steps[i] * power;
}

static void draw(const struct sim_run *run, const struct sim_cases *cases, FILE *file)
{
	static const float size[2] = {WIDTH, HEIGHT};
	static const char style[] =
		"<style>\n.grid { stroke: #888; stroke-opacity: .3; }\n"
		".curve { fill: none; stroke: #2a78d6; stroke-width: 2.5; }\n"
		".band { fill: #2a78d6; fill-opacity: .18; }\n"
		".point { fill: #d9622b; fill-opacity: .75; }\n</style>\n";
	static const float BOLD = 1.1F; /* so much wider than plain letters */
	struct svg_label head = {"text", 15, SVG_START, true};
	struct chart c = {.svg = {.file = file},
		.first = log2((double)run->sizes[0]),
		.last = log2((double)run->sizes[run->count - 1])};
	char title[200];

	for (uint32_t i = 0; i < run->count; i++)
		c.top = fmax(c.top, run->rows[i].busbw * 1.1);
	c.top = 4 * round_up(c.top / 4);
	sim_run_title(run, title);
	svg_begin(file, size, title, style);
	head.size = fminf(head.size, head.size * (WIDTH - LEFT - RIGHT) /
					     drawing_text_width(title, head.size * BOLD));
	svg_text(&c.svg, &head, LEFT, 28, title);
	axes_draw(&c);
	curves_draw(&c, run);
	if (cases)
		points_draw(&c, run, cases);
	svg_end(file);
}

static enum err file_draw(
	const struct sim_run *run, const struct sim_cases *cases, const char *path)
{
	FILE *file = strcmp(path, "-") ? fopen(path, "we") : stdout;

	if (file)
		draw(run, cases, file);
	if (!file || (file != stdout && fclose(file)))
		return err_set(
			ERR_SYSTEM, "%s cannot be written: %s", path, strerror(errno));
	return OK;
}

/* No file is begun before all is known that goes into it. */
int sim_svg(const struct sim_run *run, const char *path)
{
	const char *points = run->args->points;
	struct sim_cases cases = {0};
	enum err e = OK;

	if (run->count < 2)
		e = err_set(ERR_USAGE,
			"--svg draws a curve: give two sizes or more, such as --size "
			"1M:8G:2");
	if (!e && points)
		e = sim_cases_read(points, &cases);
	if (!e) {
		e = file_draw(run, points ? &cases : NULL, path);
		sim_cases_free(&cases);
	}
	return e ? sim_failed(e) : EXIT_GOOD;
}
