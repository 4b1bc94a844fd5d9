/*
 * machine.h - the few facts about this machine that a report's first lines name.
 *
 * Read from /proc and the scheduler, so that it needs no library. `weft info` shows the
 * machine in full.
 */
#ifndef TOOLS_COMMON_MACHINE_H
#define TOOLS_COMMON_MACHINE_H

#include <stdint.h>

struct machine {
	char host[64];		 /* up to the first dot */
	char cpu[96];		 /* "AMD EPYC", "unknown CPU" */
	const char *vector_unit; /* "avx512", "avx2", "sse2", "neon", "scalar" */
	int cores;		 /* this process may run on, by affinity */
	double quota;		 /* cores the cgroup grants, 0 when it sets no limit */
	uint64_t memory_bytes;
	uint64_t
		memory_available_bytes; /* MemAvailable, or the cgroup's limit if lower */
};

/* Never fails: what cannot be read stays "unknown" or 0 (cores: 1). */
void machine_read(struct machine *machine);

/* Memory of this process that is in RAM now, shared pages included. */
uint64_t machine_resident_bytes(void);

#endif
