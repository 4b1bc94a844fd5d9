/*
 * text_read.h - reads the text form of text.h: the schedules of all ranks.
 *
 * Strict: what is not in the form is an error with its line number. What is read is well
 * formed but may be nonsense; check_scheds() says whether it is right.
 */
#ifndef SCHED_TEXT_READ_H
#define SCHED_TEXT_READ_H

#include "sched/sched.h"

enum { TEXT_NAME_MAX = 32, TEXT_RANKS_MAX = 1024 };

struct text_family {
	char name[TEXT_NAME_MAX];
	uint32_t rank_count;
	struct sched *scheds; /* owned: one per rank */
};

/* Read `text`. Empty lines and lines that begin with '#' are skipped. ERR_ARGUMENT with a
 * sentence naming the line; on failure nothing is left to free. */
enum err text_read(const char *text, struct text_family *family);

void text_family_fini(struct text_family *family);

#endif
