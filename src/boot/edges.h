/*
 * edges.h - which processes of a session keep a strand to which.
 *
 * The processes stand in a circle and each is joined to those 1, 2, 4, 8 .. places away,
 * both ways. So what one floods reaches all in a few steps, any few may die and the rest
 * are still joined, and so they are when all of one host die at once, wherever its
 * processes stand. Who would have nobody of another host next to it, to notice its
 * silence, gets one more.
 */
#ifndef BOOT_EDGES_H
#define BOOT_EDGES_H

#include <stdint.h>

enum { EDGES_MAX = 65 };

/* All that `node` of `count` is joined to by its own rule, in `nodes`; returns how many.
 * hosts[i] is where process i is. */
uint32_t edges_list(
	uint32_t node, uint32_t count, const uint64_t *hosts, uint32_t nodes[EDGES_MAX]);

/* Of those, whom `node` is to call; the others call it. */
uint32_t edges_to_call(
	uint32_t node, uint32_t count, const uint64_t *hosts, uint32_t nodes[EDGES_MAX]);

#endif
