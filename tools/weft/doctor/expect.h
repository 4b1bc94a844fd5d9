/*
 * expect.h - a log against what a machine should do: ranks, channels, the network with
 * GPUDirect, and the bandwidth by size that weft sim expects (NCCL's own cost model where
 * the machine is a file).
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
