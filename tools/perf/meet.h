/*
 * meet.h - where the workers of all processes meet: one shared page made before fork().
 *
 * A worker is a thread that drives ranks. Workers wait for each other here, put numbers
 * together, and learn that another one failed; none of it goes through the library under
 * test. Every wait ends when somebody fails.
 */
#ifndef TOOLS_PERF_MEET_H
#define TOOLS_PERF_MEET_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct meet;

/* NULL when there is no memory. Freed by the end of the process. */
struct meet *meet_create(uint32_t worker_count);

/* Wait for all workers. False when one failed: give up. */
bool meet_wait(struct meet *meet);

enum combine { COMBINE_FIRST, COMBINE_AVERAGE, COMBINE_MIN, COMBINE_MAX, COMBINE_SUM };

/* Every worker's value to one, the same for all. False when one failed. */
bool meet_combine(struct meet *meet, uint32_t worker, enum combine how, double *value);

/* Worker 0's bytes (at most 128) to everybody's `data`. False when one failed. */
bool meet_share(struct meet *meet, uint32_t worker, void *data, size_t bytes);

/* Worker `worker`'s process number, for the list of ranks. Set before the first wait. */
void meet_set_pid(struct meet *meet, uint32_t worker, int pid);
int meet_pid(const struct meet *meet, uint32_t worker);

/* Tell everyone that the run is over. The first code is kept and returned. */
int meet_fail(struct meet *meet, int code);

/* 0 while all is well. */
int meet_failure(const struct meet *meet);

#endif
