/* weft sim --accuracy: predictions against measurements, with the calibration in the tree
 * and with one that has not seen the source it is asked about; --calibrate: the table. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/units.h"
#include "weft/command.h"
#include "weft/sim.h"

enum { FILES_MAX = 8, WORST = 10 };

/* One measurement with its predictions. */
struct verdict {
	const struct sim_cases *cases;
	const struct sim_case *c;
	double inside, outside; /* logarithm of predicted over measured time */
	bool is_covered;	/* by the interval of the prediction from outside */
	bool is_shared;		/* another source measured its class of wire, too */
	struct sim_params params;
};

struct study {
	struct sim_cases files[FILES_MAX];
	int file_count;
	struct sim_sample *samples; /* owned; sources are numbered through all files */
	struct verdict *verdicts;   /* owned; one for each sample */
	uint32_t count, source_count;
	struct sim_calib own; /* in the tree, or fitted to all */
};

static void study_free(struct study *study)
{
	for (int i = 0; i < study->file_count; i++)
		sim_cases_free(&study->files[i]);
	free(study->samples);
	free(study->verdicts);
}

static void file_take(struct study *study, const struct sim_cases *cases)
{
	uint32_t first = study->count;

	study->count += sim_cases_samples(cases, study->samples + first);
	for (uint32_t i = 0, at = first; i < cases->count; i++)
		if (cases->cases[i].time_us > 0 && !cases->cases[i].wrong) {
			study->samples[at].source += study->source_count;
			study->verdicts[at++] = (struct verdict){
				.cases = cases, .c = &cases->cases[i]};
		}
	study->source_count += cases->source_count;
}

static enum err study_read(struct study *study, int count, char **paths)
{
	uint32_t rows = 0;

	*study = (struct study){0};
	if (count < 1 || count > FILES_MAX)
		return err_set(ERR_USAGE, "give one to eight files of measurements");
	for (int i = 0; i < count; i++) {
		enum err e = sim_cases_read(paths[i], &study->files[i]);

		if (e)
			return e;
		study->file_count++;
		rows += study->files[i].count;
	}
	study->samples = calloc(rows + 1, sizeof(*study->samples));
	study->verdicts = calloc(rows + 1, sizeof(*study->verdicts));
	if (!study->samples || !study->verdicts)
		return err_set(ERR_SYSTEM, "no memory for %u measurements", rows);
	for (int i = 0; i < count; i++)
		file_take(study, &study->files[i]);
	return OK;
}

static double error_of(const struct sim_calib *calib, const struct sim_sample *s)
{
	struct sim_params params;
	struct sim_time time;

	sim_calib_find(calib, s->wire, s->net, s->method, &params);
	sim_params_time(&params, &s->load, &time);
	return log(time.time_us / s->time_us);
}

/* For each source: fit to the others, ask about it. */
static enum err leave_out(
	struct study *study, const struct sim_calib *all, double *errors)
{
	struct sim_calib *calib = calloc(1, sizeof(*calib));
	enum err e = calib ? OK : err_set(ERR_SYSTEM, "no memory");

	for (uint32_t source = 0; !e && source < study->source_count; source++) {
		e = sim_fit(study->samples, study->count, source, all, calib);
		for (uint32_t i = 0; i < study->count; i++)
			if (study->samples[i].source == source)
				errors[i] = error_of(calib, &study->samples[i]);
	}
	free(calib);
	return e;
}

static void verdicts_make(struct study *study, const double *errors)
{
	for (uint32_t i = 0; i < study->count; i++) {
		const struct sim_sample *s = &study->samples[i];
		struct verdict *v = &study->verdicts[i];

		sim_calib_find(&study->own, s->wire, s->net, s->method, &v->params);
		v->inside = error_of(&study->own, s);
		v->outside = errors[i];
		v->is_covered = fabs(v->outside) <= v->params.spread[s->bytes >= 1 << 20];
		for (uint32_t k = 0; k < study->count && !v->is_shared; k++)
			v->is_shared = study->samples[k].wire == s->wire &&
				       study->samples[k].source != s->source;
	}
}

static int by_size(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

/* What busbw is off by, in percent. */
static double percent(double log_time)
{
	return 100 * fabs(expm1(-log_time));
}

struct filter {
	const char *platform; /* NULL all */
	int large;	      /* -1 all */
	bool shared;	      /* those only */
	bool outside;
};

static bool passes(const struct verdict *v, const struct filter *filter)
{
	int column = table_column(&v->cases->table, "platform");

	if (filter->large >= 0 && (v->c->bytes >= 1 << 20) != filter->large)
		return false;
	if (filter->shared && !v->is_shared)
		return false;
	return !filter->platform ||
	       !strcmp(filter->platform, table_at(&v->cases->table, v->c->row, column));
}

static uint32_t quantiles(const struct study *study, const struct filter *filter,
	double *median, double *p90)
{
	double *of = calloc(study->count + 1, sizeof(*of));
	uint32_t found = 0;

	for (uint32_t i = 0; of && i < study->count; i++)
		if (passes(&study->verdicts[i], filter))
			of[found++] = percent(filter->outside
						      ? study->verdicts[i].outside
						      : study->verdicts[i].inside);
	if (found) {
		qsort(of, found, sizeof(*of), by_size);
		*median = of[(found - 1) / 2];
		*p90 = of[(uint32_t)(.9 * (found - 1))];
	}
	free(of);
	return found;
}

static void line_print(const struct study *study, const char *name, struct filter filter)
{
	static const char *const sizes[] = {"< 1 MiB", ">= 1 MiB"};
	double median[2] = {0}, p90[2] = {0};
	uint32_t found = quantiles(study, &filter, &median[0], &p90[0]);
	uint32_t covered = 0;

	if (!found)
		return;
	filter.outside = true;
	quantiles(study, &filter, &median[1], &p90[1]);
	for (uint32_t i = 0; i < study->count; i++)
		covered += passes(&study->verdicts[i], &filter) &&
			   study->verdicts[i].is_covered;
	printf("%-38.38s %-8s %5u  %8.1f %8.1f  %8.1f %8.1f  %8.1f\n", name,
		sizes[filter.large], found, median[0], p90[0], median[1], p90[1],
		100.0 * covered / found);
}

static bool is_first_of_platform(const struct study *study, uint32_t i, const char **name)
{
	const struct verdict *v = &study->verdicts[i];
	struct filter filter = {.large = -1};

	*name = table_at(
		&v->cases->table, v->c->row, table_column(&v->cases->table, "platform"));
	filter.platform = *name;
	for (uint32_t j = 0; j < i; j++)
		if (passes(&study->verdicts[j], &filter))
			return false;
	return true;
}

static void tables_print(const struct study *study)
{
	const char *name;

	printf("%-38s %-8s %5s  %17s  %17s  %8s\n", "", "", "", "in the table",
		"source left out", "90 % int");
	printf("%-38s %-8s %5s  %8s %8s  %8s %8s  %8s\n", "platform", "size", "rows",
		"median %", "p90 %", "median %", "p90 %", "covers %");
	for (uint32_t i = 0; i < study->count; i++)
		if (is_first_of_platform(study, i, &name))
			for (int large = 0; large < 2; large++)
				line_print(study, name,
					(struct filter){
						.platform = name, .large = large});
	for (int large = 0; large < 2; large++)
		line_print(study, "of wires that two sources measured",
			(struct filter){.large = large, .shared = true});
	for (int large = 0; large < 2; large++)
		line_print(study, "all", (struct filter){.large = large});
}

/* The same call to the model, by another source. */
static bool is_twin(const struct study *study, uint32_t a, uint32_t b)
{
	const struct sim_sample *x = &study->samples[a], *y = &study->samples[b];

	return x->source != y->source && x->bytes == y->bytes && x->wire == y->wire &&
	       x->method == y->method && x->load.latency_us == y->load.latency_us &&
	       x->load.hops == y->load.hops && x->load.ideal_us == y->load.ideal_us &&
	       study->verdicts[a].c->coll == study->verdicts[b].c->coll;
}

/* How far a measurement is from the middle of those of its twins; 0 without any. */
static double twins_error(const struct study *study, uint32_t at, double *of)
{
	uint32_t found = 0;

	for (uint32_t i = 0; i < study->count; i++)
		if (is_twin(study, at, i))
			of[found++] = study->samples[i].time_us;
	if (!found)
		return 0;
	qsort(of, found, sizeof(*of), by_size);
	return percent(log(of[(found - 1) / 2] / study->samples[at].time_us));
}

/* What a prediction is asked to be within, at the 90th percentile. */
static const double FAR = 15;

/* No model is nearer to a source than the other sources that measured the same. */
static void twins_print(const struct study *study)
{
	double *errors = calloc(study->count + 1, sizeof(*errors));
	double *of = calloc(study->count + 1, sizeof(*of));

	for (int large = 0; errors && of && large < 2; large++) {
		uint32_t found = 0, far = 0;

		for (uint32_t i = 0; i < study->count; i++) {
			if ((study->samples[i].bytes >= 1 << 20) != large)
				continue;
			errors[found] = twins_error(study, i, of);
			far += errors[found] > FAR;
			found += errors[found] > 0;
		}
		if (!found)
			continue;
		qsort(errors, found, sizeof(*errors), by_size);
		printf("%s%u calls %s 1 MiB that several sources measured: one is off "
		       "the middle of the others by %.1f %% (median), %.1f %% (p90), "
		       "%u of them (%.0f %%) by more than %.0f %%\n",
			large ? "" : "\n", found, large ? "from" : "below",
			errors[(found - 1) / 2], errors[(uint32_t)(.9 * (found - 1))],
			far, 100. * far / found, FAR);
	}
	free(errors);
	free(of);
}

/* Why a row may be far off with its source left out. */
enum lot { LOT_ALONE, LOT_SEEN, LOT_TWINS, LOT_BOTH, LOTS }; /* both: the two before */

static enum lot lot_of(const struct study *study, uint32_t at, double *of)
{
	const struct sim_sample *s = &study->samples[at];

	if (twins_error(study, at, of) > FAR)
		return LOT_TWINS;
	for (uint32_t i = 0; i < study->count; i++)
		if (study->samples[i].source != s->source &&
			study->samples[i].wire == s->wire &&
			study->samples[i].method == s->method)
			return LOT_SEEN;
	return LOT_ALONE;
}

/* Every row from 1 MiB is in one lot: where a prediction from outside is far off, and
 * whether anybody else could have told. */
static void lots_print(const struct study *study)
{
	static const char *const names[LOTS] = {"no other source of wire and method",
		"other sources, none says otherwise",
		"other sources of equal calls differ", "other sources, all of them"};
	double *errors = calloc(study->count + 1, sizeof(*errors));
	double *of = calloc(study->count + 1, sizeof(*of));

	printf("\n%-38s %5s  %8s  %8s\n", "from 1 MiB, source left out", "rows",
		"over 15 %", "p90 %");
	for (int lot = 0; errors && of && lot < LOTS; lot++) {
		uint32_t found = 0, far = 0;

		for (uint32_t i = 0; i < study->count; i++) {
			enum lot its = lot_of(study, i, of);

			if (study->samples[i].bytes < 1 << 20 ||
				(lot == LOT_BOTH ? its == LOT_ALONE
						 : its != (enum lot)lot))
				continue;
			errors[found] = percent(study->verdicts[i].outside);
			far += errors[found++] > FAR;
		}
		if (!found)
			continue;
		qsort(errors, found, sizeof(*errors), by_size);
		printf("%-38s %5u  %9u  %8.1f\n", names[lot], found, far,
			errors[(uint32_t)(.9 * (found - 1))]);
	}
	free(errors);
	free(of);
}

static void worst_print(const struct study *study)
{
	double ceiling = INFINITY;

	printf("\nthe worst with their source left out:\n");
	for (int rank = 0; rank < WORST; rank++) {
		const struct verdict *worst = NULL;
		char size[24];

		for (uint32_t i = 0; i < study->count; i++) {
			const struct verdict *v = &study->verdicts[i];

			if (v->c->bytes >= 1 << 20 && fabs(v->outside) < ceiling &&
				(!worst || fabs(v->outside) > fabs(worst->outside)))
				worst = v;
		}
		if (!worst)
			return;
		ceiling = fabs(worst->outside);
		units_print_size(worst->c->bytes, size, sizeof(size));
		printf("  %+6.0f %% of busbw  %s, %s, %s: %s over %s, %s\n",
			100 * expm1(-worst->outside),
			table_at(&worst->cases->table, worst->c->row,
				table_column(&worst->cases->table, "platform")),
			size, worst->cases->groups[worst->c->group].taken,
			sim_method_name(worst->c->terms.method),
			sim_wire_name(worst->c->terms.wire),
			worst->params.sources < 2
				? "no other source measured this class"
				: "other sources of its class measured otherwise");
	}
}

static void wrong_print(const struct study *study)
{
	for (int f = 0; f < study->file_count; f++)
		for (uint32_t i = 0; i < study->files[f].count; i++) {
			const struct sim_case *c = &study->files[f].cases[i];
			char size[24];

			if (!c->wrong)
				continue;
			units_print_size(c->bytes, size, sizeof(size));
			printf("left out: %s, %s: %s\n",
				table_at(&study->files[f].table, c->row,
					table_column(&study->files[f].table, "platform")),
				size, c->wrong);
		}
}

static int study_run(int count, char **paths, struct study *study, bool fitted)
{
	enum err e = study_read(study, count, paths);
	double *errors = e ? NULL : calloc(study->count + 1, sizeof(*errors));

	if (!e && !errors)
		e = err_set(ERR_SYSTEM, "no memory");
	if (!e)
		e = sim_fit(
			study->samples, study->count, SIM_NO_SOURCE, NULL, &study->own);
	if (!e)
		e = leave_out(study, &study->own, errors);
	if (!e) {
		if (fitted)
			sim_fit_spreads(
				study->samples, study->count, errors, &study->own);
		else
			sim_calib_load(&study->own);
		verdicts_make(study, errors);
	}
	free(errors);
	if (e)
		study_free(study);
	return e ? sim_failed(e) : EXIT_GOOD;
}

int sim_accuracy(int count, char **paths)
{
	static struct study study;
	int status = study_run(count, paths, &study, false);

	if (status)
		return status;
	tables_print(&study);
	twins_print(&study);
	lots_print(&study);
	worst_print(&study);
	printf("\n");
	wrong_print(&study);
	study_free(&study);
	return EXIT_GOOD;
}

static bool is_below(enum sim_wire wire, enum sim_wire above)
{
	while (wire != above && wire != SIM_ANY)
		wire = sim_wire_parent(wire);
	return wire == above;
}

/* The platforms that a row rests on, as many as fit. */
static void origin_print(const struct study *study, int wire, int method)
{
	const char *seen[4] = {NULL};
	int count = 0;

	for (uint32_t i = 0; i < study->count && count < 4; i++) {
		const struct verdict *v = &study->verdicts[i];
		const char *name = table_at(&v->cases->table, v->c->row,
			table_column(&v->cases->table, "platform"));
		bool is_new = (method == SIM_ALL_METHODS ||
				      (int)v->c->terms.method == method) &&
			      is_below(v->c->terms.wire, (enum sim_wire)wire);

		for (int j = 0; j < count && is_new; j++)
			is_new = strcmp(seen[j], name) != 0;
		if (!is_new)
			continue;
		printf("%s%s", count ? "; " : "", count == 3 ? "others" : name);
		seen[count++] = name;
	}
}

static void row_print(const struct study *study, int wire, int method)
{
	const struct sim_effect *part = &study->own.effects[wire][method];

	printf("\t{\"%s\", \"%s\", {", sim_wire_name((enum sim_wire)wire),
		method == SIM_ALL_METHODS ? "any"
					  : sim_method_name((enum sim_method)method));
	for (int p = 0; p < SIM_PARAMS; p++)
		printf("%s%.4g", p ? ", " : "", exp(part->log[p]));
	printf("}, {%.3f, %.3f}, %u, %u,\n\t\t\"", ceil(1e3 * part->spread[0]) / 1e3,
		ceil(1e3 * part->spread[1]) / 1e3, part->rows, part->sources);
	origin_print(study, wire, method);
	printf("\"},\n");
}

int sim_calibrate(int count, char **paths)
{
	static struct study study;
	int status = study_run(count, paths, &study, true);

	if (status)
		return status;
	for (int wire = 0; wire < SIM_WIRES; wire++)
		for (int method = 0; method <= SIM_ALL_METHODS; method++)
			if (study.own.effects[wire][method].rows)
				row_print(&study, wire, method);
	study_free(&study);
	return EXIT_GOOD;
}
