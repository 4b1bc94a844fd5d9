/*
 * run_link.h - one host of a job, as `weft run` sees it: an agent (ssh, or a process
 * here) at whose other end a helper (run_host.h) starts the ranks.
 */
#ifndef TOOLS_WEFT_RUN_LINK_H
#define TOOLS_WEFT_RUN_LINK_H

#include <sys/types.h>

#include "weft/run_args.h"
#include "weft/run_bytes.h"

/* How the agent's process ends when there is no such program. */
enum { RUN_LINK_NO_AGENT = 125 };

struct run_link {
	const struct run_host *host; /* borrowed */
	pid_t pid;		     /* of the agent */
	int to, from;		     /* owned; -1: closed */
	struct run_bytes in;
	bool is_greeted; /* the helper runs */
	bool is_in_fence;
};

/* Start the agent. False after a sentence on standard error. */
bool run_link_open(
	struct run_link *link, const struct run_host *host, const struct run_args *args);

/* The helper's first words are there, and taken away with what came before them. */
bool run_link_is_greeted(struct run_link *link);

/* No more words, either way. */
void run_link_close(struct run_link *link);

#endif
