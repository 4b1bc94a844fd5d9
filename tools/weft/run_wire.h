/*
 * run_wire.h - what `weft run` and its helper on each host say to each other, over the
 * helper's standard input and output.
 *
 *      weft run                                       weft run --serve, one per host
 *        | <------- "WEFTRUN1\n"                        |  what comes before is the
 * login's | job      program, ranks, environment ------> | | <------- output, errors,
 * exit of a rank      | | input of rank 0, signals ------------------> | | <------- fence
 * what ranks put             |  all ranks here are in a fence | fence    what all ranks
 * put ---------------> |  and so are all others
 *
 * A frame is its kind, a rank and a length, then that many bytes. When either side's end
 * of it closes, the other side ends: so nothing is left running when `weft run` is
 * killed.
 */
#ifndef TOOLS_WEFT_RUN_WIRE_H
#define TOOLS_WEFT_RUN_WIRE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "weft/run_bytes.h"

enum run_kind {
	RUN_JOB = 1, /* down: struct run_job, packed */
	RUN_INPUT, /* down: for rank 0; no bytes: that was all. Up: it was taken, go on */
	RUN_SIGNAL, /* down: a number, for every rank that runs */
	RUN_OUTPUT, /* up: of a rank's standard output */
	RUN_ERRORS, /* up: of a rank's standard error */
	RUN_EXIT,   /* up: a rank's wait status */
	RUN_FAILED, /* up: a sentence; a rank could not be started */
	RUN_FENCE,  /* both ways: keys and values */
	RUN_KIND_END
};

#define RUN_MAGIC "WEFTRUN1\n"

enum { RUN_FRAME_MAX = 64 << 20, RUN_INPUT_MAX = 32 << 10 };

struct run_frame {
	uint32_t kind, rank, bytes;
};

/* Write all of it, however long that takes; false when nobody reads any more. */
bool run_frame_send(
	int fd, enum run_kind kind, uint32_t rank, const void *data, size_t bytes);

/* Read what there is, behind what is in `in`. 1: something, 0: nothing now, -1: the end.
 */
int run_some_read(int fd, struct run_bytes *in);

/* Is a whole frame at the front? Its bytes follow it. `is_bad`: these bytes are no frame.
 */
bool run_frame_first(const struct run_bytes *in, struct run_frame *frame, bool *is_bad);

/* What a host's helper has to know. All texts are borrowed from who made it or from the
 * bytes that it was read from. */
struct run_job {
	uint32_t rank_count;		 /* of the job */
	uint32_t first_rank, host_ranks; /* of this host: ranks in a row */
	uint32_t host, host_count;
	bool is_even; /* every host has as many ranks, but perhaps the last */
	const char *folder;
	char **settings; /* NAME=VALUE, NULL at the end */
	char **argv;	 /* of the program, NULL at the end */
};

void run_job_pack(const struct run_job *job, struct run_bytes *bytes);

/* False when the bytes are none. The lists are owned, the texts are in `bytes`. */
bool run_job_unpack(struct run_bytes *bytes, struct run_job *job);

#endif
