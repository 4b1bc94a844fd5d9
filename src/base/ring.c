#include "base/ring.h"

#include <stdlib.h>
#include <string.h>

enum { ROOM_LEAST = 8 };

static enum err ring_grow(struct ring *ring, size_t bytes)
{
	uint32_t room = ring->room ? 2 * ring->room : ROOM_LEAST;
	char *things = malloc(room * bytes);

	if (!things)
		return err_set(ERR_SYSTEM, "no memory for %u messages", room);
	for (uint32_t i = 0; i < ring->count; i++)
		memcpy(things + i * bytes, ring_at(ring, bytes, i), bytes);
	free(ring->things);
	ring->things = things;
	ring->room = room;
	ring->first = 0;
	return OK;
}

void *ring_add(struct ring *ring, size_t bytes)
{
	if (ring->count == ring->room && ring_grow(ring, bytes))
		return NULL;
	return ring_at(ring, bytes, ring->count++);
}
