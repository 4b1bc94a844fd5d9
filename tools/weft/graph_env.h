/*
 * graph_env.h - variables of NCCL that are set and change nothing here: said once, so
 * that nobody waits for an effect.
 */
#ifndef TOOLS_WEFT_GRAPH_ENV_H
#define TOOLS_WEFT_GRAPH_ENV_H

#include "weft/machine_args.h"

/* A sentence on stderr for each reason why, with all the variables it is of. Nothing is
 * written where every variable counts. */
void graph_env_tell(const struct machine_args *args);

/* The same of a command that is asked about machines by name, and where these count, too:
 * names after "NCCL_", with a space around each. */
void graph_env_tell_but(const char *command, const char *also);

/* Why a variable changes nothing; GRAPH_ENV_COUNTS where it does. */
enum graph_env_why {
	GRAPH_ENV_COUNTS,
	GRAPH_ENV_RUNNING, /* it is about a job that runs, not about what is decided */
	GRAPH_ENV_PLUGIN,  /* no plugin is loaded */
	GRAPH_ENV_MODEL,   /* it decides something, and we do not model it */
	GRAPH_ENV_COLLNET, /* --collnet says it here */
	GRAPH_ENV_MNNVL,   /* --mnnvl says it here */
	GRAPH_ENV_SEEN,	   /* it is about what is seen of the machine one runs on */
	GRAPH_ENV_GONE,	   /* NCCL has no such variable, or not any more */
	GRAPH_ENV_UNKNOWN,
	GRAPH_ENV_REASONS
};
enum graph_env_why graph_env_why(const char *name, bool is_this_machine);

#endif
