/* weft plan --search: the fastest layouts, why each loses to the first, what a slower
 * network would change; --gpus A..B: the best of each size. */
#include <math.h>
#include <string.h>

#include "base/clock.h"
#include "weft/command.h"
#include "weft/json_print.h"
#include "weft/plan.h"

/* A batch that nobody said: a micro-batch on each GPU. */
static void base_layout(const struct plan_run *run, struct train_layout *base)
{
	*base = run->layout;
	if (!base->batch)
		base->batch = base->gpus * base->micro;
}

static enum err search(struct plan_run *run, struct search_result *found)
{
	struct train_layout base;
	struct train_job job = {
		&run->model, &base, &run->args->order, &run->net, run->gpu, &run->host};
	struct calib_who who = {run->args->stack, run->gpu, run->layout.precision,
		run->model.experts > 0};

	base_layout(run, &base);
	calib_ask(&run->calib, &who, &run->answer);
	return layouts_search(&job, &run->answer, run->args->said, found);
}

enum err plan_layouts_search(struct plan_run *run, struct search_result *found)
{
	enum err e = search(run, found);

	if (e || found->hit_count)
		return e;
	return err_set(ERR_SYSTEM,
		"none of %llu layouts fits: the least needs %.1f GB of a GPU, and %s has "
		"%.1f; take more GPUs%s, or --offload",
		(unsigned long long)found->tried, found->least_bytes / 1e9,
		run->gpu->name, run->gpu->memory_gb,
		run->args->said ? ", say less of the layout" : "");
}

/* One hit answered whole, into the run. */
static enum err hit_answer(struct plan_run *run, const struct search_hit *hit)
{
	run->layout = hit->layout;
	return plan_run_answer(run);
}

/* What it spends most more of than the first, and how many seconds. */
static const char *loses_by(
	const struct train_step *first, const struct train_step *s, double *seconds)
{
	int worst = 0;

	for (int i = 1; i < STEP_PARTS; i++)
		if (s->seen[i] - first->seen[i] > s->seen[worst] - first->seen[worst])
			worst = i;
	*seconds = s->seen[worst] - first->seen[worst];
	return step_part_name((enum step_part)worst);
}

static enum err hits_print(struct plan_run *run, const struct search_result *found)
{
	struct train_step first = {0};
	const char *part;
	double seconds;
	enum err e = OK;

	printf("     step s   MFU %%   GB  layout\n");
	for (uint32_t i = 0; !e && i < found->hit_count; i++) {
		char text[LAYOUT_TEXT_BYTES];

		e = hit_answer(run, &found->hits[i]);
		if (e)
			break;
		layout_text(&run->layout, text);
		printf("%2u %9.4g  %6.1f %5.1f  %s", i + 1, run->step.seconds,
			100 * run->step.mfu, run->memory.total / 1e9, text);
		if (i == 0)
			first = run->step;
		part = loses_by(&first, &run->step, &seconds);
		if (i)
			printf(": %+.3g s %s", seconds, part);
		putchar('\n');
	}
	return e;
}

/* What a network half as fast would make of it. */
struct halved {
	double winner_s; /* the step of the layout that won */
	struct search_hit best;
};

static enum err network_halve(
	struct plan_run *run, const struct search_hit *best, struct halved *halved)
{
	struct search_result found;
	enum err e;

	run->net.scale = .5;
	run->net.curve_count = 0;
	e = hit_answer(run, best);
	halved->winner_s = run->step.seconds;
	if (!e)
		e = search(run, &found);
	if (!e)
		halved->best = found.hits[0];
	run->net.scale = 1;
	run->net.curve_count = 0;
	return e;
}

static enum err sensitivity_print(struct plan_run *run, const struct search_hit *best)
{
	struct halved halved;
	char text[LAYOUT_TEXT_BYTES];
	enum err e;

	if (run->net.site.nodes < 2)
		return OK;
	e = network_halve(run, best, &halved);
	if (e)
		return e;
	layout_text(&halved.best.layout, text);
	printf("\nwith half the network: %.4g s (%+.1f %%); the best then: %.4g s, %s\n",
		halved.winner_s, 100 * (halved.winner_s / best->seconds - 1),
		halved.best.seconds, text);
	return OK;
}

static json_t *hit_json(const struct search_hit *hit)
{
	return json_pack("{s:f, s:f, s:o}", "stepS", hit->seconds, "memoryGB",
		hit->bytes / 1e9, "layout", plan_layout_json(&hit->layout));
}

/* Each but the first with what it loses by. */
static enum err hits_json(
	struct plan_run *run, const struct search_result *found, json_t *all)
{
	json_t *hits = json_array();
	struct train_step first = {0};
	enum err e = OK;

	for (uint32_t i = 0; !e && i < found->hit_count; i++) {
		json_t *one = hit_json(&found->hits[i]);
		const char *part;
		double seconds;

		e = hit_answer(run, &found->hits[i]);
		if (i == 0)
			first = run->step;
		part = loses_by(&first, &run->step, &seconds);
		if (i && !e)
			json_object_set_new(one, "losesBy",
				json_pack(
					"{s:s, s:f}", "part", part, "seconds", seconds));
		json_array_append_new(hits, one);
	}
	json_object_set_new(all, "best", hits);
	return e;
}

static enum err sensitivity_json(
	struct plan_run *run, const struct search_hit *best, json_t *all)
{
	struct halved halved;
	enum err e;

	if (run->net.site.nodes < 2)
		return OK;
	e = network_halve(run, best, &halved);
	if (!e)
		json_object_set_new(all, "halfTheNetwork",
			json_pack("{s:f, s:o}", "stepS", halved.winner_s, "best",
				hit_json(&halved.best)));
	return e;
}

/* As data, with the others, as a picture or as groups: the layout that won. */
static int winner_show(struct plan_run *run, const struct search_result *found)
{
	enum err e = hit_answer(run, &found->hits[0]);
	json_t *all;

	if (e)
		return plan_failed(e);
	if (run->args->groups)
		return plan_groups_print(run);
	if (run->args->svg)
		return plan_svg(run, found, run->args->svg);
	all = plan_json_make(run);
	e = hits_json(run, found, all);
	if (!e)
		e = sensitivity_json(run, &found->hits[0], all);
	if (!e)
		return json_print("plan", all);
	json_decref(all);
	return plan_failed(e);
}

int plan_search(struct plan_run *run)
{
	struct search_result found;
	uint64_t start = clock_ns();
	double took, asked;
	enum err e = plan_layouts_search(run, &found);

	asked = 1e-9 * (double)run->net.asked_ns;
	took = 1e-9 * (double)(clock_ns() - start) - asked;
	if (e)
		return plan_failed(e);
	if (run->args->json || run->args->svg || run->args->groups)
		return winner_show(run, &found);
	printf("%s on %u x %s (%u x %s), batch %u of %u tokens, %s\n", run->model.name,
		run->net.site.nodes, run->net.site.machine, run->layout.gpus,
		run->gpu->name, found.hits[0].layout.batch, run->layout.sequence,
		precision_name(run->layout.precision));
	printf("%llu layouts in %.3f s (%.1f million a second), after %.2f s for the "
	       "times "
	       "of %u collectives; %llu fit\n\n",
		(unsigned long long)found.tried, took, (double)found.tried / took / 1e6,
		asked, run->net.curve_count, (unsigned long long)found.fitting);
	e = hits_print(run, &found);
	if (!e)
		e = sensitivity_print(run, &found.hits[0]);
	if (!e)
		e = hit_answer(run, &found.hits[0]);
	if (!e) {
		plan_goodput_print(run);
		plan_guesses_print(run);
		plan_options_print(run);
	}
	return e ? plan_failed(e) : EXIT_GOOD;
}

/* One size of the cluster, answered into the run; false where no layout divides or fits,
 * with a word for it. */
static bool size_try(const struct plan_args *args, uint32_t gpus, struct plan_run *run,
	const char **why, enum err *e)
{
	struct plan_args one = *args;
	struct search_result found;

	one.gpus_first = gpus;
	one.gpus_last = 0;
	*e = plan_run_make(&one, false, run);
	if (*e)
		return false;
	run->args = args;
	*e = search(run, &found);
	if (*e == ERR_USAGE && !found.tried) {
		*e = OK;
		*why = "no layout divides";
	} else if (!*e && !found.hit_count) {
		*why = "nothing fits";
	} else if (!*e) {
		*e = hit_answer(run, &found.hits[0]);
		return !*e;
	}
	plan_run_free(run);
	return false;
}

/* A doubling gives less than half of what it costs. `last`: tokens a second of the size
 * before, 0: there is none. */
static bool is_past_knee(const struct train_step *s, double last)
{
	return last > 0 && s->tokens_per_s < 1.5 * last;
}

static void size_print(const struct plan_run *run, double last)
{
	const struct train_step *s = &run->step;
	char text[LAYOUT_TEXT_BYTES];

	layout_text(&run->layout, text);
	printf("%7u %10.4g %15.0f %6.1f  ", run->layout.gpus, s->seconds,
		s->tokens_per_s / run->layout.gpus, 100 * s->mfu);
	if (last > 0)
		printf("%4.2f", s->tokens_per_s / last);
	else
		printf("%4s", "");
	if (run->args->train_tokens > 0) {
		struct plan_bill bill;

		plan_bill_make(run, &bill);
		printf(" %7.1f %11.0f%s", bill.days, bill.hours,
			bill.is_over ? " OVER" : "     ");
	}
	printf("  %s%s\n", text, is_past_knee(s, last) ? "   <- past the knee" : "");
}

/* Where it stops to pay, or that it does not. */
static void knee_print(const struct plan_args *args, uint64_t knee, uint64_t fastest)
{
	if (knee)
		printf("\nthe knee: %llu GPUs; twice as many give less than half of what "
		       "they cost\n",
			(unsigned long long)knee);
	else if (fastest > args->gpus_first)
		printf("\nno knee up to %llu GPUs: each doubling gives at least half of "
		       "what it costs\n",
			(unsigned long long)fastest);
	if (!args->layout.batch)
		printf("the batch grows with the GPUs, for none was said; --gbs holds "
		       "it\n");
}

int plan_scaling(const struct plan_args *args)
{
	static struct plan_run run;
	uint64_t knee = 0, fastest = 0;
	double last = 0;
	enum err e = OK;

	printf("   GPUs     step s  tokens/s a GPU  MFU %%  gain%s  layout\n",
		args->train_tokens > 0 ? "    days   GPU-hours     " : "");
	for (uint64_t gpus = args->gpus_first; !e && gpus <= args->gpus_last; gpus *= 2) {
		const char *why = "";

		if (size_try(args, (uint32_t)gpus, &run, &why, &e)) {
			size_print(&run, last);
			if (!knee && is_past_knee(&run.step, last))
				knee = gpus / 2;
			last = run.step.tokens_per_s;
			fastest = gpus;
			plan_run_free(&run);
		} else if (!e) {
			last = 0;
			printf("%7u  %s\n", (uint32_t)gpus, why);
		}
	}
	if (!e)
		knee_print(args, knee, fastest);
	return e ? plan_failed(e) : EXIT_GOOD;
}
