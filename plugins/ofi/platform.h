/*
 * platform.h - what is known of AWS's instances by their type.
 *
 * The type is the machine's product name, or OFI_NCCL_FORCE_PRODUCT_NAME. Where it is
 * known, NCCL is told a latency, and variables are set that suit it unless the user has
 * set them.
 */
#ifndef PLUGINS_OFI_PLATFORM_H
#define PLUGINS_OFI_PLATFORM_H

#include <stdbool.h>
#include <stddef.h>

enum { PLATFORM_TYPE_BYTES = 64, PLATFORM_VARIABLES_MAX = 6 };

struct platform {
	const char *name;
	/* type is equal to it, or begins with one of these (NULL ends the list) */
	const char *exact;
	const char *begins[3];
	const char *topology; /* the file that aws-ofi-nccl has for it; NULL: none */
	float latency_us;
	bool wants_rdma;  /* what aws-ofi-nccl uses there */
	bool wants_gpu;	  /* its network takes memory of GPUs, or something is wrong */
	bool keeps_lines; /* RDMA there brings 128 bytes whole, though it does not say so
			   */
	bool skips_lone;  /* interfaces without a GPU beside them are for other things */
	int nic_mbps; /* what an interface does, where it is told wrong; 0: it is not */
	int connections; /* that an interface needs to be full; 0: one */
	/* "NAME=VALUE" */
	const char *variables[PLATFORM_VARIABLES_MAX];
};

/* NULL: not in the table. */
const struct platform *platform_of(const char *type);

/* One after the other; NULL: there are no more. */
const struct platform *platform_at(int index);

/* This machine's type; "" where it is none of Amazon's, or OFI_NCCL_PLATFORM=Default. */
void platform_type(char type[PLATFORM_TYPE_BYTES]);

/* Say what this machine is, and set the variables; `simple_why` says why LL and LL128
 * cannot be used, NULL when they can. Once in a process. */
void platform_apply(const char *simple_why);

/* "NAME=VALUE" into the environment, unless the user has set it; the log says which.
 * Is it so now? */
bool platform_variable_set(const char *entry);

/* What is known of this machine; where nothing is, what NCCL's plugin says then. */
const struct platform *platform_here(void);

/* What NCCL is told: as the user or the machine says. */
float platform_latency(void);

#endif
