/*
 * choose.h - which schedule a call of a given size gets on host memory. Between hosts the
 * answer is between.h's.
 *
 * A small call is eager: its data rides on the board and nobody waits for anybody to
 * arrive. A larger one begins with everyone showing where its buffers are; then the
 * direct schedule is used when all can be reached in place and the staged one when not.
 */
#ifndef TUNE_CHOOSE_H
#define TUNE_CHOOSE_H

#include <stdbool.h>
#include <stddef.h>

#include "base/dtype.h"
#include "base/err.h"
#include "sched/catalog.h"

struct limits;

/* A staged tile should stay in the second-level cache with its neighbours. */
enum { CHOOSE_STAGED_TILE = 512 << 10, CHOOSE_STAGED_DEPTH = 2 };

struct choose_args {
	enum coll coll;
	enum dtype type; /* only a tuner plugin asks */
	uint32_t rank_count;
	const struct sched_hosts *hosts; /* borrowed: where the ranks are; NULL: one */
	size_t bytes;			 /* of the vector, or of one rank's block */
	size_t tile_bytes;     /* between hosts, of calls that add; 0: as tune has it */
	size_t eager_bytes;    /* room for staged data on a card; 0: never eager */
	struct limits *limits; /* borrowed: what NCCL_ALGO and a plugin say; NULL none */
	const char *asked;     /* the schedule the call names; NULL none */
};

struct choice {
	bool eager;
	const struct sched_kind
		*direct; /* when buffers can be reached; unset when eager */
	const struct sched_kind *staged; /* when they cannot, or when eager */
	uint32_t depth;			 /* slots per connection of the staged schedule */
	size_t direct_tile, staged_tile; /* bytes; 0: one tile whatever the size */
};

/* Decide. Between hosts both schedules and both tiles are the same, so that every host
 * may take the way its buffers allow. WEFT_SCHEDULE overrides by name, after it the
 * limits do, and after them the call itself; ERR_USAGE when one of the first two leaves
 * nothing usable. */
enum err choose(const struct choose_args *args, struct choice *choice);

#endif
