/*
 * notes.h - a list of notes, numbered from 0 on: appended at one end, forgotten at the
 * other.
 */
#ifndef BOOT_NOTES_H
#define BOOT_NOTES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "boot/line.h"

enum note_type {
	NOTE_BEAT = 1, /* we are still here */
	NOTE_LEAVE,    /* we close this line and are well */
	NOTE_FLOOD,    /* for all ranks, by way of all processes */
	NOTE_LOST,     /* the same: the process of the rank that `kind` says is lost */
	NOTE_DIRECT    /* for one rank */
};

struct note {
	struct line_head head;
	uint32_t from; /* the process that we have it from */
	unsigned char bytes[];
};

/* Zeroed is empty. */
struct notes {
	struct note **ring; /* owned; note i is at i % room */
	uint64_t first, end;
	uint64_t room;
	size_t bytes; /* of all of them */
};

/* A copy; false when there is no memory. */
bool notes_append(struct notes *notes, const struct line_head *head, const void *bytes,
	uint32_t from);

/* The note of this number, from `first` to `end` - 1. */
const struct note *notes_at(const struct notes *notes, uint64_t number);

/* Forget the oldest. */
void notes_drop(struct notes *notes);

/* Forget all. */
void notes_fini(struct notes *notes);

#endif
