/*
 * meet.h - where the workers of all processes meet: one shared page made before fork().
 *
 * A worker is a thread that drives ranks. Workers wait for each other here, put numbers
 * together, and learn that another one failed. Every wait ends when somebody fails.
 *
 * Processes that a launcher started share no page. Each has one of its own, and the last
 * of its workers to arrive meets the other processes on behalf of all (struct
 * meet_others).
 */
#ifndef TOOLS_PERF_MEET_H
#define TOOLS_PERF_MEET_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum combine { COMBINE_FIRST, COMBINE_AVERAGE, COMBINE_MIN, COMBINE_MAX, COMBINE_SUM };

/* How to reach the processes that do not share the page. Each function waits for all of
 * them and gives all the same; false, after a sentence, when one has gone. */
struct meet_others {
	uint32_t process, process_count;
	void *arg;
	/* Never COMBINE_AVERAGE. COMBINE_FIRST: process 0's. */
	bool (*combine)(void *arg, enum combine how, double *value);
	/* Process 0's bytes. */
	bool (*share)(void *arg, void *data, size_t bytes);
};

struct meet;

/* For so many workers on this page. NULL when there is no memory. Freed by the end of the
 * process. */
struct meet *meet_create(uint32_t worker_count);

/* There are other processes, with as many workers each; `failure` is the code when one of
 * them has gone. Before the first wait. */
void meet_join(struct meet *meet, const struct meet_others *others, int failure);

/* Wait for all workers. False when one failed: give up. */
bool meet_wait(struct meet *meet);

/* Every worker's value to one, the same for all. Workers count through all processes.
 * False when one failed. */
bool meet_combine(struct meet *meet, uint32_t worker, enum combine how, double *value);

/* Worker 0's bytes (at most 128) to everybody's `data`. False when one failed. */
bool meet_share(struct meet *meet, uint32_t worker, void *data, size_t bytes);

/* Worker `worker`'s process number, of those on this page, for the list of ranks. Set
 * before the first wait. */
void meet_set_pid(struct meet *meet, uint32_t worker, int pid);
int meet_pid(const struct meet *meet, uint32_t worker);

/* Tell everyone that the run is over. The first code is kept and returned. */
int meet_fail(struct meet *meet, int code);

/* 0 while all is well. */
int meet_failure(const struct meet *meet);

#endif
