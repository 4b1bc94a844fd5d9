/*
 * page.h - what the processes of a job share: who does what, and what came of it.
 */
#ifndef CAMPAIGN_PAGE_H
#define CAMPAIGN_PAGE_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "job.h"
#include "nccl.h"

enum { SENTENCE_BYTES = 512 }; /* as long as the library has them */

/* A rank's life, in order. */
enum step {
	STEP_START,
	STEP_ID,
	STEP_INIT,
	STEP_DIVIDE, /* the split or shrink that is the moment of the fault */
	STEP_CALL,   /* the last one made */
	STEP_REVOKE,
	STEP_RENEW,	 /* the split or shrink after the fault */
	STEP_CALL_AGAIN, /* the last one on what that gave */
	STEP_ABORT,
	STEP_DESTROY,
	STEP_RESUME, /* waits for the resumed rank */
	STEP_FINISHED,
	STEP_COUNT
};

struct outcome {
	_Atomic bool is_made; /* published last */
	ncclResult_t code;
	uint64_t began_us, ended_us;
	char sentence[SENTENCE_BYTES];
};

struct seat {
	_Atomic int step; /* what it is doing */
	_Atomic int call; /* how many have returned well */
	struct outcome outcomes[STEP_COUNT];
	char bad[SENTENCE_BYTES]; /* the first thing that must not be; "" none */
};

struct page {
	struct seat seats[JOB_RANKS];
	_Atomic int ready; /* ranks that have their buffers */
	ncclUniqueId id;
	_Atomic int id_state; /* 1 there, 2 will never be */
	_Atomic uint64_t
		armed_us; /* when the victim is to be stopped; 0: not yet known */
	_Atomic uint64_t struck_us; /* the fault happened */
	_Atomic int given_back;	    /* ranks that have their buffers to themselves */
	_Atomic int victims_done;
	_Atomic int victim_sends;	      /* messages of the victim when ranks met */
	char struck[64];		      /* the call that was made to fail */
	char left[JOB_RANKS][SENTENCE_BYTES]; /* by process: what was not given back */
};

extern const char *const step_names[STEP_COUNT];

/* The first thing that is wrong of this rank. */
void seat_bad(struct seat *seat, const char *format, ...)
	__attribute__((format(printf, 2, 3)));

/* Wait until *word is at least this, not longer than the limit. */
bool word_wait(_Atomic int *word, int least, uint64_t limit_us);

#endif
