#include "boot/bulletins.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

enum { ROOM_LEAST = 16 };

static bool bulletins_grow(struct bulletins *bulletins)
{
	uint64_t room = bulletins->room ? 2 * bulletins->room : ROOM_LEAST;
	struct bulletin **ring = calloc(room, sizeof(*ring));

	if (!ring)
		return false;
	for (uint64_t i = bulletins->first; bulletins->room && i < bulletins->end; i++)
		ring[i % room] = bulletins->ring[i % bulletins->room];
	free(bulletins->ring);
	bulletins->ring = ring;
	bulletins->room = room;
	return true;
}

bool bulletins_append(struct bulletins *bulletins, const struct strand_head *head,
	const void *bytes, uint32_t from)
{
	struct bulletin *bulletin;

	if (bulletins->end - bulletins->first == bulletins->room &&
		!bulletins_grow(bulletins))
		return false;
	bulletin = malloc(sizeof(*bulletin) + head->bytes);
	if (!bulletin)
		return false;
	bulletin->head = *head;
	bulletin->from = from;
	if (head->bytes)
		memcpy(bulletin->bytes, bytes, head->bytes);
	bulletins->ring[bulletins->end++ % bulletins->room] = bulletin;
	bulletins->bytes += sizeof(*bulletin) + head->bytes;
	return true;
}

const struct bulletin *bulletins_at(const struct bulletins *bulletins, uint64_t number)
{
	assert(number >= bulletins->first && number < bulletins->end);
	return bulletins->ring[number % bulletins->room];
}

void bulletins_drop(struct bulletins *bulletins)
{
	struct bulletin *bulletin;

	assert(bulletins->first < bulletins->end);
	bulletin = bulletins->ring[bulletins->first++ % bulletins->room];
	bulletins->bytes -= sizeof(*bulletin) + bulletin->head.bytes;
	free(bulletin);
}

void bulletins_fini(struct bulletins *bulletins)
{
	while (bulletins->first < bulletins->end)
		bulletins_drop(bulletins);
	free(bulletins->ring);
	*bulletins = (struct bulletins){0};
}
