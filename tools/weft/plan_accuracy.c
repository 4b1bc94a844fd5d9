/* weft plan --accuracy: predicted steps against published ones, with the calibration in
 * the tree and with one that has not seen the source it is asked about; --calibrate: the
 * table. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "train/fit.h"
#include "weft/command.h"
#include "weft/plan.h"

struct study {
	struct train_cases cases;
	struct train_calib own;	  /* in the tree, or fitted to all */
	double *inside, *outside; /* owned: logarithms of predicted over measured time */
	double *beside;		  /* owned: the same with their model left out */
	double *memory, *memory_beside, *memory_outside; /* owned: the same of memory */
};

static void study_free(struct study *s)
{
	train_cases_free(&s->cases);
	free(s->inside);
	free(s->outside);
	free(s->beside);
	free(s->memory_beside);
	free(s->memory);
	free(s->memory_outside);
}

static bool is_scored(const struct train_case *c)
{
	return c->step_s > 0 && !c->is_partial;
}

static bool has_memory(const struct train_case *c)
{
	return c->memory_bytes > 0 && !c->is_partial;
}

static double memory_error(const struct train_calib *calib, const struct train_case *c)
{
	struct calib_answer answer;
	struct train_memory memory;

	calib_ask(calib, &c->who, &answer);
	memory_make(&c->model, &c->layout, &answer.habit, &memory);
	memory_settle(&memory, c->who.gpu->memory_gb * 1e9);
	return log(memory.total / c->memory_bytes);
}

/* Fit without some rows, and ask about these. */
static enum err without(struct study *s, uint32_t what, double *times, double *memories)
{
	static struct train_calib calib;
	enum err e = train_fit(&s->cases, what, &calib);

	if (e)
		return e;
	train_fit_memory(&s->cases, what, &calib);
	for (uint32_t i = 0; i < s->cases.count; i++) {
		const struct train_case *c = &s->cases.cases[i];

		if (!fit_is_left_out(c, what))
			continue;
		if (is_scored(c))
			times[i] = train_error(&calib, c);
		if (has_memory(c))
			memories[i] = memory_error(&calib, c);
	}
	return OK;
}

/* Each source left out in turn, and each part of the models. */
static enum err leave_out(struct study *s)
{
	enum err e = OK;

	for (uint32_t source = 0; !e && source < s->cases.source_count; source++)
		e = without(s, source, s->outside, s->memory_outside);
	for (uint32_t fold = 0; !e && fold < FIT_FOLDS; fold++)
		e = without(s, FIT_FOLD + fold, s->beside, s->memory_beside);
	return e;
}

static enum err study_make(const char *path, bool is_fit, struct study *s)
{
	enum err e;

	*s = (struct study){0};
	e = train_cases_read(path, &s->cases);
	if (e)
		return e;
	s->inside = calloc(s->cases.count + 1, sizeof(double));
	s->outside = calloc(s->cases.count + 1, sizeof(double));
	s->beside = calloc(s->cases.count + 1, sizeof(double));
	s->memory = calloc(s->cases.count + 1, sizeof(double));
	s->memory_beside = calloc(s->cases.count + 1, sizeof(double));
	s->memory_outside = calloc(s->cases.count + 1, sizeof(double));
	if (!s->inside || !s->outside || !s->beside || !s->memory || !s->memory_beside ||
		!s->memory_outside)
		return err_set(ERR_SYSTEM, "no memory for %u rows", s->cases.count);
	e = leave_out(s);
	if (!e && is_fit) {
		e = train_fit(&s->cases, FIT_NO_SOURCE, &s->own);
		if (!e)
			train_fit_memory(&s->cases, FIT_NO_SOURCE, &s->own);
		train_fit_spreads(&s->cases, s->beside, s->outside, &s->own);
	} else if (!e) {
		calib_load(&s->own);
	}
	for (uint32_t i = 0; !e && i < s->cases.count; i++) {
		const struct train_case *c = &s->cases.cases[i];

		if (is_scored(c))
			s->inside[i] = train_error(&s->own, c);
		if (has_memory(c))
			s->memory[i] = memory_error(&s->own, c);
	}
	return e;
}

static double percent(double error)
{
	return 100 * fabs(expm1(error));
}

/* Mean and worst of the errors that `is_in` lets through. */
struct score {
	double mean, worst;
	uint32_t count;
};

static struct score score_of(
	const struct study *s, const double *errors, int source, bool audited_only)
{
	struct score score = {0};

	for (uint32_t i = 0; i < s->cases.count; i++) {
		const struct train_case *c = &s->cases.cases[i];

		if (!is_scored(c) || (source >= 0 && c->source != (uint32_t)source) ||
			(audited_only && !c->is_audited))
			continue;
		score.mean += percent(errors[i]);
		score.worst = fmax(score.worst, percent(errors[i]));
		score.count++;
	}
	if (score.count)
		score.mean /= score.count;
	return score;
}

static uint32_t covered(const struct study *s, int source, bool audited_only)
{
	uint32_t count = 0;

	for (uint32_t i = 0; i < s->cases.count; i++) {
		const struct train_case *c = &s->cases.cases[i];
		struct calib_answer answer;

		if (!is_scored(c) || (source >= 0 && c->source != (uint32_t)source) ||
			(audited_only && !c->is_audited))
			continue;
		calib_ask(&s->own, &c->who, &answer);
		count += fabs(s->beside[i]) <= answer.spread;
	}
	return count;
}

static void line_print(const struct study *s, const char *name, int source, bool audited)
{
	struct score in = score_of(s, s->inside, source, audited);
	struct score some = score_of(s, s->beside, source, audited);
	struct score out = score_of(s, s->outside, source, audited);

	if (in.count)
		printf("%-44.44s %4u  %6.1f %6.1f  %6.1f %6.1f  %6.1f %6.1f  %6.1f\n",
			name, in.count, in.mean, in.worst, some.mean, some.worst,
			out.mean, out.worst,
			100.0 * covered(s, source, audited) / in.count);
}

/* The versions of one page differ at its end. */
static const char *short_name(const char *source)
{
	const char *page = strstr(source, "performance-summary(-archive).md ");

	return page ? page : source;
}

static void sources_print(const struct study *s)
{
	printf("%-44s %4s  %13s  %13s  %13s  %6s\n", "", "", "in the table",
		"model left out", "source left o.", "90 %");
	printf("%-44s %4s  %6s %6s  %6s %6s  %6s %6s  %6s\n", "source", "rows", "mean %",
		"worst", "mean %", "worst", "mean %", "worst", "covers");
	for (uint32_t i = 0; i < s->cases.source_count; i++)
		line_print(s, short_name(s->cases.sources[i]), (int)i, false);
	line_print(s, "audited logs", -1, true);
	line_print(s, "all", -1, false);
}

/* Of runs that took place: are they said to fit? */
static void verdicts_print(const struct study *s)
{
	uint32_t count = 0, wrong = 0;

	for (uint32_t i = 0; i < s->cases.count; i++) {
		const struct train_case *c = &s->cases.cases[i];
		double have = c->who.gpu->memory_gb * 1e9;
		struct calib_answer answer;
		struct train_memory memory;

		if (!is_scored(c))
			continue;
		calib_ask(&s->own, &c->who, &answer);
		memory_make(&c->model, &c->layout, &answer.habit, &memory);
		memory_settle(&memory, have);
		wrong += memory.total > have;
		count++;
	}
	printf("of %u runs that took place %u are said not to fit\n", count, wrong);
}

static void memory_print(const struct study *s)
{
	double inside = 0, beside = 0, outside = 0;
	uint32_t count = 0, wrong = 0;

	for (uint32_t i = 0; i < s->cases.count; i++) {
		const struct train_case *c = &s->cases.cases[i];

		if (!has_memory(c))
			continue;
		inside += percent(s->memory[i]);
		beside += percent(s->memory_beside[i]);
		outside += percent(s->memory_outside[i]);
		wrong += c->memory_bytes * exp(s->memory[i]) >
			 c->who.gpu->memory_gb * 1e9;
		count++;
	}
	if (count)
		printf("\nmemory: %u rows, mean error %.1f %%, model left out %.1f %%, "
		       "source "
		       "left out %.1f %%; %u of them said not to fit\n",
			count, inside / count, beside / count, outside / count, wrong);
}

/* Layouts of the BLOOM sweep that ran out of memory on A100-80: no rows, for they have no
 * step. */
static const struct {
	uint32_t layers, hidden, heads, tp, pp, dp, micro;
	enum train_grads grads;
} too_large[] = {
	{72, 14336, 64, 8, 1, 48, 1, GRADS_HALF},
	{72, 14336, 64, 2, 6, 32, 1, GRADS_HALF},
	{72, 14336, 64, 2, 6, 32, 2, GRADS_HALF},
	{100, 12288, 64, 4, 6, 16, 1, GRADS_BOTH},
	{100, 12288, 64, 4, 6, 16, 2, GRADS_BOTH},
	{82, 14336, 128, 4, 12, 8, 2, GRADS_BOTH},
};

static double cell_bytes(const struct train_calib *calib, int cell)
{
	struct train_model m = {.layers = too_large[cell].layers,
		.hidden = too_large[cell].hidden,
		.ffn = 4 * too_large[cell].hidden,
		.heads = too_large[cell].heads,
		.kv_heads = too_large[cell].heads,
		.head_dim = too_large[cell].hidden / too_large[cell].heads,
		.vocab = 250880,
		.is_layer_norm = true,
		.has_bias = true,
		.is_tied = true,
		.has_embed_norm = true};
	struct calib_who who = {
		"megatron-deepspeed-bloom", gpu_named("A100-80"), PRECISION_BF16, false};
	struct calib_answer answer;
	struct train_memory memory;
	struct train_layout l;

	layout_default(384, &l);
	l.tp = too_large[cell].tp;
	l.pp = too_large[cell].pp;
	l.dp = too_large[cell].dp;
	l.micro = too_large[cell].micro;
	l.batch = 2048;
	l.grads = too_large[cell].grads;
	l.sequence = 2048;
	l.recompute = RECOMPUTE_FULL;
	l.is_sequence_parallel = l.flash = false;
	calib_ask(calib, &who, &answer);
	memory_make(&m, &l, &answer.habit, &memory);
	memory_settle(&memory, who.gpu->memory_gb * 1e9);
	return memory.total;
}

static void cells_print(const struct study *s)
{
	int count = sizeof(too_large) / sizeof(too_large[0]), right = 0;

	printf("out of memory on A100-80GB in the BLOOM sweep, here:");
	for (int i = 0; i < count; i++) {
		double bytes = cell_bytes(&s->own, i);

		right += bytes > gpu_named("A100-80")->memory_gb * 1e9;
		printf(" %.0f GB", bytes / 1e9);
	}
	printf("; %d of %d verdicts are right\n", right, count);
}

/* Pairs of one sweep whose order the prediction has right less those it has wrong. */
static bool is_same_sweep(const struct train_case *a, const struct train_case *b)
{
	return a->source == b->source && !strcmp(a->model.name, b->model.name) &&
	       a->layout.gpus == b->layout.gpus && a->who.gpu == b->who.gpu &&
	       a->layout.sequence == b->layout.sequence &&
	       a->layout.batch == b->layout.batch &&
	       a->layout.precision == b->layout.precision &&
	       a->model.hidden == b->model.hidden && a->model.heads == b->model.heads &&
	       a->model.layers == b->model.layers;
}

/* Alike in all that a table of cases tells. */
static bool is_same_case(const struct train_case *a, const struct train_case *b)
{
	return !strcmp(a->who.stack, b->who.stack) && a->who.gpu == b->who.gpu &&
	       !strcmp(a->model.name, b->model.name) &&
	       a->model.layers == b->model.layers && a->model.heads == b->model.heads &&
	       a->model.hidden == b->model.hidden && a->work.nodes == b->work.nodes &&
	       layout_is_same(&a->layout, &b->layout);
}

/* The mean error of the runs that are like `i`, were `step_s` the answer to all. */
static double twins_error(
	const struct study *s, uint32_t i, double step_s, uint32_t *count)
{
	double sum = 0;

	*count = 0;
	for (uint32_t j = 0; j < s->cases.count; j++) {
		const struct train_case *b = &s->cases.cases[j];

		if (!is_scored(b) || !is_same_case(&s->cases.cases[i], b))
			continue;
		sum += 100 * fabs(step_s / b->step_s - 1);
		++*count;
	}
	return sum / *count;
}

/* Runs with the same inputs took different times, and a prediction is one number: the
 * mean error of the best one is a limit that no model passes. It is at one of the
 * measured times; the smallest worst error is between the shortest and the longest. */
static void limit_print(const struct study *s, bool is_audited)
{
	double sum = 0, worst = 0;
	uint32_t twins = 0, all = 0;

	for (uint32_t i = 0; i < s->cases.count; i++) {
		const struct train_case *a = &s->cases.cases[i];
		double best = INFINITY;
		uint32_t count = 0;

		if (!is_scored(a) || (is_audited && !a->is_audited))
			continue;
		for (uint32_t j = 0; j < s->cases.count; j++) {
			const struct train_case *b = &s->cases.cases[j];

			if (!is_scored(b) || !is_same_case(a, b))
				continue;
			best = fmin(best, twins_error(s, i, b->step_s, &count));
			worst = fmax(worst, 100 * fabs(a->step_s - b->step_s) /
						    (a->step_s + b->step_s));
		}
		twins += count > 1;
		sum += best;
		all++;
	}
	if (twins)
		printf("the limit%s: of %u rows %u have the inputs of another; the best "
		       "answers to those are off by %.1f %% in the mean, the worst by "
		       "%.1f %%\n",
			is_audited ? ", audited" : "", all, twins, sum / twins, worst);
}

static void tau_print(const struct study *s)
{
	uint32_t good = 0, bad = 0;

	for (uint32_t i = 0; i < s->cases.count; i++)
		for (uint32_t j = i + 1; j < s->cases.count; j++) {
			const struct train_case *a = &s->cases.cases[i],
						*b = &s->cases.cases[j];
			double measured, predicted;

			if (!is_scored(a) || !is_scored(b) || !is_same_sweep(a, b))
				continue;
			measured = log(a->step_s / b->step_s);
			predicted = measured + s->inside[i] - s->inside[j];
			if (fabs(measured) < .01 ||
				layout_is_same(&a->layout, &b->layout))
				continue;
			if (measured * predicted > 0)
				good++;
			else
				bad++;
		}
	if (good + bad)
		printf("ranking of layouts of one model on one cluster: Kendall tau %.2f "
		       "over %u pairs that differ by over 1 %%\n",
			((double)good - bad) / (good + bad), good + bad);
}

/* Layouts of a case's sweep that are faster than it, as measured or as predicted; `size`
 * counts the sweep. A layout that was run twice counts once for each. */
static uint32_t faster(
	const struct study *s, uint32_t i, bool is_predicted, uint32_t *size)
{
	const struct train_case *a = &s->cases.cases[i];
	uint32_t count = 0;

	*size = 0;
	for (uint32_t j = 0; j < s->cases.count; j++) {
		const struct train_case *b = &s->cases.cases[j];
		double shift = is_predicted ? s->inside[j] - s->inside[i] : 0;

		if (!is_scored(b) || !is_same_sweep(a, b))
			continue;
		*size += j == i || !layout_is_same(&a->layout, &b->layout);
		count += log(b->step_s / a->step_s) + shift < -1e-9;
	}
	return count;
}

/* Of sweeps of four layouts or more: is the one that was the fastest among our first
 * three? */
static void best_print(const struct study *s)
{
	uint32_t sweeps = 0, good = 0;

	for (uint32_t i = 0; i < s->cases.count; i++) {
		uint32_t size;

		if (!is_scored(&s->cases.cases[i]) || faster(s, i, false, &size) ||
			size < 4)
			continue;
		sweeps++;
		good += faster(s, i, true, &size) < 3;
	}
	if (sweeps)
		printf("the fastest of %u sweeps of four layouts or more is among the "
		       "first "
		       "three predicted: %u times\n",
			sweeps, good);
}

static void worst_print(const struct study *s)
{
	double ceiling = INFINITY;

	printf("\nthe worst in the table:\n");
	for (int rank = 0; rank < 12; rank++) {
		uint32_t worst = UINT32_MAX;
		char text[LAYOUT_TEXT_BYTES];

		for (uint32_t i = 0; i < s->cases.count; i++)
			if (is_scored(&s->cases.cases[i]) &&
				fabs(s->inside[i]) < ceiling &&
				(worst == UINT32_MAX ||
					fabs(s->inside[i]) > fabs(s->inside[worst])))
				worst = i;
		if (worst == UINT32_MAX)
			return;
		ceiling = fabs(s->inside[worst]);
		layout_text(&s->cases.cases[worst].layout, text);
		printf("  %+6.1f %%  row %u: %s, %u x %s, %s, %s\n",
			100 * expm1(s->inside[worst]), s->cases.cases[worst].row + 1,
			s->cases.cases[worst].model.name,
			s->cases.cases[worst].layout.gpus,
			s->cases.cases[worst].who.gpu->name, text,
			s->cases.cases[worst].who.stack);
	}
}

static void rows_print(const struct study *s)
{
	for (uint32_t i = 0; i < s->cases.count; i++) {
		const struct train_case *c = &s->cases.cases[i];
		char text[LAYOUT_TEXT_BYTES];

		layout_text(&c->layout, text);
		if (is_scored(c))
			printf("%4u %-26.26s %-16.16s %5u %-8.8s %s s%u %s h%u a%u: %.4g "
			       "%+.1f %+.1f %+.1f\n",
				c->row + 1, c->who.stack, c->model.name, c->layout.gpus,
				c->who.gpu->name, text, c->layout.sequence,
				precision_name(c->layout.precision), c->model.hidden,
				c->model.heads, c->step_s, 100 * expm1(s->inside[i]),
				100 * expm1(s->beside[i]), 100 * expm1(s->outside[i]));
	}
}

/* GiB: measured, predicted, and what that is made of. */
static void memory_rows_print(const struct study *s)
{
	for (uint32_t i = 0; i < s->cases.count; i++) {
		const struct train_case *c = &s->cases.cases[i];
		char text[LAYOUT_TEXT_BYTES];
		struct calib_answer answer;
		struct train_memory m;

		if (!has_memory(c))
			continue;
		layout_text(&c->layout, text);
		calib_ask(&s->own, &c->who, &answer);
		memory_make(&c->model, &c->layout, &answer.habit, &m);
		printf("%4u %-26.26s %-16.16s %s, grads %s: %.1f %+.1f %%: %.1f params "
		       "%.1f grads %.1f optimizer %.1f activations %.1f logits %.1f "
		       "gathered %.1f software\n",
			c->row + 1, c->who.stack, c->model.name, text,
			grads_name(c->layout.grads), c->memory_bytes / MEMORY_GIB,
			100 * expm1(s->memory[i]), m.params / MEMORY_GIB,
			m.grads / MEMORY_GIB, m.optimizer / MEMORY_GIB,
			m.activations / MEMORY_GIB, m.logits / MEMORY_GIB,
			m.gathered / MEMORY_GIB, m.other / MEMORY_GIB);
	}
}

int plan_accuracy(const struct plan_args *args)
{
	static struct study s;
	enum err e = study_make(args->accuracy, args->refit, &s);

	if (!e) {
		if (args->rows) {
			rows_print(&s);
			memory_rows_print(&s);
		}
		sources_print(&s);
		limit_print(&s, false);
		limit_print(&s, true);
		memory_print(&s);
		verdicts_print(&s);
		cells_print(&s);
		tau_print(&s);
		best_print(&s);
		worst_print(&s);
	}
	study_free(&s);
	return e ? plan_failed(e) : EXIT_GOOD;
}

static void row_print(const struct calib_row *row)
{
	static const char *const levels[LEVELS] = {
		"LEVEL_ALL", "LEVEL_GPU", "LEVEL_FAMILY", "LEVEL_STACK", "LEVEL_CELL"};

	printf("\t{%s, \"%s\",\n\t\t{", levels[row->level], row->key);
	for (int i = 0; i < TRAIN_PARAMS; i++)
		printf("%s%.4g", i ? ", " : "", row->value[i]);
	printf("},\n\t\t%.3f, %.3f, %.3f, %u, %u},\n", row->spread, row->memory_factor,
		row->memory_base_gb, row->rows, row->sources);
}

int plan_calibrate(const char *path)
{
	static struct study s;
	enum err e = study_make(path, true, &s);

	for (uint32_t i = 0; !e && i < s.own.count; i++)
		row_print(&s.own.rows[i]);
	study_free(&s);
	return e ? plan_failed(e) : EXIT_GOOD;
}
