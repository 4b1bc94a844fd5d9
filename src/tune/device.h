/*
 * device.h - how a collective on device memory of one host is run.
 *
 * Directly, unless the user wants an algorithm or a protocol, or the GPUs cannot reach
 * each other's memory: then a schedule goes through slots, in one of NCCL's protocols.
 */
#ifndef TUNE_DEVICE_H
#define TUNE_DEVICE_H

#include "sched/catalog.h"
#include "tune/limits.h"

struct device_question {
	struct limits *limits; /* NULL: none */
	struct limits_call call;
	bool is_apart;	      /* memory is out of reach, and slots are in host memory */
	const char *schedule; /* the caller names one; NULL: none */
	unsigned protos;      /* .. and these protocols, a bit each; 0: any */
};

struct device_choice {
	const struct sched_kind *kind; /* NULL: directly */
	enum proto proto;	       /* of the slots */
};

/* ERR_USAGE when the limits leave no schedule. */
enum err device_choose(
	const struct device_question *question, struct device_choice *choice);

#endif
