/*
 * words.h - many words looked for in one pass, however many there are (Aho and Corasick).
 *
 * The words are ASCII and found in any case. A match costs nothing but its report, so a
 * log is read at the speed of memory whatever the catalogue holds.
 */
#ifndef TOOLS_WEFT_DOCTOR_WORDS_H
#define TOOLS_WEFT_DOCTOR_WORDS_H

#include <stddef.h>
#include <stdint.h>

#include "base/err.h"

struct words;

/* The words are copied; word i is reported as i. At most WORDS_MAX. */
enum { WORDS_MAX = 512 };
enum err words_create(struct words **words, const char *const *list, uint32_t count);
void words_destroy(struct words *words);

/* Which words are in a text: each once, in the order of their ends; at most `room`.
 * Returns how many. */
uint32_t words_find(const struct words *words, const char *text, size_t bytes,
	uint16_t *found, uint32_t room);

#endif
