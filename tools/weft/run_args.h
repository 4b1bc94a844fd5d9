/*
 * run_args.h - the command line of `weft run`: how many ranks, on which hosts, of what.
 */
#ifndef TOOLS_WEFT_RUN_ARGS_H
#define TOOLS_WEFT_RUN_ARGS_H

#include <stdbool.h>
#include <stdint.h>

enum { RUN_RANKS_MAX = 1 << 16, RUN_HOSTS_MAX = 4096, RUN_NAME_BYTES = 256 };

struct run_host {
	char name[RUN_NAME_BYTES];
	uint32_t slots;
	uint32_t first_rank, rank_count; /* ranks in a row */
	bool is_here;			 /* needs no agent */
};

struct run_args {
	uint32_t rank_count;
	struct run_host *hosts; /* owned; only those that have ranks */
	uint32_t host_count;
	const char *agent; /* words before the host's name */
	const char *path;  /* of weft on other hosts; NULL: as here */
	bool is_plain;	   /* output without the rank in front */
	char **exports;	   /* owned: NAME or NAME=VALUE of --env, NULL at the end */
	char **argv;	   /* the program and its arguments, NULL at the end */
	bool wants_help;
};

/* False after a sentence on standard error. */
bool run_args_parse(struct run_args *args, int argc, char **argv);
void run_args_fini(struct run_args *args);

#endif
