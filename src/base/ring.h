/*
 * ring.h - room for a ring of things that comes to hold more than it has.
 */
#ifndef BASE_RING_H
#define BASE_RING_H

#include <stddef.h>
#include <stdint.h>

#include "base/err.h"

/* What a ring is made of; its things are of `bytes` bytes each. */
struct ring {
	void *things; /* owned; NULL while there is no room */
	uint32_t first, count, room;
};

/* Room for one more, behind the last: where it is, counted already; NULL, with a
 * sentence, when there is no memory for it. */
void *ring_add(struct ring *ring, size_t bytes);

/* Thing `i` of those there are. */
static inline void *ring_at(const struct ring *ring, size_t bytes, uint32_t i)
{
	return (char *)ring->things + (ring->first + i) % ring->room * bytes;
}

/* The first goes. */
static inline void ring_drop(struct ring *ring)
{
	ring->first = (ring->first + 1) % ring->room;
	ring->count--;
}

#endif
