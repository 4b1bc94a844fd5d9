#include "sim/fit.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* A residual of this size costs as much as a parameter that is one STRAY off its parent.
 * The search halves its steps until they are under STEP_LEAST. */
static const double RESIDUAL = .05, STEP_FIRST = .7, STEP_LEAST = .004;
static const double stray[SIM_PARAMS] = {.8, .9, .9, .25};
enum { ROUNDS_MAX = 4000, SPREAD_ROWS = 8 };
static const double SPREAD_LEAST = .03, SPREAD_QUANTILE = .925;

/* The rows of one class and method, and where it starts. */
struct task {
	const struct sim_sample *samples;
	uint32_t count, without;
	enum sim_wire wire;
	enum sim_method method;
	double prior[SIM_PARAMS]; /* logarithms */
	bool is_root;		  /* nothing above it: the prior hardly counts */
};

static bool is_below(enum sim_wire wire, enum sim_wire above)
{
	for (; wire != above; wire = sim_wire_parent(wire))
		if (wire == SIM_ANY)
			return false;
	return true;
}

static bool counts(const struct task *task, const struct sim_sample *sample)
{
	return sample->method == task->method && sample->source != task->without &&
	       is_below(sample->wire, task->wire);
}

static double cost(const struct task *task, const double logs[SIM_PARAMS])
{
	struct sim_params params = {0};
	double sum = 0;

	for (int i = 0; i < SIM_PARAMS; i++) {
		double off = (logs[i] - task->prior[i]) / stray[i];

		params.value[i] = exp(logs[i]);
		sum += (task->is_root ? .2 : 1) * off * off;
	}
	for (uint32_t i = 0; i < task->count; i++) {
		const struct sim_sample *s = &task->samples[i];

		if (counts(task, s))
			sum += fabs(log(sim_params_time(
						&params, s->latency_us, s->ideal_us) /
					s->time_us)) /
			       RESIDUAL;
	}
	return sum;
}

/* Pattern search: one parameter up or down, or two against each other. */
static bool improve(
	const struct task *task, double logs[SIM_PARAMS], double *best, double step)
{
	bool better = false;

	for (int move = 0; move < SIM_PARAMS * SIM_PARAMS * 2; move++) {
		int a = move / 2 % SIM_PARAMS, b = move / 2 / SIM_PARAMS;
		double sign = move % 2 ? step : -step, was[SIM_PARAMS], now;

		memcpy(was, logs, sizeof(was));
		logs[a] += sign;
		if (a != b)
			logs[b] -= sign;
		now = logs[3] > log(2.5) ? INFINITY : cost(task, logs);
		if (now < *best) {
			*best = now;
			better = true;
		} else {
			memcpy(logs, was, sizeof(was));
		}
	}
	return better;
}

static void solve(const struct task *task, double logs[SIM_PARAMS])
{
	double step = STEP_FIRST, best;

	memcpy(logs, task->prior, sizeof(task->prior));
	best = cost(task, logs);
	for (int round = 0; round < ROUNDS_MAX && step > STEP_LEAST; round++)
		if (!improve(task, logs, &best, step))
			step /= 2;
}

static void support(const struct task *task, struct sim_params *params)
{
	for (uint32_t i = 0; i < task->count; i++) {
		bool is_new = true;

		if (!counts(task, &task->samples[i]))
			continue;
		params->rows++;
		for (uint32_t j = 0; j < i && is_new; j++)
			is_new = !counts(task, &task->samples[j]) ||
				 task->samples[j].source != task->samples[i].source;
		params->sources += is_new;
	}
}

/* Parents come before children in the order of the classes. */
static void fit_cell(struct task *task, struct sim_calib *calib)
{
	struct sim_params *cell = &calib->cells[task->wire][task->method];
	const struct sim_params *above;
	struct sim_params first;
	double logs[SIM_PARAMS];

	sim_params_default(task->method, &first);
	*cell = first;
	support(task, cell);
	if (!cell->rows)
		return;
	task->is_root = task->wire == SIM_ANY;
	above = task->is_root ? &first
			      : sim_calib_find(calib, sim_wire_parent(task->wire),
					task->method, NULL);
	for (int i = 0; i < SIM_PARAMS; i++)
		task->prior[i] = log(above->value[i]);
	solve(task, logs);
	for (int i = 0; i < SIM_PARAMS; i++)
		cell->value[i] = exp(logs[i]);
}

void sim_fit(const struct sim_sample *samples, uint32_t count, uint32_t without,
	struct sim_calib *calib)
{
	struct task task = {.samples = samples, .count = count, .without = without};

	memset(calib, 0, sizeof(*calib));
	for (int wire = 0; wire < SIM_WIRES; wire++)
		for (int method = 0; method < SIM_METHODS; method++) {
			task.wire = (enum sim_wire)wire;
			task.method = (enum sim_method)method;
			fit_cell(&task, calib);
		}
}

static int by_size(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

/* The 90th percentile of what belongs to a class, and of that to a method unless it is
 * SIM_METHODS; 0 where there is too little to tell. */
static double spread_of(const struct task *task, const double *errors, bool is_large)
{
	double *of = calloc(task->count + 1, sizeof(*of)), result = 0;
	uint32_t found = 0;

	if (!of)
		return 0;
	for (uint32_t i = 0; i < task->count; i++)
		if (is_below(task->samples[i].wire, task->wire) &&
			(task->method == SIM_METHODS ||
				task->samples[i].method == task->method) &&
			(task->samples[i].bytes >= 1 << 20) == is_large)
			of[found++] = fabs(errors[i]);
	qsort(of, found, sizeof(*of), by_size);
	if (found >= SPREAD_ROWS)
		result = of[(uint32_t)(SPREAD_QUANTILE * (found - 1))];
	free(of);
	return result < SPREAD_LEAST && found >= SPREAD_ROWS ? SPREAD_LEAST : result;
}

void sim_fit_spreads(const struct sim_sample *samples, uint32_t count,
	const double *errors, struct sim_calib *calib)
{
	struct task task = {.samples = samples, .count = count};

	for (int cell = 0; cell < SIM_WIRES * SIM_METHODS * SIM_SIZE_CLASSES; cell++) {
		int large = cell % SIM_SIZE_CLASSES;
		int method = cell / SIM_SIZE_CLASSES % SIM_METHODS;
		int wire = cell / SIM_SIZE_CLASSES / SIM_METHODS;
		double spread;

		task.wire = (enum sim_wire)wire;
		task.method = (enum sim_method)method;
		spread = spread_of(&task, errors, large);
		task.method = SIM_METHODS;
		if (!(spread > 0))
			spread = spread_of(&task, errors, large);
		if (!(spread > 0))
			spread = calib->cells[sim_wire_parent(task.wire)][method]
					 .spread[large];
		calib->cells[wire][method].spread[large] = spread;
	}
}
