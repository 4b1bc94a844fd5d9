/*
 * sim.h - the parts of `weft sim`: what it is asked, what comes out, and one function for
 * each way to show it. Those that return int return an exit status, after a sentence on
 * standard error when it is not 0.
 */
#ifndef TOOLS_WEFT_SIM_H
#define TOOLS_WEFT_SIM_H

#include <stdio.h>

#include "sim/cases.h"
#include "sim/traffic.h"

enum { SIM_ROWS_MAX = 256 };

/* What is between NCCL and the network: as the machine's name says, AWS's libfabric
 * plugin, nothing (NCCL's own choices), or sockets. */
enum sim_net { SIM_NET_MACHINE, SIM_NET_OFI, SIM_NET_PLAIN, SIM_NET_SOCKET };

struct sim_args {
	struct sim_site site;
	struct fabric_plan plan;
	int coll;
	uint64_t first, last;
	double factor;
	uint32_t pods, pod_gpus, pod_nics; /* 0: not cut into pods */
	uint32_t nics;			   /* 0: the machine's */
	const char *nccl;		   /* its version; "": not said */
	enum sim_net net;
	bool json, has_explain;
	bool own_choice; /* as if the environment said nothing */
	uint64_t explain;
	const char *svg, *timeline, *measured, *points, *vs;
	const char *cases, *accuracy, *calibrate;
	int status;   /* to exit with, once something was wrong */
	char **files; /* borrowed: what is left of the words */
	int file_count;
};

/* False with a sentence on standard error. */
bool sim_args_parse(struct sim_args *args, int argc, char **argv);
void sim_args_usage(FILE *file);

/* A configuration with everything that does not depend on the size. */
struct sim_run {
	const struct sim_args *args;
	struct sim_scene scene;
	struct fabric fabric;
	struct sim_strain strain;
	struct sim_calib calib;
	struct sim_answer rows[SIM_ROWS_MAX];
	uint64_t sizes[SIM_ROWS_MAX];
	uint32_t count;
};

enum err sim_run_make(const struct sim_args *args, struct sim_run *run);
void sim_run_free(struct sim_run *run);
enum err sim_run_ask(const struct sim_run *run, uint64_t bytes, struct sim_answer *out);

/* "p5.48xlarge x2, 8 GPUs each, efa 8x50 GB/s" */
void sim_run_title(const struct sim_run *run, char text[200]);

/* Print "weft sim: .." with the library's sentence; the exit status that fits. */
int sim_failed(enum err e);

/* sim_env.c: variables of NCCL that are set and do not count, on standard error */
void sim_env_tell(const struct sim_site *site);

/* sim_text.c */
void sim_table_print(const struct sim_run *run);
void sim_versus_print(const struct sim_run *run, const struct sim_run *other);

/* sim_explain.c */
int sim_explain(const struct sim_run *run, uint64_t bytes);

/* sim_json.c, sim_svg.c, sim_timeline.c: `path` may be "-" */
int sim_json(const struct sim_run *run);
int sim_versus_json(const struct sim_run *run, const struct sim_run *other);
int sim_svg(const struct sim_run *run, const char *path);
int sim_timeline(struct sim_run *run, const char *path);

/* sim_measured.c: --measured FILE */
int sim_measured(const struct sim_run *run, const char *path);

/* sim_cases.c: --cases FILE */
int sim_cases_print(const char *path);

/* sim_accuracy.c: --accuracy FILE.., --calibrate FILE.. */
int sim_accuracy(int count, char **paths);
int sim_calibrate(int count, char **paths);

#endif
