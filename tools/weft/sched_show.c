/* weft sched show - a schedule as text, for one rank or all. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/names.h"
#include "common/units.h"
#include "sched/text.h"
#include "weft/command.h"
#include "weft/hosts_args.h"
#include "weft/json_print.h"
#include "weft/option.h"
#include "weft/sched.h"

enum { DEPTH = 4, RANKS = 8, RANKS_MAX = 1 << 16 };

struct show_args {
	const struct sched_kind *kind;
	int64_t rank_count, rank, root; /* rank -1: all */
	struct sched_hosts *hosts;	/* owned; NULL: one */
	bool lowered, json;
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
			if (names_match(optarg, lower_mode_name(args->mode)))
				return true;
		return false;
	case 'j':
		args->json = true;
		return true;
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
		{"hosts", required_argument, 0, 'h'},
		{"json", no_argument, 0, 'j'},
		{0, 0, 0, 0},
	};
	static const struct option_set set = {"sched show", ":n:", options};
	int flag;

	*args = (struct show_args){.rank = -1};
	option_start();
	while ((flag = option_next(&set, argc, argv)) != -1) {
		if (flag == '?' || flag == ':') {
			option_refuse(&set, flag, argv);
			return false;
		}
		if (flag == 'h' && !hosts_args_take(set.command, &args->hosts))
			return false;
		if (flag == 'h' || parse_flag(args, flag))
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
	if (!hosts_args_count(set.command, args->hosts, &args->rank_count, RANKS))
		return false;
	if (args->rank >= args->rank_count || args->root >= args->rank_count) {
		fprintf(stderr, "weft sched show: there are only %d ranks\n",
			(int)args->rank_count);
		return false;
	}
	args->kind = sched_find(argv[optind], argv[optind + 1]);
	return args->kind != NULL;
}

static enum err show_lowered(const struct show_args *args, uint32_t rank, FILE *file)
{
	struct lower_args lower = {.kind = args->kind,
		.rank_count = (uint32_t)args->rank_count,
		.rank = rank,
		.root = (uint32_t)args->root,
		.mode = args->mode,
		.depth = DEPTH,
		.hosts = args->hosts ? args->hosts->host : NULL};
	struct program *program;
	enum err e = program_lower(&lower, &program);

	if (e)
		return e;
	text_print_program(file, program);
	program_destroy(program);
	return OK;
}

static enum err show_written(const struct show_args *args, uint32_t rank, FILE *file)
{
	struct sched sched;
	uint32_t n = (uint32_t)args->rank_count, root = (uint32_t)args->root;
	enum err e = args->hosts ? catalog_write_hosts(
					   args->kind, args->hosts, rank, root, &sched)
				 : catalog_write(args->kind, n, rank, root, &sched);

	if (e)
		return e;
	text_print_sched(file, args->kind->name, &sched);
	sched_fini(&sched);
	return OK;
}

static enum err show_rank(const struct show_args *args, uint32_t rank, FILE *file)
{
	return args->lowered ? show_lowered(args, rank, file)
			     : show_written(args, rank, file);
}

/* The text of a rank as a list of lanes: a head and its lines, without their numbers. */
static json_t *lanes_json(char *text)
{
	json_t *lanes = json_array(), *lines = NULL;
	char *rest = text, *line;

	while ((line = strsep(&rest, "\n"))) {
		char *at = line + strspn(line, " 0123456789");

		if (!*line)
			continue;
		if (at == line) {
			lines = json_array();
			json_array_append_new(lanes,
				json_pack("{s:s, s:o}", "head", line, "lines", lines));
		} else if (lines) {
			json_array_append_new(lines, json_string(at));
		}
	}
	return lanes;
}

static enum err rank_json(const struct show_args *args, uint32_t rank, json_t *list)
{
	char *text = NULL;
	size_t bytes = 0;
	FILE *file = open_memstream(&text, &bytes);
	enum err e;

	if (!file)
		return err_set(ERR_SYSTEM, "no memory for the text of a schedule");
	e = show_rank(args, rank, file);
	if (fclose(file) && !e)
		e = err_set(ERR_SYSTEM, "no memory for the text of a schedule");
	if (!e)
		json_array_append_new(list, json_pack("{s:i, s:o}", "rank", (int)rank,
						    "lanes", lanes_json(text)));
	free(text);
	return e;
}

static int end_json(const struct show_args *args, json_t *ranks, enum err e)
{
	if (e) {
		json_decref(ranks);
		return EXIT_WRONG;
	}
	return json_print("sched show",
		json_pack("{s:s, s:s, s:i, s:i, s:s, s:o}", "collective",
			coll_name(args->kind->coll), "schedule", args->kind->name,
			"rankCount", (int)args->rank_count, "root", (int)args->root,
			"form", args->lowered ? lower_mode_name(args->mode) : "written",
			"ranks", ranks));
}

static int show_ranks(const struct show_args *args)
{
	uint32_t first = args->rank < 0 ? 0 : (uint32_t)args->rank;
	uint32_t last = args->rank < 0 ? (uint32_t)args->rank_count - 1 : first;
	json_t *ranks = args->json ? json_array() : NULL;
	enum err e = OK;

	for (uint32_t rank = first; !e && rank <= last; rank++)
		e = args->json ? rank_json(args, rank, ranks)
			       : show_rank(args, rank, stdout);
	if (e)
		fprintf(stderr, "weft sched show: %s\n", err_last());
	if (args->json)
		return end_json(args, ranks, e);
	return e ? EXIT_WRONG : EXIT_GOOD;
}

int sched_show(int argc, char **argv)
{
	struct show_args args;
	int status = parse(&args, argc, argv) ? show_ranks(&args) : EXIT_USAGE;

	sched_hosts_destroy(args.hosts);
	return status;
}
