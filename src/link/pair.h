/*
 * pair.h - what one rank of a board has for another: a box of letters with its slots, and
 * signals.
 *
 * n ranks could have n x n of them and use few, so one is made when either end first
 * wants it. Pairs lie behind the ranks' parts of the segment, in chunks by which the
 * file grows; a process maps a chunk when it first follows a number into it.
 *
 *   | header | rank 0 | .. | rank n-1 | chunk 0: pair, pair, .. | chunk 1 ..
 *
 * In each rank's part a word for every other rank says which pair it is: a number from
 * one on, 0 while there is none. Both ends may make the same pair at once; the word takes
 * one, and the other's number stays unused.
 */
#ifndef LINK_PAIR_H
#define LINK_PAIR_H

#include "link/board.h"

/* One direction between two ranks; its slots come behind the signals. */
struct pair_room {
	struct box box;
	struct signal signals[];
};

/* The pair of two ranks, made when there is none yet. */
enum err pair_get(
	const struct board *board, uint32_t from, uint32_t to, struct pair_room **pair);

/* The pair as it is now: NULL when nobody has made it, or when it cannot be mapped. */
struct pair_room *pair_find(const struct board *board, uint32_t from, uint32_t to);

/* Bytes for one letter: of the slot that letter number `letter` uses. */
char *pair_slot(const struct board *board, struct pair_room *pair, uint64_t letter);

/* Of the layout: how large pairs and chunks are, from rank_count, signal_count and
 * pair_bytes. */
void pair_layout(struct board *board);

/* The table of what is mapped here; false: no memory for it. */
bool pairs_open(struct board *board);
void pairs_close(struct board *board);

#endif
