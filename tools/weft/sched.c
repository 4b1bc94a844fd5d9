/* weft sched - list, show, check and time the schedules of the catalog. */
#include "weft/sched.h"

#include <stdio.h>
#include <string.h>

#include "weft/command.h"

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
		"usage: weft sched list [COLLECTIVE]\n"
		"       weft sched show COLLECTIVE SCHEDULE [-n N] [--rank R] [--root "
		"R]\n"
		"                       [--lowered direct|staged]\n"
		"       weft sched check [COLLECTIVE [SCHEDULE]] [-n N]\n"
		"       weft sched time COLLECTIVE SCHEDULE [-n N] [--root R] [--size "
		"BYTES]\n"
		"                       [--latency TIME] [--bandwidth RATE]\n\n"
		"list   the schedules: what the library can choose from\n"
		"show   what each rank (or one) does, as instructions; lowered: as the "
		"moves\n"
		"       the engines run, reading peers' buffers in place or through "
		"slots\n"
		"check  prove: every result right, no deadlock, no race, for that many "
		"ranks\n"
		"       or for 1 to 16\n"
		"time   simulate on a network where all ranks are equally far apart\n\n"
		"example: weft sched show all_reduce ring -n 8 --rank 3\n"
		"example: weft sched time all_reduce ring -n 64 --latency 1us "
		"--bandwidth "
		"10GB/s --size 1M\n");
}

const struct sched_kind *sched_find(const char *coll_text, const char *name)
{
	enum coll coll = coll_find(coll_text);
	const struct sched_kind *kind;

	if (coll == COLL_COUNT) {
		fprintf(stderr, "weft sched: no collective '%s'; there are", coll_text);
		for (int i = 0; i < COLL_COUNT; i++)
			fprintf(stderr, " %s", coll_name((enum coll)i));
		fprintf(stderr, "\n");
		return NULL;
	}
	kind = catalog_find(coll, name);
	if (kind)
		return kind;
	fprintf(stderr, "weft sched: no schedule '%s' for %s; there are", name,
		coll_text);
	for (uint32_t i = 0; (kind = catalog_at(i)); i++)
		if (kind->coll == coll)
			fprintf(stderr, " %s", kind->name);
	fprintf(stderr, "\n");
	return NULL;
}

int sched_list(int argc, char **argv)
{
	const struct sched_kind *kind;
	int shown = 0;

	for (uint32_t i = 0; (kind = catalog_at(i)); i++) {
		if (argc > 1 && strcmp(argv[1], coll_name(kind->coll)))
			continue;
		if (!shown++)
			printf("%-15s %-15s %6s  %s\n", "collective", "schedule", "ranks",
				"how it goes");
		printf("%-15s %-15s %6u  %s\n", coll_name(kind->coll), kind->name,
			kind->rank_max, kind->summary);
	}
	if (shown)
		return EXIT_GOOD;
	fprintf(stderr, "weft sched list: no schedule for '%s'\n", argv[1]);
	return EXIT_WRONG;
}

int command_sched(int argc, char **argv)
{
	if (command_wants_help(argc, argv)) {
		usage(stdout);
		return EXIT_GOOD;
	}
	for (size_t i = 0; argc > 1 && i < sizeof(actions) / sizeof(actions[0]); i++)
		if (!strcmp(argv[1], actions[i].name))
			return actions[i].function(argc - 1, argv + 1);
	if (argc < 2)
		usage(stderr);
	else
		fprintf(stderr,
			"weft sched: there is no '%s'; there are list show check time\n",
			argv[1]);
	return EXIT_USAGE;
}
