/*
 * family.h - the schedules lowering looks at, and what it takes of all of them.
 *
 * A rank's program needs the schedules of its peers, in some modes those of their peers,
 * and of everybody how much room the neediest takes, since all must agree on sizes. That
 * is the same for all ranks, so those of one process share it: whoever needs something
 * first writes it, while the others wait, and it goes with the last program that was made
 * of it. Any thread may call.
 *
 * Of few ranks all schedules are looked at. Of many, only those of a sample that has the
 * neediest in it: schedules treat ranks alike but for those at the ends, in the middle,
 * near the root, and beside the largest power of two. That this is so is proved for every
 * schedule of the catalog by comparing with all. Between hosts the sample is taken as if
 * everything were staged, which is at least what any rank needs wherever its peers are.
 * A schedule that knows hosts treats these alike where they are, and some ranks of some
 * hosts are looked at; if hosts differ, all are.
 */
#ifndef SCHED_FAMILY_H
#define SCHED_FAMILY_H

#include "sched/lower.h"

/* Up to so many ranks all are looked at. */
enum { FAMILY_WHOLE_MAX = 64 };

/* What is alike on all ranks. */
struct family_size {
	uint32_t slot_count_max; /* slots the neediest rank's stage needs */
	uint32_t slot_chunks;	 /* chunks the largest staged message holds; at least 1 */
	uint32_t inbox_chunks;	 /* chunks the largest message between hosts holds */
	uint32_t length_max;	 /* moves of the longest lane in a tile */
};

struct family {
	const struct sched *scheds; /* [rank]; those that are there have lanes */
	uint32_t *lengths; /* owned: [rank * SCHED_LANES_MAX + lane] moves per tile */
	struct family_size size;
	/* family.c's */
	struct lower_args key;	   /* hosts owned */
	struct sched_hosts *hosts; /* owned: those of a kind that knows them; or NULL */
	struct sched *written;	   /* owned: scheds, or NULL where they are borrowed */
	uint32_t users;
	struct family *next;
};

/* The family of args->kind, shared by the process, with all that the program of
 * args->rank needs written. */
enum err family_get(const struct lower_args *args, struct family **family);

/* The same with all there is written, for the programs of all ranks. */
enum err family_get_all(const struct lower_args *args, struct family **family);

/* One of schedules already written, which are borrowed and not looked at after the last
 * program is lowered. args->kind and args->rank are not looked at. */
enum err family_of(const struct sched *scheds, const struct lower_args *args,
	struct family **family);

/* Measure a sample only, or everything, whatever the number of ranks; for the proof. */
enum err family_measure(
	const struct lower_args *args, bool sample, struct family_size *size);

/* One more user of a family, and one less; NULL is let go. */
void family_share(struct family *family);
void family_put(struct family *family);

#endif
