/*
 * options.h - the command line of the *_perf programs: nccl-tests' flags and a few ours.
 */
#ifndef TOOLS_PERF_OPTIONS_H
#define TOOLS_PERF_OPTIONS_H

#include <stdbool.h>
#include <stdint.h>

/* -1 as type, operator or root means "all of them". */
enum { OPTION_ALL = -1 };

/* The last one is the GPU's; the first is ncclMemAlloc()'s on the host. */
enum memory_kind { MEMORY_NCCL, MEMORY_MALLOC, MEMORY_REGISTER, MEMORY_DEVICE };

struct options {
	int procs, threads, gpus; /* ranks = procs * threads * gpus */
	uint64_t min_bytes, max_bytes, step_bytes;
	int step_factor; /* > 1 beats step_bytes */
	int iters, agg_iters, warmup_iters;
	int cycles;	  /* of the whole sweep; 0 for ever */
	int check_rounds; /* 0: no check */
	int op, type;	  /* enum data_op, enum element; or OPTION_ALL */
	int root;
	int blocking; /* -z: 0..3 */
	int average;  /* -a: 0 rank 0, 1 average, 2 lowest, 3 highest */
	int local_register;
	int unalign; /* elements */
	int timeout_s;
	bool report_cpu_time, report_timestamps, report_memory;
	bool parallel_init;
	bool plain; /* nccl-tests' layout and nothing else */
	enum memory_kind memory;
	bool is_memory_given; /* else it is the GPU's where there is one */
	int graph_launches;   /* -G; 0: no graphs */
	bool stream_null;
	const char *json_path; /* borrowed from argv; NULL for none */
	bool help;
};

/* Read the command line. False with a sentence on stderr for a value that makes no sense
 * (the program then exits with 255); an unknown flag sets `help`, as in nccl-tests. */
bool options_parse(struct options *options, int argc, char **argv);

/* The usage text on stdout. */
void options_usage(const char *program);

/* "nccl", "malloc", "register", "device" */
const char *memory_kind_name(enum memory_kind kind);

#endif
