/*
 * select.h - the algorithms a program names for one call (ncclCollConfig_t.algSelection).
 *
 * The names are NCCL's, of an algorithm and a protocol (RING_LL) or of a kernel for
 * symmetric memory (SYMK_LD). A word is the beginning of names, in any case; `,` is or,
 * `+` is and, `^` not; blanks count for nothing. Which of the names have a counterpart
 * here is a second question: rings, trees and PAT are schedules, and the kernels that
 * plainly load and store in each other's memory are the direct schedule.
 */
#ifndef TUNE_SELECT_H
#define TUNE_SELECT_H

#include <stdbool.h>
#include <stdint.h>

#include "tune/limits.h"

/* A set of names, one bit each. */
typedef uint64_t select_set;

/* All names of the collective; empty for those that have none. */
select_set select_all(enum coll coll);

/* Those of the collective's names that the text leaves: at least one, or 0 for a text
 * that says nothing. ERR_ARGUMENT: a
 * word is no name, or nothing is left. *why is a sentence, in `room` bytes, and nothing
 * is logged: whether it is a failure is the caller's to say. */
enum err select_parse(
	const char *text, enum coll coll, select_set *set, char *why, size_t room);

/* What to run. */
struct select_choice {
	const char *schedule; /* its name; NULL: whatever is best */
	bool is_direct;	      /* in each other's memory */
	unsigned protos;      /* bit per enum proto: how, where a GPU runs it */
};

/* The counterpart that suits the call best; false when there is none in the set. A set
 * of 0 has no wish.
 * `can_reach`: ranks reach each other's memory, so direct is possible. */
bool select_choose(select_set set, const struct limits_call *call, bool can_reach,
	struct select_choice *choice);

#endif
