/* weft plan - how long a training step takes, and which layout is best. */
#include "weft/plan.h"

#include <string.h>

#include "sim/resolve.h"
#include "weft/command.h"
#include "weft/versus.h"

int plan_failed(enum err e)
{
	fprintf(stderr, "weft plan: %s\n", err_last());
	return e == ERR_USAGE || e == ERR_ARGUMENT ? EXIT_USAGE : EXIT_WRONG;
}

/* A difference, in options; what is another kind of answer would be passed over. */
static bool is_difference(const char *vs)
{
	const char *word = vs + strspn(vs, " \t");
	size_t length = strcspn(word, " \t");

	return *word == '-' || memchr(word, '=', length) != NULL;
}

static bool is_other(const struct plan_args *args)
{
	return !args->vs && !args->svg && !args->groups && !args->search &&
	       !args->gpus_last && !args->models && !args->cases && !args->accuracy &&
	       !args->calibrate;
}

static int wrong_versus(void)
{
	fprintf(stderr, "weft plan: --vs: say what differs, such as 'tp=2' or "
			"'on=dgx-a100', and no other answer\n");
	return EXIT_USAGE;
}

static int versus(const struct plan_run *run, int argc, char **argv)
{
	static struct plan_run other;
	static struct versus v;
	struct plan_args args;
	int status;
	enum err e;

	if (!is_difference(run->args->vs))
		return wrong_versus();
	versus_words(&v, argc, argv, run->args->vs);
	if (!plan_args_parse(&args, v.count, v.words))
		return EXIT_USAGE;
	if (!is_other(&args))
		return wrong_versus();
	e = plan_run_make(&args, true, &other);
	if (e)
		return plan_failed(e);
	if (args.json) {
		status = plan_versus_json(run, &other);
	} else {
		plan_versus_print(run, &other);
		status = EXIT_GOOD;
	}
	plan_run_free(&other);
	return status;
}

static int show(struct plan_run *run, int argc, char **argv)
{
	const struct plan_args *args = run->args;

	if (args->groups)
		return plan_groups_print(run);
	if (args->vs)
		return versus(run, argc, argv);
	if (args->svg)
		return plan_svg(run, NULL, args->svg);
	if (args->json)
		return plan_json(run);
	plan_page_print(run);
	return run->memory.total <= run->gpu->memory_gb * 1e9 ? EXIT_GOOD : EXIT_WRONG;
}

/* What one answer cannot be at once. */
static bool questions_agree(const struct plan_args *args)
{
	const char *wrong = NULL;

	if (args->gpus_last && (args->json || args->svg || args->groups || args->vs))
		wrong = "a range of GPUs is a table; ask for --json, --svg, --groups or "
			"--vs of one of its sizes";
	else if (args->vs && (args->svg || args->groups || args->search))
		wrong = "--vs is two answers side by side; ask for --svg, --groups or "
			"--search of one of them";
	else if (args->svg && (args->json || args->groups))
		wrong = "--svg is a picture; ask for --json or --groups without it";
	else if (args->budget > 0 && args->train_tokens <= 0)
		wrong = "--budget is of a whole training; say its length with "
			"--train-tokens, such as 1e12";
	if (wrong)
		fprintf(stderr, "weft plan: %s\n", wrong);
	return !wrong;
}

/* What another name than the machine's own was taken for, as weft sim says it. */
static void taken_print(const struct plan_run *run)
{
	char site[SIM_TAKEN_BYTES];

	if (!strcasecmp(run->args->machine, run->net.site.machine))
		return;
	sim_site_text(&run->net.site, site);
	fprintf(stderr, "weft plan: '%s' is taken for %s\n", run->args->machine, site);
}

int command_plan(int argc, char **argv)
{
	static struct plan_run run;
	struct plan_args args;
	int status;
	enum err e;

	if (command_wants_help(argc, argv)) {
		plan_args_usage(stdout);
		return EXIT_GOOD;
	}
	if (!plan_args_parse(&args, argc, argv))
		return EXIT_USAGE;
	if (args.models) {
		plan_models_print();
		return EXIT_GOOD;
	}
	if (args.cases)
		return plan_cases_print(args.cases);
	if (args.accuracy)
		return plan_accuracy(&args);
	if (args.calibrate)
		return plan_calibrate(args.calibrate);
	if (!questions_agree(&args))
		return EXIT_USAGE;
	if (args.gpus_last)
		return plan_scaling(&args);
	e = plan_run_make(&args, !args.search, &run);
	if (e)
		return plan_failed(e);
	taken_print(&run);
	status = args.search ? plan_search(&run) : show(&run, argc, argv);
	plan_run_free(&run);
	return status;
}
