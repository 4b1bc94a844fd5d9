/*
 * run_env.h - the environment of the ranks: what `weft run` passes on from its own, and
 * what it says of each rank.
 */
#ifndef TOOLS_WEFT_RUN_ENV_H
#define TOOLS_WEFT_RUN_ENV_H

#include "weft/run_args.h"
#include "weft/run_wire.h"

/* NAME=VALUE of all that goes to every host, NULL at the end: WEFT_ and NCCL_ variables,
 * those of --env, and where torch's ranks meet; for run_env_forget(). */
char **run_env_settings(const struct run_args *args);
void run_env_forget(char **settings);

/* In a process that is about to become a rank: set its variables, and take out those by
 * which another launcher would say that it is another rank. */
void run_env_enter(const struct run_job *job, uint32_t local_rank, int pmi_fd);

#endif
