/*
 * hosts_args.h - the option --hosts: on which hosts the ranks are.
 */
#ifndef TOOLS_WEFT_HOSTS_ARGS_H
#define TOOLS_WEFT_HOSTS_ARGS_H

#include "sched/hosts.h"

/* The value of --hosts, owned by the caller; false after a sentence. An earlier one is
 * let go. */
bool hosts_args_take(const char *command, struct sched_hosts **hosts);

/* Do -n (0: not given) and --hosts agree? Then that many ranks are in *rank_count. */
bool hosts_args_count(const char *command, const struct sched_hosts *hosts,
	int64_t *rank_count, int64_t fallback);

#endif
