/*
 * expect.h - a log against what NCCL's rules give for a machine: ranks, channels,
 * GPUDirect, and the bandwidth that NCCL's own cost model expects of each size.
 */
#ifndef TOOLS_WEFT_DOCTOR_EXPECT_H
#define TOOLS_WEFT_DOCTOR_EXPECT_H

#include "base/err.h"
#include "weft/doctor/diagnose.h"

/* Add a finding when the log falls behind. `nodes` 0: as many as the log has. ERR_USAGE
 * for a machine that nobody knows. */
enum err expect_add(const struct log_facts *facts, const char *machine, uint32_t nodes,
	struct diagnosis *diagnosis);

#endif
