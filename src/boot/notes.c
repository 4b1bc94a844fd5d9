#include "boot/notes.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

enum { ROOM_LEAST = 16 };

static bool notes_grow(struct notes *notes)
{
	uint64_t room = notes->room ? 2 * notes->room : ROOM_LEAST;
	struct note **ring = calloc(room, sizeof(*ring));

	if (!ring)
		return false;
	for (uint64_t i = notes->first; i < notes->end; i++)
		ring[i % room] = notes->ring[i % notes->room];
	free(notes->ring);
	notes->ring = ring;
	notes->room = room;
	return true;
}

bool notes_append(struct notes *notes, const struct line_head *head, const void *bytes,
	uint32_t from)
{
	struct note *note;

	if (notes->end - notes->first == notes->room && !notes_grow(notes))
		return false;
	note = malloc(sizeof(*note) + head->bytes);
	if (!note)
		return false;
	note->head = *head;
	note->from = from;
	if (head->bytes)
		memcpy(note->bytes, bytes, head->bytes);
	notes->ring[notes->end++ % notes->room] = note;
	notes->bytes += sizeof(*note) + head->bytes;
	return true;
}

const struct note *notes_at(const struct notes *notes, uint64_t number)
{
	assert(number >= notes->first && number < notes->end);
	return notes->ring[number % notes->room];
}

void notes_drop(struct notes *notes)
{
	struct note *note;

	assert(notes->first < notes->end);
	note = notes->ring[notes->first++ % notes->room];
	notes->bytes -= sizeof(*note) + note->head.bytes;
	free(note);
}

void notes_fini(struct notes *notes)
{
	while (notes->first < notes->end)
		notes_drop(notes);
	free(notes->ring);
	*notes = (struct notes){0};
}
