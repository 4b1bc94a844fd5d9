/* weft sched - list, show, check and time the schedules of the catalog. */
#include "weft/sched.h"

#include <stdio.h>

#include "common/names.h"
#include "common/terminal.h"
#include "weft/command.h"
#include "weft/json_print.h"
#include "weft/option.h"

enum { FLAG_JSON = OPTION_LONG, SUMMARY_COLUMN = 46 };

static const struct {
	const char *name;
	int (*function)(int argc, char **argv);
} actions[] = {
	{"list", sched_list},
	{"show", sched_show},
	{"check", sched_check},
	{"time", sched_time},
};

static void usage(FILE *file)
{
	fprintf(file,
		"usage: weft sched list [COLLECTIVE] [--json]\n"
		"       weft sched show COLLECTIVE SCHEDULE [-n N | --hosts SHAPE] "
		"[--rank R]\n"
		"                       [--root R] [--lowered direct|pull|staged] "
		"[--json]\n"
		"       weft sched check [COLLECTIVE [SCHEDULE]] [-n N | --hosts SHAPE] "
		"[--json]\n"
		"       weft sched time COLLECTIVE SCHEDULE [-n N | --hosts SHAPE] "
		"[--root R]\n"
		"                       [--size BYTES] [--latency TIME] [--bandwidth "
		"RATE] [--json]\n\n"
		"list   the schedules: what the library can choose from\n"
		"show   what each rank (or one) does, as instructions; lowered: as the "
		"moves\n"
		"       the engines run, in peers' buffers (pull: reading only) or "
		"through "
		"slots\n"
		"check  prove: every result right, no deadlock, no race, for that many "
		"ranks\n"
		"       or for 1 to 16\n"
		"time   simulate on a network where all ranks are equally far apart, or "
		"all\n"
		"       hosts are\n\n"
		"SHAPE  2x4: two hosts of four ranks; 3+5: of three and of five; "
		"0,1,0,1: a host\n"
		"       for each rank. Without it all ranks are on one host\n\n"
		"example: weft sched show all_reduce ring -n 8 --rank 3\n"
		"example: weft sched show all_reduce hosts-direct --hosts 2x4\n"
		"example: weft sched time all_reduce ring -n 64 --latency 1us "
		"--bandwidth "
		"10GB/s --size 1M\n");
}

enum coll sched_coll(const char *text)
{
	for (int i = 0; i < COLL_COUNT; i++)
		if (names_match(text, coll_name((enum coll)i)))
			return (enum coll)i;
	fprintf(stderr, "weft sched: no collective '%s'; there are", text);
	for (int i = 0; i < COLL_COUNT; i++)
		fprintf(stderr, " %s", coll_name((enum coll)i));
	fprintf(stderr, "\n");
	return COLL_COUNT;
}

const struct sched_kind *sched_find(const char *coll_text, const char *name)
{
	enum coll coll = sched_coll(coll_text);
	const struct sched_kind *kind;

	if (coll == COLL_COUNT)
		return NULL;
	for (uint32_t i = 0; (kind = catalog_at(i)); i++)
		if (kind->coll == coll && names_match(name, kind->name))
			return kind;
	fprintf(stderr, "weft sched: no schedule '%s' for %s; there are", name,
		coll_name(coll));
	for (uint32_t i = 0; (kind = catalog_at(i)); i++)
		if (kind->coll == coll)
			fprintf(stderr, " %s", kind->name);
	fprintf(stderr, "\n");
	return NULL;
}

static void list_row(const struct sched_kind *kind)
{
	printf("%-15s %-21s %6u  ", coll_name(kind->coll), kind->name, kind->rank_max);
	terminal_fold(stdout, kind->summary, SUMMARY_COLUMN, SUMMARY_COLUMN);
}

/* `coll` COLL_COUNT: all. */
static int list_print(enum coll coll, bool json)
{
	const struct sched_kind *kind;
	json_t *list = json ? json_array() : NULL;

	if (!json)
		printf("%-15s %-21s %6s  %s\n", "collective", "schedule", "ranks",
			"how it goes");
	for (uint32_t i = 0; (kind = catalog_at(i)); i++) {
		if (coll != COLL_COUNT && coll != kind->coll)
			continue;
		if (json)
			json_array_append_new(
				list, json_pack("{s:s, s:s, s:i, s:s}", "collective",
					      coll_name(kind->coll), "schedule",
					      kind->name, "ranksMax", (int)kind->rank_max,
					      "summary", kind->summary));
		else
			list_row(kind);
	}
	return json ? json_print("sched list", list) : EXIT_GOOD;
}

int sched_list(int argc, char **argv)
{
	static const struct option options[] = {
		{"json", no_argument, 0, FLAG_JSON}, {0, 0, 0, 0}};
	static const struct option_set set = {"sched list", ":", options};
	enum coll coll = COLL_COUNT;
	bool json = false;
	int flag;

	option_start();
	while ((flag = option_next(&set, argc, argv)) != -1) {
		if (flag != FLAG_JSON) {
			option_refuse(&set, flag, argv);
			return EXIT_USAGE;
		}
		json = true;
	}
	if (argc - optind > 1) {
		fprintf(stderr, "weft sched list: one collective at most\n");
		return EXIT_USAGE;
	}
	if (optind < argc) {
		coll = sched_coll(argv[optind]);
		if (coll == COLL_COUNT)
			return EXIT_USAGE;
	}
	return list_print(coll, json);
}

int command_sched(int argc, char **argv)
{
	if (command_wants_help(argc, argv)) {
		usage(stdout);
		return EXIT_GOOD;
	}
	for (size_t i = 0; argc > 1 && i < sizeof(actions) / sizeof(actions[0]); i++)
		if (names_match(argv[1], actions[i].name))
			return actions[i].function(argc - 1, argv + 1);
	if (argc < 2)
		usage(stderr);
	else
		fprintf(stderr,
			"weft sched: there is no '%s'; there are list show check time\n",
			argv[1]);
	return EXIT_USAGE;
}
