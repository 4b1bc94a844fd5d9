/* weft log - a log drawn: ranks, rings, who talks to whom by which transport. */
#include <stdio.h>
#include <string.h>

#include "weft/command.h"
#include "weft/doctor/doctor_args.h"
#include "weft/doctor/harvest.h"
#include "weft/doctor/log_view.h"
#include "weft/doctor/report.h"
#include "weft/json_print.h"

static void usage(void)
{
	printf("usage: weft log LOG... [--json] [--svg FILE]\n\n"
	       "Draw what logs of NCCL (files, or - for standard input) say of a job: "
	       "which rank\n"
	       "sends to which by what: P is peer-to-peer, S shared memory, G the "
	       "network "
	       "with\n"
	       "GPUDirect, N the network through host memory. weft doctor says what is "
	       "wrong.\n\n"
	       "  --json      for programs\n"
	       "  --svg FILE  as a picture; - is standard output\n\n"
	       "example: weft log job.log --svg job.svg\n");
}

static json_t *rings_json(const struct log_facts *facts, const struct log_view *view)
{
	json_t *list = json_array();

	for (uint32_t i = 0; i < view->ring_count; i++) {
		const char *text = facts->rings[view->rings[i]];
		json_t *ranks = json_array();
		uint32_t rank;

		while (log_ring_next(&text, &rank))
			json_array_append_new(ranks, json_integer(rank));
		json_array_append_new(list, json_pack("{s:i, s:o}", "channel",
						    (int)view->rings[i], "ranks", ranks));
	}
	return list;
}

static json_t *view_json(const struct log_facts *facts, const struct log_view *view)
{
	json_t *object = report_facts_json(facts), *list = json_array();

	for (uint32_t row = 0; row < view->cells; row++)
		for (uint32_t column = 0; column < view->cells; column++)
			if (view->way[row][column])
				json_array_append_new(list,
					json_pack("{s:i, s:i, s:s, s:i}", "from",
						(int)(row * view->per_cell), "to",
						(int)(column * view->per_cell), "by",
						log_way_name((enum log_way)view
								     ->way[row][column]),
						"connections",
						(int)view->connections[row][column]));
	json_object_set_new(object, "ranksPerCell", json_integer(view->per_cell));
	json_object_set_new(object, "connections", list);
	json_object_set_new(object, "rings", rings_json(facts, view));
	return object;
}

static int write_svg(
	const struct log_facts *facts, const struct log_view *view, const char *path)
{
	FILE *file = strcmp(path, "-") ? fopen(path, "w") : stdout;

	if (!file) {
		fprintf(stderr, "weft log: cannot write %s: %m; choose another place\n",
			path);
		return EXIT_WRONG;
	}
	log_view_svg(file, facts, view);
	if (file != stdout && fclose(file)) {
		fprintf(stderr, "weft log: cannot write %s: %m; is the disk full?\n",
			path);
		return EXIT_WRONG;
	}
	return EXIT_GOOD;
}

static int draw(const struct log_facts *facts, const struct doctor_args *args)
{
	static struct log_view view;

	log_view_make(facts, &view);
	if (args->svg)
		return write_svg(facts, &view, args->svg);
	if (args->json)
		return json_print("log", view_json(facts, &view));
	report_facts(stdout, facts);
	log_view_print(stdout, facts, &view);
	return EXIT_GOOD;
}

/* Of several jobs the one with the most connections. */
static const struct log_facts *largest(const struct jobs *jobs)
{
	const struct log_facts *best = jobs->facts[0];

	for (uint32_t i = 1; i < jobs->count; i++)
		if (jobs->facts[i]->edge_count > best->edge_count)
			best = jobs->facts[i];
	return best;
}

int command_log(int argc, char **argv)
{
	struct doctor_args args;
	struct harvest harvest;
	int status = EXIT_WRONG, bad;

	if (command_wants_help(argc, argv)) {
		usage();
		return EXIT_GOOD;
	}
	if (!log_args_parse(&args, argc, argv))
		return EXIT_USAGE;
	if (harvest_init(&harvest)) {
		fprintf(stderr, "weft log: %s\n", err_last());
		return EXIT_WRONG;
	}
	if (harvest_logs(&harvest, "log", args.logs, args.log_count, &bad))
		status = draw(largest(&harvest.jobs), &args);
	harvest_fini(&harvest);
	return bad ? EXIT_WRONG : status;
}
