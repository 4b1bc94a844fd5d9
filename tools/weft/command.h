/*
 * command.h - the subcommands of `weft`: one function each, listed in main.c.
 *
 * A command gets its own name as argv[0]. It returns the exit status: 0, 1 when what it
 * looked at is not right, 2 for a usage error.
 */
#ifndef TOOLS_WEFT_COMMAND_H
#define TOOLS_WEFT_COMMAND_H

#include <stdbool.h>

enum { EXIT_GOOD = 0, EXIT_WRONG = 1, EXIT_USAGE = 2 };

typedef int command_fn(int argc, char **argv);

command_fn command_doctor, command_graph, command_info, command_k8s, command_log,
	command_params, command_plan, command_ps, command_run, command_sched, command_sim,
	command_topo, command_tune, command_version;

/* Was --help, -h or help asked for? */
bool command_wants_help(int argc, char **argv);

#endif
