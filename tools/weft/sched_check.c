/* weft sched check - prove schedules: all, of one collective, or one. */
#include <stdio.h>

#include "common/units.h"
#include "sched/check.h"
#include "weft/command.h"
#include "weft/option.h"
#include "weft/sched.h"

enum { DEPTH_MAX = 8, RANKS_DEFAULT = 16, RANKS_MAX = 1024 };

struct check_job {
	uint32_t first, last;	 /* rank counts */
	const char *coll, *name; /* NULL: all */
};

static bool parse(struct check_job *job, int argc, char **argv)
{
	static const struct option options[] = {{0, 0, 0, 0}};
	static const struct option_set set = {"sched check", ":n:", options};
	int64_t ranks;
	int flag;

	*job = (struct check_job){.first = 1, .last = RANKS_DEFAULT};
	option_start();
	while ((flag = option_next(&set, argc, argv)) != -1) {
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
	if (argc - optind > 2) {
		fprintf(stderr,
			"weft sched check: a collective and a schedule at most\n");
		return false;
	}
	job->coll = optind < argc ? argv[optind] : NULL;
	job->name = optind + 1 < argc ? argv[optind + 1] : NULL;
	if (job->name)
		return sched_find(job->coll, job->name) != NULL;
	if (job->coll && coll_find(job->coll) == COLL_COUNT)
		return sched_find(job->coll, "") != NULL; /* says which there are */
	return true;
}

/* One rank count: all ways to travel, both placements, both end ranks as roots. */
static bool prove(const struct sched_kind *kind, uint32_t ranks, uint32_t depth)
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
		printf("  WRONG for %u ranks, root %u, %s, %s: %s\n", ranks, args.root,
			lower_mode_name(args.mode),
			args.in_place ? "in place" : "out of place",
			report.text[0] ? report.text : err_last());
		return false;
	}
	return true;
}

static bool check_kind(const struct check_job *job, const struct sched_kind *kind)
{
	uint32_t deepest = 0,
		 last = job->last < kind->rank_max ? job->last : kind->rank_max;
	bool good = true;

	printf("%-15s %-15s", coll_name(kind->coll), kind->name);
	fflush(stdout);
	for (uint32_t ranks = job->first; good && ranks <= last; ranks++) {
		uint32_t depth = check_min_depth(kind, ranks, 0, DEPTH_MAX);

		deepest = depth > deepest ? depth : deepest;
		good = prove(kind, ranks, depth ? depth : 1);
	}
	if (good && job->first > last)
		printf("  not written for %u ranks\n", job->first);
	else if (good && job->first == last)
		printf("  proved for %u ranks; slots needed %u\n", last, deepest);
	else if (good)
		printf("  proved for %u to %u ranks; slots needed %u\n", job->first, last,
			deepest);
	return good;
}

int sched_check(int argc, char **argv)
{
	const struct sched_kind *kind;
	struct check_job job;
	bool good = true;

	if (!parse(&job, argc, argv))
		return EXIT_USAGE;
	for (uint32_t i = 0; (kind = catalog_at(i)); i++) {
		if (job.coll && coll_find(job.coll) != kind->coll)
			continue;
		if (job.name && catalog_find(kind->coll, job.name) != kind)
			continue;
		good = check_kind(&job, kind) && good;
	}
	return good ? EXIT_GOOD : EXIT_WRONG;
}
