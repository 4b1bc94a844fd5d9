/*
 * env_names.h - which variables NCCL, aws-ofi-nccl and libfabric's EFA provider read.
 */
#ifndef TOOLS_WEFT_K8S_ENV_NAMES_H
#define TOOLS_WEFT_K8S_ENV_NAMES_H

#include <stdbool.h>
#include <stddef.h>

/* NCCL_.., OFI_NCCL_.., FI_..: names that one of the three would have to read. */
bool env_names_is_ours(const char *name);

/* Is it read? True for names that are not ours at all. */
bool env_names_known(const char *name);

/* The name that was probably meant; false when none is near. */
bool env_names_near(const char *name, char *near, size_t bytes);

#endif
