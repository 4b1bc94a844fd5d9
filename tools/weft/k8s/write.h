/*
 * write.h - `weft k8s new`: a manifest with every right value, and a comment on each line
 * that people ask about.
 */
#ifndef TOOLS_WEFT_K8S_WRITE_H
#define TOOLS_WEFT_K8S_WRITE_H

#include <stdio.h>

#include "base/err.h"
#include "weft/k8s/work.h"

enum write_load { LOAD_NCCL_TEST, LOAD_TORCHRUN, LOAD_DEEPSPEED, LOAD_WEFT, LOAD_COUNT };

extern const char *const write_loads[LOAD_COUNT];

struct write_args {
	enum write_load load;
	enum work_kind kind; /* WORK_NONE: the one that suits the load */
	const char *machine; /* a name of weft topo --list */
	uint32_t nodes;
	uint32_t pods, gpus; /* pods of a machine and GPUs of each; 0: one with all */
	const char *image, *name; /* NULL: chosen */
	const char *zone;	  /* NULL: pods are kept together wherever they land */
	int trainer_version;
};

/* The kind by the name people type: mpijob, pytorchjob ..; WORK_NONE. */
enum work_kind write_kind(const char *name);

/* Write the manifest. ERR_USAGE with a sentence for what does not go together. */
enum err write_manifest(FILE *out, const struct write_args *args);

#endif
