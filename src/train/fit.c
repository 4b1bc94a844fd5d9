#include "train/fit.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { ROUNDS = 100 };

/* Which numbers a level may move. What weft sim says of data-parallel sending holds for
 * all; what the host takes for a layer with experts is no stack's own. */
enum {
	EVERY = ((1u << TRAIN_PARAMS) - 1) & ~(1u << PARAM_ROUTE),
	KERNELS_MASK = 1u << PARAM_SHARE | 1u << PARAM_ATTENTION | 1u << PARAM_POINT
};
static const uint32_t moved[LEVELS] = {
	[LEVEL_ALL] = EVERY & ~(1u << PARAM_DP),
	[LEVEL_GPU] = KERNELS_MASK,
	[LEVEL_FAMILY] = EVERY,
	[LEVEL_STACK] = EVERY,
	[LEVEL_CELL] = 1u << PARAM_SHARE | 1u << PARAM_MOE,
};
/* What a row pays for being away from 1. Of a GPU little is believed, of a stack much:
 * what a stack makes of a GPU is not to be taken for the GPU when another stack asks. Of
 * six settings this has the least error of sources left out, all of them in view. */
static const double pull[LEVELS] = {.03, .3, .02, .01, .2};

struct fitter {
	const struct train_cases *cases;
	struct train_calib *calib;
	struct train_params *params; /* owned: of each case */
	int (*row_of)[LEVELS];	     /* owned */
	bool *is_used;		     /* owned */
	double *costs;		     /* owned: of each case */
	uint32_t *felt; /* owned: of each case, numbers that its step feels */
};

/* Squared while it is small, then as it is: of runs that contradict each other the middle
 * is right, not the mean. */
static double cost(double error)
{
	double size = fabs(error), knee = .05;

	return size < knee ? error * error : 2 * knee * size - knee * knee;
}

static double case_cost(const struct train_case *c, const struct train_params *params)
{
	double error = log(step_seconds(&c->work, params) / c->step_s);

	return cost(error) * (c->is_audited ? 2 : 1);
}

/* Its row of each level, made where there is none. */
static void rows_make(struct fitter *f, uint32_t i)
{
	const struct train_case *c = &f->cases->cases[i];

	for (int level = 0; level < LEVELS; level++) {
		struct calib_row *row;
		char key[CALIB_KEY_BYTES];
		int found;

		calib_key(&c->who, (enum calib_level)level, key);
		found = calib_row_find(f->calib, (enum calib_level)level, key);
		if (found < 0 && f->calib->count < CALIB_ROWS_MAX) {
			found = (int)f->calib->count++;
			row = &f->calib->rows[found];
			*row = (struct calib_row){.level = (enum calib_level)level};
			memcpy(row->key, key, sizeof(row->key));
			for (int k = 0; k < TRAIN_PARAMS; k++)
				row->value[k] = 1;
			if (level == LEVEL_ALL) {
				struct train_params start;

				calib_default(&start);
				memcpy(row->value, start.value, sizeof(row->value));
			}
		}
		f->row_of[i][level] = found;
		if (found >= 0)
			f->calib->rows[found].rows++;
	}
}

static void params_make(struct fitter *f, uint32_t i)
{
	for (int k = 0; k < TRAIN_PARAMS; k++) {
		double value = 1;

		for (int level = 0; level < LEVELS; level++)
			if (f->row_of[i][level] >= 0)
				value *= f->calib->rows[f->row_of[i][level]].value[k];
		f->params[i].value[k] = value;
	}
}

/* Most numbers are nothing to most cases: no experts, one stage, one node. A fit that
 * asks only those that feel a number takes a fifth less time. */
static void felt_make(struct fitter *f, uint32_t i)
{
	const struct train_work *work = &f->cases->cases[i].work;
	double before = step_seconds(work, &f->params[i]);

	f->felt[i] = 0;
	for (int k = 0; k < TRAIN_PARAMS; k++)
		for (int up = 0; up < 2; up++) {
			struct train_params params = f->params[i];

			params.value[k] *= up ? 5 : .2;
			if (step_seconds(work, &params) != before)
				f->felt[i] |= 1u << k;
		}
}

static double away(const struct calib_row *row, int k)
{
	struct train_params start;
	double from = 1, distance;

	if (row->level == LEVEL_ALL) {
		calib_default(&start);
		from = start.value[k];
	}
	distance = log(row->value[k] / from);
	return pull[row->level] * distance * distance;
}

/* What the cases of a row cost when its number k is multiplied. */
static double trial(struct fitter *f, int row, int k, double factor, double *fresh)
{
	int level = (int)f->calib->rows[row].level;
	double all = 0;

	for (uint32_t i = 0; i < f->cases->count; i++) {
		if (!f->is_used[i] || f->row_of[i][level] != row)
			continue;
		fresh[i] = f->costs[i];
		if (f->felt[i] & 1u << k) {
			struct train_params params = f->params[i];

			params.value[k] *= factor;
			fresh[i] = case_cost(&f->cases->cases[i], &params);
		}
		all += fresh[i];
	}
	return all;
}

static void accept(struct fitter *f, int row, int k, double factor, const double *fresh)
{
	int level = (int)f->calib->rows[row].level;

	f->calib->rows[row].value[k] *= factor;
	for (uint32_t i = 0; i < f->cases->count; i++)
		if (f->is_used[i] && f->row_of[i][level] == row) {
			f->params[i].value[k] *= factor;
			f->costs[i] = fresh[i];
		}
}

static double cost_now(const struct fitter *f, int row)
{
	int level = (int)f->calib->rows[row].level;
	double all = 0;

	for (uint32_t i = 0; i < f->cases->count; i++)
		if (f->is_used[i] && f->row_of[i][level] == row)
			all += f->costs[i];
	return all;
}

/* Does a step up or down of number k of a row pay? */
static bool step_try(struct fitter *f, int row, int k, double step, double *fresh)
{
	struct calib_row *at = &f->calib->rows[row];
	double before = cost_now(f, row) + away(at, k);

	for (int sign = -1; sign <= 1; sign += 2) {
		double factor = exp(sign * step), was = at->value[k], after;

		after = trial(f, row, k, factor, fresh);
		at->value[k] *= factor;
		after += away(at, k);
		at->value[k] = was;
		if (after < before * (1 - 1e-6)) {
			accept(f, row, k, factor, fresh);
			return true;
		}
	}
	return false;
}

static void rounds(struct fitter *f, double *fresh)
{
	double step = .3;

	for (int round = 0; round < ROUNDS && step > .004; round++) {
		bool is_better = false;

		for (uint32_t row = 0; row < f->calib->count; row++)
			for (int k = 0; k < TRAIN_PARAMS; k++)
				if (f->calib->rows[row].rows &&
					moved[f->calib->rows[row].level] & 1u << k)
					is_better |= step_try(
						f, (int)row, k, step, fresh);
		if (!is_better)
			step /= 2;
	}
}

static void sources_count(struct fitter *f)
{
	for (uint32_t row = 0; row < f->calib->count; row++) {
		int level = (int)f->calib->rows[row].level;
		uint32_t seen = 0;

		for (uint32_t s = 0; s < f->cases->source_count; s++) {
			bool is_here = false;

			for (uint32_t i = 0; i < f->cases->count && !is_here; i++)
				is_here = f->is_used[i] &&
					  f->cases->cases[i].source == s &&
					  f->row_of[i][level] == (int)row;
			seen += is_here;
		}
		f->calib->rows[row].sources = seen;
	}
}

/* All runs of a model by a stack are in one fold. */
static uint32_t fold_of(const struct train_case *c)
{
	uint32_t hash = 2166136261u;

	for (const char *at = c->who.stack; *at; at++)
		hash = (hash ^ (unsigned char)*at) * 16777619u;
	for (const char *at = c->model.name; *at; at++)
		hash = (hash ^ (unsigned char)*at) * 16777619u;
	return (hash >> 16) % FIT_FOLDS;
}

bool fit_is_left_out(const struct train_case *c, uint32_t without)
{
	if (without >= FIT_FOLD && without != FIT_NO_SOURCE)
		return fold_of(c) == without - FIT_FOLD;
	return c->source == without;
}

static bool is_sample(const struct train_case *c, uint32_t without)
{
	return c->step_s > 0 && !fit_is_left_out(c, without) && !c->is_partial;
}

static void fit_run(struct fitter *f, uint32_t without, double *fresh)
{
	for (uint32_t i = 0; i < f->cases->count; i++) {
		f->is_used[i] = is_sample(&f->cases->cases[i], without);
		if (f->is_used[i])
			rows_make(f, i);
	}
	for (uint32_t i = 0; i < f->cases->count; i++)
		if (f->is_used[i]) {
			params_make(f, i);
			felt_make(f, i);
			f->costs[i] = case_cost(&f->cases->cases[i], &f->params[i]);
		}
	rounds(f, fresh);
	sources_count(f);
}

enum err train_fit(
	const struct train_cases *cases, uint32_t without, struct train_calib *calib)
{
	uint32_t count = cases->count + 1;
	struct fitter f = {.cases = cases, .calib = calib};
	double *fresh = calloc(count, sizeof(*fresh));
	enum err e = OK;

	calib->count = 0;
	f.params = calloc(count, sizeof(*f.params));
	f.row_of = calloc(count, sizeof(*f.row_of));
	f.is_used = calloc(count, sizeof(*f.is_used));
	f.costs = calloc(count, sizeof(*f.costs));
	f.felt = calloc(count, sizeof(*f.felt));
	if (fresh && f.params && f.row_of && f.is_used && f.costs && f.felt)
		fit_run(&f, without, fresh);
	else
		e = err_set(ERR_SYSTEM, "no memory to fit %u rows", cases->count);
	free(fresh);
	free(f.params);
	free(f.row_of);
	free(f.is_used);
	free(f.costs);
	free(f.felt);
	return e;
}

double train_error(const struct train_calib *calib, const struct train_case *c)
{
	struct calib_answer answer;

	calib_ask(calib, &c->who, &answer);
	return log(step_seconds(&c->work, &answer.params) / c->step_s);
}

static int by_size(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

/* What nine of ten errors of a row's cases are within; few are drawn to the whole. */
void train_fit_spreads(const struct train_cases *cases, const double *rows_out,
	const double *sources_out, struct train_calib *calib)
{
	double *sizes = calloc(cases->count + 1, sizeof(*sizes));
	double whole = .3;

	for (uint32_t row = 0; sizes && row < calib->count; row++) {
		struct calib_row *at = &calib->rows[row];
		const double *errors = at->level >= LEVEL_STACK ? rows_out : sources_out;
		uint32_t found = 0;

		for (uint32_t i = 0; i < cases->count; i++) {
			const struct train_case *c = &cases->cases[i];
			char key[CALIB_KEY_BYTES];

			calib_key(&c->who, at->level, key);
			if (is_sample(c, FIT_NO_SOURCE) && !strcmp(key, at->key))
				sizes[found++] = fabs(errors[i]);
		}
		if (!found)
			continue;
		qsort(sizes, found, sizeof(*sizes), by_size);
		at->spread = sizes[(uint32_t)(.9 * (found - 1) + .5)];
		if (at->level == LEVEL_ALL)
			whole = at->spread;
		at->spread = (at->spread * found + whole * 2) / (found + 2);
	}
	free(sizes);
}

static bool is_memory_sample(
	const struct train_case *c, const struct calib_row *row, uint32_t without)
{
	char key[CALIB_KEY_BYTES];

	if (fit_is_left_out(c, without) || c->is_partial ||
		(c->memory_bytes <= 0 && c->step_s <= 0))
		return false;
	calib_key(&c->who, row->level, key);
	return !strcmp(key, row->key);
}

/* Of a run whose memory nobody told it is known that it fitted: to deny that costs as
 * much as a memory that is a quarter off, by however little it is denied. */
static double habit_cost(const struct train_case *c, const struct memory_habit *habit)
{
	double have = c->who.gpu->memory_gb * 1e9;
	struct train_memory memory;

	memory_make(&c->model, &c->layout, habit, &memory);
	memory_settle(&memory, have);
	if (c->memory_bytes > 0)
		return cost(log(memory.total / c->memory_bytes));
	return memory.total > have ? cost(.25) + cost(log(memory.total / have)) : 0;
}

static double memory_cost(const struct train_cases *cases, const struct calib_row *row,
	uint32_t without, const struct memory_habit *habit)
{
	double all = .02 * pow(log(habit->factor / 1.1), 2) +
		     .02 * pow(log(habit->base_bytes / 4e9), 2);

	for (uint32_t i = 0; i < cases->count; i++) {
		const struct train_case *c = &cases->cases[i];

		if (is_memory_sample(c, row, without))
			all += habit_cost(c, habit);
	}
	return all;
}

static uint32_t memory_rows(const struct train_cases *cases, const struct calib_row *row,
	uint32_t without, bool is_told)
{
	uint32_t count = 0;

	for (uint32_t i = 0; i < cases->count; i++)
		count += is_memory_sample(&cases->cases[i], row, without) &&
			 (!is_told || cases->cases[i].memory_bytes > 0);
	return count;
}

/* Habits around one: `steps` to each side, in shares of `wide`. */
struct habit_grid {
	struct memory_habit around;
	int steps;
	double wide;
};

static void habits_try(const struct train_cases *cases, uint32_t without,
	const struct habit_grid *grid, struct calib_row *row, double *best)
{
	for (int i = -grid->steps; i <= grid->steps; i++)
		for (int k = -grid->steps; k <= grid->steps; k++) {
			struct memory_habit habit = grid->around;
			double now;

			habit.factor *= pow(1 + grid->wide, i);
			habit.base_bytes *= pow(1 + 3 * grid->wide, k);
			now = memory_cost(cases, row, without, &habit);
			if (now < *best) {
				*best = now;
				row->memory_factor = habit.factor;
				row->memory_base_gb = habit.base_bytes / 1e9;
			}
		}
}

/* The best of a grid, and then of a finer one around it. */
static void habit_fit(
	const struct train_cases *cases, uint32_t without, struct calib_row *row)
{
	struct habit_grid grid = {{1, 4e9}, 9, .08};
	double best = INFINITY;

	if (!memory_rows(cases, row, without, false))
		return;
	habits_try(cases, without, &grid, row, &best);
	grid = (struct habit_grid){
		{row->memory_factor, row->memory_base_gb * 1e9}, 4, .02};
	habits_try(cases, without, &grid, row, &best);
}

/* Of a stack that nobody measured: the mean of those that were. */
static void habit_of_all(
	const struct train_cases *cases, uint32_t without, struct train_calib *calib)
{
	double factor = 0, base = 0, count = 0;
	int all = calib_row_find(calib, LEVEL_ALL, "");

	for (uint32_t i = 0; i < calib->count; i++)
		if (calib->rows[i].level == LEVEL_STACK &&
			memory_rows(cases, &calib->rows[i], without, true)) {
			factor += log(calib->rows[i].memory_factor);
			base += log(calib->rows[i].memory_base_gb);
			count++;
		}
	if (all < 0 || count == 0)
		return;
	calib->rows[all].memory_factor = exp(factor / count);
	calib->rows[all].memory_base_gb = exp(base / count);
}

void train_fit_memory(
	const struct train_cases *cases, uint32_t without, struct train_calib *calib)
{
	for (uint32_t i = 0; i < calib->count; i++)
		if (calib->rows[i].level == LEVEL_STACK)
			habit_fit(cases, without, &calib->rows[i]);
	habit_of_all(cases, without, calib);
}
