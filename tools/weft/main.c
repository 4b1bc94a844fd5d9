/* weft - one command for everything around the library that is not a measurement. */
#include <stdio.h>
#include <string.h>

#include "common/output.h"
#include "weft/command.h"

static command_fn command_help;

static const struct {
	const char *name;
	command_fn *function;
	const char *summary;
} commands[] = {
	{"doctor", command_doctor,
		"what is wrong with a job, from its logs or on this host"},
	{"graph", command_graph,
		"what NCCL decides for machines: rings, trees, channels, choices"},
	{"info", command_info,
		"this machine: sockets, memory, cores, caches, vector unit"},
	{"k8s", command_k8s,
		"manifests of Kubernetes jobs: what is wrong, corrected, new ones"},
	{"log", command_log, "a log drawn: who talks to whom by which transport"},
	{"params", command_params,
		"environment variables: value, default, range, meaning"},
	{"plan", command_plan,
		"how long a training step takes, and which layout is best"},
	{"ps", command_ps,
		"communicators of running jobs: ranks, calls, who waits for whom"},
	{"run", command_run, "start the ranks of a job, here or on other hosts"},
	{"sched", command_sched, "the collective algorithms: list, show, check, time"},
	{"sim", command_sim,
		"how long collectives take on a cluster, and what bounds them"},
	{"topo", command_topo,
		"a machine: nvidia-smi's table, NCCL's paths and rules, a picture"},
	{"tune", command_tune,
		"which algorithm and protocol each size gets, and its time"},
	{"version", command_version,
		"versions: of weft, the NCCL it reports, those it models"},
	{"help", command_help, "this list; with a command, what its --help says"},
};

enum { COMMAND_COUNT = sizeof(commands) / sizeof(commands[0]) };

bool command_wants_help(int argc, char **argv)
{
	for (int i = 1; i < argc; i++)
		if (!strcmp(argv[i], "--help") || !strcmp(argv[i], "-h"))
			return true;
	return argc > 1 && !strcmp(argv[1], "help");
}

static void print_commands(FILE *file)
{
	fprintf(file, "usage: weft COMMAND [ARGUMENTS]\n\n");
	for (int i = 0; i < COMMAND_COUNT; i++)
		fprintf(file, "  %-8s  %s\n", commands[i].name, commands[i].summary);
	fprintf(file, "\nweft COMMAND --help says more, with an example.\n");
}

static int no_command(const char *name)
{
	fprintf(stderr, "weft: there is no command '%s'; there are", name);
	for (int i = 0; i < COMMAND_COUNT; i++)
		fprintf(stderr, " %s", commands[i].name);
	fprintf(stderr, "\n");
	return EXIT_USAGE;
}

/* weft help graph is weft graph --help. */
static int command_help(int argc, char **argv)
{
	char *asked[] = {argc > 1 ? argv[1] : NULL, (char[]){"--help"}, NULL};

	if (argc < 2 || asked[0][0] == '-' || !strcmp(asked[0], "help")) {
		print_commands(stdout);
		return EXIT_GOOD;
	}
	for (int i = 0; i < COMMAND_COUNT; i++)
		if (!strcasecmp(asked[0], commands[i].name))
			return commands[i].function(2, asked);
	return no_command(asked[0]);
}

static int run(int argc, char **argv)
{
	if (argc < 2) {
		print_commands(stderr);
		return EXIT_USAGE;
	}
	if (!strcmp(argv[1], "--help") || !strcmp(argv[1], "-h"))
		return command_help(1, argv);
	if (!strcmp(argv[1], "--version"))
		return command_version(1, argv);
	for (int i = 0; i < COMMAND_COUNT; i++)
		if (!strcasecmp(argv[1], commands[i].name))
			return commands[i].function(argc - 1, argv + 1);
	return no_command(argv[1]);
}

int main(int argc, char **argv)
{
	output_begin();
	return output_end("weft", run(argc, argv), EXIT_WRONG);
}
