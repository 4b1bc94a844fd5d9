/* weft sched check - prove schedules: all, of one collective, or one. */
#include <stdio.h>

#include "common/terminal.h"
#include "common/units.h"
#include "sched/check.h"
#include "weft/command.h"
#include "weft/json_print.h"
#include "weft/option.h"
#include "weft/sched.h"

enum {
	DEPTH_MAX = 8,
	RANKS_DEFAULT = 16,
	RANKS_MAX = 1024,
	WRONG_BYTES = 512,
	FLAG_JSON = OPTION_LONG
};

struct check_job {
	uint32_t first, last;	       /* rank counts */
	enum coll coll;		       /* COLL_COUNT: all */
	const struct sched_kind *only; /* NULL: all of the collective */
	json_t *list;		       /* of --json */
};

/* What became of one schedule. */
struct check_result {
	uint32_t last, deepest;
	char wrong[WRONG_BYTES]; /* "": proved */
};

static bool parse_flags(struct check_job *job, int argc, char **argv)
{
	static const struct option options[] = {
		{"json", no_argument, 0, FLAG_JSON}, {0, 0, 0, 0}};
	static const struct option_set set = {"sched check", ":n:", options};
	int64_t ranks;
	int flag;

	option_start();
	while ((flag = option_next(&set, argc, argv)) != -1) {
		if (flag == FLAG_JSON) {
			job->list = job->list ? job->list : json_array();
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
		job->first = job->last = (uint32_t)ranks;
	}
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
static bool prove(const struct sched_kind *kind, uint32_t ranks, uint32_t depth,
	char wrong[WRONG_BYTES])
{
	uint32_t roots = coll_has_root(kind->coll) && ranks > 1 ? 2 : 1;
	struct check_report report = {""};

	for (uint32_t i = 0; i < 2 * LOWER_MODES * roots; i++) {
		struct check_args args = {.kind = kind,
			.rank_count = ranks,
			.root = i / (2 * LOWER_MODES) ? ranks - 1 : 0,
			.mode = i / 2 % LOWER_MODES,
			.depth = depth,
			.in_place = i & 1};

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

static void check_kind(const struct check_job *job, const struct sched_kind *kind,
	struct check_result *result)
{
	bool good = true;

	*result = (struct check_result){
		.last = job->last < kind->rank_max ? job->last : kind->rank_max};
	for (uint32_t ranks = job->first; good && ranks <= result->last; ranks++) {
		uint32_t depth = check_min_depth(kind, ranks, 0, DEPTH_MAX);

		result->deepest = depth > result->deepest ? depth : result->deepest;
		good = prove(kind, ranks, depth ? depth : 1, result->wrong);
	}
}

static void print_result(const struct check_job *job, const struct check_result *result)
{
	const char *plain = terminal_look(LOOK_PLAIN);

	if (result->wrong[0])
		printf("  %sWRONG%s for %s\n", terminal_look(LOOK_BAD), plain,
			result->wrong);
	else if (job->first > result->last)
		printf("  not written for %u ranks\n", job->first);
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

int sched_check(int argc, char **argv)
{
	const struct sched_kind *kind;
	struct check_result result;
	struct check_job job;
	bool good = true;
	int status;

	if (!parse(&job, argc, argv)) {
		json_decref(job.list);
		return EXIT_USAGE;
	}
	for (uint32_t i = 0; (kind = catalog_at(i)); i++) {
		if (job.only ? job.only != kind
			     : job.coll != COLL_COUNT && job.coll != kind->coll)
			continue;
		if (!job.list) {
			printf("%-15s %-15s", coll_name(kind->coll), kind->name);
			fflush(stdout);
		}
		check_kind(&job, kind, &result);
		good = good && !result.wrong[0];
		if (job.list)
			json_array_append_new(job.list, result_json(&job, kind, &result));
		else
			print_result(&job, &result);
	}
	status = job.list ? json_print("sched check", job.list) : EXIT_GOOD;
	return status ? status : good ? EXIT_GOOD : EXIT_WRONG;
}
