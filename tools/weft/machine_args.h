/*
 * machine_args.h - what every command that looks at whole jobs is asked: which machines,
 * how many, by whose rules. `weft graph` and `weft tune` add options of their own.
 */
#ifndef TOOLS_WEFT_MACHINE_ARGS_H
#define TOOLS_WEFT_MACHINE_ARGS_H

#include <stdio.h>

#include "weft/graph_job.h"
#include "weft/net_choice.h"
#include "weft/option.h"

enum { MACHINE_HOSTS_MAX = 65536, MACHINE_OPTIONS_MAX = 32 };

/* A command's own flags begin here. */
enum { MACHINE_FLAGS_END = OPTION_LONG + 16 };

struct machine_args {
	const char *command; /* "graph" */
	char **names;	     /* borrowed from argv */
	int name_count;
	uint32_t hosts;		     /* 0: one of each name */
	uint32_t mnnvl_hosts;	     /* per NVLink domain; 0 none */
	uint32_t min_ctas, max_ctas; /* 0: NCCL's own */
	bool collnet, no_nic_fusion, no_nvml_p2p;
	enum nccl_rules nccl;
	enum net_choice net;
	bool is_given; /* any of these options was */
};

void machine_args_init(struct machine_args *args, const char *command);

/* The options of machines, then `own`, for getopt; `all` has room for
 * MACHINE_OPTIONS_MAX. */
void machine_args_options(const struct option *own, struct option *all);

/* One flag that option_next() gave: false with a sentence on stderr. MACHINE_OTHER is for
 * the command. */
enum machine_took { MACHINE_OTHER, MACHINE_TOOK, MACHINE_REFUSED };
enum machine_took machine_args_take(struct machine_args *args, int flag);

/* Once all options are read: the words that are left are names. False with a sentence. */
bool machine_args_finish(struct machine_args *args, int argc, char **argv);

/* Into a job whose environment was read before: options go before variables. */
void machine_args_apply(const struct machine_args *args, struct graph_job *job);

/* The machines into a job, with the network that is assumed between them. */
enum err machine_args_load(
	const struct machine_args *args, struct net_assumed *net, struct graph_job *job);

/* The lines of --help that tell of these options. */
void machine_args_usage(FILE *file);

/* "weft graph: --rank 'x': give a rank"; always false. */
bool machine_args_refuse(
	const struct machine_args *args, const char *flag, const char *how);

#endif
