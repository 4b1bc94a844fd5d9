/*
 * edits.h - how unlike two names are, to find the one that was probably meant.
 */
#ifndef BASE_EDITS_H
#define BASE_EDITS_H

#include <stdint.h>

enum { EDITS_BYTES = 96 };

/* How many letters to leave out, add, change or swap with the next to come from one to
 * the other, whatever their case; EDITS_BYTES where one is that long. */
uint32_t edits_between(const char *a, const char *b);

#endif
