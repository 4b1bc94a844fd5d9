/*
 * compose.h - a schedule of hosts becomes a part of a schedule of ranks.
 *
 * Between hosts an algorithm needs no second writing: the plain schedule for as many
 * ranks as there are hosts is run by one rank of each host. compose_between() appends its
 * instructions to this rank's, with the peers and the chunks translated:
 *
 *   peer     host g                 -> the rank that drives on host g
 *   chunk    chunk c of a space     -> the units that map_unit() listed for it
 *
 * A unit is one chunk of this rank and a number. Units whose numbers follow each other
 * lie side by side and go as one message; where they do not, a message is cut. The ranks
 * at both ends number alike, so they cut alike.
 */
#ifndef SCHED_COMPOSE_H
#define SCHED_COMPOSE_H

#include "sched/write.h"

struct unit {
	uint16_t chunk;
	uint32_t number;
};

/* What stands for the chunks of one space of the inner schedule. */
struct map {
	enum space space;   /* of this rank, in which they stand */
	struct unit *units; /* owned: of inner chunk 0, then of chunk 1, .. */
	uint32_t *ends;	    /* owned: [inner chunk] how many units up to its end */
	uint32_t unit_count, unit_room, chunk_count, chunk_room;
	bool failed; /* there was no memory: compose_between() says so */
};

/* The next inner chunk begins where the last one ended: list its units, then end it. */
void map_unit(struct map *map, uint32_t chunk, uint32_t number);
void map_end(struct map *map);

/* `count` inner chunks of one unit each, from `first` on. */
void map_slice(struct map *map, enum space space, uint32_t first, uint32_t count);

/* Units of one inner chunk; they begin at map->units[*first]. */
uint32_t map_units(const struct map *map, uint32_t chunk, uint32_t *first);

void map_fini(struct map *map);

struct compose {
	struct writer *writer;	     /* borrowed: of this rank's schedule */
	const struct sched *between; /* borrowed: of this host among the hosts */
	const uint16_t *drivers;     /* borrowed: [host] the rank that stands for it */
	struct map maps[SPACE_COUNT];
};

/* Append the instructions, each to the lane it has. A copy of something onto itself is
 * left out, and so is an instruction whose chunks have no units. Failure sticks in the
 * writer, as always. */
void compose_between(struct compose *compose);

void compose_fini(struct compose *compose);

#endif
