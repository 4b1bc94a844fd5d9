/*
 * launch.h - what the launcher of this process says: which rank of how many it is, and
 * how rank 0 can tell the others something before they can talk.
 *
 * Every launcher leaves variables behind. launch_read() looks for those of all launchers
 * that it knows, takes the innermost, and gives one sentence when they do not fit
 * together. share.h carries bytes from rank 0 to the others by the way found here.
 *
 * Innermost first: torchrun, Open MPI, PMI (MPICH, Intel MPI, srun --mpi=pmi2), PMIx
 * (srun --mpi=pmix), Slurm, weft run, the PET_ variables that Kubeflow sets for torchrun,
 * RANK and WORLD_SIZE alone, Kubernetes indexed jobs. weft run takes the rank variables
 * of those before it out of what it starts, so what is there was set inside.
 * WEFT_LAUNCHER names one instead.
 */
#ifndef LAUNCH_LAUNCH_H
#define LAUNCH_LAUNCH_H

#include <stdbool.h>
#include <stdint.h>

#include "base/err.h"

enum launch_kind {
	LAUNCH_ALONE,
	LAUNCH_TORCHRUN,
	LAUNCH_OPENMPI,
	LAUNCH_PMI,
	LAUNCH_PMIX,
	LAUNCH_SLURM,
	LAUNCH_WEFT,
	LAUNCH_PET,
	LAUNCH_ENV,
	LAUNCH_KUBERNETES,
	LAUNCH_KIND_COUNT
};

/* How bytes get from rank 0 to the others. */
enum launch_travel {
	TRAVEL_NONE,	/* there is only one rank */
	TRAVEL_COMM_ID, /* NCCL_COMM_ID: every rank makes the same id by itself */
	TRAVEL_FILE,	/* a file that all of them see */
	TRAVEL_PMI,	/* the wire protocol PMI-1 or PMI-2 on PMI_FD, or at PMI_PORT */
	TRAVEL_PMIX,	/* the library libpmix.so.2 */
	TRAVEL_TCP	/* rank 0 listens at an address that all know */
};

enum {
	LAUNCH_RANKS_MAX = 1 << 16,
	LAUNCH_TEXT_BYTES = 256,
	LAUNCH_PATH_BYTES = 1024,
	LAUNCH_PORT_FIRST = 20000, /* ports made from the job's name begin here .. */
	LAUNCH_PORT_SPAN = 9000	   /* .. and are below 29000, so never torch's 29500 */
};

struct launch {
	enum launch_kind kind;
	enum launch_travel travel;
	int rank;
	int rank_count; /* 0: only PMIx knows, or who listens at PMI_PORT, and then not
			   even `rank` is sure; launch_complete() asks */
	int local_rank, local_count;	  /* among those of this host; -1: nobody says */
	int pmi_fd;			  /* -1: none */
	char pmi_port[LAUNCH_TEXT_BYTES]; /* else the launcher's host:port; "": none */
	bool is_pmi2_first;
	char pmi_job[LAUNCH_TEXT_BYTES]; /* what PMI-2 wants to be told again */
	bool is_host_file; /* the file is one that we name, and all ranks are on this host
			    */
	bool is_port_given; /* else `port` is the first of several to try */
	int port;
	char path[LAUNCH_PATH_BYTES];
	char master[LAUNCH_TEXT_BYTES];	 /* host name or address of rank 0 */
	char job[2 * LAUNCH_TEXT_BYTES]; /* a text that tells this job from others */
};

/* Where variables come from; a test brings its own. NULL, and empty: not set. */
struct launch_env {
	const char *(*get)(const void *arg, const char *name);
	const void *arg;
};

/* The environment of this process, and the parameters of base/param.h. */
extern const struct launch_env launch_env_process;

/* Without any launcher, rank 0 of 1. ERR_USAGE, with a sentence that says what was looked
 * for and what is missing, when variables of the innermost launcher do not fit. */
enum err launch_read(const struct launch_env *env, struct launch *launch);

/* All ranks are on this host: let a file there carry what is to be carried, which only
 * this user can make, named by the job. */
void launch_use_host_file(struct launch *launch);

/* As people call it: "Open MPI", "Slurm". */
const char *launch_name(enum launch_kind kind);

/* As WEFT_LAUNCHER has it: "openmpi", "slurm"; NULL beyond the last. */
const char *launch_word(enum launch_kind kind);

#endif
