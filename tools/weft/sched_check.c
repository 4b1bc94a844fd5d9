/* weft sched check - prove schedules: all, of one collective, or one. */
#include <stdio.h>

#include "common/terminal.h"
#include "common/units.h"
#include "sched/check.h"
#include "weft/command.h"
#include "weft/hosts_args.h"
#include "weft/json_print.h"
#include "weft/option.h"
#include "weft/sched.h"

enum {
	DEPTH_MAX = 8,
	RANKS_DEFAULT = 16,
	RANKS_MAX = 1024,
	WRONG_BYTES = 512,
	FLAG_JSON = OPTION_LONG,
	FLAG_HOSTS
};

struct check_job {
	uint32_t first, last;	       /* rank counts */
	enum coll coll;		       /* COLL_COUNT: all */
	const struct sched_kind *only; /* NULL: all of the collective */
	struct sched_hosts *hosts;     /* owned; NULL: one */
	json_t *list;		       /* of --json */
};

/* What became of one schedule. */
struct check_result {
	uint32_t last, deepest;
	char wrong[WRONG_BYTES]; /* "": proved */
};

static bool parse_flags(struct check_job *job, int argc, char **argv)
{
	static const struct option options[] = {{"json", no_argument, 0, FLAG_JSON},
		{"hosts", required_argument, 0, FLAG_HOSTS}, {0, 0, 0, 0}};
	static const struct option_set set = {"sched check", ":n:", options};
	int64_t ranks = 0;
	int flag;

	option_start();
	while ((flag = option_next(&set, argc, argv)) != -1) {
		if (flag == FLAG_JSON) {
			job->list = job->list ? job->list : json_array();
			continue;
		}
		if (flag == FLAG_HOSTS) {
			if (!hosts_args_take(set.command, &job->hosts))
				return false;
			continue;
		}
		if (flag != 'n')
			return option_refuse(&set, flag, argv);
		if (!units_int(optarg, 1, RANKS_MAX, &ranks)) {
			fprintf(stderr,
				"weft sched check: -n '%s': give a number from 1 to %d\n",
				optarg, RANKS_MAX);
			return false;
		}
	}
	if (job->hosts && job->hosts->rank_count > RANKS_MAX) {
		fprintf(stderr, "weft sched check: %u ranks; %d can be checked\n",
			job->hosts->rank_count, RANKS_MAX);
		return false;
	}
	if (!hosts_args_count(set.command, job->hosts, &ranks, 0))
		return false;
	if (ranks)
		job->first = job->last = (uint32_t)ranks;
	return true;
}

static bool parse(struct check_job *job, int argc, char **argv)
{
	*job = (struct check_job){.first = 1, .last = RANKS_DEFAULT, .coll = COLL_COUNT};
	if (!parse_flags(job, argc, argv))
		return false;
	if (argc - optind > 2) {
		fprintf(stderr,
			"weft sched check: a collective and a schedule at most\n");
		return false;
	}
	if (argc - optind == 2) {
		job->only = sched_find(argv[optind], argv[optind + 1]);
		return job->only != NULL;
	}
	if (optind == argc)
		return true;
	job->coll = sched_coll(argv[optind]);
	return job->coll != COLL_COUNT;
}

/* One rank count: all ways to travel, both placements, both end ranks as roots. */
static bool prove(const struct check_args *least, char wrong[WRONG_BYTES])
{
	const struct sched_kind *kind = least->kind;
	uint32_t ranks = least->rank_count;
	uint32_t roots = coll_has_root(kind->coll) && ranks > 1 ? 2 : 1;
	struct check_report report = {""};

	for (uint32_t i = 0; i < 2 * LOWER_MODES * roots; i++) {
		struct check_args args = *least;

		args.root = i / (2 * LOWER_MODES) ? ranks - 1 : 0;
		args.mode = i / 2 % LOWER_MODES;
		args.in_place = i & 1;

		if (args.in_place && kind->coll == COLL_ALL_TO_ALL)
			continue;
		if (!check_schedule(&args, &report))
			continue;
		snprintf(wrong, WRONG_BYTES, "%u ranks, root %u, %s, %s: %s", ranks,
			args.root, lower_mode_name(args.mode),
			args.in_place ? "in place" : "out of place",
			report.text[0] ? report.text : err_last());
		return false;
	}
	return true;
}

/* The fewest slots with which the staged schedule works, left in args->depth; 0: it does
 * not. */
static uint32_t find_depth(struct check_args *args)
{
	struct check_report report;

	args->mode = MODE_STAGED;
	for (args->depth = 1; args->depth <= DEPTH_MAX; args->depth++)
		if (!check_schedule(args, &report))
			return args->depth;
	args->depth = 1;
	return 0;
}

static void check_kind(const struct check_job *job, const struct sched_kind *kind,
	struct check_result *result)
{
	bool good = true;

	*result = (struct check_result){.last = job->last};
	while (result->last && !catalog_suits(kind, job->hosts, result->last))
		result->last--;
	for (uint32_t ranks = job->first; good && ranks <= result->last; ranks++) {
		struct check_args args = {.kind = kind,
			.rank_count = ranks,
			.hosts = job->hosts ? job->hosts->host : NULL};
		uint32_t depth = find_depth(&args);

		result->deepest = depth > result->deepest ? depth : result->deepest;
		good = prove(&args, result->wrong);
	}
}

static void print_result(const struct check_job *job, const struct check_result *result)
{
	const char *plain = terminal_look(LOOK_PLAIN);

	if (result->wrong[0])
		printf("  %sWRONG%s for %s\n", terminal_look(LOOK_BAD), plain,
			result->wrong);
	else if (job->first > result->last)
		printf("  not written for %u ranks%s\n", job->first,
			job->hosts ? " on such hosts" : "");
	else if (job->first == result->last)
		printf("  %sproved%s for %u ranks; slots needed %u\n",
			terminal_look(LOOK_GOOD), plain, result->last, result->deepest);
	else
		printf("  %sproved%s for %u to %u ranks; slots needed %u\n",
			terminal_look(LOOK_GOOD), plain, job->first, result->last,
			result->deepest);
}

static json_t *result_json(const struct check_job *job, const struct sched_kind *kind,
	const struct check_result *result)
{
	json_t *row = json_pack("{s:s, s:s, s:b}", "collective", coll_name(kind->coll),
		"schedule", kind->name, "proved",
		!result->wrong[0] && job->first <= result->last);

	if (result->wrong[0])
		json_object_set_new(row, "wrong", json_string(result->wrong));
	if (job->first > result->last)
		return row;
	json_object_set_new(row, "ranksFirst", json_integer(job->first));
	json_object_set_new(row, "ranksLast", json_integer(result->last));
	json_object_set_new(row, "slots", json_integer(result->deepest));
	return row;
}

/* On one host a schedule that knows hosts is one of the others, so it must be asked for.
 */
static bool is_wanted(const struct check_job *job, const struct sched_kind *kind)
{
	if (job->only)
		return job->only == kind;
	return (job->coll == COLL_COUNT || job->coll == kind->coll) &&
	       (kind->drivers == DRIVERS_NONE || job->hosts);
}

int sched_check(int argc, char **argv)
{
	const struct sched_kind *kind;
	struct check_result result;
	struct check_job job;
	bool good = true;
	int status;

	if (!parse(&job, argc, argv)) {
		json_decref(job.list);
		sched_hosts_destroy(job.hosts);
		return EXIT_USAGE;
	}
	for (uint32_t i = 0; (kind = catalog_at(i)); i++) {
		if (!is_wanted(&job, kind))
			continue;
		if (!job.list) {
			printf("%-15s %-21s", coll_name(kind->coll), kind->name);
			fflush(stdout);
		}
		check_kind(&job, kind, &result);
		good = good && !result.wrong[0];
		if (job.list)
			json_array_append_new(job.list, result_json(&job, kind, &result));
		else
			print_result(&job, &result);
	}
	sched_hosts_destroy(job.hosts);
	status = job.list ? json_print("sched check", job.list) : EXIT_GOOD;
	return status ? status : good ? EXIT_GOOD : EXIT_WRONG;
}
