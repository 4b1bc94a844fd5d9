/*
 * table.h - where rank threads of one process lay down a call, and the last one does it.
 *
 * Between processes a stream may wait for a word in memory; between streams of one
 * process it may not, because streams share the GPU's channels and one that waits can
 * hold back the one it waits for. So threads meet here, on the host, for as long as it
 * takes all of them to make the call; events order their streams around one launch.
 */
#ifndef EXEC_CUDA_TABLE_H
#define EXEC_CUDA_TABLE_H

#include <stdatomic.h>
#include <stdbool.h>

#include "exec/cuda/driver.h"
#include "exec/cuda/moves_abi.h"

struct table;

struct table_entry {
	struct dev_post post;
	bool is_scalar_at; /* the post's scalar is where it will be */
	uint64_t sign;
	cu_stream stream;
	cu_event ready; /* recorded: what is before the call on that stream */
};

enum err table_create(uint32_t rank_count, struct table **table);
/* One more, one fewer user; the last one frees it. */
void table_hold(struct table *table);
void table_release(struct table *table);

/* Lay down. True for the last of a round: it looks at the entries, launches, and says
 * table_served(). The others go on to table_wait(). */
bool table_put(struct table *table, uint32_t rank, const struct table_entry *entry);
const struct table_entry *table_entries(const struct table *table);

/* What came of it; `done` is recorded after the launch. */
struct table_answer {
	enum err error;
	uint32_t culprit; /* of ERR_USAGE: the rank whose call differs */
	cu_stream stream; /* where it was launched */
	cu_event done;
};
void table_served(struct table *table, const struct table_answer *answer);
/* Why it was not done: the sentence of the one who should have. */
const char *table_reason(const struct table *table);

/* Wait until this rank's round is served. ERR_REMOTE when `abort` is set meanwhile. */
enum err table_wait(struct table *table, uint32_t rank, const uint32_t *abort,
	struct table_answer *answer);

/*
 * A send of one thread to another: the sender lays it down and waits, the receiver takes
 * it, enqueues everything on both streams and says so.
 */
struct letter {
	struct letter *next;
	uint64_t from, bytes;
	cu_stream stream;	/* the sender's */
	cu_event ready;		/* recorded: what is before the send */
	_Atomic uint32_t state; /* not 0: done, or failed (enum err + 1) */
};

void letter_put(struct table *table, uint32_t from, uint32_t to, struct letter *letter);
/* The oldest one. ERR_REMOTE when `abort` is set meanwhile. */
enum err letter_take(struct table *table, uint32_t from, uint32_t to,
	const uint32_t *abort, struct letter **letter);
void letter_done(struct letter *letter, enum err error);
/* Wait until it is; whatever comes of it, nobody has the letter any more. */
enum err letter_wait(struct table *table, struct letter *letter, const uint32_t *abort);

#endif
