/* weft sim - what a cluster will do: time and bandwidth of collectives, before anyone
 * rents it. */
#include "weft/sim.h"

#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "sim/resolve.h"
#include "weft/command.h"
#include "weft/versus.h"

enum { WORDS_MAX = 128 };

int sim_failed(enum err e)
{
	fprintf(stderr, "weft sim: %s\n", err_last());
	return e == ERR_USAGE || e == ERR_ARGUMENT ? EXIT_USAGE : EXIT_WRONG;
}

/* A word of --vs that belongs to no option is the other machine. */
static void machine_take(struct versus *v, const char *machine)
{
	for (int i = 1; i < v->count; i++) {
		const char *word = v->words[i], *before = v->words[i - 1];
		bool is_value = before == v->texts[i - 1] && *before == '-' &&
				!strchr(before, '=');
		int at = 0;

		if (word != v->texts[i] || *word == '-' || is_value)
			continue;
		while (at < i && strcmp(v->words[at], machine) != 0)
			at++;
		if (at == i)
			return;
		v->words[at] = v->words[i];
		memmove(&v->words[i], &v->words[i + 1],
			(size_t)(v->count - i) * sizeof(*v->words));
		v->count--;
		return;
	}
}

/* What would be passed over: an answer of another kind, or no difference. */
static bool is_other(const struct sim_args *args, const char *vs)
{
	if (*vs && !args->vs && !args->has_explain && !args->svg && !args->timeline &&
		!args->measured && !args->cases && !args->accuracy && !args->calibrate)
		return true;
	fprintf(stderr, "weft sim: --vs: say what differs, such as 'nodes=2' or another "
			"machine, and no other answer\n");
	return false;
}

static int versus(const struct sim_run *run, int argc, char **argv)
{
	static struct sim_run other;
	static struct versus v;
	struct sim_args args;
	int status = EXIT_GOOD;
	enum err e;

	versus_words(&v, argc, argv, run->args->vs);
	machine_take(&v, run->args->files[0]);
	if (!sim_args_parse(&args, v.count, v.words))
		return args.status;
	if (!is_other(&args, run->args->vs))
		return EXIT_USAGE;
	e = sim_run_make(&args, &other);
	if (e)
		return sim_failed(e);
	if (other.count != run->count ||
		memcmp(other.sizes, run->sizes, run->count * sizeof(*run->sizes)) != 0)
		status = sim_failed(err_set(ERR_USAGE,
			"--vs compares call by call; say --size outside of it"));
	else if (args.json)
		status = sim_versus_json(run, &other);
	else
		sim_versus_print(run, &other);
	sim_run_free(&other);
	return status;
}

static int show(struct sim_run *run, int argc, char **argv)
{
	const struct sim_args *args = run->args;

	if (args->measured)
		return sim_measured(run, args->measured);
	if (args->svg)
		return sim_svg(run, args->svg);
	if (args->timeline)
		return sim_timeline(run, args->timeline);
	if (args->has_explain)
		return sim_explain(run, args->explain);
	if (args->vs)
		return versus(run, argc, argv);
	if (args->json)
		return sim_json(run);
	sim_table_print(run);
	return EXIT_GOOD;
}

/* What another name than the machine's own was taken for. */
static void taken_print(const struct sim_run *run)
{
	const char *name = run->args->files[0];
	char site[SIM_TAKEN_BYTES];

	if (!strcasecmp(name, run->scene.site.machine))
		return;
	sim_site_text(&run->scene.site, site);
	fprintf(stderr, "weft sim: '%s' is taken for %s\n", name, site);
}

/* The first file is the option's value, the others are words. */
static int files_study(const struct sim_args *args, const char *first,
	int (*study)(int count, char **paths))
{
	char *paths[WORDS_MAX];
	int count = 0;

	paths[count++] = (char *)first;
	for (int i = 0; i < args->file_count && count < WORDS_MAX; i++)
		paths[count++] = args->files[i];
	return study(count, paths);
}

int command_sim(int argc, char **argv)
{
	static struct sim_run run;
	struct sim_args args;
	int status;
	enum err e;

	if (command_wants_help(argc, argv)) {
		sim_args_usage(stdout);
		return EXIT_GOOD;
	}
	if (!sim_args_parse(&args, argc, argv))
		return args.status;
	if (args.cases)
		return sim_cases_print(args.cases);
	if (args.accuracy)
		return files_study(&args, args.accuracy, sim_accuracy);
	if (args.calibrate)
		return files_study(&args, args.calibrate, sim_calibrate);
	e = sim_run_make(&args, &run);
	if (e)
		return sim_failed(e);
	status = show(&run, argc, argv);
	if (status == EXIT_GOOD) {
		taken_print(&run);
		sim_env_tell(&run.scene.site);
	}
	sim_run_free(&run);
	return status;
}
