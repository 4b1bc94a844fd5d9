/*
 * table.h - where rank threads of one process lay down a call, and one does it for all.
 *
 * Between processes a stream may wait for a word in memory; between streams of one
 * process it may not, because streams share the GPU's channels and one that waits can
 * hold back the one it waits for. So threads meet here, on the host, for as long as it
 * takes all of them to make the call; events order their streams around one launch.
 *
 * The thread that lays down rank 0's call makes all the driver's calls, for every stream,
 * and always the same one does: what the driver knows of a stream stays in one core's
 * cache, and no two threads want its locks. Only when it does not come, because it waits
 * elsewhere for one that waits here, another one does it.
 */
#ifndef EXEC_CUDA_MEET_TABLE_H
#define EXEC_CUDA_MEET_TABLE_H

#include <stdatomic.h>
#include <stdbool.h>

#include "exec/cuda/driver/driver.h"
#include "exec/cuda/lists/moves_abi.h"

struct table;

struct table_entry {
	struct dev_post post;
	bool is_scalar_at; /* the post's scalar is where it will be */
	bool is_own;	   /* the stream is one only its thread can name: it has recorded
			    * `ready` itself, and waits for it afterwards */
	uint64_t sign;
	cu_stream stream;
	cu_event ready; /* for what is before the call on that stream; and, of one's own
			 * stream, recorded again after the launch */
};

enum err table_create(uint32_t rank_count, struct table **table);
/* One more, one fewer user; the last one frees it. */
void table_hold(struct table *table);
void table_release(struct table *table);

void table_put(struct table *table, uint32_t rank, const struct table_entry *entry);
const struct table_entry *table_entry(const struct table *table, uint32_t rank);

/* What came of it. */
struct table_answer {
	enum err error;
	uint32_t culprit; /* of an error: the rank whose call differs, or UINT32_MAX */
	cu_stream stream; /* where it was launched */
	cu_event done;	  /* recorded after the launch; NULL: there was none */
};

/* After table_put(): wait until this rank's round is served, or, *is_ours, until all have
 * laid down and it is for this thread to look at the entries, launch, and say
 * table_served(). ERR_REMOTE when `abort` is set meanwhile. */
enum err table_wait(
	struct table *table, uint32_t rank, const uint32_t *abort, bool *is_ours);
void table_served(struct table *table, const struct table_answer *answer);
/* The newest one. */
struct table_answer table_answer(const struct table *table);
/* Why it was not done: the sentence of the one who should have. */
const char *table_reason(const struct table *table);

/*
 * A send of one thread to another: the sender lays it down and waits, the receiver takes
 * it, enqueues everything on both streams and says so. What must come after it on a
 * stream that only its thread can name is the sender's to enqueue.
 */
struct table_letter {
	struct table_letter *next;
	uint64_t from, bytes;
	cu_stream stream;	/* the sender's */
	bool is_own;		/* .. which only its thread can name */
	cu_event ready;		/* recorded: what is before the send */
	cu_event copied;	/* of one's own stream: for the receiver to record */
	_Atomic uint32_t state; /* not 0: done, or failed (enum err + 1) */
};

void letter_put(
	struct table *table, uint32_t from, uint32_t to, struct table_letter *letter);
/* The oldest one; NULL: there is none. */
struct table_letter *letter_take(struct table *table, uint32_t from, uint32_t to);
/* How many were ever put by anybody; and until it is more than what was `seen`: ERR_AGAIN
 * after `limit_us` (0: never), ERR_REMOTE when `abort` is set meanwhile. */
uint32_t letters_seen(struct table *table);
enum err letters_await(
	struct table *table, uint32_t seen, const uint32_t *abort, uint32_t limit_us);
void letter_done(struct table_letter *letter, enum err error);
/* Wait until it is; whatever comes of it, nobody has the letter any more. */
enum err letter_wait(
	struct table *table, struct table_letter *letter, const uint32_t *abort);

#endif
