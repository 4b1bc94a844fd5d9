/* weft sched show - a schedule as text, for one rank or all. */
#include <stdio.h>
#include <string.h>

#include "common/units.h"
#include "sched/text.h"
#include "weft/command.h"
#include "weft/option.h"
#include "weft/sched.h"

enum { DEPTH = 4, RANKS_MAX = 1 << 16 };

struct show_args {
	const struct sched_kind *kind;
	int64_t rank_count, rank, root; /* rank -1: all */
	bool lowered;
	enum lower_mode mode;
};

static bool parse_flag(struct show_args *args, int flag)
{
	switch (flag) {
	case 'n':
		return units_int(optarg, 1, RANKS_MAX, &args->rank_count);
	case 'k':
		return units_int(optarg, 0, RANKS_MAX, &args->rank);
	case 'r':
		return units_int(optarg, 0, RANKS_MAX, &args->root);
	case 'l':
		args->lowered = true;
		for (args->mode = 0; args->mode < LOWER_MODES; args->mode++)
			if (!strcmp(optarg, lower_mode_name(args->mode)))
				return true;
		return false;
	default:
		return false;
	}
}

static bool parse(struct show_args *args, int argc, char **argv)
{
	static const struct option options[] = {
		{"ranks", required_argument, 0, 'n'},
		{"rank", required_argument, 0, 'k'},
		{"root", required_argument, 0, 'r'},
		{"lowered", required_argument, 0, 'l'},
		{0, 0, 0, 0},
	};
	static const struct option_set set = {"sched show", ":n:", options};
	int flag;

	*args = (struct show_args){.rank_count = 8, .rank = -1};
	option_start();
	while ((flag = option_next(&set, argc, argv)) != -1) {
		if (flag == '?' || flag == ':') {
			option_refuse(&set, flag, argv);
			return false;
		}
		if (parse_flag(args, flag))
			continue;
		fprintf(stderr,
			"weft sched show: '%s' is no value here; see weft sched --help\n",
			optarg);
		return false;
	}
	if (argc - optind != 2) {
		fprintf(stderr,
			"weft sched show: give a collective and a schedule, such as "
			"'all_reduce ring'\n");
		return false;
	}
	if (args->rank >= args->rank_count || args->root >= args->rank_count) {
		fprintf(stderr, "weft sched show: there are only %d ranks\n",
			(int)args->rank_count);
		return false;
	}
	args->kind = sched_find(argv[optind], argv[optind + 1]);
	return args->kind != NULL;
}

static enum err show_lowered(const struct show_args *args, uint32_t rank)
{
	struct lower_args lower = {.kind = args->kind,
		.rank_count = (uint32_t)args->rank_count,
		.rank = rank,
		.root = (uint32_t)args->root,
		.mode = args->mode,
		.depth = DEPTH};
	struct program *program;
	enum err e = program_lower(&lower, &program);

	if (e)
		return e;
	text_print_program(stdout, program);
	program_destroy(program);
	return OK;
}

static enum err show_written(const struct show_args *args, uint32_t rank)
{
	struct sched sched;
	enum err e = catalog_write(args->kind, (uint32_t)args->rank_count, rank,
		(uint32_t)args->root, &sched);

	if (e)
		return e;
	text_print_sched(stdout, args->kind->name, &sched);
	sched_fini(&sched);
	return OK;
}

int sched_show(int argc, char **argv)
{
	struct show_args args;
	uint32_t first, last;

	if (!parse(&args, argc, argv))
		return EXIT_USAGE;
	first = args.rank < 0 ? 0 : (uint32_t)args.rank;
	last = args.rank < 0 ? (uint32_t)args.rank_count - 1 : first;
	for (uint32_t rank = first; rank <= last; rank++) {
		enum err e = args.lowered ? show_lowered(&args, rank)
					  : show_written(&args, rank);
		if (e) {
			fprintf(stderr, "weft sched show: %s\n", err_last());
			return EXIT_WRONG;
		}
	}
	return EXIT_GOOD;
}
