/* weft plan --svg: the step as a timeline, where its time goes, the layouts of a search
 * as a map, and who sits where. */
#include <errno.h>
#include <math.h>
#include <string.h>

#include "weft/command.h"
#include "weft/plan.h"
#include "weft/plan_svg.h"

enum {
	WIDTH = 980,
	LEFT = 90,
	RIGHT = 20,
	TOP = 78,
	ROW = 26,
	STAGES_MAX = 16,
	MICRO_MAX = 16,
	NODES_MAX = 8,
	GPU_SIDE = 40
};

static const char style[] = "<style>\n.f { fill: #bcd6f5; stroke: #4668b0; }\n"
			    ".b { fill: #cdebd4; stroke: #2f8f4e; }\n"
			    ".c { fill: #fdd9b0; stroke: #c9761d; }\n"
			    ".h { fill: #f3c3c3; stroke: #b03030; }\n"
			    ".o { fill: #e2d5f0; stroke: #7a4fa3; }\n"
			    ".hid { fill: none; stroke: #c9761d; "
			    "stroke-dasharray: 3 2; }\n"
			    "@media (prefers-color-scheme: dark) {\n"
			    ".f { fill: #1d2f55; stroke: #6f92dc; }\n"
			    ".b { fill: #17351f; stroke: #54b873; }\n"
			    ".c { fill: #40290f; stroke: #e29a4b; }\n"
			    ".h { fill: #4a1c1c; stroke: #e07070; }\n"
			    ".o { fill: #33244a; stroke: #b592de; }\n}\n</style>\n";

/* A pipeline as it runs: one forward, one backward. */
struct schedule {
	uint32_t stages, micros;
	double forward, backward, shift; /* seconds; shift between stages */
	double start_f[STAGES_MAX][MICRO_MAX], start_b[STAGES_MAX][MICRO_MAX];
	double end;
};

static double later(double a, double b)
{
	return a > b ? a : b;
}

/* One turn: the next forward or backward of a stage, when what it needs is there. */
static bool turn(struct schedule *s, uint32_t stage, uint32_t done[2], double *free_at)
{
	uint32_t ahead = s->stages - stage, f = done[0], b = done[1];
	bool is_forward = f < s->micros && f - b < ahead;
	double need = 0;

	if (is_forward) {
		if (stage > 0)
			need = s->start_f[stage - 1][f] + s->shift;
		if (stage > 0 && s->start_f[stage - 1][f] < 0)
			return false;
		s->start_f[stage][f] = later(need, *free_at);
		*free_at = s->start_f[stage][f] + s->forward;
		done[0]++;
		return true;
	}
	if (b >= s->micros)
		return false;
	if (stage + 1 < s->stages) {
		if (s->start_b[stage + 1][b] < 0)
			return false;
		need = s->start_b[stage + 1][b] + s->backward * s->shift / s->forward;
	}
	s->start_b[stage][b] = later(need, *free_at);
	*free_at = s->start_b[stage][b] + s->backward;
	s->end = later(s->end, *free_at);
	done[1]++;
	return true;
}

static void schedule_make(const struct plan_run *run, struct schedule *s)
{
	uint32_t done[STAGES_MAX][2] = {{0}}, micros = layout_micro_count(&run->layout);
	double free_at[STAGES_MAX] = {0};
	bool is_moving = true;

	memset(s, 0, sizeof(*s));
	s->stages = run->layout.pp < STAGES_MAX ? run->layout.pp : STAGES_MAX;
	s->micros = micros < MICRO_MAX ? micros : MICRO_MAX;
	s->forward = run->step.forward_s;
	s->backward = run->step.backward_s;
	s->shift = s->forward / run->layout.vp / (run->layout.is_zero_bubble ? 3 : 1);
	for (uint32_t i = 0; i < STAGES_MAX; i++)
		for (uint32_t k = 0; k < MICRO_MAX; k++)
			s->start_f[i][k] = s->start_b[i][k] = -1;
	while (is_moving) {
		is_moving = false;
		for (uint32_t i = 0; i < s->stages; i++)
			while (turn(s, i, done[i], &free_at[i]))
				is_moving = true;
	}
}

struct canvas {
	struct svg svg;
	float scale; /* points a second */
};

static void block(
	const struct canvas *c, const char *class, float y, double from, double length)
{
	struct svg_box box = {
		LEFT + c->scale * (float)from, y, c->scale * (float)length, ROW - 6};

	svg_rect(&c->svg, class, &box);
}

static void number(
	const struct canvas *c, float y, double from, double length, uint32_t n)
{
	const struct svg_label small = {"", 10, SVG_MIDDLE, false};
	char text[12];

	if (c->scale * (float)length < 14)
		return;
	snprintf(text, sizeof(text), "%u", n);
	svg_text(&c->svg, &small, LEFT + c->scale * (float)(from + length / 2), y + 14,
		text);
}

/* What is sent once a step, under the row: that part of it that is hidden runs beside the
 * work. */
static void hidden_draw(const struct canvas *c, const struct plan_run *run, float y,
	const struct schedule *s)
{
	double total = run->step.total[PART_DP], seen = run->step.seen[PART_DP];
	double from = later(0, s->end + seen - total);
	struct svg_box box = {LEFT + c->scale * (float)from, y + ROW - 5,
		c->scale * (float)(s->end + seen - from), 3};

	if (total > seen)
		svg_rect(&c->svg, "hid", &box);
}

/* What comes after the last backward, on every stage. */
static double tail_draw(
	const struct canvas *c, const struct plan_run *run, float y, double from)
{
	const double *seen = run->step.seen;
	const struct {
		const char *class;
		double length;
	} pieces[] = {
		{"c", seen[PART_DP]},
		{"h", seen[PART_HOST_COPY] + seen[PART_HOST_UPDATE]},
		{"o", seen[PART_OPTIMIZER]},
	};

	for (int i = 0; i < 3; i++) {
		if (pieces[i].length > 0)
			block(c, pieces[i].class, y, from, pieces[i].length);
		from += pieces[i].length;
	}
	return from;
}

static void stages_draw(
	const struct canvas *c, const struct plan_run *run, const struct schedule *s)
{
	const struct svg_label side = {"soft", 11, SVG_END, false};

	for (uint32_t i = 0; i < s->stages; i++) {
		float y = TOP + 20 + (float)i * ROW;
		char text[24];

		snprintf(text, sizeof(text), s->stages > 1 ? "stage %u" : "GPU", i);
		svg_text(&c->svg, &side, LEFT - 8, y + 14, text);
		for (uint32_t k = 0; k < s->micros; k++) {
			block(c, "f", y, s->start_f[i][k], s->forward);
			block(c, "b", y, s->start_b[i][k], s->backward);
			number(c, y, s->start_f[i][k], s->forward, k + 1);
			number(c, y, s->start_b[i][k], s->backward, k + 1);
		}
		tail_draw(c, run, y, s->end);
		hidden_draw(c, run, y, s);
	}
}

static const char *class_of(int part)
{
	switch (part) {
	case PART_GEMM:
	case PART_ATTENTION:
	case PART_POINT:
		return "f";
	case PART_HOST_COPY:
	case PART_HOST_UPDATE:
		return "h";
	case PART_OPTIMIZER:
	case PART_OTHER:
		return "o";
	case PART_BUBBLE:
		return "switch";
	default:
		return "c";
	}
}

static bool is_shown(const struct plan_run *run, int part)
{
	double least = .001 * run->step.seconds;

	return run->step.seen[part] >= least || run->step.total[part] >= least;
}

static int parts_shown(const struct plan_run *run)
{
	int count = 0;

	for (int i = 0; i < STEP_PARTS; i++)
		count += is_shown(run, i);
	return count;
}

/* Behind a bar what is not seen of it, as long as it would be; cut at the room's end. */
static float hidden_bar(const struct canvas *c, float room, const struct plan_run *run,
	int part, const struct svg_box *bar)
{
	double hidden = run->step.total[part] - run->step.seen[part];
	struct svg_box box = *bar;

	if (hidden < .001 * run->step.seconds)
		return 0;
	box.x += bar->width;
	box.width = fmaxf(
		0, fminf(room * (float)(hidden / run->step.seconds), room - bar->width));
	svg_rect(&c->svg, "hid", &box);
	return box.width;
}

/* One bar for each part, as long as its share. */
static float parts_draw(const struct canvas *c, const struct plan_run *run, float y)
{
	const struct svg_label side = {"soft", 11, SVG_END, false};
	const struct svg_label plain = {"", 11, SVG_START, false};
	float room = WIDTH - 190 - 240;

	for (int i = 0; i < STEP_PARTS; i++) {
		double seen = run->step.seen[i], total = run->step.total[i];
		struct svg_box box = {
			190, y, room * (float)(seen / run->step.seconds), 14};
		char text[80];

		if (!is_shown(run, i))
			continue;
		svg_text(&c->svg, &side, 182, y + 11, step_part_name((enum step_part)i));
		svg_rect(&c->svg, class_of(i), &box);
		box.width += hidden_bar(c, room, run, i, &box);
		snprintf(text, sizeof(text), "%.3g s, %.1f %%%s", seen,
			100 * seen / run->step.seconds,
			i == (int)run->step.bound ? "  (the bound)" : "");
		if (total > 1.01 * seen)
			snprintf(text, sizeof(text), "%.3g s seen of %.3g s, %.1f %%",
				seen, total, 100 * seen / run->step.seconds);
		svg_text(&c->svg, &plain, 198 + box.width, y + 11, text);
		y += 20;
	}
	return y;
}

/* A GPU is its stage's colour, with its place on the axes. */
static void gpu_draw(const struct canvas *c, const struct train_grid *grid, uint32_t rank,
	const float at[2])
{
	static const char *const classes[] = {"f", "b", "c", "o", "h", "cpu"};
	const struct svg_label small = {"", 9, SVG_MIDDLE, false};
	uint32_t stage = rank / grid->stride[AXIS_PP] % grid->size[AXIS_PP];
	struct svg_box box = {at[0], at[1], GPU_SIDE - 4, GPU_SIDE - 4};
	char text[24];

	svg_rect(&c->svg, classes[stage % 6], &box);
	snprintf(text, sizeof(text), "t%u d%u",
		rank / grid->stride[AXIS_TP] % grid->size[AXIS_TP],
		rank / grid->stride[AXIS_DP] % grid->size[AXIS_DP]);
	svg_text(&c->svg, &small, at[0] + (GPU_SIDE - 4) / 2.0f, at[1] + 15, text);
	snprintf(text, sizeof(text), "p%u c%u", stage,
		rank / grid->stride[AXIS_CP] % grid->size[AXIS_CP]);
	svg_text(&c->svg, &small, at[0] + (GPU_SIDE - 4) / 2.0f, at[1] + 27, text);
}

static enum err map_draw(const struct canvas *c, const struct plan_run *run, float y)
{
	const struct svg_label side = {"soft", 11, SVG_END, false};
	uint32_t nodes = run->net.site.nodes, gpus = run->net.site.gpus;
	struct train_grid grid;
	enum err e = grid_make(&run->layout, &run->args->order, false, &grid);

	for (uint32_t n = 0; !e && n < nodes && n < NODES_MAX; n++) {
		char text[32];

		snprintf(text, sizeof(text), "node %u", n);
		svg_text(&c->svg, &side, LEFT - 8, y + 22, text);
		for (uint32_t g = 0; g < gpus && g < 20; g++)
			gpu_draw(c, &grid, n * gpus + g,
				(const float[2]){LEFT + (float)g * GPU_SIDE, y});
		y += GPU_SIDE + 2;
	}
	return e;
}

static void head_draw(
	const struct canvas *c, const struct plan_run *run, const struct schedule *s)
{
	const struct svg_label big = {"", 16, SVG_START, true};
	const struct svg_label soft = {"soft", 12, SVG_START, false};
	uint32_t micros = layout_micro_count(&run->layout);
	char text[400], layout[LAYOUT_TEXT_BYTES], cluster[CLUSTER_BYTES];

	layout_text(&run->layout, layout);
	plan_cluster_text(run, cluster);
	snprintf(text, sizeof(text), "%s on %s: a step of %.4g s", run->model.name,
		cluster, run->step.seconds);
	svg_text(&c->svg, &big, 20, 28, text);
	snprintf(text, sizeof(text), "%s%s", layout,
		run->layout.vp > 1 ? "; a block is all chunks of a micro-batch" : "");
	if (run->layout.pp > s->stages || s->micros < micros)
		snprintf(text + strlen(text), sizeof(text) - strlen(text),
			"; drawn with %u of %u stages, %u of %u micro-batches", s->stages,
			run->layout.pp, s->micros, micros);
	svg_text(&c->svg, &soft, 20, 50, text);
	snprintf(text, sizeof(text),
		"Blue: forward, green: backward, orange: sending that is seen (dashed: "
		"hidden), red: host, violet: optimizer and waits");
	svg_text(&c->svg, &soft, 20, 68, text);
}

static enum err draw(
	const struct plan_run *run, const struct search_result *found, FILE *file)
{
	struct schedule s;
	struct canvas c = {.svg = {.file = file}};
	uint32_t nodes = run->net.site.nodes < NODES_MAX ? run->net.site.nodes
							 : NODES_MAX;
	const double *seen = run->step.seen;
	float y, size[2] = {WIDTH, 0};
	double length;
	const struct svg_label bold = {"", 13, SVG_START, true};
	enum err e;

	schedule_make(run, &s);
	length = s.end + seen[PART_DP] + seen[PART_HOST_COPY] + seen[PART_HOST_UPDATE] +
		 seen[PART_OPTIMIZER];
	c.scale = (float)((WIDTH - LEFT - RIGHT) / length);
	y = TOP + 20 + (float)s.stages * ROW;
	size[1] = y + 90 + (float)parts_shown(run) * 20 + (float)nodes * (GPU_SIDE + 2) +
		  plan_map_height(found);
	svg_begin(file, size, "a training step", style);
	head_draw(&c, run, &s);
	stages_draw(&c, run, &s);
	svg_text(&c.svg, &bold, 20, y + 24, "Where the time goes");
	y = parts_draw(&c, run, y + 36);
	if (found)
		plan_map_draw(&c.svg, found, y + 10);
	y += plan_map_height(found);
	svg_text(&c.svg, &bold, 20, y + 24,
		run->net.site.nodes > NODES_MAX ? "Who sits where (the first nodes)"
						: "Who sits where");
	e = map_draw(&c, run, y + 38);
	svg_end(file);
	return e;
}

int plan_svg(
	const struct plan_run *run, const struct search_result *found, const char *path)
{
	bool is_stdout = !strcmp(path, "-");
	FILE *file = is_stdout ? stdout : fopen(path, "we");
	enum err e;

	if (!file) {
		fprintf(stderr, "weft plan: %s cannot be written: %s\n", path,
			strerror(errno));
		return EXIT_WRONG;
	}
	e = draw(run, found, file);
	if (!is_stdout && fclose(file)) {
		fprintf(stderr, "weft plan: %s could not be written whole\n", path);
		return EXIT_WRONG;
	}
	return e ? plan_failed(e) : EXIT_GOOD;
}
