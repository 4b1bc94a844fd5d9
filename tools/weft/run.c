/* weft run - start the ranks of a job, here or on other hosts. */
#include <stdio.h>
#include <string.h>

#include "weft/command.h"
#include "weft/run_args.h"
#include "weft/run_host.h"
#include "weft/run_job.h"

static void usage(void)
{
	printf("usage: weft run [-n RANKS] [--hosts A:4,B:4 | --hostfile FILE] [--agent "
	       "COMMAND]\n"
	       "                [--path FILE] [--env NAME[=VALUE]] [--no-prefix] PROGRAM "
	       "[ARGUMENTS]\n\n"
	       "Start RANKS processes of PROGRAM, on this host or on those named, each "
	       "knowing its\n"
	       "rank. What they print has the rank in front. When one fails the others "
	       "are "
	       "stopped,\n"
	       "and it is said which and why.\n\n"
	       "  -n, --ranks RANKS       how many; unless given, as many as the hosts "
	       "have room for\n"
	       "  --hosts A:4,B:4         hosts and how many ranks each takes, 1 unless "
	       "given\n"
	       "  --hostfile FILE         the same, a line per host: 'A', 'A:4' or 'A "
	       "slots=4'\n"
	       "  --agent COMMAND         what runs a command on a host, given as ssh's "
	       "arguments are;\n"
	       "                          'ssh -x -o ServerAliveInterval=10' unless "
	       "given\n"
	       "  --path FILE             this program on the other hosts; as here "
	       "unless "
	       "given\n"
	       "  -x, --env NAME[=VALUE]  a variable for all ranks, besides WEFT_ and "
	       "NCCL_ ones\n"
	       "  --no-prefix             leave what they print as it is\n\n"
	       "example: weft run -n 4 all_reduce_perf -b 8 -e 64M -f 2\n");
}

int command_run(int argc, char **argv)
{
	struct run_args args;
	int status;

	if (argc == 2 && !strcmp(argv[1], "--serve"))
		return run_host_serve();
	if (!run_args_parse(&args, argc, argv)) {
		run_args_fini(&args);
		return EXIT_USAGE;
	}
	if (args.wants_help) {
		usage();
		run_args_fini(&args);
		return EXIT_GOOD;
	}
	status = run_job_run(&args);
	run_args_fini(&args);
	return status;
}
