/*
 * sched.h - a schedule: what one rank of n does in a collective, as data.
 *
 * Chunks. ALL_REDUCE, BROADCAST and REDUCE divide the vector into `chunk_count` equal
 * chunks, in IN and in OUT alike. In the others a chunk is one rank's block:
 *
 *                   IN chunks       OUT chunks      in place means
 *   ALL_GATHER      1               n               IN[0] is OUT[rank]
 *   REDUCE_SCATTER  n               1               OUT[0] is IN[rank]
 *   ALL_TO_ALL      n               n               (not allowed)
 *   GATHER          1               n (root only)   IN[0] is OUT[root] at the root
 *   SCATTER         n (root only)   1               OUT[0] is IN[root] at the root
 *   the vectors     chunk_count     chunk_count     IN is OUT
 *
 * TMP chunks hold one tile each and are the rank's own scratch.
 * Nothing here knows bytes, types, pointers or hardware.
 */
#ifndef SCHED_SCHED_H
#define SCHED_SCHED_H

#include <stdbool.h>

#include "sched/hosts.h"
#include "sched/prog.h"

enum coll {
	COLL_ALL_REDUCE,
	COLL_BROADCAST,
	COLL_REDUCE,
	COLL_ALL_GATHER,
	COLL_REDUCE_SCATTER,
	COLL_ALL_TO_ALL,
	COLL_GATHER,
	COLL_SCATTER,
	COLL_COUNT
};

enum { SCHED_LANES_MAX = 2 };

struct sched {
	enum coll coll;
	uint32_t rank_count, rank, root;
	const struct sched_hosts *hosts; /* borrowed: it was written for; NULL: one */
	uint32_t chunk_count;		 /* of a vector collective; n in the others */
	uint32_t tmp_count;
	uint32_t lane_count;
	struct prog lanes[SCHED_LANES_MAX];
};

/* "all_reduce", ..; coll_find() gives COLL_COUNT when there is no such name. */
const char *coll_name(enum coll coll);
enum coll coll_find(const char *name);
bool coll_is_vector(enum coll coll);
bool coll_has_root(enum coll coll);
bool coll_reduces(enum coll coll);

/* Blocks of a call's `count` elements that IN or OUT has; 0 where the rank has no such
 * buffer: broadcast reads IN at the root only, reduce writes OUT at the root only. */
uint32_t coll_blocks(enum coll coll, enum space space, bool at_root, uint32_t rank_count);

/* Chunks of a space for this rank; 0 where the rank has no such buffer. */
uint32_t sched_chunks(const struct sched *sched, enum space space);

/* A rank's IN and OUT counted in chunks: OUT behind IN, or, in place, as the table above
 * says. */
struct sched_layout {
	uint32_t in_count, out_count;	/* chunks of each */
	uint32_t in_offset, out_offset; /* of their chunk 0 */
	uint32_t count;			/* of both together */
};

struct sched_layout sched_layout(const struct sched *sched, bool in_place);

/* First chunk that repetition `turn` of an instruction reads as its source, or else has
 * as its destination: it wraps at the end of the space, which the rank must have. */
uint16_t sched_chunk(
	const struct sched *sched, const struct insn *insn, bool source, uint32_t turn);

void sched_fini(struct sched *sched);

#endif
