/*
 * family.h - the schedules of all ranks, and what lowering takes of all of them.
 *
 * A rank's program needs the schedules of its peers, and of everybody how long the
 * program is and how many slots it stages through. That is the same for all ranks, so
 * those of one process share it: whoever needs it first writes it, while the others wait,
 * and it goes with the last program that was made of it. Any thread may call.
 */
#ifndef SCHED_FAMILY_H
#define SCHED_FAMILY_H

#include "sched/lower.h"

struct family {
	const struct sched *scheds; /* one per rank */
	uint32_t *lengths; /* owned: [rank * SCHED_LANES_MAX + lane] moves per tile */
	uint32_t slot_count_max; /* slots the neediest rank's stage needs */
	uint32_t slot_chunks;	 /* chunks the largest staged message holds */
	uint32_t inbox_chunks;	 /* chunks the largest message between hosts holds */
	/* family.c's */
	struct lower_args key;	   /* hosts owned */
	struct sched_hosts *hosts; /* owned: they were written for; NULL: one */
	struct sched *written;	   /* owned: scheds, or NULL where they are borrowed */
	uint32_t users;
	struct family *next;
};

/* The family of args->kind, shared by the process; args->rank is not looked at. */
enum err family_get(const struct lower_args *args, struct family **family);

/* One of schedules already written, which are borrowed and not looked at after the last
 * program is lowered. args->kind and args->rank are not looked at. */
enum err family_of(const struct sched *scheds, const struct lower_args *args,
	struct family **family);

/* One more user of a family, and one less; NULL is let go. */
void family_share(struct family *family);
void family_put(struct family *family);

#endif
