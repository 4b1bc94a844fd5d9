#include "sim/fit.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* A row this far off costs as much as a part that strays once; see stray(). Rows further
 * off than TRUST count less and less; ALIKE is of weight_of(). */
static const double RESIDUAL = .02, TRUST = .07, ALIKE = .35;
enum { ROUNDS_MAX = 60, PARTS_MAX = 10 * SIM_PARAMS, SPREAD_ROWS = 8 };
static const double SPREAD_LEAST = .03, SPREAD_QUANTILE = .92;
static const double NUDGE = 1e-5, DAMPING_FIRST = 1e-2, DAMPING_MOST = 1e8;

enum scope { SCOPE_ROOT, SCOPE_METHOD, SCOPE_WIRE, SCOPE_CELL };

/* How far a part may stray, as a logarithm; 0: it is 1. What software carries differs
 * more from its kin than what hardware does, but does not care which method asks it to;
 * a generation of NVLink gives the share of the one before. The protocols that spend
 * bytes on flags and the pairs that meet at one port differ more from other methods. */
static double stray(enum sim_wire wire, int method, enum sim_param param)
{
	static const double table[][SIM_PARAMS] = {
		[SCOPE_ROOT] = {.2, .5, .7, 1, .05, .5},
		[SCOPE_METHOD] = {.35, 0, .7, 1, .04, .7},
		[SCOPE_WIRE] = {.1, .5, .2, 0, .04, 0},
		[SCOPE_CELL] = {.12, 0, 0, 0, .16, 0},
	};
	bool is_all = method == SIM_ALL_METHODS;
	enum scope scope = wire == SIM_ANY ? is_all ? SCOPE_ROOT : SCOPE_METHOD
			   : is_all	   ? SCOPE_WIRE
					   : SCOPE_CELL;
	bool is_soft = wire == SIM_STAGED || wire == SIM_VIRTUAL || wire == SIM_KERNEL ||
		       wire == SIM_TCP || wire == SIM_ENA || wire == SIM_TCPX;
	bool is_generation = wire == SIM_NVLINK_AMPERE || wire == SIM_NVLINK_HOPPER ||
			     wire == SIM_NVLINK_BLACKWELL;
	bool is_flags = method == SIM_RING_LL || method == SIM_TREE_LL ||
			method == SIM_RING_LL128 || method == SIM_TREE_LL128 ||
			method == SIM_COLLNET_SIMPLE || method == SIM_P2P;
	double wide = 1;

	if (param == SIM_E && is_soft)
		wide = is_all ? 4 : .3;
	if (param == SIM_E && is_generation)
		wide = .3;
	if (param == SIM_E && is_flags && wire == SIM_ANY)
		wide = 1.5;
	if (param == SIM_H && (is_soft || wire == SIM_EFA))
		wide = 4;
	return wide * table[scope][param];
}

/* What is looked for: the parts that samples touch, numbered. */
struct fit {
	const struct sim_sample *samples;
	uint32_t count, without;
	const struct sim_calib *start; /* borrowed; NULL: none */
	struct sim_calib *calib;       /* borrowed: the parts as they are */
	int number[SIM_WIRES][SIM_METHODS + 1][SIM_PARAMS]; /* -1: not looked for */
	double *part[SIM_WIRES * (SIM_METHODS + 1) * SIM_PARAMS];
	double stray[SIM_WIRES * (SIM_METHODS + 1) * SIM_PARAMS];
	uint32_t parts;
	double *weight;		/* owned: by sample */
	double *matrix, *right; /* owned */
};

static bool counts(const struct fit *fit, uint32_t sample)
{
	return fit->samples[sample].source != fit->without;
}

static void part_add(struct fit *fit, enum sim_wire wire, int method)
{
	for (int p = 0; p < SIM_PARAMS; p++) {
		double may = stray(wire, method, (enum sim_param)p);

		if (!(may > 0) || fit->number[wire][method][p] >= 0)
			continue;
		fit->number[wire][method][p] = (int)fit->parts;
		fit->part[fit->parts] = &fit->calib->effects[wire][method].log[p];
		if (fit->start)
			*fit->part[fit->parts] = fit->start->effects[wire][method].log[p];
		fit->stray[fit->parts++] = may;
	}
}

/* Those of a class and of all above it. */
static void line_add(struct fit *fit, enum sim_wire wire, int method)
{
	part_add(fit, SIM_ANY, sim_method_kin((enum sim_method)method));
	for (;; wire = sim_wire_parent(wire)) {
		part_add(fit, wire, method);
		part_add(fit, wire, SIM_ALL_METHODS);
		if (wire == SIM_ANY)
			return;
	}
}

/* The rows of one source for one class and method say much the same thing: each counts
 * the less the more there are. A figure that somebody named, and no series,
 * counts for a tenth: people tell of what surprised them. */
static double weight_of(const struct fit *fit, uint32_t at)
{
	const struct sim_sample *s = &fit->samples[at];
	uint32_t alike = 0, series = 0;

	for (uint32_t i = 0; i < fit->count; i++) {
		bool is_near = fit->samples[i].source == s->source &&
			       fit->samples[i].wire == s->wire;

		series += is_near;
		alike += is_near && fit->samples[i].method == s->method;
	}
	return (series < SIM_SERIES ? .1 : 1) / pow(alike, ALIKE);
}

static enum err fit_begin(struct fit *fit)
{
	memset(fit->calib, 0, sizeof(*fit->calib));
	memset(fit->number, -1, sizeof(fit->number));
	fit->weight = calloc(fit->count + 1, sizeof(*fit->weight));
	if (!fit->weight)
		return err_set(ERR_SYSTEM, "no memory for %u measurements", fit->count);
	for (uint32_t i = 0; i < fit->count; i++) {
		if (!counts(fit, i))
			continue;
		fit->weight[i] = weight_of(fit, i);
		line_add(fit, fit->samples[i].wire, fit->samples[i].method);
		line_add(fit, fit->samples[i].net, fit->samples[i].method);
	}
	fit->matrix = calloc((size_t)fit->parts * fit->parts + 1, sizeof(*fit->matrix));
	fit->right = calloc(fit->parts + 1, sizeof(*fit->right));
	if (!fit->matrix || !fit->right)
		return err_set(ERR_SYSTEM, "no memory for a fit");
	return OK;
}

static double residual(const struct sim_sample *s, const struct sim_params *params)
{
	struct sim_time time;

	sim_params_time(params, &s->load, &time);
	return log(time.time_us / s->time_us);
}

/* A loss that grows like a logarithm: a source that is wrong does not pull for ever. */
static double loss(double off)
{
	return TRUST * TRUST * log1p(off * off / (TRUST * TRUST));
}

static double cost(const struct fit *fit)
{
	double sum = 0;

	for (uint32_t i = 0; i < fit->parts; i++)
		sum += *fit->part[i] * *fit->part[i] / (fit->stray[i] * fit->stray[i]);
	for (uint32_t i = 0; i < fit->count; i++) {
		const struct sim_sample *s = &fit->samples[i];
		struct sim_params params;

		if (!counts(fit, i))
			continue;
		sim_calib_find(fit->calib, s->wire, s->net, s->method, &params);
		sum += fit->weight[i] * loss(residual(s, &params)) /
		       (RESIDUAL * RESIDUAL);
	}
	return sum;
}

/* The parts that one sample depends on, and how. */
struct touch {
	int part[PARTS_MAX];
	double slope[PARTS_MAX];
	int count;
};

static void touch_make(const struct fit *fit, const struct sim_sample *s,
	const struct sim_params *params, double off, struct touch *touch)
{
	touch->count = 0;
	for (int p = 0; p < SIM_PARAMS; p++) {
		struct sim_params near = *params;
		enum sim_wire wire = p == SIM_H ? s->net : s->wire;
		enum sim_method kin;
		double slope;

		near.value[p] *= 1 + NUDGE;
		slope = (residual(s, &near) - off) / NUDGE;
		kin = sim_method_kin(s->method);
		if (kin != s->method && fit->number[SIM_ANY][kin][p] >= 0) {
			touch->part[touch->count] = fit->number[SIM_ANY][kin][p];
			touch->slope[touch->count++] = slope;
		}
		for (;; wire = sim_wire_parent(wire)) {
			int own = fit->number[wire][s->method][p];
			int all = fit->number[wire][SIM_ALL_METHODS][p];

			if (own >= 0) {
				touch->part[touch->count] = own;
				touch->slope[touch->count++] = slope;
			}
			if (all >= 0) {
				touch->part[touch->count] = all;
				touch->slope[touch->count++] = slope;
			}
			if (wire == SIM_ANY)
				break;
		}
	}
}

/* The equations of one step: those of all samples, and of all parts that want to be 1. */
static void equations_make(struct fit *fit)
{
	uint32_t n = fit->parts;

	memset(fit->matrix, 0, (size_t)n * n * sizeof(*fit->matrix));
	for (uint32_t i = 0; i < n; i++) {
		double pull = 1 / (fit->stray[i] * fit->stray[i]);

		fit->matrix[i * n + i] = pull;
		fit->right[i] = -pull * *fit->part[i];
	}
	for (uint32_t i = 0; i < fit->count; i++) {
		const struct sim_sample *s = &fit->samples[i];
		struct sim_params params;
		struct touch t;
		double off, pull;

		if (!counts(fit, i))
			continue;
		sim_calib_find(fit->calib, s->wire, s->net, s->method, &params);
		off = residual(s, &params);
		touch_make(fit, s, &params, off, &t);
		pull = fit->weight[i] / (RESIDUAL * RESIDUAL) /
		       (1 + off * off / (TRUST * TRUST));
		for (int a = 0; a < t.count; a++) {
			double slope = pull * t.slope[a];

			fit->right[t.part[a]] -= slope * off;
			for (int b = 0; b < t.count; b++)
				fit->matrix[(uint32_t)t.part[a] * n +
					    (uint32_t)t.part[b]] += slope * t.slope[b];
		}
	}
}

/* Cholesky's way, on a copy: `step` is the answer. False: not to be solved. */
static bool solve(const struct fit *fit, double damping, double *lower, double *step)
{
	uint32_t n = fit->parts;

	memcpy(lower, fit->matrix, (size_t)n * n * sizeof(*lower));
	for (uint32_t i = 0; i < n; i++) {
		lower[i * n + i] *= 1 + damping;
		for (uint32_t j = 0; j <= i; j++) {
			double sum = lower[i * n + j];

			for (uint32_t k = 0; k < j; k++)
				sum -= lower[i * n + k] * lower[j * n + k];
			if (i == j && !(sum > 0))
				return false;
			lower[i * n + j] = i == j ? sqrt(sum) : sum / lower[j * n + j];
		}
	}
	for (uint32_t i = 0; i < n; i++) {
		step[i] = fit->right[i];
		for (uint32_t k = 0; k < i; k++)
			step[i] -= lower[i * n + k] * step[k];
		step[i] /= lower[i * n + i];
	}
	for (uint32_t i = n; i-- > 0;) {
		for (uint32_t k = i + 1; k < n; k++)
			step[i] -= lower[k * n + i] * step[k];
		step[i] /= lower[i * n + i];
	}
	return true;
}

static void move(struct fit *fit, const double *step, double sign)
{
	for (uint32_t i = 0; i < fit->parts; i++)
		*fit->part[i] += sign * step[i];
}

/* Steps that make it better are taken, and the damping falls; others raise it. */
static void descend(struct fit *fit, double *lower, double *step)
{
	double damping = DAMPING_FIRST, best = cost(fit);
	bool is_fresh = false;

	for (int round = 0; round < ROUNDS_MAX && damping < DAMPING_MOST; round++) {
		double now;

		if (!is_fresh)
			equations_make(fit);
		is_fresh = true;
		if (!solve(fit, damping, lower, step)) {
			damping *= 10;
			continue;
		}
		move(fit, step, 1);
		now = cost(fit);
		if (!(now < best)) {
			move(fit, step, -1);
			damping *= 10;
			continue;
		}
		if (best - now < 1e-5 * best)
			break;
		best = now;
		damping /= 5;
		is_fresh = false;
	}
}

static bool is_below(enum sim_wire wire, enum sim_wire above)
{
	while (wire != above && wire != SIM_ANY)
		wire = sim_wire_parent(wire);
	return wire == above;
}

static bool belongs(const struct sim_sample *s, enum sim_wire wire, int method)
{
	return is_below(s->wire, wire) &&
	       (method == SIM_ALL_METHODS || (int)s->method == method);
}

static void support(struct fit *fit, enum sim_wire wire, int method)
{
	struct sim_effect *effect = &fit->calib->effects[wire][method];

	for (uint32_t i = 0; i < fit->count; i++) {
		bool is_new = true;

		if (!counts(fit, i) || !belongs(&fit->samples[i], wire, method))
			continue;
		effect->rows++;
		for (uint32_t j = 0; j < i && is_new; j++)
			is_new = !belongs(&fit->samples[j], wire, method) ||
				 fit->samples[j].source != fit->samples[i].source;
		effect->sources += is_new;
	}
}

enum err sim_fit(const struct sim_sample *samples, uint32_t count, uint32_t without,
	const struct sim_calib *start, struct sim_calib *calib)
{
	struct fit *fit = calloc(1, sizeof(*fit));
	double *lower = NULL, *step = NULL;
	enum err e;

	if (!fit)
		return err_set(ERR_SYSTEM, "no memory for a fit");
	fit->samples = samples;
	fit->count = count;
	fit->without = without;
	fit->start = start;
	fit->calib = calib;
	e = fit_begin(fit);
	if (!e) {
		lower = calloc((size_t)fit->parts * fit->parts + 1, sizeof(*lower));
		step = calloc(fit->parts + 1, sizeof(*step));
	}
	if (!e && lower && step)
		descend(fit, lower, step);
	else if (!e)
		e = err_set(ERR_SYSTEM, "no memory for a fit");
	for (int cell = 0; !e && cell < SIM_WIRES * (SIM_METHODS + 1); cell++)
		support(fit, (enum sim_wire)(cell / (SIM_METHODS + 1)),
			cell % (SIM_METHODS + 1));
	free(lower);
	free(step);
	free(fit->weight);
	free(fit->matrix);
	free(fit->right);
	free(fit);
	return e;
}

static int by_size(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

/* The rows that spreads are taken from. */
struct spread_rows {
	const struct sim_sample *samples;
	const double *errors;
	uint32_t count;
	int size; /* class of */
};

/* What nine of ten of a part's rows are within; 0 where there are too few to tell. */
static double spread_of(const struct spread_rows *rows, enum sim_wire wire, int method)
{
	double *of = calloc(rows->count + 1, sizeof(*of)), result = 0;
	uint32_t found = 0;

	for (uint32_t i = 0; of && i < rows->count; i++)
		if (belongs(&rows->samples[i], wire, method) &&
			(rows->samples[i].bytes >= 1 << 20) == rows->size)
			of[found++] = fabs(rows->errors[i]);
	if (found >= SPREAD_ROWS) {
		qsort(of, found, sizeof(*of), by_size);
		result = of[(uint32_t)(SPREAD_QUANTILE * (found - 1))];
		if (result < SPREAD_LEAST)
			result = SPREAD_LEAST;
	}
	free(of);
	return result;
}

void sim_fit_spreads(const struct sim_sample *samples, uint32_t count,
	const double *errors, struct sim_calib *calib)
{
	for (int size = 0; size < SIM_SIZE_CLASSES; size++) {
		const struct spread_rows rows = {samples, errors, count, size};

		for (int wire = 0; wire < SIM_WIRES; wire++)
			for (int method = 0; method <= SIM_ALL_METHODS; method++)
				calib->effects[wire][method].spread[size] = spread_of(
					&rows, (enum sim_wire)wire, method);
	}
}
