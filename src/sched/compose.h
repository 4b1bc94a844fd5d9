/*
 * compose.h - a schedule of hosts becomes a part of a schedule of ranks.
 *
 * Between hosts an algorithm needs no second writing: the plain schedule for as many
 * ranks as there are hosts is run by one rank of each host. compose_between() appends its
 * instructions to this rank's, with the peers and the chunks translated:
 *
 *   peer     host g                 -> the rank that drives on host g
 *   chunk    chunk c of a space     -> the chunks that map_add() listed for it
 *
 * A message stays one message. So the chunks that stand for those of one operand must lie
 * side by side: compose_is_whole() tells, and where they do not, the caller lets chunks
 * of scratch stand for them and copies. What the peer does about it is its own affair.
 */
#ifndef SCHED_COMPOSE_H
#define SCHED_COMPOSE_H

#include "sched/write.h"

/* What stands for the chunks of one space of the inner schedule. */
struct map {
	enum space space; /* of this rank, in which they stand */
	uint16_t *chunks; /* owned: for inner chunk 0, then for chunk 1, .. */
	uint32_t *ends;	  /* owned: [inner chunk] how many chunks up to its end */
	uint32_t count, room, inner_count, inner_room;
	bool failed; /* there was no memory: compose_between() says so */
};

/* The next inner chunk begins where the last one ended: list its chunks, then end it. */
void map_add(struct map *map, uint32_t chunk);
void map_end(struct map *map);

/* `count` inner chunks of one chunk each, from `first` on. */
void map_slice(struct map *map, enum space space, uint32_t first, uint32_t count);

/* Let the same number of chunks of TMP, side by side from `first` on, stand for them. */
void map_to_scratch(struct map *map, uint32_t first);

/* How many stand for one inner chunk; they begin at map->chunks[*first]. */
uint32_t map_count(const struct map *map, uint32_t inner, uint32_t *first);

/* Chunks from map->chunks[at] on that lie side by side; 0 at the end. */
uint32_t map_run(const struct map *map, uint32_t at);

/* That it failed is kept: what was made of the rest before is of no use. */
void map_fini(struct map *map);

struct compose {
	struct writer *writer;	     /* borrowed: of this rank's schedule */
	const struct sched *between; /* borrowed: of this host among the hosts */
	const uint16_t *drivers;     /* borrowed: [host] the rank that stands for it */
	struct map maps[SPACE_COUNT];
};

/* Do the chunks of every operand lie side by side? */
bool compose_is_whole(const struct compose *compose);

/* Append the instructions, each to the lane it has. A copy of something onto itself is
 * left out, and so is an instruction for whose chunks none stand. Failure sticks in the
 * writer, as always. */
void compose_between(struct compose *compose);

void compose_fini(struct compose *compose);

#endif
