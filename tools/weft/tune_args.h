/*
 * tune_args.h - what `weft tune` is asked: machines and a collective, or, without
 * machines, a number of ranks on this host, or on hosts like it.
 */
#ifndef TOOLS_WEFT_TUNE_ARGS_H
#define TOOLS_WEFT_TUNE_ARGS_H

#include "weft/machine_args.h"

enum { TUNE_RANKS_MAX = 1024 };

struct tune_args {
	struct machine_args machines;
	uint32_t ranks;		  /* of this host; 0: one per core */
	const char *hosts;	  /* borrowed: or on hosts of this shape; NULL none */
	const char *coll;	  /* borrowed; NULL all */
	int type, op;		  /* enum dtype, enum redop */
	bool is_typed;		  /* one of the two was given */
	const char *algo, *proto; /* borrowed lists as NCCL_ALGO and NCCL_PROTO */
	bool json, table;
};

/* argv[0] is skipped. False with a sentence on stderr. */
bool tune_args_parse(struct tune_args *args, int argc, char **argv);

/* Is `name` what was asked for? Case and underscores do not count: all_reduce is
 * AllReduce. */
bool tune_args_want(const struct tune_args *args, const char *name);

#endif
