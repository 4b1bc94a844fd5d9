/*
 * parts.h - a test on a GPU as a table of parts, each run in several ways.
 *
 * A way is "PxT", P processes of T threads each, or "gN": one thread that drives N ranks
 * by group calls. A part is a job of its own with its own time limit (multi/ranks.h), and
 * one that fails does not keep the next from running. A rank works through its crew: the
 * seats that this thread drives, which is one but for "gN".
 */
#ifndef CUDA_PARTS_H
#define CUDA_PARTS_H

#include "../multi/ranks.h"
#include "gpu.h"

struct part {
	const char *name;
	const char *ways; /* with a space between them */
	rank_function *function;
	int value;	  /* the function's: part_value() */
	int limit_s;	  /* 0: 30 */
	const char *unit; /* of what a rank leaves in the page's result, if it is shown */
	unsigned killed;  /* as for ranks_wait() */
};

/* Arguments: NAME and its way ("ring 2x1") or NAME alone, else all; `--list` names them;
 * `--processes` leaves out what runs in one process. One line each. */
int parts_main(int argc, char **argv, const struct part *parts, size_t count);

/* ---- for ranks ---- */

int part_value(const struct rank *rank);

enum { CREW_MAX = 16 };

struct seat {
	int rank, rank_count;
	ncclComm_t comm;
	cu_stream stream;
	void *own; /* the test's */
};

struct crew {
	struct rank *rank;
	int rank_count; /* of the communicator */
	int count;	/* seats of this thread */
	struct seat seats[CREW_MAX];
};

/* A context, a stream and a communicator for each seat. The second: another communicator
 * of the same ranks, id `index`, on streams of its own. The third is for programs without
 * parts: `driven` ranks by one thread, or 0. */
void crew_open(struct crew *crew, struct rank *rank);
void crew_open_more(struct crew *crew, struct rank *rank, int index);
void crew_open_as(struct crew *crew, struct rank *rank, int index, int driven);

/* All ranks are here; then the streams are waited for, and all of it ends. */
void crew_close(struct crew *crew);
void crew_wait(const struct crew *crew);

/* The same when something has failed. */
void crew_abort(struct crew *crew);

/* ---- data ---- */

/* Word i of what `rank` gives in turn `turn`; sums are exact, modulo 2^32. */
uint32_t word_of(int rank, int turn, size_t i);
uint32_t word_sum(int rank_count, int turn, size_t i);

/* Fills `count` words of the device (or any memory) with word_of(). */
void words_give(const struct seat *seat, void *to, size_t count, int turn);

/* After the stream: `count` words are word_of(`rank`), or with -1 the sum of all. */
void words_check(
	const struct seat *seat, const void *from, size_t count, int rank, int turn);

/* The communicator works: an all_reduce of device memory gives the sum. */
void comm_check(ncclComm_t comm, cu_stream stream);

#endif
