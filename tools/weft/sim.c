/* weft sim - what a cluster will do: time and bandwidth of collectives, before anyone
 * rents it. */
#include "weft/sim.h"

#include <stdio.h>
#include <string.h>

#include "weft/command.h"

int sim_failed(enum err e)
{
	fprintf(stderr, "weft sim: %s\n", err_last());
	return e == ERR_USAGE || e == ERR_ARGUMENT ? EXIT_USAGE : EXIT_WRONG;
}

int command_sim(int argc, char **argv)
{
	if (argc == 3 && !strcmp(argv[1], "--cases"))
		return sim_cases_print(argv[2]);
	if (argc > 2 && !strcmp(argv[1], "--accuracy"))
		return sim_accuracy(argc - 2, argv + 2);
	if (argc > 2 && !strcmp(argv[1], "--fitted"))
		return sim_fitted(argc - 2, argv + 2);
	if (argc > 2 && !strcmp(argv[1], "--calibrate"))
		return sim_calibrate(argc - 2, argv + 2);
	return EXIT_USAGE;
}
