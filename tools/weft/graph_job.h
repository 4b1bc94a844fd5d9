/*
 * graph_job.h - one question to the decision maker: these machines, so many of them, with
 * these rules; and the answer.
 *
 * The command, the comparison with recorded decisions and the speed check all ask it this
 * way.
 */
#ifndef TOOLS_WEFT_GRAPH_JOB_H
#define TOOLS_WEFT_GRAPH_JOB_H

#include "graph/decide.h"
#include "tune/model.h"
#include "weft/machines.h"
#include "weft/net_choice.h"

struct graph_job {
	struct machines machines;  /* owned */
	char *xml;		   /* owned; the names as they were given, with commas */
	struct decide_args args;   /* machines are filled in by graph_job_run() */
	struct decision *decision; /* owned; NULL before graph_job_run() */
	struct model_rules rules;  /* for the model */
	struct model model;
	char net_text[NET_ASSUMED_TEXT]; /* what is assumed of the network; "": nothing */
};

/* One host, and the rules as if the environment were empty. */
void graph_job_init(struct graph_job *job);

/* The rules that the environment asks for instead, before options change them. ERR_USAGE
 * names the variable. */
enum err graph_job_environment(struct graph_job *job);

/* Read the machines. Multicast is assumed where one has an SM90 or newer GPU on an
 * NVSwitch, and the rules do not forbid NVLS. ERR_USAGE where one has no GPU, or no
 * NVSwitch and an NVLink domain of several machines is asked for. */
enum err graph_job_load(struct graph_job *job, int count, char **names);

/* Decide and model; again: anew. */
enum err graph_job_run(struct graph_job *job);

/* Write the graphs of rank 0's node to `path`; NULL: to where NCCL_GRAPH_DUMP_FILE says,
 * if it does. */
enum err graph_job_dump(const struct graph_job *job, const char *path);

void graph_job_fini(struct graph_job *job);

/* The domain and the cluster's node that rank 0 is in. */
const struct domain *graph_job_home(const struct graph_job *job);

#endif
